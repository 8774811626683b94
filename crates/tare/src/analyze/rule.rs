//! What a rule of a publication's needs: where a value stands in the dossier, and what ratio is made of two of them.
//!
//! A ratio against the baseline is the cell's own paired interval, and one of several instances to one alone is that
//! of the series, paired by block. Other ratios are made of the two values' intervals, lower end over upper end and
//! upper over lower: wider than a paired interval would be, so a verdict from it is on the safe side. What is no interval
//! but a range of few blocks, and a cell whose two sides cannot be compared, decide nothing.

use tare_model::Better;
use tare_model::dossier::{ConcurrencyPoint, Dossier, DossierCell, Span};
use tare_model::facts::emulation;
use tare_model::publication::{INSTANCES, Publication, Quantity, Rule, Several};

use super::beside::is_same_metric;
use super::cell::counted;
use super::diagnostics::{DIFFERENT_TOOL, EMULATED};
use super::flag::THROTTLED;
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

/// Where to look values up.
pub(super) struct Look<'a> {
    pub(super) publication: &'a Publication,
    pub(super) dossier: &'a Dossier,
}

impl Look<'_> {
    pub(super) fn quantity(&self, name: &str) -> Option<&Quantity> {
        self.publication
            .quantities
            .iter()
            .find(|quantity| quantity.name == name)
    }

    pub(super) fn baseline(&self) -> &str {
        let arm = self.dossier.arms.iter().find(|arm| arm.baseline);
        arm.map_or("", |arm| arm.id.as_str())
    }

    fn cell(&self, name: &str, arm: &str, instances: u32) -> Option<&DossierCell> {
        let quantity = self.quantity(name)?;
        let is_baseline = arm == self.baseline();
        self.dossier
            .cells
            .iter()
            .chain(&self.dossier.aa)
            .filter(|cell| {
                cell.metric == quantity.metric
                    && cell.instances == instances
                    && cell.params.covers(&quantity.params)
                    && quantity
                        .path
                        .as_ref()
                        .is_none_or(|path| cell.path.is_some_and(|own| own.name() == path))
            })
            .find(|cell| {
                if is_baseline {
                    cell.base.is_some()
                } else {
                    cell.arm == arm
                }
            })
    }

    /// Why a value is missing.
    fn why(&self, name: &str, arm: &str, instances: u32) -> String {
        let label = self
            .quantity(name)
            .map_or(name, |quantity| quantity.label.as_str());
        let of_arm = self.dossier.arms.iter().find(|it| it.id == arm);
        match of_arm {
            None => format!("the run has no arm `{arm}`"),
            Some(found) if !found.available => {
                let reason = found.reason.as_deref().unwrap_or("no reason is recorded");
                format!("`{arm}` is not available: {reason}")
            }
            Some(_) if instances > 1 => {
                format!("“{label}” was not measured in `{arm}` with {instances} instances at once")
            }
            // One reason for all that a workload would have given there.
            Some(_) => self
                .failure(name, arm)
                .or_else(|| self.silence(name, arm))
                .unwrap_or_else(|| format!("“{label}” was not measured in `{arm}`")),
        }
    }

    /// That the workload ran there and told something else only, as a tool that finds no device tells nothing of it.
    fn silence(&self, name: &str, arm: &str) -> Option<String> {
        let quantity = self.quantity(name)?;
        let cells = || self.dossier.cells.iter().chain(&self.dossier.aa);
        let workload = &cells()
            .find(|cell| cell.metric == quantity.metric)?
            .workload;
        let is_of = |cell: &&DossierCell| {
            cell.workload == *workload && cell.arm == arm && cell.params.covers(&quantity.params)
        };
        cells().filter(is_of).find(|cell| cell.env.is_some())?;
        Some(format!(
            "`{workload}` ran in `{arm}` and told nothing of “{}”",
            quantity.label
        ))
    }

    /// What befell the workload that gives this quantity, where nothing came of it.
    fn failure(&self, name: &str, arm: &str) -> Option<String> {
        let metric = &self.quantity(name)?.metric;
        let mut cells = self.dossier.cells.iter().chain(&self.dossier.aa);
        let workload = &cells.find(|cell| cell.metric == *metric)?.workload;
        let mut failures = self.dossier.failures.iter();
        let failure = failures
            .find(|failure| failure.arm == arm && failure.workload.as_ref() == Some(workload))?;
        Some(format!(
            "`{workload}` was not measured in `{arm}`: {}",
            failure.reason
        ))
    }

    /// Whether software imitates the arm's processor.
    pub(super) fn is_emulated(&self, arm: &str) -> bool {
        let mut arms = self.dossier.arms.iter();
        arms.any(|it| it.id == arm && emulation(&it.facts).is_some())
    }

    /// The value in one arm.
    pub(super) fn value(
        &self,
        name: &str,
        arm: &str,
        instances: u32,
    ) -> Result<(Span, &DossierCell), String> {
        let cell = self
            .cell(name, arm, instances)
            .ok_or_else(|| self.why(name, arm, instances))?;
        let span = if arm == self.baseline() {
            cell.base
        } else {
            cell.env
        };
        let span = span.ok_or_else(|| self.why(name, arm, instances))?;
        self.as_published(name, span, cell)
            .map(|span| (span, cell))
            .ok_or_else(|| "a value is not above 0".to_owned())
    }

    /// What each of several instances took; nothing where they are counted together.
    pub(super) fn each(&self, name: &str, arm: &str, instances: u32) -> Vec<Span> {
        let is_of_all = self.quantity(name).is_some_and(Quantity::is_of_all);
        let found = self.cell(name, arm, instances);
        let (Some(cell), false) = (found, is_of_all) else {
            return Vec::new();
        };
        let each = self.any_point(name, arm, instances).map(|it| &it.each);
        let spans = each.into_iter().flatten();
        let shown: Option<Vec<Span>> = spans
            .map(|span| self.as_published(name, *span, cell))
            .collect();
        shown.unwrap_or_default()
    }

    /// The unit in which the values of a quantity are told.
    pub(super) fn unit(&self, name: &str, cell: &DossierCell) -> String {
        let unit = self.quantity(name).and_then(|found| found.unit.as_ref());
        unit.unwrap_or(&cell.unit).clone()
    }

    /// The least and the greatest value of a block in one arm.
    pub(super) fn range(&self, name: &str, arm: &str, instances: u32) -> Option<[f64; 2]> {
        let cell = self.cell(name, arm, instances)?;
        let side = usize::from(arm != self.baseline());
        let values = cell.blocks.iter().map(|block| block.alone()[side]);
        let (least, most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let range = Span::new(least, least, most);
        let range = self.as_published(name, range, cell)?;
        (least <= most).then_some([range.low, range.high])
    }

    /// The value as the publication counts it: a whole file where the metric is a line, operations by the time where the
    /// metric is the time of one. `None` where nothing can be divided by it.
    fn as_published(&self, name: &str, span: Span, cell: &DossierCell) -> Option<Span> {
        let Some(quantity) = self.quantity(name) else {
            return Some(span);
        };
        let times: f64 = quantity
            .times
            .iter()
            .filter_map(|name| match name.as_str() {
                INSTANCES => Some(i64::from(cell.instances)),
                name => cell.params.int(name),
            })
            .map(|count| count as f64)
            .product();
        let factor = quantity.factor.unwrap_or(1.0);
        let (point, low, high) = if quantity.inverse {
            let of = |value: f64| factor / (value * times);
            (of(span.point), of(span.high), of(span.low))
        } else {
            let of = |value: f64| value * times * factor;
            (of(span.point), of(span.low), of(span.high))
        };
        (!quantity.inverse || span.low > 0.0).then_some(Span {
            point,
            low,
            high,
            level: span.level,
        })
    }

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

    /// What a series of instances says of this many.
    fn point(&self, name: &str, arm: &str, instances: u32) -> Option<&ConcurrencyPoint> {
        let is_enough = |n_blocks: u32| n_blocks as usize >= super::FEWEST_BLOCKS;
        self.any_point(name, arm, instances)
            .filter(|point| is_enough(point.n_blocks))
    }

    /// The same of however few blocks.
    fn any_point(&self, name: &str, arm: &str, instances: u32) -> Option<&ConcurrencyPoint> {
        let quantity = self.quantity(name)?;
        let mut series = self.dossier.concurrency.iter();
        let series = series.find(|series| {
            series.metric == quantity.metric && series.params.covers(&quantity.params)
        })?;
        let of_arm = series.arms.iter().find(|it| it.arm == arm)?;
        let mut points = of_arm.points.iter();
        points.find(|point| point.instances == instances)
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

    #[test]
    fn a_metric_that_its_workload_does_not_tell_in_an_arm_has_that_for_its_reason() {
        const STORED: &str = include_str!("../../../../fixtures/before/20261122-210603-620a.json");
        const PUBLICATION: &str = r#"
title = "t"
where = "w"
machine = "m"
quantity = [
  { name = "ready", label = "Ready", metric = "start-up.ready.time" },
  { name = "stop", label = "Stopped", metric = "start-up.stop.time" },
]
"#;
        let mut dossier: Dossier = serde_json::from_str(STORED).unwrap();
        let publication: Publication = toml::from_str(PUBLICATION).unwrap();
        let mut other = dossier.cells[0].clone();
        (other.metric, other.base, other.env) = ("start-up.stop.time".into(), None, None);
        let why = |dossier: &Dossier| {
            let publication = &publication;
            let look = Look {
                publication,
                dossier,
            };
            look.value("stop", "container", 1).unwrap_err()
        };
        let untold = why(&dossier);
        assert!(untold.contains("was not measured"), "{untold}");
        let mut ready = other.clone();
        (ready.workload, ready.metric) = ("start-up".into(), "start-up.ready.time".into());
        ready.env = Some(Span::new(1.0, 1.0, 1.0));
        other.workload = "start-up".into();
        dossier.cells.extend([other, ready]);
        let told = why(&dossier);
        assert_eq!(
            told,
            "`start-up` ran in `container` and told nothing of “Stopped”"
        );
    }
}
