//! The result of interleaving the arms: a trial's slices, or their comparison with those of the other arms.
//!
//! Slices are most of what is kept of a trial. Once all arms of a block have arrived they are compared pairwise, and
//! only the medians stay, so that a million trials fit into memory.

use tare_stats::median_in_place;

/// The data by which interleaved trials are compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turns {
    /// It ran whole.
    Whole,
    /// The slices of each metric, in the order of their cycles.
    Slices(Box<[Box<[f32]>]>),
    /// By metric and then by arm in the study's order: the median over the cycles of ln(this arm/that arm). NaN if
    /// there is none.
    Ratios {
        /// Number of arms of the study.
        n_arms: usize,
        /// The medians.
        medians: Box<[f64]>,
    },
}

impl Turns {
    /// Whether the arms were interleaved.
    pub(crate) fn were_taken(&self) -> bool {
        *self != Self::Whole
    }

    /// The slices of a metric, as long as they are kept.
    pub(crate) fn slices(&self, place: usize) -> Option<&[f32]> {
        match self {
            Self::Slices(slices) => slices.get(place).map(|slices| &**slices),
            Self::Whole | Self::Ratios { .. } => None,
        }
    }

    /// The median over the cycles of ln(this/other) of a metric; `arm` is the other's index in the study. `None`
    /// unless both were interleaved, without a cycle, or if a value has no logarithm.
    pub(crate) fn ratio(&self, other: &Self, place: usize, arm: usize) -> Option<f64> {
        let Self::Ratios { n_arms, medians } = self else {
            return median_ratio(self.slices(place)?, other.slices(place)?);
        };
        let median = *medians.get(place * n_arms + arm)?;
        (other.were_taken() && !median.is_nan()).then_some(median)
    }

    /// Compares the arms of a block pairwise, by index in the study; `None` for an arm without slices, which is not
    /// compared.
    pub(crate) fn settled(of_block: &[Option<&Self>]) -> Vec<Option<Self>> {
        let n_arms = of_block.len();
        let n_metrics = of_block.iter().map(|turns| match turns {
            Some(Self::Slices(slices)) => slices.len(),
            _ => 0,
        });
        let n_metrics = n_metrics.max().unwrap_or(0);
        let mut medians = vec![vec![f64::NAN; n_metrics * n_arms]; n_arms];
        let mut ratios = Vec::new();
        for place in 0..n_metrics {
            let logarithms: Vec<Option<Vec<f64>>> = of_block
                .iter()
                .map(|turns| turns.and_then(|turns| turns.slices(place)).map(logarithms))
                .collect();
            for left in 0..n_arms {
                for right in left + 1..n_arms {
                    let both = logarithms[left].as_ref().zip(logarithms[right].as_ref());
                    let median = both.and_then(|(left, right)| {
                        ratios.clear();
                        ratios.extend(left.iter().zip(right).map(|(left, right)| left - right));
                        median_in_place(&mut ratios)
                    });
                    let median = median.unwrap_or(f64::NAN);
                    medians[left][place * n_arms + right] = median;
                    medians[right][place * n_arms + left] = -median;
                }
            }
        }
        let settled = of_block.iter().zip(medians).map(|(turns, medians)| {
            matches!(turns, Some(Self::Slices(_))).then(|| Self::Ratios {
                n_arms,
                medians: medians.into_boxed_slice(),
            })
        });
        settled.collect()
    }
}

/// The median over the cycles of ln(left/right); `None` without a cycle, or if a value has no logarithm.
fn median_ratio(left: &[f32], right: &[f32]) -> Option<f64> {
    let both = logarithms(left).into_iter().zip(logarithms(right));
    median_in_place(&mut both.map(|(left, right)| left - right).collect::<Vec<f64>>())
}

/// NaN for a value without a logarithm; no median results from it.
fn logarithms(values: &[f32]) -> Vec<f64> {
    let ln = |value: f32| {
        if value > 0.0 {
            f64::from(value).ln()
        } else {
            f64::NAN
        }
    };
    values.iter().copied().map(ln).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_turns_give_the_same_ratios_as_slices() {
        let slices = |metrics: &[&[f32]]| {
            Turns::Slices(metrics.iter().map(|values| (*values).into()).collect())
        };
        let arms = [
            slices(&[&[1.0, 2.0, 3.0], &[5.0, 6.0]]),
            slices(&[&[1.1, 2.5, 3.0], &[0.0, 6.0]]),
            slices(&[&[0.9, 2.1, 3.3], &[]]),
        ];
        let all = Turns::settled(&arms.iter().map(Some).collect::<Vec<_>>());
        let all: Vec<Turns> = all.into_iter().flatten().collect();
        for left in 0..3 {
            for right in (0..3).filter(|right| *right != left) {
                for place in 0..3 {
                    let before = arms[left].ratio(&arms[right], place, right);
                    let after = all[left].ratio(&all[right], place, right);
                    assert_eq!(before, after, "{left} {right} {place}");
                }
            }
        }
        assert!(all[0].ratio(&Turns::Whole, 0, 1).is_none());
        assert!(all[0].slices(0).is_none() && all[0].were_taken());
        // Absent arms, and arms that ran whole, do not affect the others.
        let some = Turns::settled(&[Some(&arms[0]), None, Some(&Turns::Whole), Some(&arms[2])]);
        let (first, last) = (some[0].as_ref().unwrap(), some[3].as_ref().unwrap());
        assert_eq!((&some[1], &some[2]), (&None, &None));
        assert_eq!(first.ratio(last, 0, 3), arms[0].ratio(&arms[2], 0, 3));
        assert!(first.ratio(&Turns::Whole, 0, 2).is_none());
    }
}
