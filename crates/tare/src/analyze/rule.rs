//! What a rule of a publication's needs: what ratio is made of two of its values.
//!
//! A ratio against the baseline is the cell's own paired interval, and one of several instances to one alone is that
//! of the series, paired by block. Other ratios are made of the two values' intervals, lower end over upper end and
//! upper over lower: wider than a paired interval would be, so a verdict from it is on the safe side. What is no interval
//! but a range of few blocks, and a cell whose two sides cannot be compared, decide nothing.

use tare_model::Better;
use tare_model::dossier::{DossierCell, Span};
use tare_model::publication::{Rule, Several};

use super::beside::is_same_metric;
use super::cell::counted;
use super::diagnostics::{DIFFERENT_TOOL, EMULATED};
use super::flag::THROTTLED;
use super::quantity::Lookup;
use super::{FEWEST_BLOCKS, LEVEL};

/// Whether a ratio is one of two arms, or of two numbers of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    OneArm,
    TwoArms,
}

/// Whether a span is an interval of the run's level, and no range of fewer blocks than give one.
fn is_interval(span: &Span, n_blocks: u32) -> bool {
    n_blocks as usize >= FEWEST_BLOCKS && span.level.is_none_or(|level| level >= LEVEL)
}

impl Lookup<'_> {
    /// What one value costs against another one, in the same or in another arm.
    pub(super) fn between(
        &self,
        first: (&str, &str, u32),
        second: (&str, &str, u32),
    ) -> Result<Span, String> {
        let (above, cell) = self.value(first.0, first.1, first.2)?;
        let (below, other) = self.value(second.0, second.1, second.2)?;
        let sides = if first.1 == second.1 {
            Sides::OneArm
        } else {
            Sides::TwoArms
        };
        for (cell, span, arm) in [(cell, &above, first.1), (other, &below, second.1)] {
            self.genuine(cell, arm, sides)?;
            if !is_interval(span, cell.n_blocks) {
                return Err(format!(
                    "{} in `{arm}` has no interval: {}",
                    cell.metric,
                    counted(cell.n_blocks as usize, "block")
                ));
            }
        }
        let is_inverse = self.quantity(first.0).is_some_and(|it| it.inverse);
        quotient(
            &above,
            &below,
            (cell.better == Better::Higher) != is_inverse,
        )
        .ok_or_else(|| "a value is not above 0".to_owned())
    }

    /// How much more an instance takes with others than alone, paired by block, or all of them together where that is
    /// what is published; `None` where the run has no such series.
    fn stretch(&self, name: &str, arm: &str, instances: u32) -> Option<Result<Span, String>> {
        let point = self.point(name, arm, instances)?;
        let stretch = point.stretch?;
        if !is_interval(&stretch, point.n_blocks) {
            return Some(Err(format!(
                "fewer than {FEWEST_BLOCKS} blocks have {instances} instances of it and one alone in `{arm}`"
            )));
        }
        let is_of_all = self.quantity(name)?.is_of_all();
        let times = if is_of_all { f64::from(instances) } else { 1.0 };
        Some(Ok(Span {
            point: stretch.point * times,
            low: stretch.low * times,
            high: stretch.high * times,
            level: stretch.level,
        }))
    }

    /// That a cell says of its arm what a rule is about: an emulated processor says nothing of the environment that it
    /// stands in for, one that was stopped by a quota that nobody asked for nothing of its speed, and two programs
    /// nothing of the two places in which they ran.
    fn genuine(&self, cell: &DossierCell, arm: &str, sides: Sides) -> Result<(), String> {
        let find = |cells: &mut dyn Iterator<Item = &'_ DossierCell>, id: &str| {
            let mut flags = cells.flat_map(|cell| &cell.flags);
            flags
                .find(|flag| flag.id == id)
                .map(|flag| flag.detail.clone())
        };
        // A cell is also flagged for its arm; the baseline's own state shows in its copy.
        let flagged = |id: &str| {
            if arm != self.baseline() {
                return find(&mut std::iter::once(cell), id);
            }
            let is_of_all = id == EMULATED;
            let of_copy = self.dossier.aa.iter();
            find(
                &mut of_copy.filter(|copy| is_of_all || is_same_metric(copy, cell)),
                id,
            )
        };
        if flagged(EMULATED).is_some() {
            return Err(format!(
                "`{arm}` is emulated here, which says nothing of what it costs"
            ));
        }
        if let Some(detail) = flagged(THROTTLED) {
            return Err(format!("{} in `{arm}`: {detail}", cell.metric));
        }
        if let (Sides::TwoArms, Some(detail)) = (sides, flagged(DIFFERENT_TOOL)) {
            return Err(format!(
                "{} in `{arm}` was measured with another program: {detail}",
                cell.metric
            ));
        }
        Ok(())
    }

    fn cost(&self, name: &str, arm: &str, instances: u32) -> Result<Span, String> {
        let cell = self
            .cell(name, arm, instances)
            .ok_or_else(|| self.why(name, arm, instances))?;
        self.genuine(cell, arm, Sides::TwoArms)?;
        cell.ratio.ok_or_else(|| {
            // What was struck out left no block.
            let failure = (cell.n_blocks == 0).then(|| self.failure(name, arm));
            failure.flatten().unwrap_or_else(|| {
                format!(
                    "{} in `{arm}` gave no ratio: {}",
                    cell.metric,
                    counted(cell.n_blocks as usize, "block")
                )
            })
        })
    }

    /// What an arm costs against another one, or against the baseline.
    fn cost_against(
        &self,
        name: &str,
        arm: &str,
        other: Option<&str>,
        instances: u32,
    ) -> Result<Span, String> {
        match other {
            Some(other) => self.between((name, arm, instances), (name, other, instances)),
            None => self.cost(name, arm, instances),
        }
    }

    /// How much more several instances take than one alone.
    fn growth(&self, name: &str, arm: &str, instances: u32) -> Result<Span, String> {
        if let Some(cell) = self.cell(name, arm, instances) {
            self.genuine(cell, arm, Sides::OneArm)?;
        }
        match self.stretch(name, arm, instances) {
            Some(stretch) => stretch,
            None => self.between((name, arm, instances), (name, arm, 1)),
        }
    }

    /// One of the ratios that a rule about several counts.
    pub(super) fn one_of(&self, name: &str, several: &Several) -> Result<Span, String> {
        let (arm, instances) = (several.arm.as_str(), several.instances);
        if several.alone {
            return self.growth(name, arm, instances);
        }
        self.cost_against(name, arm, several.other.as_deref(), instances)
    }

    /// The instance that fares worst against the mean of all, each by its own interval.
    fn worst_over_mean(&self, name: &str, arm: &str, instances: u32) -> Result<Span, String> {
        if instances == 1 {
            return Err(format!(
                "one program ran in `{arm}`, and no second one that it could be held against"
            ));
        }
        let cell = self
            .cell(name, arm, instances)
            .ok_or_else(|| self.why(name, arm, instances))?;
        self.genuine(cell, arm, Sides::OneArm)?;
        let is_rate = cell.better == Better::Higher;
        self.point(name, arm, instances)
            .filter(|point| {
                let mut spans = [point.worst, point.value].into_iter().flatten();
                spans.all(|span| is_interval(&span, point.n_blocks))
            })
            .and_then(|point| quotient(&point.worst?, &point.value?, is_rate))
            .ok_or_else(|| self.why(name, arm, instances))
    }

    pub(super) fn ratio(&self, rule: &Rule) -> Result<Span, String> {
        match rule {
            Rule::Cost {
                quantity,
                arm,
                instances,
                ..
            } => self.cost(quantity, arm, *instances),
            Rule::Growth {
                quantity,
                arm,
                instances,
                ..
            } => self.growth(quantity, arm, *instances),
            Rule::Costs {
                quantity,
                to,
                instances,
                to_instances,
                arm,
                other,
                ..
            } => {
                let cost = |name, n| self.cost_against(name, arm, other.as_deref(), n);
                let above = cost(quantity, *instances)?;
                let below = cost(to, *to_instances)?;
                quotient(&above, &below, false).ok_or_else(|| "a cost is not above 0".to_owned())
            }
            Rule::Even {
                quantity,
                arm,
                instances,
                ..
            } => self.worst_over_mean(quantity, arm, *instances),
            _ => match rule.sides(self.baseline()) {
                Some((first, second)) => self.between(first, second),
                None => Err("the rule is not about one ratio".to_owned()),
            },
        }
    }
}

/// The cost of the first over that of the second; rates are turned over, so that above 1 is always more costly.
fn quotient(above: &Span, below: &Span, is_rate: bool) -> Option<Span> {
    let (above, below) = if is_rate {
        (below, above)
    } else {
        (above, below)
    };
    let is_positive = above.low > 0.0 && below.low > 0.0;
    is_positive.then(|| {
        Span::new(
            above.low / below.high,
            above.point / below.point,
            above.high / below.low,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_as_wide_as_both_intervals_allow() {
        let of = quotient(&Span::new(2.0, 3.0, 4.0), &Span::new(1.0, 1.5, 2.0), false).unwrap();
        assert_eq!((of.low, of.point, of.high), (1.0, 2.0, 4.0));
        let rate = quotient(&Span::new(2.0, 3.0, 4.0), &Span::new(1.0, 1.5, 2.0), true).unwrap();
        assert_eq!((rate.low, rate.point, rate.high), (0.25, 0.5, 1.0));
        assert!(quotient(&Span::new(0.0, 1.0, 2.0), &Span::new(1.0, 1.0, 1.0), false).is_none());
    }
}
