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

/// Whether a span is an interval of the run's level, rather than a range of too few blocks.
fn is_interval(span: &Span, n_blocks: u32) -> bool {
    n_blocks as usize >= FEWEST_BLOCKS && span.level.is_none_or(|level| level >= LEVEL)
}

/// Checks that a cell's value in an arm is an interval.
fn check_interval(cell: &DossierCell, span: &Span, arm: &str) -> Result<(), String> {
    if is_interval(span, cell.n_blocks) {
        return Ok(());
    }
    Err(format!(
        "{} in `{arm}` has no interval: {}",
        cell.metric,
        counted(cell.n_blocks as usize, "block")
    ))
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
    fn logs(&self, place: QuantityRef<'_>) -> ByBlock {
        let (name, arm, _) = place;
        let Some(cell) = self.cell(place) else {
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
        let (above, cell) = self.value(first)?;
        let (below, other) = self.value(second)?;
        for (cell, arm) in [(cell, first.1), (other, second.1)] {
            if first.1 == second.1 {
                self.check_genuine(cell, arm)?;
            } else {
                self.check_comparable(cell, arm)?;
            }
        }
        let is_inverse = self.quantity(first.0).is_some_and(|it| it.inverse);
        let is_rate = (cell.better == Better::Higher) != is_inverse;
        let (top, bottom) = if is_rate {
            (second, first)
        } else {
            (first, second)
        };
        if let Some(ratio) = Ratio::of_blocks(over(&self.logs(top), &self.logs(bottom))) {
            return Ok(ratio);
        }
        check_interval(cell, &above, first.1)?;
        check_interval(other, &below, second.1)?;
        quotient(&above, &below, is_rate)
            .map(Ratio::of_span)
            .ok_or_else(|| "a value is not above 0".to_owned())
    }

    /// How many times longer an instance takes with others than alone, paired by block, or all of them together if
    /// that is what is published; `None` if the run has no such series.
    fn stretch(&self, place: QuantityRef<'_>) -> Option<Result<Span, String>> {
        let (name, arm, instances) = place;
        let point = self.point(place)?;
        let stretch = point.stretch?;
        if !is_interval(&stretch, point.n_blocks) {
            return Some(Err(format!(
                "fewer than {FEWEST_BLOCKS} blocks have {instances} instances of it and one alone in `{arm}`"
            )));
        }
        let is_of_all = self.quantity(name)?.is_of_all();
        let times = if is_of_all { f64::from(instances) } else { 1.0 };
        Some(Ok(stretch.map(|value| value * times)))
    }

    /// Returns the detail of a flag on a cell of an arm. A cell is flagged for its arm; the baseline's state shows in
    /// its copy.
    fn flagged<'b>(&'b self, cell: &'b DossierCell, arm: &str, id: &str) -> Option<&'b str> {
        let is_alike = |copy: &&DossierCell| id == EMULATED || is_same_metric(copy, cell);
        let cells: Vec<&DossierCell> = if arm == self.baseline() {
            self.dossier.aa.iter().filter(is_alike).collect()
        } else {
            vec![cell]
        };
        let mut flags = cells.into_iter().flat_map(|cell| &cell.flags);
        Some(&flags.find(|flag| flag.id == id)?.detail)
    }

    /// Checks that a cell is valid evidence about its arm: an emulated CPU is no evidence about the environment, and a
    /// CPU throttled by a quota that was not requested is none about its speed.
    fn check_genuine(&self, cell: &DossierCell, arm: &str) -> Result<(), String> {
        if self.flagged(cell, arm, EMULATED).is_some() {
            return Err(format!(
                "`{arm}` is emulated here, which says nothing of what it costs"
            ));
        }
        match self.flagged(cell, arm, THROTTLED) {
            Some(detail) => Err(format!("{} in `{arm}`: {detail}", cell.metric)),
            None => Ok(()),
        }
    }

    /// The same for a rule about two arms: two programs are no evidence about the places where they ran.
    fn check_comparable(&self, cell: &DossierCell, arm: &str) -> Result<(), String> {
        self.check_genuine(cell, arm)?;
        match self.flagged(cell, arm, DIFFERENT_TOOL) {
            Some(detail) => Err(format!(
                "{} in `{arm}` was measured with another program: {detail}",
                cell.metric
            )),
            None => Ok(()),
        }
    }

    fn cost(&self, place: QuantityRef<'_>) -> Result<Ratio, String> {
        let (name, arm, _) = place;
        let cell = self.known_cell(place)?;
        self.check_comparable(cell, arm)?;
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
    fn cost_against(&self, place: QuantityRef<'_>, other: Option<&str>) -> Result<Ratio, String> {
        let (name, _, instances) = place;
        match other {
            Some(other) => self.between(place, (name, other, instances)),
            None => self.cost(place),
        }
    }

    /// How many times longer several instances take than a single one.
    fn growth(&self, place: QuantityRef<'_>) -> Result<Ratio, String> {
        let (name, arm, _) = place;
        if let Some(cell) = self.cell(place) {
            self.check_genuine(cell, arm)?;
        }
        match self.stretch(place) {
            Some(stretch) => stretch.map(Ratio::of_span),
            None => self.between(place, (name, arm, 1)),
        }
    }

    /// One of the ratios that a rule about several counts.
    pub(super) fn one_of(&self, name: &str, several: &Several) -> Result<Ratio, String> {
        let place = (name, several.arm.as_str(), several.instances);
        if several.alone {
            return self.growth(place);
        }
        self.cost_against(place, several.other.as_deref())
    }

    /// The instance that performs worst over the mean of all, each by its interval.
    fn worst_over_mean(&self, place: QuantityRef<'_>) -> Result<Span, String> {
        let (_, arm, instances) = place;
        if instances == 1 {
            return Err(format!(
                "one program ran in `{arm}`, and no second one that it could be held against"
            ));
        }
        let cell = self.known_cell(place)?;
        self.check_genuine(cell, arm)?;
        let is_rate = cell.better == Better::Higher;
        self.point(place)
            .filter(|point| {
                let mut spans = [point.worst, point.value].into_iter().flatten();
                spans.all(|span| is_interval(&span, point.n_blocks))
            })
            .and_then(|point| quotient(&point.worst?, &point.value?, is_rate))
            .ok_or_else(|| self.why(place))
    }

    /// A value with all its instances, over the arm's available amount if requested.
    fn amount(&self, place: QuantityRef<'_>, of: Option<Available>) -> Result<Span, String> {
        let (_, arm, _) = place;
        let (span, cell) = self.value(place)?;
        self.check_genuine(cell, arm)?;
        check_interval(cell, &span, arm)?;
        let Some(of) = of else { return Ok(span) };
        let facts = self.arm(arm).map(|it| &it.facts);
        let whole = facts.and_then(|facts| match of {
            Available::Processors => {
                let list = cpu_list(facts.get(fact::STATUS_CPUS_ALLOWED)?)?;
                Some(list.len() as f64)
            }
            Available::Memory => facts.get(fact::MEMORY_TOTAL)?.parse().ok(),
        });
        let whole = whole
            .filter(|whole| *whole > 0.0)
            .ok_or_else(|| format!("nothing says how much of it `{arm}` has"))?;
        Ok(span.map(|value| value / whole))
    }

    /// Computes the ratio, or the amount, that a rule is about.
    pub(super) fn ratio(&self, rule: &Rule) -> Result<Span, String> {
        if let Some((first, second)) = rule.sides(self.baseline()) {
            let ratio = match rule {
                Rule::Cost { .. } => self.cost(first),
                Rule::Growth { .. } => self.growth(first),
                _ => self.between(first, second),
            };
            return ratio.map(|it| it.span);
        }
        match rule {
            Rule::Costs {
                quantity,
                to,
                instances,
                to_instances,
                arm,
                other,
                ..
            } => {
                let other = other.as_deref();
                let above = self.cost_against((quantity, arm, *instances), other)?;
                let below = self.cost_against((to, arm, *to_instances), other)?;
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
            } => self.worst_over_mean((quantity, arm, *instances)),
            Rule::Amount {
                quantity,
                arm,
                instances,
                of,
                ..
            } => self.amount((quantity, arm, *instances), *of),
            _ => Err("the rule is not about one ratio".to_owned()),
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
