//! The result of interleaving the arms: a trial's slices, or their comparison with those of the other arms.
//!
//! Slices are most of what is kept of a trial. Once all arms of a block have arrived they are compared pairwise, and
//! only the medians stay, so that a million trials fit into memory.

use tare_stats::median_in_place;

/// The data by which interleaved trials are compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Turns {
    /// It ran whole.
    #[default]
    Whole,
    /// It was interleaved.
    Slices(Slices),
    /// By metric and then by arm in the study's order: the median over the cycles of ln(this arm/that arm). NaN if
    /// there is none.
    Ratios {
        /// Number of arms of the study.
        n_arms: usize,
        /// The medians.
        medians: Box<[f64]>,
    },
}

/// The slices of an interleaved trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slices {
    /// The only stage that the arm ran in; `None` if its slices are those of all stages, in their order.
    pub(crate) stage: Option<u32>,
    /// By metric, in the order of their cycles.
    pub(crate) metrics: Box<[Box<[f32]>]>,
}

impl Slices {
    /// The logarithms of a metric's slices, NaN for a value that has none; `None` without the metric.
    fn logarithms(&self, place: usize) -> Option<Logarithms> {
        let ln = |value: &f32| {
            if *value > 0.0 {
                f64::from(*value).ln()
            } else {
                f64::NAN
            }
        };
        let all = self.metrics.get(place)?.iter().map(ln).collect();
        Some(Logarithms {
            stage: self.stage,
            all,
        })
    }
}

/// Logarithms of the slices of one metric.
struct Logarithms {
    stage: Option<u32>,
    all: Vec<f64>,
}

impl Logarithms {
    /// Those of the cycles that `other` ran in too; of an arm of all stages that is the part of `other`'s stage. `None`
    /// if the two ran in different stages.
    fn in_common_with(&self, other: &Self) -> Option<&[f64]> {
        match (self.stage, other.stage) {
            (None, Some(stage)) => {
                let count = other.all.len();
                let begin = count * stage as usize;
                self.all.get(begin..begin + count)
            }
            (Some(one), Some(another)) if one != another => None,
            _ => Some(&self.all),
        }
    }

    /// The median over the cycles of ln(this/other). `None` if the two ran in different stages, without a cycle, or if
    /// a value has no logarithm.
    fn ratio(&self, other: &Self, ratios: &mut Vec<f64>) -> Option<f64> {
        let both = self
            .in_common_with(other)?
            .iter()
            .zip(other.in_common_with(self)?);
        ratios.clear();
        ratios.extend(both.map(|(own, other)| own - other));
        median_in_place(ratios)
    }
}

impl Turns {
    /// Whether the arms were interleaved.
    pub(crate) fn were_taken(&self) -> bool {
        *self != Self::Whole
    }

    /// The slices of a metric, as long as they are kept.
    pub(crate) fn slices(&self, place: usize) -> Option<&[f32]> {
        Some(self.all()?.metrics.get(place)?)
    }

    fn all(&self) -> Option<&Slices> {
        match self {
            Self::Slices(slices) => Some(slices),
            Self::Whole | Self::Ratios { .. } => None,
        }
    }

    /// The median over the cycles of ln(this/other) of a metric; `arm` is the other's index in the study. `None`
    /// unless both were interleaved, without a cycle, or if a value has no logarithm.
    pub(crate) fn ratio(&self, other: &Self, place: usize, arm: usize) -> Option<f64> {
        let Self::Ratios { n_arms, medians } = self else {
            let logarithms = |turns: &Self| turns.all()?.logarithms(place);
            return logarithms(self)?.ratio(&logarithms(other)?, &mut Vec::new());
        };
        let median = *medians.get(place * n_arms + arm)?;
        (other.were_taken() && !median.is_nan()).then_some(median)
    }

    /// Replaces the slices of a block's arms by their comparison.
    pub(super) fn settle(arms: Vec<Option<&mut Self>>) {
        let of_block: Vec<Option<&Self>> = arms.iter().map(|turns| turns.as_deref()).collect();
        let settled = Self::settled(&of_block);
        for (turns, settled) in arms.into_iter().zip(settled) {
            if let (Some(turns), Some(settled)) = (turns, settled) {
                *turns = settled;
            }
        }
    }

    /// Compares the arms of a block pairwise, by index in the study; `None` for an arm without slices, which is not
    /// compared. Two arms that ran in different stages are compared by what each is to the arms of all stages.
    fn settled(of_block: &[Option<&Self>]) -> Vec<Option<Self>> {
        let n_arms = of_block.len();
        let all: Vec<Option<&Slices>> = of_block.iter().map(|turns| (*turns)?.all()).collect();
        let n_metrics = all.iter().flatten().map(|slices| slices.metrics.len());
        let n_metrics = n_metrics.max().unwrap_or(0);
        let mut medians = vec![vec![f64::NAN; n_metrics * n_arms]; n_arms];
        let mut ratios = Vec::new();
        for place in 0..n_metrics {
            let logarithms: Vec<Option<Logarithms>> = all
                .iter()
                .map(|slices| (*slices)?.logarithms(place))
                .collect();
            let mut ratio = |left: usize, right: usize| {
                let left = logarithms[left].as_ref()?;
                left.ratio(logarithms[right].as_ref()?, &mut ratios)
            };
            for left in 0..n_arms {
                for right in left + 1..n_arms {
                    let median = ratio(left, right).or_else(|| {
                        let by = |arm: usize| {
                            logarithms[arm].as_ref()?.stage.is_none().then_some(())?;
                            Some(ratio(left, arm)? - ratio(right, arm)?)
                        };
                        mean(&(0..n_arms).filter_map(by).collect::<Vec<f64>>())
                    });
                    let median = median.unwrap_or(f64::NAN);
                    medians[left][place * n_arms + right] = median;
                    medians[right][place * n_arms + left] = -median;
                }
            }
        }
        let settled = all.iter().zip(medians).map(|(slices, medians)| {
            slices.is_some().then(|| Self::Ratios {
                n_arms,
                medians: medians.into_boxed_slice(),
            })
        });
        settled.collect()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_turns_give_the_same_ratios_as_slices() {
        let slices = |metrics: &[&[f32]]| {
            Turns::Slices(Slices {
                stage: None,
                metrics: metrics.iter().map(|values| (*values).into()).collect(),
            })
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

    #[test]
    fn arms_of_other_stages_are_compared_by_the_common_arm() {
        let slices = |stage, values: &[f32]| {
            Turns::Slices(Slices {
                stage,
                metrics: Box::new([values.into()]),
            })
        };
        // The machine is twice as slow in the second stage.
        let arms = [
            slices(None, &[1.0, 1.0, 2.0, 2.0]),
            slices(None, &[1.0, 1.0, 2.0, 2.0]),
            slices(Some(0), &[3.0, 3.0]),
            slices(Some(1), &[8.0, 8.0]),
        ];
        let near = |found: Option<f64>, expected: f64| {
            let found = found.unwrap();
            assert!((found - expected.ln()).abs() < 1e-6, "{found} {expected}");
        };
        assert_eq!(arms[2].ratio(&arms[3], 0, 3), None);
        let settled = Turns::settled(&arms.iter().map(Some).collect::<Vec<_>>());
        let settled: Vec<Turns> = settled.into_iter().flatten().collect();
        for arms in [&arms[..], &settled] {
            near(arms[2].ratio(&arms[0], 0, 0), 3.0);
            near(arms[3].ratio(&arms[1], 0, 1), 4.0);
            near(arms[0].ratio(&arms[3], 0, 3), 0.25);
            near(arms[1].ratio(&arms[0], 0, 0), 1.0);
        }
        near(settled[3].ratio(&settled[2], 0, 2), 4.0 / 3.0);
    }
}
