//! Shared code of the workloads that run the agent's probes: the recipe of one call, and the decoder of `probe/1`.
//!
//! Every probe leaves the same kind of report, so it is decoded in one place, and strictly. A report yields either
//! every metric of its workload, each with finite positive values in the declared unit, or an error; a metric is
//! absent only if the report names the reason why it cannot be measured there. Nothing in between is accepted,
//! because half a trial would enter the analysis as a whole one.
//! Limits: does not check plausibility; checksums, linearity and the timer are compared across arms by code that sees
//! more than one trial.
//! Not a workload itself.

use std::collections::BTreeMap;

use tare_model::outcome::Exit;
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::{
    MetricId, MetricSpec, Params, Path, ProbeCall, ProbeReport, RawOutput, Reason, Recipe, Sample,
    Unit,
};

use super::declared::Declared;
use super::{DecodeError, ParamError, Workload, unreadable};

/// A workload with one end whose recipe is one call of the probe with the same name. Every report has exactly one
/// series for each metric, or the reason why it has none.
#[derive(Debug)]
pub struct ProbeWorkload(pub Declared);

impl Workload for ProbeWorkload {
    fn declared(&self) -> &Declared {
        &self.0
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let args = self.complete(params, path)?;
        Ok(Recipe::Probe(ProbeCall {
            name: self.id().to_owned(),
            args,
        }))
    }

    fn plain_probe(&self) -> Option<&'static str> {
        Some(self.id())
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        decode_of(self.id(), raw, self.metrics())
    }
}

/// Declares a workload of one probe: `"id": "one sentence";`, its parameters as rows of `params!`, if any, and its
/// metrics as rows of `metrics!`.
macro_rules! probe {
    ($($described:tt)+) => {
        pub(super) static ENTRY: $crate::workload::probe_output::ProbeWorkload =
            $crate::workload::probe_output::ProbeWorkload(
                $crate::workload::declared::described! { $($described)+ },
            );
    };
}
pub(crate) use probe;

/// Decodes the report of any probe: one sample for each of `metrics`, in their order, except those that the report
/// declares unavailable ([`report`] gives their reasons).
/// Fails if the format, the exit status, or a metric's name, unit or values are invalid.
pub fn decode(raw: &RawOutput, metrics: &[MetricSpec]) -> Result<Vec<Sample>, DecodeError> {
    samples(&report(raw)?, metrics)
}

/// Like [`decode`], but only accepts a report of `probe`.
pub fn decode_of(
    probe: &str,
    raw: &RawOutput,
    metrics: &[MetricSpec],
) -> Result<Vec<Sample>, DecodeError> {
    let report = report(raw)?;
    of_probe(probe, &report.probe)?;
    samples(&report, metrics)
}

/// Rejects the report of another probe.
///
/// # Errors
/// Names the other probe.
pub fn of_probe(wanted: &str, found: &str) -> Result<(), DecodeError> {
    if found == wanted {
        return Ok(());
    }
    Err(garbled(format!(
        "it is the report of `{}`, not of `{wanted}`",
        found.escape_default()
    )))
}

/// Parses the report in `raw` without checking its values.
pub fn report(raw: &RawOutput) -> Result<ProbeReport, DecodeError> {
    ended_well(raw)?;
    serde_json::from_slice(&raw.stdout.0).map_err(|error| garbled(unreadable(&error)))
}

/// Rejects output that is not the report of a worker that ended successfully.
///
/// # Errors
/// Says what it is instead.
pub fn ended_well(raw: &RawOutput) -> Result<(), DecodeError> {
    if raw.format != PROBE_FORMAT {
        return Err(garbled(format!(
            "the format is `{}`",
            raw.format.escape_default()
        )));
    }
    match raw.exit {
        Exit::Code(0) => Ok(()),
        Exit::Code(code) => Err(garbled(format!("the worker exited with status {code}"))),
        Exit::Signal(signal) => Err(garbled(format!("the worker was ended by signal {signal}"))),
    }
}

/// A borrowed series of a report.
#[derive(Debug, Clone, Copy)]
pub struct SeriesView<'a> {
    /// The metric's identifier.
    pub metric: &'a str,
    /// Unit of the values.
    pub unit: Unit,
    /// The values.
    pub values: &'a [f64],
}

/// The samples of a parsed report.
///
/// # Errors
/// A metric's name, unit or values are invalid.
pub fn samples(report: &ProbeReport, metrics: &[MetricSpec]) -> Result<Vec<Sample>, DecodeError> {
    let series: Vec<SeriesView<'_>> = report
        .series
        .iter()
        .map(|series| SeriesView {
            metric: &series.metric,
            unit: series.unit,
            values: &series.values,
        })
        .collect();
    let found = values(&series, &report.unavailable, metrics)?;
    found
        .into_iter()
        .zip(metrics)
        .filter_map(|(values, metric)| Some((values?, metric)))
        .map(|(values, metric)| {
            let id = MetricId::new(metric.id).map_err(|error| garbled(error.to_string()))?;
            Ok(Sample {
                metric: id,
                observations: values.to_vec(),
            })
        })
        .collect()
}

/// The values of each metric, in order; `None` for those that the report declares unavailable.
///
/// # Errors
/// A metric's name, unit or values are invalid.
pub fn values<'a>(
    series: &[SeriesView<'a>],
    unavailable: &BTreeMap<String, Reason>,
    metrics: &[MetricSpec],
) -> Result<Vec<Option<&'a [f64]>>, DecodeError> {
    let measured = series.iter().map(|series| series.metric);
    for name in measured.chain(unavailable.keys().map(String::as_str)) {
        if !metrics.iter().any(|metric| metric.id == name) {
            return Err(garbled(format!(
                "unknown metric `{}`",
                name.escape_default()
            )));
        }
    }
    let mut all = Vec::with_capacity(metrics.len());
    for metric in metrics {
        let mut found = series.iter().filter(|series| series.metric == metric.id);
        let absent = unavailable.contains_key(metric.id);
        let values = match (found.next(), found.next(), absent) {
            (Some(series), None, false) => sound(metric, *series).map(Some),
            (None, _, true) => Ok(None),
            (Some(_), _, true) => Err("it is reported both measured and unavailable".to_owned()),
            (Some(_), Some(_), false) => Err("it is reported twice".to_owned()),
            (None, _, false) => Err("it is not in the report".to_owned()),
        };
        all.push(values.map_err(|problem| DecodeError::no_value(metric, problem))?);
    }
    Ok(all)
}

/// The values of a series, or why they are not valid.
fn sound<'a>(metric: &MetricSpec, series: SeriesView<'a>) -> Result<&'a [f64], String> {
    let [found, wanted] = [series.unit, metric.unit].map(Unit::symbol);
    if series.unit != metric.unit {
        return Err(format!("the unit is `{found}` instead of `{wanted}`"));
    }
    if series.values.is_empty() {
        return Err("the series is empty".to_owned());
    }
    let mut values = series.values.iter();
    match values.find(|value| !(value.is_finite() && **value > 0.0)) {
        Some(value) => Err(format!("`{value}` is not above 0")),
        None => Ok(series.values),
    }
}

fn garbled(problem: String) -> DecodeError {
    DecodeError::garbled(PROBE_FORMAT, problem)
}

#[cfg(test)]
mod tests;
