//! What the workloads around the agent's probes share: the recipe of one call, and the reading of `probe/1`.
//!
//! Every probe leaves the same report, so it is read in one place, and strictly: a report either yields
//! every metric of its workload, each with finite positive values in the declared unit, or an error. There
//! is nothing between the two, because half a trial would enter the analysis as if it were a whole one.
//! What it cannot see: whether the values are plausible; and checksums, linearity and the timer, which
//! are compared across arms by those who see more than one trial.
//! This file is no workload.

use tare_model::outcome::Exit;
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::{
    MetricId, MetricSpec, Params, Path, ProbeCall, ProbeReport, RawOutput, Recipe, Sample, Series,
    Value,
};

use super::{DecodeError, ParamError, ParamSpec, Workload};

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
        Err(ParamError {
            param: param.to_owned(),
            problem: format!(
                "`{param}` cannot be `{}`",
                value.to_string().escape_default()
            ),
            hint: Some(hint),
        })
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
    /// Its metrics; every report holds exactly one series for each.
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
        if let Some(path) = path {
            return Err(ParamError {
                param: "path".to_owned(),
                problem: format!("`{}` has one end and no path `{}`", self.id, path.label()),
                hint: Some("leave the path out".to_owned()),
            });
        }
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

/// Reads a report of whichever probe: one sample for each of `metrics`, in their order.
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
    serde_json::from_slice(&raw.stdout.0).map_err(|error| garbled(error.to_string()))
}

fn samples(report: &ProbeReport, metrics: &[MetricSpec]) -> Result<Vec<Sample>, DecodeError> {
    for series in &report.series {
        if !metrics.iter().any(|metric| metric.id == series.metric) {
            return Err(garbled(format!(
                "unknown metric `{}`",
                series.metric.escape_default()
            )));
        }
    }
    metrics
        .iter()
        .map(|metric| {
            let mut found = report
                .series
                .iter()
                .filter(|series| series.metric == metric.id);
            match (found.next(), found.next()) {
                (Some(series), None) => sample(metric, series),
                (Some(_), Some(_)) => Err(no_value(metric, "it is reported twice".to_owned())),
                (None, _) => Err(no_value(metric, "it is not in the report".to_owned())),
            }
        })
        .collect()
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
mod tests {
    use std::collections::BTreeMap;

    use tare_model::outcome::Bytes;
    use tare_model::{Better, ResourceClass, Unit};

    use super::super::DefaultValue;
    use super::*;

    const METRICS: &[MetricSpec] = &[
        MetricSpec {
            id: "area.first.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: true,
            doc: "The first.",
        },
        MetricSpec {
            id: "area.second.rate",
            unit: Unit::BytePerSecond,
            better: Better::Higher,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "The second.",
        },
    ];

    static WORKLOAD: ProbeWorkload = ProbeWorkload {
        id: "thing",
        about: "a thing",
        params: &[
            ParamSpec {
                name: "mib",
                default: DefaultValue::Int(32),
                doc: "MiB",
            },
            ParamSpec {
                name: "size",
                default: DefaultValue::Text("small"),
                doc: "Size",
            },
        ],
        accepts: &[Accepts::Between(1, 64), Accepts::OneOf(&["small", "large"])],
        metrics: METRICS,
    };

    fn series(metric: &str, unit: Unit, values: &[f64]) -> Series {
        Series {
            metric: metric.to_owned(),
            unit,
            values: values.to_vec(),
            batch: 1,
            linearity: None,
            notes: Vec::new(),
        }
    }

    fn good() -> ProbeReport {
        ProbeReport {
            probe: "thing".to_owned(),
            revision: 1,
            // Not in the order of the metrics, on purpose.
            series: vec![
                series("area.second.rate", Unit::BytePerSecond, &[1e9]),
                series("area.first.time", Unit::Nanosecond, &[2.0, 2.5]),
            ],
            checksum: None,
            canary_ns: [1.0, 1.0],
            elapsed_ns: 1,
            counters: BTreeMap::new(),
            timer: BTreeMap::new(),
        }
    }

    fn raw(stdout: Vec<u8>) -> RawOutput {
        RawOutput {
            format: PROBE_FORMAT.to_owned(),
            stdout: Bytes(stdout),
            stderr: Bytes::default(),
            exit: Exit::Code(0),
        }
    }

    fn written(report: &ProbeReport) -> RawOutput {
        raw(serde_json::to_vec(report).unwrap())
    }

    #[test]
    fn a_good_report_yields_every_metric_in_the_order_of_the_workload() {
        let samples = WORKLOAD.decode(&written(&good())).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].metric.as_str(), "area.first.time");
        assert_eq!(samples[0].observations, [2.0, 2.5]);
        assert_eq!(samples[1].metric.as_str(), "area.second.rate");
        assert_eq!(decode(&written(&good()), METRICS).unwrap(), samples);
    }

    #[test]
    fn a_report_with_anything_missing_or_wrong_is_refused_whole() {
        type Change = fn(&mut ProbeReport);
        let changes: [(&str, Change); 8] = [
            ("another probe", |report| report.probe = "other".to_owned()),
            ("a series less", |report| drop(report.series.pop())),
            ("a series twice", |report| {
                report.series.push(report.series[0].clone());
            }),
            ("an unknown series", |report| {
                report
                    .series
                    .push(series("area.third.time", Unit::Nanosecond, &[1.0]));
            }),
            ("no values", |report| report.series[0].values.clear()),
            ("a zero", |report| report.series[1].values[1] = 0.0),
            ("a negative value", |report| {
                report.series[1].values[0] = -1.0
            }),
            ("another unit", |report| report.series[0].unit = Unit::Byte),
        ];
        for (what, change) in changes {
            let mut report = good();
            change(&mut report);
            assert!(WORKLOAD.decode(&written(&report)).is_err(), "{what}");
        }
    }

    #[test]
    fn values_that_json_cannot_hold_are_refused() {
        // JSON has neither NaN nor infinity: serde writes `null`, others write words, and 1e999 overflows.
        let text = serde_json::to_string(&good()).unwrap();
        for word in ["null", "NaN", "nan", "inf", "-Infinity", "1e999", "\"2.0\""] {
            let text = text.replace("2.5", word);
            assert!(text.contains(word));
            assert!(
                matches!(
                    WORKLOAD.decode(&raw(text.into_bytes())),
                    Err(DecodeError::Garbled { .. } | DecodeError::NoValue { .. })
                ),
                "{word}"
            );
        }
    }

    #[test]
    fn a_report_that_is_cut_off_anywhere_is_refused() {
        let whole = serde_json::to_vec(&good()).unwrap();
        for length in 0..whole.len() {
            assert!(
                matches!(
                    WORKLOAD.decode(&raw(whole[..length].to_vec())),
                    Err(DecodeError::Garbled { .. })
                ),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn another_format_or_a_worker_that_did_not_end_well_is_refused() {
        let mut other = written(&good());
        other.format = "fio/3".to_owned();
        assert!(WORKLOAD.decode(&other).is_err());
        for exit in [Exit::Code(1), Exit::Signal(9)] {
            let mut bad = written(&good());
            bad.exit = exit;
            assert!(WORKLOAD.decode(&bad).is_err(), "{exit:?}");
        }
    }

    #[test]
    fn a_recipe_fills_in_the_defaults_and_names_the_probe() {
        let Recipe::Probe(call) = WORKLOAD
            .recipe(&Params::new().with("size", "large"), None)
            .unwrap()
        else {
            panic!("not a probe");
        };
        assert_eq!(call.name, "thing");
        assert_eq!(
            call.args,
            Params::new().with("mib", 32i64).with("size", "large")
        );
    }

    #[test]
    fn a_parameter_that_is_unknown_or_out_of_range_is_refused_with_a_hint() {
        for (params, param, hint) in [
            (
                Params::new().with("mbi", 3i64),
                "mbi",
                "it has `mib`, `size`",
            ),
            (
                Params::new().with("mib", 65i64),
                "mib",
                "use a whole number from 1 to 64",
            ),
            (
                Params::new().with("mib", "3"),
                "mib",
                "use a whole number from 1 to 64",
            ),
            (
                Params::new().with("size", "huge"),
                "size",
                "use one of `small`, `large`",
            ),
        ] {
            let error = WORKLOAD.recipe(&params, None).unwrap_err();
            assert_eq!(error.param, param);
            assert_eq!(error.hint.as_deref(), Some(hint));
        }
        assert_eq!(
            WORKLOAD
                .recipe(&Params::new(), Some(Path::Loopback))
                .unwrap_err()
                .param,
            "path"
        );
    }
}
