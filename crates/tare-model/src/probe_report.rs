//! A probe's report on one trial; the content of raw output in format `probe/1`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::command::CommandReport;
use crate::outcome::{Bytes, Exit, RawOutput, Reason};
use crate::turns::Sliced;
use crate::unit::Unit;

/// Name of the raw format that holds a [`ProbeReport`] as JSON.
pub const PROBE_FORMAT: &str = "probe/1";

/// The observations of one metric, as the probe timed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The metric's identifier.
    pub metric: String,
    /// Unit of `values`.
    pub unit: Unit,
    /// One value per timed batch, in chronological order.
    pub values: Vec<f64>,
    /// Number of operations in one timed batch.
    pub batch: u64,
    /// `T(2k)/T(k)` from calibration; absent if the loop has no length to double.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linearity: Option<f64>,
    /// Remarks for the reader, for example `effective queue depth 1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The clock that the ends of a [`WorkSpan`] were read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanClock {
    /// The kernel's monotonic clock: comparable between all processes on one kernel.
    Kernel,
    /// The worker's clock, with an arbitrary origin: only the length is meaningful.
    Worker,
}

/// Start and end of the work of a held worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSpan {
    /// When it was released, nanoseconds.
    pub start_ns: u64,
    /// When the work had ended, nanoseconds.
    pub end_ns: u64,
    /// Clock of both times.
    pub clock: SpanClock,
}

impl RawOutput {
    /// Creates the output of a probe's worker that succeeded: its report as JSON.
    pub fn of_probe(report: Vec<u8>) -> Self {
        Self {
            format: PROBE_FORMAT.to_owned(),
            stdout: Bytes(report),
            stderr: Bytes::default(),
            exit: Exit::Code(0),
        }
    }
}

impl ProbeReport {
    /// Creates a report without any results.
    pub fn empty(probe: &str, revision: u32) -> Self {
        Self {
            probe: probe.to_owned(),
            revision,
            ..Self::default()
        }
    }
}

/// The report of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The probe's name.
    pub probe: String,
    /// The revision of its kernel; part of the metric's identity.
    pub revision: u32,
    /// The series, one per metric.
    pub series: Vec<Series>,
    /// Metrics of this probe that cannot be measured here, by identifier, with the reason; they have no series.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, Reason>,
    /// Checksum of the work's result as hexadecimal digits; must be equal in every arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Duration of the fixed integer loop before and after the timed work, nanoseconds.
    pub canary_ns: [f64; 2],
    /// Time from the worker's request to its report on the worker's monotonic clock, nanoseconds.
    pub elapsed_ns: u64,
    /// Counters of the trial (after minus before), for example `user_ns`, `sys_ns`, `minflt`, `majflt`, `nvcsw`,
    /// `nivcsw`, `run_delay_ns`, `steal_ticks`, `read_bytes`. An unreadable one is absent.
    pub counters: BTreeMap<String, f64>,
    /// The timer: `resolution_ns` and `cost_ns` of one reading, as measured in this environment.
    pub timer: BTreeMap<String, f64>,
    /// Result of the program that the probe `command` ran; its workload reads the values from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandReport>,
    /// Time span of the work, for a worker that was held until all were ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<WorkSpan>,
    /// How the slices were taken, for a worker that was interleaved with those of other arms. The values of a series
    /// are then its slices, and values at the same index belong to the same cycle in every arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sliced: Option<Sliced>,
    /// Time in which values were taken, nanoseconds: `elapsed_ns` without preparing, calibrating and waiting for turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_ns: Option<u64>,
}
