//! Parses one trial's raw output into readings; the only place where a trial is parsed.
//!
//! A probe's report is parsed once, in place: names are borrowed from the bytes, and values are summarised without a
//! copy. Only a program's printed output is parsed by its workload first.

use tare_model::counter;
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::unit::TICK_NS;
use tare_model::{MetricSpec, RawOutput, Sample};

use super::counters::CounterRow;
use super::kept_trial::{KeptTrial, ProbeFacts, UsableTrial};
use super::reading::{Reading, read};
use super::report::{Report, SeriesPart};
use super::turns::{Slices, Turns};
use crate::workload::probe_output::{self, SeriesView};
use crate::workload::{DecodeError, Workload, unreadable};

/// Reads one trial.
pub(super) fn decode(
    workload: &'static dyn Workload,
    raw: &RawOutput,
) -> Result<UsableTrial, DecodeError> {
    if raw.format != PROBE_FORMAT {
        return printed(workload, raw);
    }
    let metrics = workload.metrics();
    // A program's output is read first: its error message is more specific than this parser's.
    let samples = match workload.plain_probe() {
        Some(_) => probe_output::ended_well(raw).map(|()| Vec::new())?,
        None => workload.decode(raw)?,
    };
    let mut report =
        Report::parse(&raw.stdout.0).map_err(|error| garbled(raw, unreadable(&error)))?;
    let values: Vec<Option<&[f64]>> = if let Some(probe) = workload.plain_probe() {
        probe_output::of_probe(probe, &report.probe)?;
        let views: Vec<SeriesView<'_>> = report.series.iter().map(SeriesPart::view).collect();
        probe_output::values(&views, &report.unavailable, metrics)?
    } else {
        observations(&samples, metrics)
    };
    // A built-in probe's batches are equal work in native code: what MSER would cut off is noise.
    let readings = readings(workload, raw, &values, false)?;
    let turns = match report.sliced {
        Some(ref sliced) => Turns::Slices(Slices {
            stage: sliced.stage,
            metrics: values.iter().map(|values| narrowed(*values)).collect(),
        }),
        None => Turns::Whole,
    };
    let coarse = readings.iter().zip(metrics).any(|(reading, metric)| {
        reading.is_some_and(|reading| is_coarse(&report, metric.id, reading.floor))
    });
    let observations = values.iter().flatten().map(|values| values.len()).sum();
    let command = report.command.as_ref().map(|command| command.wall_ns);
    let usage = report.command.as_mut();
    let usage = usage.and_then(|command| command.usage_over_time.take());
    Ok(UsableTrial {
        kept: KeptTrial {
            readings,
            turns,
            probe: Some(probe_facts(&report, coarse, observations)),
            usage: usage.map(Box::new),
            ..described(workload, raw)
        },
        span: report.span,
        timed_ns: command.or(report.timed_ns),
        unavailable: report.unavailable,
    })
}

/// Reads output that is not a probe's report.
fn printed(workload: &'static dyn Workload, raw: &RawOutput) -> Result<UsableTrial, DecodeError> {
    let samples = workload.decode(raw)?;
    let values = observations(&samples, workload.metrics());
    Ok(UsableTrial {
        kept: KeptTrial {
            readings: readings(workload, raw, &values, true)?,
            ..described(workload, raw)
        },
        ..UsableTrial::default()
    })
}

/// What the workload itself says of the trial.
fn described(workload: &'static dyn Workload, raw: &RawOutput) -> KeptTrial {
    KeptTrial {
        remarks: workload.remarks(raw).into_boxed_slice(),
        course: workload.course(raw).map(Box::new),
        ..KeptTrial::default()
    }
}

/// Returns the observations of each metric.
pub(super) fn observations<'a>(
    samples: &'a [Sample],
    metrics: &[MetricSpec],
) -> Vec<Option<&'a [f64]>> {
    let of = |metric: &MetricSpec| {
        let mut samples = samples.iter();
        let sample = samples.find(|it| it.metric.as_str() == metric.id)?;
        Some(sample.observations.as_slice())
    };
    metrics.iter().map(of).collect()
}

/// Returns the readings of these values, by metric.
fn readings(
    workload: &'static dyn Workload,
    raw: &RawOutput,
    values: &[Option<&[f64]>],
    may_warm_up: bool,
) -> Result<Box<[Option<Reading>]>, DecodeError> {
    let mut readings = Vec::with_capacity(values.len());
    for (values, metric) in values.iter().zip(workload.metrics()) {
        let reading = values.map(|values| {
            read(values, metric.better, may_warm_up).ok_or_else(|| DecodeError::NoValue {
                metric: metric.id.to_owned(),
                problem: "it holds what is no number".to_owned(),
            })
        });
        readings.push(reading.transpose()?);
    }
    if readings.iter().all(Option::is_none) {
        let problem = "none of the workload's metrics is in the output";
        return Err(garbled(raw, problem.to_owned()));
    }
    Ok(readings.into_boxed_slice())
}

/// Narrows slices to `f32` for storage.
#[allow(
    clippy::cast_possible_truncation,
    reason = "24 bits are more than a slice of a millisecond deserves"
)]
fn narrowed(values: Option<&[f64]>) -> Box<[f32]> {
    let values = values.unwrap_or_default().iter();
    values.map(|value| *value as f32).collect()
}

pub(super) fn garbled(raw: &RawOutput, problem: String) -> DecodeError {
    DecodeError::Garbled {
        format: raw.format.escape_default().to_string(),
        problem,
    }
}

impl SeriesPart<'_> {
    fn view(&self) -> SeriesView<'_> {
        SeriesView {
            metric: &self.metric,
            unit: self.unit,
            values: &self.values,
        }
    }
}

/// Whether the shortest batch of a series of times is shorter than ten steps of the clock, or than twenty readings of
/// it (Hoefler & Belli 2015: five per cent, tenfold precision).
fn is_coarse(report: &Report<'_>, metric: &str, floor_ns: f64) -> bool {
    let timer = |name| report.timer.get(name).unwrap_or(0.0);
    let shortest = 10.0 * timer("resolution_ns");
    let shortest = f64::max(shortest, 20.0 * timer("cost_ns"));
    report
        .series
        .iter()
        .filter(|series| series.metric == metric && series.unit == tare_model::Unit::Nanosecond)
        .any(|series| floor_ns * (series.batch as f64) < shortest)
}

/// The number of operations in a trial. Batches of several series are taken as equally many: it only matters that
/// both arms are counted alike.
fn units(report: &Report<'_>, observations: usize) -> f64 {
    let series = report.series.len().max(1) as f64;
    let batches: u64 = report.series.iter().map(|series| series.batch).sum();
    (observations.max(1) as f64 / series) * (batches.max(1) as f64)
}

fn counters(report: &Report<'_>, observations: usize) -> CounterRow {
    let own = |wall_ns: u64| {
        [
            (counter::WALL, wall_ns as f64),
            (counter::UNITS, units(report, observations)),
        ]
    };
    let inside = report.counters.iter();
    match &report.command {
        // The program's usage, not that of the worker around it.
        Some(command) => {
            let no_children = [(counter::CHILDREN_USER, 0.0), (counter::CHILDREN_SYS, 0.0)];
            let of_program = command.usage.iter().chain(no_children);
            CounterRow::from_numbers(inside.chain(of_program).chain(own(command.wall_ns)))
        }
        None => CounterRow::from_numbers(inside.chain(own(report.elapsed_ns))),
    }
}

fn probe_facts(report: &Report<'_>, coarse: bool, observations: usize) -> ProbeFacts {
    let counter = |name| report.counters.get(name);
    let canary = report.canary_ns.into_iter().filter(|ns| *ns > 0.0);
    let distance = |value: &f64| (value - 2.0).abs();
    ProbeFacts {
        revision: report.revision,
        checksum: report.checksum.as_ref().map(|text| (*text.0).into()),
        elapsed_ns: report.elapsed_ns,
        canary_ns: canary.reduce(f64::min).into(),
        steal_ns: counter(counter::STEAL).map(|ticks| ticks * TICK_NS).into(),
        throttled_ns: counter(counter::THROTTLED).into(),
        major_faults: counter(counter::MAJFLT).into(),
        clock_cost_ns: report.timer.get("cost_ns").into(),
        cpu: report.sliced.as_ref().and_then(|sliced| sliced.cpu),
        coarse,
        counters: counters(report, observations),
        linearity: report
            .series
            .iter()
            .filter_map(|series| series.linearity)
            .filter(|value| value.is_finite())
            .reduce(|a, b| if distance(&b) > distance(&a) { b } else { a })
            .into(),
    }
}
