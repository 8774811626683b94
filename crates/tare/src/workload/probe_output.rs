//! What the workloads around the agent's probes share: the recipe of one call, and the reading of `probe/1`.
//!
//! Every probe leaves the same report, so it is read in one place, and strictly: a report either yields
//! every metric of its workload, each with finite positive values in the declared unit, or an error; a metric
//! is left out only if the report names the reason why it cannot be measured there. There is nothing between
//! the two, because half a trial would enter the analysis as if it were a whole one.
//! What it cannot see: whether the values are plausible; and checksums, linearity and the timer, which
//! are compared across arms by those who see more than one trial.
//! This file is no workload.

use tare_model::outcome::Exit;
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::{
    MetricId, MetricSpec, Params, Path, ProbeCall, ProbeReport, RawOutput, Recipe, Sample, Series,
    Value,
};

use super::{DecodeError, ParamError, ParamSpec, Workload, one_end, unreadable};

/// Which values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number from the first to the second, both included.
    Between(i64, i64),
}

impl Accepts {
    /// Says what is wrong with `value`, if anything is.
    fn check(self, param: &str, value: &Value) -> Result<(), ParamError> {
        let (fits, hint) = match self {
            Self::OneOf(texts) => (
                matches!(value, Value::Text(text) if texts.contains(&text.as_str())),
                format!("use one of {}", listed(texts.iter().copied())),
            ),
            Self::Between(low, high) => (
                matches!(value, Value::Int(number) if (low..=high).contains(number)),
                format!("use a whole number from {low} to {high}"),
            ),
        };
        if fits {
            return Ok(());
        }
        Err(ParamError::refused(param, Some(value), hint))
    }
}

/// A workload with one end whose recipe is one call of the probe with the same name.
#[derive(Debug)]
pub struct ProbeWorkload {
    /// Name of the workload and of the probe.
    pub id: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// The values that each parameter takes, in the order of `params`.
    pub accepts: &'static [Accepts],
    /// Its metrics; every report holds exactly one series for each, or says why it has none.
    pub metrics: &'static [MetricSpec],
}

impl Workload for ProbeWorkload {
    fn id(&self) -> &'static str {
        self.id
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn params(&self) -> &'static [ParamSpec] {
        self.params
    }

    fn metrics(&self) -> &'static [MetricSpec] {
        self.metrics
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        one_end(self.id, path)?;
        let args = checked(self.id, params, self.params, self.accepts)?;
        Ok(Recipe::Probe(ProbeCall {
            name: self.id.to_owned(),
            args,
        }))
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        decode_of(self.id, raw, self.metrics)
    }
}

/// The parameters with the defaults filled in; an unknown name or a value outside of `accepts` is refused.
/// `accepts` is in the order of `specs`.
pub fn checked(
    workload: &str,
    params: &Params,
    specs: &[ParamSpec],
    accepts: &[Accepts],
) -> Result<Params, ParamError> {
    for name in params.0.keys() {
        if !specs.iter().any(|spec| spec.name == name) {
            return Err(ParamError {
                param: name.clone(),
                problem: format!("`{workload}` has no parameter `{}`", name.escape_default()),
                hint: Some(if specs.is_empty() {
                    "it has no parameters".to_owned()
                } else {
                    format!("it has {}", listed(specs.iter().map(|spec| spec.name)))
                }),
            });
        }
    }
    let mut complete = Params::new();
    for (position, spec) in specs.iter().enumerate() {
        let value = params
            .value(spec.name)
            .cloned()
            .unwrap_or_else(|| spec.default.into());
        if let Some(rule) = accepts.get(position) {
            rule.check(spec.name, &value)?;
        }
        complete = complete.with(spec.name, value);
    }
    Ok(complete)
}

/// Reads a report of whichever probe: one sample for each of `metrics`, in their order, but for those that the
/// report declares unavailable ([`report`] gives their reasons).
/// Fails if the format, the exit status, a metric's name, unit or values are not what they must be.
pub fn decode(raw: &RawOutput, metrics: &[MetricSpec]) -> Result<Vec<Sample>, DecodeError> {
    samples(&report(raw)?, metrics)
}

/// As [`decode`], and the report must be that of `probe`.
pub fn decode_of(
    probe: &str,
    raw: &RawOutput,
    metrics: &[MetricSpec],
) -> Result<Vec<Sample>, DecodeError> {
    let report = report(raw)?;
    if report.probe != probe {
        return Err(garbled(format!(
            "it is the report of `{}`, not of `{probe}`",
            report.probe.escape_default()
        )));
    }
    samples(&report, metrics)
}

/// The report in `raw`, its values not yet looked at.
pub fn report(raw: &RawOutput) -> Result<ProbeReport, DecodeError> {
    if raw.format != PROBE_FORMAT {
        return Err(garbled(format!(
            "the format is `{}`",
            raw.format.escape_default()
        )));
    }
    match raw.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => return Err(garbled(format!("the worker exited with status {code}"))),
        Exit::Signal(signal) => {
            return Err(garbled(format!("the worker was ended by signal {signal}")));
        }
    }
    serde_json::from_slice(&raw.stdout.0).map_err(|error| garbled(unreadable(&error)))
}

fn samples(report: &ProbeReport, metrics: &[MetricSpec]) -> Result<Vec<Sample>, DecodeError> {
    let measured = report.series.iter().map(|series| &series.metric);
    for name in measured.chain(report.unavailable.keys()) {
        if !metrics.iter().any(|metric| metric.id == name) {
            return Err(garbled(format!(
                "unknown metric `{}`",
                name.escape_default()
            )));
        }
    }
    let mut samples = Vec::with_capacity(metrics.len());
    for metric in metrics {
        let mut found = report
            .series
            .iter()
            .filter(|series| series.metric == metric.id);
        let absent = report.unavailable.contains_key(metric.id);
        match (found.next(), found.next(), absent) {
            (Some(series), None, false) => samples.push(sample(metric, series)?),
            (None, _, true) => {}
            (Some(_), _, true) => {
                return Err(no_value(
                    metric,
                    "it is reported both measured and unavailable".to_owned(),
                ));
            }
            (Some(_), Some(_), false) => {
                return Err(no_value(metric, "it is reported twice".to_owned()));
            }
            (None, _, false) => {
                return Err(no_value(metric, "it is not in the report".to_owned()));
            }
        }
    }
    Ok(samples)
}

fn sample(metric: &MetricSpec, series: &Series) -> Result<Sample, DecodeError> {
    if series.unit != metric.unit {
        return Err(no_value(
            metric,
            format!(
                "the unit is `{}` instead of `{}`",
                series.unit.symbol(),
                metric.unit.symbol()
            ),
        ));
    }
    if series.values.is_empty() {
        return Err(no_value(metric, "the series is empty".to_owned()));
    }
    if let Some(value) = series
        .values
        .iter()
        .find(|value| !(value.is_finite() && **value > 0.0))
    {
        return Err(no_value(metric, format!("`{value}` is not above 0")));
    }
    let id = MetricId::new(metric.id).map_err(|error| garbled(error.to_string()))?;
    Ok(Sample {
        metric: id,
        observations: series.values.clone(),
    })
}

fn garbled(problem: String) -> DecodeError {
    DecodeError::Garbled {
        format: PROBE_FORMAT.to_owned(),
        problem,
    }
}

fn no_value(metric: &MetricSpec, problem: String) -> DecodeError {
    DecodeError::NoValue {
        metric: metric.id.to_owned(),
        problem,
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
