//! Looks up the values of a publication's quantities in the dossier, converted as published, or the reason for a
//! missing value.

use tare_model::Params;
use tare_model::dossier::{ConcurrencyPoint, Dossier, DossierArm, DossierCell, Span};
use tare_model::facts::emulation;
use tare_model::publication::{INSTANCES, Publication, Quantity, QuantityRef};

use tare_stats::median;

use crate::workload::completed;

/// The sources in which values are looked up.
pub(super) struct Lookup<'a> {
    pub(super) publication: &'a Publication,
    pub(super) dossier: &'a Dossier,
}

impl<'a> Lookup<'a> {
    pub(super) fn quantity(&self, name: &str) -> Option<&'a Quantity> {
        let mut quantities = self.publication.quantities.iter();
        quantities.find(|quantity| quantity.name == name)
    }

    pub(super) fn arm(&self, id: &str) -> Option<&'a DossierArm> {
        self.dossier.arms.iter().find(|arm| arm.id == id)
    }

    pub(super) fn baseline(&self) -> &'a str {
        let arm = self.dossier.arms.iter().find(|arm| arm.baseline);
        arm.map_or("", |arm| arm.id.as_str())
    }

    fn cells(&self) -> impl Iterator<Item = &'a DossierCell> {
        self.dossier.cells.iter().chain(&self.dossier.aa)
    }

    pub(super) fn cell(&self, place: QuantityRef<'_>) -> Option<&'a DossierCell> {
        let (name, arm, instances) = place;
        let quantity = self.quantity(name)?;
        let is_baseline = arm == self.baseline();
        self.cells().find(|cell| {
            let is_of_arm = if is_baseline {
                cell.base.is_some()
            } else {
                cell.arm == arm
            };
            is_of_arm
                && cell.metric == quantity.metric
                && cell.instances == instances
                && quantity.is_of(&cell.params, cell.path)
        })
    }

    /// The cell, or why there is none.
    pub(super) fn known_cell(&self, place: QuantityRef<'_>) -> Result<&'a DossierCell, String> {
        self.cell(place).ok_or_else(|| self.why(place))
    }

    /// Explains why a value is missing.
    pub(super) fn why(&self, (name, arm, instances): QuantityRef<'_>) -> String {
        let label = self
            .quantity(name)
            .map_or(name, |quantity| quantity.label.as_str());
        match self.arm(arm) {
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

    /// The workload that measures a quantity.
    fn workload(&self, quantity: &Quantity) -> Option<&'a str> {
        let mut cells = self.cells();
        Some(&cells.find(|cell| cell.metric == quantity.metric)?.workload)
    }

    /// Explains that the workload ran but did not report this quantity, like a tool that finds no device.
    fn ran_without(&self, name: &str, arm: &str) -> Option<String> {
        let quantity = self.quantity(name)?;
        let workload = self.workload(quantity)?;
        self.cells().find(|cell| {
            cell.workload == workload
                && cell.arm == arm
                && cell.params.covers(&quantity.params)
                && cell.env.is_some()
        })?;
        Some(format!(
            "`{workload}` ran in `{arm}` and reported nothing for “{}”",
            quantity.label
        ))
    }

    /// Returns why the workload of this quantity gave no result, if it failed.
    pub(super) fn failure(&self, name: &str, arm: &str) -> Option<String> {
        let workload = self.workload(self.quantity(name)?)?;
        let mut failures = self.dossier.failures.iter();
        let failure = failures
            .find(|failure| failure.arm == arm && failure.workload.as_deref() == Some(workload))?;
        Some(format!(
            "`{workload}` was not measured in `{arm}`: {}",
            failure.reason
        ))
    }

    /// Whether the arm's CPU is emulated in software.
    pub(super) fn is_emulated(&self, arm: &str) -> bool {
        let arm = self.arm(arm);
        arm.is_some_and(|arm| emulation(&arm.facts).is_some())
    }

    /// The value in one arm.
    pub(super) fn value(&self, place: QuantityRef<'_>) -> Result<(Span, &'a DossierCell), String> {
        let (name, arm, _) = place;
        let cell = self.known_cell(place)?;
        let span = if arm == self.baseline() {
            cell.base
        } else {
            cell.env
        };
        let span = span.ok_or_else(|| self.why(place))?;
        self.as_published(name, span, (&cell.params, cell.instances))
            .map(|span| (span, cell))
            .ok_or_else(|| "a value is not above 0".to_owned())
    }

    /// Returns the values recorded elsewhere for an arm: the median, between minimum and maximum.
    pub(super) fn recorded(&self, (name, arm, instances): QuantityRef<'_>) -> Option<Span> {
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
        let is_here = self.arm(arm).is_some_and(|arm| arm.available);
        !is_here && self.publication.recorded.iter().any(|it| it.arm == arm)
    }

    /// Returns what each of several instances took; empty if they are counted together.
    pub(super) fn each(&self, place: QuantityRef<'_>) -> Vec<Span> {
        let (name, ..) = place;
        let is_of_all = self.quantity(name).is_some_and(Quantity::is_of_all);
        let (Some(cell), false) = (self.cell(place), is_of_all) else {
            return Vec::new();
        };
        let each = self.any_point(place).map(|it| &it.each);
        let shown: Option<Vec<Span>> = each
            .into_iter()
            .flatten()
            .map(|span| self.as_published(name, *span, (&cell.params, cell.instances)))
            .collect();
        shown.unwrap_or_default()
    }

    /// Describes how its scale differs from the published one, if it does.
    pub(super) fn scale(&self, name: &str) -> Option<String> {
        let quantity = self.quantity(name)?;
        let cell = self
            .cells()
            .find(|cell| cell.metric == quantity.metric && cell.params.covers(&quantity.params))?;
        quantity.scale(&completed(&cell.workload, &cell.params, cell.path))
    }

    /// The unit in which the values of a quantity are reported.
    pub(super) fn unit(&self, name: &str, cell: &DossierCell) -> String {
        let unit = self.quantity(name).and_then(|found| found.unit.as_ref());
        unit.unwrap_or(&cell.unit).clone()
    }

    /// The minimum and maximum over the blocks in one arm.
    pub(super) fn range(&self, place: QuantityRef<'_>) -> Option<[f64; 2]> {
        let (name, arm, _) = place;
        let cell = self.cell(place)?;
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
        let shown = span.map(|value| {
            if quantity.inverse {
                factor / (value * times)
            } else {
                value * times * factor
            }
        });
        if !quantity.inverse {
            return Some(shown);
        }
        (span.low > 0.0).then_some(Span {
            low: shown.high,
            high: shown.low,
            ..shown
        })
    }

    /// The series' entry for this number of instances, if it has enough blocks.
    pub(super) fn point(&self, place: QuantityRef<'_>) -> Option<&'a ConcurrencyPoint> {
        self.any_point(place)
            .filter(|point| point.n_blocks as usize >= super::FEWEST_BLOCKS)
    }

    /// The same for any number of blocks.
    fn any_point(&self, (name, arm, instances): QuantityRef<'_>) -> Option<&'a ConcurrencyPoint> {
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
            look.value(("stop", "container", 1)).unwrap_err()
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
