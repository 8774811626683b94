//! Computes the ratio that a publication's rule is about.
//!
//! A ratio against the baseline is the cell's own paired interval, and one of several instances to a single one is
//! that of the series. Every other ratio is paired by block as well: what blocks share, such as a neighbour's load,
//! cancels out. Only if two values have too few blocks in common is it computed from their intervals, lower end over
//! upper end and upper over lower, which is wider. A range of few blocks instead of an interval, and a cell whose two
//! sides cannot be compared, decide nothing.

use std::collections::BTreeMap;

use tare_model::dossier::{DossierBlock, DossierCell, Span};
use tare_model::facts::cpu_list;
use tare_model::publication::{Available, QuantityRef, Rule, Several};
use tare_model::{Better, fact};
use tare_stats::{Differences, Interval, normal_quantile};

use super::cell::counted;
use super::diagnostics::{DIFFERENT_TOOL, EMULATED};
use super::effect::interval_at;
use super::flag::THROTTLED;
use super::quantity::Lookup;
use super::run_comparison::is_same_metric;
use super::{FEWEST_BLOCKS, LEVEL};

/// Whether a ratio is one of two arms, or of two numbers of the same arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    OneArm,
    TwoArms,
}

/// Whether a span is an interval of the run's level, rather than a range of too few blocks.
fn is_interval(span: &Span, n_blocks: u32) -> bool {
    n_blocks as usize >= FEWEST_BLOCKS && span.level.is_none_or(|level| level >= LEVEL)
}

/// ln of a ratio in every block, and the block's launch.
type ByBlock = BTreeMap<u32, (u32, Differences)>;

/// A ratio with its 95 % interval, and its blocks if they are known.
pub(super) struct Ratio {
    pub(super) span: Span,
    by_block: ByBlock,
}

impl Ratio {
    fn of_span(span: Span) -> Self {
        Self {
            span,
            by_block: ByBlock::new(),
        }
    }

    /// Returns `None` if there are too few blocks.
    fn of_blocks(by_block: ByBlock) -> Option<Self> {
        let span = span_at(&by_block, LEVEL)?;
        Some(Self { span, by_block })
    }

    /// The interval that excludes the truth in at most 5 % of cases for all of `n` ratios together (Bonferroni, which
    /// is the first step of Holm's). `None` if there are too few blocks for one.
    pub(super) fn of_several(&self, n: usize) -> Option<Span> {
        let level = 1.0 - (1.0 - LEVEL) / n.max(1) as f64;
        if !self.by_block.is_empty() {
            return span_at(&self.by_block, level);
        }
        // For a series of instances the dossier has only the interval.
        let z = |level: f64| normal_quantile(f64::midpoint(1.0, level));
        let factor = z(level) / z(LEVEL);
        let Span {
            point, low, high, ..
        } = self.span;
        let away = |end: f64| point * (end / point).powf(factor);
        (low > 0.0).then(|| Span::new(away(low), point, away(high)))
    }
}

fn span_at(by_block: &ByBlock, level: f64) -> Option<Span> {
    let (launches, differences): (Vec<u32>, Vec<Differences>) = by_block.values().copied().unzip();
    let Interval {
        point, low, high, ..
    } = interval_at(&differences, &launches, level).ok()?.exp();
    Some(Span::new(low, point, high))
}

/// The difference of the first and the second, in the blocks that both have.
fn over(first: &ByBlock, second: &ByBlock) -> ByBlock {
    let both = first.iter().filter_map(|(block, (launch, above))| {
        let (_, below) = second.get(block)?;
        Some((*block, (*launch, above.with(*below, |a, b| a - b))))
    });
    both.collect()
}

/// The ratio of a cell in each block, against either copy of the baseline.
fn by_block(cell: &DossierCell) -> ByBlock {
    let of = |block: &DossierBlock| {
        let ratio = block.ratio(cell.better)?.ln();
        let apart = block.apart.map(|apart| match cell.better {
            Better::Lower => apart,
            Better::Higher => -apart,
        });
        let found = apart.map_or(Differences::one(ratio), |apart| {
            Differences::two(ratio + apart / 2.0, ratio - apart / 2.0)
        });
        Some((block.block, (block.launch, found)))
    };
    cell.blocks.iter().filter_map(of).collect()
}

impl Lookup<'_> {
    /// ln of a value in every block.
    fn logs(&self, (name, arm, instances): QuantityRef<'_>) -> ByBlock {
        let Some(cell) = self.cell(name, arm, instances) else {
            return ByBlock::new();
        };
        let is_baseline = arm == self.baseline();
        let of = |block: &DossierBlock| {
            let value = if is_baseline { block.base } else { block.env };
            let value = self.as_published(
                name,
                Span::new(value, value, value),
                (&cell.params, cell.instances),
            )?;
            let log = Differences::one(value.point.ln());
            (value.point > 0.0).then_some((block.block, (block.launch, log)))
        };
        cell.blocks.iter().filter_map(of).collect()
    }

    /// The cost of one value over another, in the same or in another arm.
    pub(super) fn between(
        &self,
        first: QuantityRef<'_>,
        second: QuantityRef<'_>,
    ) -> Result<Ratio, String> {
        let (above, cell) = self.value(first.0, first.1, first.2)?;
        let (below, other) = self.value(second.0, second.1, second.2)?;
        let sides = if first.1 == second.1 {
            Sides::OneArm
        } else {
            Sides::TwoArms
        };
        for (cell, arm) in [(cell, first.1), (other, second.1)] {
            self.genuine(cell, arm, sides)?;
        }
        let is_inverse = self.quantity(first.0).is_some_and(|it| it.inverse);
        let is_rate = (cell.better == Better::Higher) != is_inverse;
        let (above_logs, below_logs) = (self.logs(first), self.logs(second));
        let by_block = if is_rate {
            over(&below_logs, &above_logs)
        } else {
            over(&above_logs, &below_logs)
        };
        if let Some(ratio) = Ratio::of_blocks(by_block) {
            return Ok(ratio);
        }
        for (cell, span, arm) in [(cell, &above, first.1), (other, &below, second.1)] {
            if !is_interval(span, cell.n_blocks) {
                return Err(format!(
                    "{} in `{arm}` has no interval: {}",
                    cell.metric,
                    counted(cell.n_blocks as usize, "block")
                ));
            }
        }
        quotient(&above, &below, is_rate)
            .map(Ratio::of_span)
            .ok_or_else(|| "a value is not above 0".to_owned())
    }

    /// How many times longer an instance takes with others than alone, paired by block, or all of them together if
    /// that is what is published; `None` if the run has no such series.
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

    /// Checks that a cell is valid evidence about its arm for a rule: an emulated CPU is no evidence about the
    /// environment, a CPU throttled by a quota that was not requested is none about its speed, and two programs are
    /// none about the places where they ran.
    fn genuine(&self, cell: &DossierCell, arm: &str, sides: Sides) -> Result<(), String> {
        let find = |cells: &mut dyn Iterator<Item = &'_ DossierCell>, id: &str| {
            let mut flags = cells.flat_map(|cell| &cell.flags);
            flags
                .find(|flag| flag.id == id)
                .map(|flag| flag.detail.clone())
        };
        // A cell is also flagged for its arm; the baseline's state shows in its copy.
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

    fn cost(&self, name: &str, arm: &str, instances: u32) -> Result<Ratio, String> {
        let cell = self
            .cell(name, arm, instances)
            .ok_or_else(|| self.why(name, arm, instances))?;
        self.genuine(cell, arm, Sides::TwoArms)?;
        let span = cell.ratio.ok_or_else(|| {
            // Void trials left no block.
            let failure = (cell.n_blocks == 0).then(|| self.failure(name, arm));
            failure.flatten().unwrap_or_else(|| {
                format!(
                    "{} in `{arm}` gave no ratio: {}",
                    cell.metric,
                    counted(cell.n_blocks as usize, "block")
                )
            })
        })?;
        Ok(Ratio {
            span,
            by_block: by_block(cell),
        })
    }

    /// The cost of an arm over another one, or over the baseline.
    fn cost_against(
        &self,
        name: &str,
        arm: &str,
        other: Option<&str>,
        instances: u32,
    ) -> Result<Ratio, String> {
        match other {
            Some(other) => self.between((name, arm, instances), (name, other, instances)),
            None => self.cost(name, arm, instances),
        }
    }

    /// How many times longer several instances take than a single one.
    fn growth(&self, name: &str, arm: &str, instances: u32) -> Result<Ratio, String> {
        if let Some(cell) = self.cell(name, arm, instances) {
            self.genuine(cell, arm, Sides::OneArm)?;
        }
        match self.stretch(name, arm, instances) {
            Some(stretch) => stretch.map(Ratio::of_span),
            None => self.between((name, arm, instances), (name, arm, 1)),
        }
    }

    /// One of the ratios that a rule about several counts.
    pub(super) fn one_of(&self, name: &str, several: &Several) -> Result<Ratio, String> {
        let (arm, instances) = (several.arm.as_str(), several.instances);
        if several.alone {
            return self.growth(name, arm, instances);
        }
        self.cost_against(name, arm, several.other.as_deref(), instances)
    }

    /// The instance that performs worst over the mean of all, each by its interval.
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

    /// A value with all its instances, over the arm's available amount if requested.
    fn amount(&self, place: QuantityRef<'_>, of: Option<Available>) -> Result<Span, String> {
        let (name, arm, instances) = place;
        let (span, cell) = self.value(name, arm, instances)?;
        self.genuine(cell, arm, Sides::OneArm)?;
        if !is_interval(&span, cell.n_blocks) {
            return Err(format!(
                "{} in `{arm}` has no interval: {}",
                cell.metric,
                counted(cell.n_blocks as usize, "block")
            ));
        }
        let Some(of) = of else { return Ok(span) };
        let facts = self.dossier.arms.iter().find(|it| it.id == arm);
        let facts = facts.map(|it| &it.facts);
        let whole = facts.and_then(|facts| match of {
            Available::Processors => facts
                .get(fact::STATUS_CPUS_ALLOWED)
                .and_then(|list| cpu_list(list))
                .map(|list| list.len() as f64),
            Available::Memory => facts.get(fact::MEMORY_TOTAL)?.parse().ok(),
        });
        let whole = whole
            .filter(|whole| *whole > 0.0)
            .ok_or_else(|| format!("nothing says how much of it `{arm}` has"))?;
        Ok(Span::new(
            span.low / whole,
            span.point / whole,
            span.high / whole,
        ))
    }

    /// Computes the ratio, or the amount, that a rule is about.
    pub(super) fn ratio(&self, rule: &Rule) -> Result<Span, String> {
        match rule {
            Rule::Cost {
                quantity,
                arm,
                instances,
                ..
            } => self.cost(quantity, arm, *instances).map(|it| it.span),
            Rule::Growth {
                quantity,
                arm,
                instances,
                ..
            } => self.growth(quantity, arm, *instances).map(|it| it.span),
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
                if let Some(ratio) = Ratio::of_blocks(over(&above.by_block, &below.by_block)) {
                    return Ok(ratio.span);
                }
                quotient(&above.span, &below.span, false)
                    .ok_or_else(|| "a cost is not above 0".to_owned())
            }
            Rule::Even {
                quantity,
                arm,
                instances,
                ..
            } => self.worst_over_mean(quantity, arm, *instances),
            Rule::Amount {
                quantity,
                arm,
                instances,
                of,
                ..
            } => self.amount((quantity, arm, *instances), *of),
            _ => match rule.sides(self.baseline()) {
                Some((first, second)) => self.between(first, second).map(|it| it.span),
                None => Err("the rule is not about one ratio".to_owned()),
            },
        }
    }
}

/// The cost of the first over that of the second; rates are inverted, so that above 1 is always more costly.
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
