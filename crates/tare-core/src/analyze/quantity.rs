//! Looks up the values of a publication's quantities in the dossier, converted as published, or the reason for a
//! missing value.

use tare_model::Params;
use tare_model::dossier::{ConcurrencyPoint, Dossier, DossierCell, Span};
use tare_model::facts::emulation;
use tare_model::publication::{INSTANCES, Publication, Quantity};

use tare_stats::median;

use crate::workload::completed;

/// The sources in which values are looked up.
pub(super) struct Lookup<'a> {
    pub(super) publication: &'a Publication,
    pub(super) dossier: &'a Dossier,
}

impl Lookup<'_> {
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

    pub(super) fn cell(&self, name: &str, arm: &str, instances: u32) -> Option<&DossierCell> {
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

    /// Explains why a value is missing.
    pub(super) fn why(&self, name: &str, arm: &str, instances: u32) -> String {
        let label = self
            .quantity(name)
            .map_or(name, |quantity| quantity.label.as_str());
        let of_arm = self.dossier.arms.iter().find(|it| it.id == arm);
        match of_arm {
            _ if self.is_recorded(arm) => {
                format!(
                    "`{arm}` was recorded elsewhere and is not paired, so that it decides nothing"
                )
            }
            None => format!("the run has no arm `{arm}`"),
            Some(found) if !found.available => {
                let reason = found.reason.as_deref().unwrap_or("no reason is recorded");
                format!("`{arm}` is not available: {reason}")
            }
            Some(_) if instances > 1 => {
                format!("“{label}” was not measured in `{arm}` with {instances} instances at once")
            }
            // One reason for all values that the workload would have given.
            Some(_) => self
                .failure(name, arm)
                .or_else(|| self.ran_without(name, arm))
                .unwrap_or_else(|| format!("“{label}” was not measured in `{arm}`")),
        }
    }

    /// Explains that the workload ran but did not report this quantity, like a tool that finds no device.
    pub(super) fn ran_without(&self, name: &str, arm: &str) -> Option<String> {
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
            "`{workload}` ran in `{arm}` and reported nothing for “{}”",
            quantity.label
        ))
    }

    /// Returns why the workload of this quantity gave no result, if it failed.
    pub(super) fn failure(&self, name: &str, arm: &str) -> Option<String> {
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

    /// Whether the arm's CPU is emulated in software.
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
        self.as_published(name, span, (&cell.params, cell.instances))
            .map(|span| (span, cell))
            .ok_or_else(|| "a value is not above 0".to_owned())
    }

    /// Returns the values recorded elsewhere for an arm: the median, between minimum and maximum.
    pub(super) fn recorded(&self, name: &str, arm: &str, instances: u32) -> Option<Span> {
        let quantity = self.quantity(name)?;
        let (mut values, mut called) = (Vec::new(), None);
        for it in self.publication.recorded.iter().filter(|it| it.arm == arm) {
            let params = completed(&it.workload, &it.params, None);
            let is_path = quantity.path.is_none() || it.path.is_none() || quantity.path == it.path;
            if is_path && params.covers(&quantity.params) {
                values.extend(it.values.get(&quantity.metric).into_iter().flatten());
                called.get_or_insert(params);
            }
        }
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let span = Span::new(low, median(&values)?, high);
        self.as_published(name, span, (&called?, instances))
    }

    /// Whether the arm exists only as records from elsewhere.
    pub(super) fn is_recorded(&self, arm: &str) -> bool {
        let mut measured = self.dossier.arms.iter();
        let is_here = measured.any(|it| it.id == arm && it.available);
        !is_here && self.publication.recorded.iter().any(|it| it.arm == arm)
    }

    /// Returns what each of several instances took; empty if they are counted together.
    pub(super) fn each(&self, name: &str, arm: &str, instances: u32) -> Vec<Span> {
        let is_of_all = self.quantity(name).is_some_and(Quantity::is_of_all);
        let found = self.cell(name, arm, instances);
        let (Some(cell), false) = (found, is_of_all) else {
            return Vec::new();
        };
        let each = self.any_point(name, arm, instances).map(|it| &it.each);
        let spans = each.into_iter().flatten();
        let shown: Option<Vec<Span>> = spans
            .map(|span| self.as_published(name, *span, (&cell.params, cell.instances)))
            .collect();
        shown.unwrap_or_default()
    }

    /// Describes how its scale differs from the published one, if it does.
    pub(super) fn scale(&self, name: &str) -> Option<String> {
        let quantity = self.quantity(name)?;
        let mut cells = self.dossier.cells.iter().chain(&self.dossier.aa);
        let cell = cells
            .find(|cell| cell.metric == quantity.metric && cell.params.covers(&quantity.params))?;
        quantity.scale(&completed(&cell.workload, &cell.params, cell.path))
    }

    /// The unit in which the values of a quantity are reported.
    pub(super) fn unit(&self, name: &str, cell: &DossierCell) -> String {
        let unit = self.quantity(name).and_then(|found| found.unit.as_ref());
        unit.unwrap_or(&cell.unit).clone()
    }

    /// The minimum and maximum over the blocks in one arm.
    pub(super) fn range(&self, name: &str, arm: &str, instances: u32) -> Option<[f64; 2]> {
        let cell = self.cell(name, arm, instances)?;
        let side = usize::from(arm != self.baseline());
        let values = cell.blocks.iter().map(|block| block.alone()[side]);
        let (least, most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let range = Span::new(least, least, most);
        let range = self.as_published(name, range, (&cell.params, cell.instances))?;
        (least <= most).then_some([range.low, range.high])
    }

    /// Converts the value to the publication's unit: a whole file if the metric is a line, operations per time if the
    /// metric is the time of one. `None` if it would divide by zero.
    pub(super) fn as_published(
        &self,
        name: &str,
        span: Span,
        (params, instances): (&Params, u32),
    ) -> Option<Span> {
        let Some(quantity) = self.quantity(name) else {
            return Some(span);
        };
        let times: f64 = quantity
            .times
            .iter()
            .filter_map(|name| match name.as_str() {
                INSTANCES => Some(i64::from(instances)),
                name => params.int(name),
            })
            .map(|count| count as f64)
            .product();
        let factor = quantity.factor.unwrap_or(1.0) * quantity.linear_factor(params).unwrap_or(1.0);
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

    /// The series' entry for this number of instances, if it has enough blocks.
    pub(super) fn point(&self, name: &str, arm: &str, instances: u32) -> Option<&ConcurrencyPoint> {
        let is_enough = |n_blocks: u32| n_blocks as usize >= super::FEWEST_BLOCKS;
        self.any_point(name, arm, instances)
            .filter(|point| is_enough(point.n_blocks))
    }

    /// The same for any number of blocks.
    pub(super) fn any_point(
        &self,
        name: &str,
        arm: &str,
        instances: u32,
    ) -> Option<&ConcurrencyPoint> {
        let quantity = self.quantity(name)?;
        let mut series = self.dossier.concurrency.iter();
        let series = series.find(|series| {
            series.metric == quantity.metric && series.params.covers(&quantity.params)
        })?;
        let of_arm = series.arms.iter().find(|it| it.arm == arm)?;
        let mut points = of_arm.points.iter();
        points.find(|point| point.instances == instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::publication::tests::publication_of;

    #[test]
    fn metric_unreported_by_its_workload_is_the_reason() {
        const STORED: &str = include_str!("../../../../fixtures/before/20261122-210603-620a.json");
        const PARTS: &str = r#"
quantity = [
  { name = "ready", label = "Ready", metric = "start-up.ready.time" },
  { name = "stop", label = "Stopped", metric = "start-up.stop.time" },
]
"#;
        let mut dossier: Dossier = serde_json::from_str(STORED).unwrap();
        let publication = publication_of(PARTS);
        let mut other = dossier.cells[0].clone();
        (other.metric, other.base, other.env) = ("start-up.stop.time".into(), None, None);
        let why = |dossier: &Dossier| {
            let publication = &publication;
            let look = Lookup {
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
        let shown = why(&dossier);
        assert_eq!(
            shown,
            "`start-up` ran in `container` and reported nothing for “Stopped”"
        );
    }
}
