//! Finds the JSON in fio's output and parses it strictly.
//!
//! fio writes messages before, after and even between the lines of its JSON; with `--status-interval` there are
//! several documents, and the last one covers the whole run. `bw` is always in KiB/s, whatever its neighbours' units
//! are, so `bw_bytes` is preferred. Keys exist only if their option was given: a missing `disk_util` or percentile is
//! absent, never 0.
//! Limits: does not support fio 2, whose JSON has the same keys in other units; it is rejected by its version.

use serde_json::{Map, Value};

use super::super::DecodeError;
use tare_model::Reason;

/// The result of one run of fio.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The jobs, or their groups.
    pub jobs: Vec<Job>,
    /// Totals of the block devices; `None` if fio does not report them.
    pub devices: Option<Devices>,
}

/// Totals of the block devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Devices {
    /// Bytes read.
    pub read_bytes: Option<f64>,
    /// Bytes written.
    pub write_bytes: Option<f64>,
    /// Reads and writes.
    pub operations: Option<f64>,
    /// Share of the time in which the busiest device was busy.
    pub busy: Option<f64>,
}

/// One job, or a group of equal jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The group's number.
    pub group: u64,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Its options, including the global ones.
    pub options: Map<String, Value>,
    /// Share of its time in user code, percent.
    pub user_percent: Option<f64>,
    /// Share of its time in the kernel, percent.
    pub system_percent: Option<f64>,
    /// Context switches.
    pub switches: Option<f64>,
}

/// Operations of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Direction {
    /// Number of completed operations.
    pub operations: f64,
    /// Operations per second.
    pub rate: f64,
    /// Bytes.
    pub bytes: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Run time, seconds.
    pub runtime_s: f64,
    /// Mean time from before the submission to the completion, nanoseconds.
    pub time_ns: f64,
    /// Mean time of the submission, nanoseconds.
    pub submission_ns: f64,
    /// Mean time from the submission to the completion, nanoseconds.
    pub completion_ns: f64,
    /// 99th percentile of the time.
    pub p99_ns: Option<f64>,
    /// Percentiles of the time from the submission to the completion, in the order of `COMPLETION_PERCENTILES`.
    pub completion_percentiles_ns: [Option<f64>; 5],
}

/// The percentiles of the completion that are metrics, as fio writes them.
const COMPLETION_PERCENTILES: [&str; 5] = [
    "1.000000",
    "50.000000",
    "95.000000",
    "99.000000",
    "99.990000",
];

impl Output {
    /// Parses fio's output.
    ///
    /// # Errors
    /// [`DecodeError::Garbled`] if there is no complete document of a known version, [`DecodeError::Unsuccessful`] if
    /// a job ended with an error.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        let document = document(text).ok_or_else(|| garbled("there is no whole JSON document"))?;
        let version = document
            .get("fio version")
            .and_then(Value::as_str)
            .ok_or_else(|| garbled("there is no `fio version`"))?;
        if !version.starts_with("fio-3") {
            let version = version.escape_default();
            return Err(garbled(&format!(
                "`{version}` is none whose units are known here (fio 3)"
            )));
        }
        let common = object(document.get("global options"));
        let jobs = document
            .get("jobs")
            .and_then(Value::as_array)
            .ok_or_else(|| garbled("there are no `jobs`"))?
            .iter()
            .map(|job| Job::read(job, &common))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            jobs,
            devices: devices(&document),
        })
    }

    /// All jobs as one: rates are summed, times weighted by the number of operations.
    ///
    /// # Errors
    /// [`DecodeError::Garbled`] if there is no job, or if the jobs did not run at the same time.
    pub fn total(&self) -> Result<Job, DecodeError> {
        let (first, rest) = self
            .jobs
            .split_first()
            .ok_or_else(|| garbled("there is no job"))?;
        if rest.iter().any(|job| job.group != first.group) {
            return Err(garbled("its jobs are of several groups, one after another"));
        }
        let mut total = first.clone();
        for job in rest {
            total.read.add(&job.read);
            total.write.add(&job.write);
            let most = |a: Option<f64>, b: Option<f64>| Some(f64::max(a?, b?));
            total.user_percent = most(total.user_percent, job.user_percent);
            total.system_percent = most(total.system_percent, job.system_percent);
            total.switches = total.switches.zip(job.switches).map(|(a, b)| a + b);
        }
        Ok(total)
    }
}

impl Job {
    fn read(job: &Value, common: &Map<String, Value>) -> Result<Self, DecodeError> {
        let name = job.get("jobname").and_then(Value::as_str).unwrap_or("?");
        match job.get("error").and_then(Value::as_i64) {
            Some(0) => {}
            Some(code) => {
                // fio stores the errno of the first failed syscall, positive or negative.
                let reason = i32::try_from(code.unsigned_abs()).map_or_else(
                    |_| "no number of the system's".to_owned(),
                    |number| std::io::Error::from_raw_os_error(number).to_string(),
                );
                return Err(DecodeError::Unsuccessful {
                    problem: format!(
                        "fio's job `{}` ended with error {code} ({reason})",
                        name.escape_default()
                    ),
                });
            }
            None => return Err(garbled("a job has no `error`")),
        }
        let mut options = common.clone();
        options.extend(object(job.get("job options")));
        let shown = |key| number(job, key).ok();
        Ok(Self {
            group: job.get("groupid").and_then(Value::as_u64).unwrap_or(0),
            read: Direction::read(job, "read")?,
            write: Direction::read(job, "write")?,
            options,
            user_percent: shown("usr_cpu"),
            system_percent: shown("sys_cpu"),
            switches: shown("ctx"),
        })
    }

    /// Share of its time in user and kernel code, percent.
    pub fn cpu_percent(&self) -> Option<f64> {
        Some(self.user_percent? + self.system_percent?)
    }

    /// A numeric option, or fio's default.
    pub fn option(&self, name: &str, otherwise: f64) -> f64 {
        let given = self.options.get(name).and_then(Value::as_str);
        given
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    }

    /// A text option.
    pub fn option_text(&self, name: &str) -> Option<&str> {
        self.options.get(name).and_then(Value::as_str)
    }
}

impl Direction {
    fn read(job: &Value, key: &str) -> Result<Self, DecodeError> {
        let direction = job
            .get(key)
            .filter(|value| value.is_object())
            .ok_or_else(|| garbled(&format!("a job has no `{key}`")))?;
        let operations = number(direction, "total_ios")?;
        if operations == 0.0 {
            return Ok(Self::default());
        }
        let mean = |key: &str| -> Result<f64, DecodeError> {
            let block = direction
                .get(key)
                .ok_or_else(|| garbled(&format!("there is no `{key}`")))?;
            number(block, "mean")
        };
        let bytes_per_s = match number(direction, "bw_bytes") {
            Ok(value) => value,
            // Before fio 3.1; in KiB/s.
            Err(_) => number(direction, "bw")? * 1_024.0,
        };
        let percentile = |times: &str, key: &str| {
            let percentiles = direction.get(times)?.get("percentile")?;
            // Some engines never wait; their times are then 0.
            percentiles.get(key)?.as_f64().filter(|ns| *ns > 0.0)
        };
        let read = Self {
            operations,
            rate: number(direction, "iops")?,
            bytes: number(direction, "io_bytes")?,
            bytes_per_s,
            runtime_s: number(direction, "runtime")? / 1_000.0,
            time_ns: mean("lat_ns")?,
            // Engines without a queue have no submission time.
            submission_ns: mean("slat_ns").unwrap_or(0.0),
            completion_ns: mean("clat_ns")?,
            p99_ns: percentile("lat_ns", "99.000000"),
            completion_percentiles_ns: COMPLETION_PERCENTILES.map(|key| percentile("clat_ns", key)),
        };
        if read.operations > 0.0 && read.rate > 0.0 && read.bytes_per_s > 0.0 && read.time_ns > 0.0
        {
            Ok(read)
        } else {
            Err(garbled(&format!(
                "`{key}` has operations, but a rate or a time that is not above 0"
            )))
        }
    }

    fn add(&mut self, other: &Self) {
        let n = self.operations + other.operations;
        if other.operations == 0.0 {
            return;
        }
        let is_first = self.operations == 0.0;
        let weighted = |a: f64, b: f64| (a * self.operations + b * other.operations) / n;
        *self = Self {
            operations: n,
            rate: self.rate + other.rate,
            bytes: self.bytes + other.bytes,
            bytes_per_s: self.bytes_per_s + other.bytes_per_s,
            runtime_s: f64::max(self.runtime_s, other.runtime_s),
            time_ns: weighted(self.time_ns, other.time_ns),
            submission_ns: weighted(self.submission_ns, other.submission_ns),
            completion_ns: weighted(self.completion_ns, other.completion_ns),
            // Percentiles of several jobs cannot be combined.
            p99_ns: other.p99_ns.filter(|_| is_first),
            completion_percentiles_ns: other
                .completion_percentiles_ns
                .map(|ns| ns.filter(|_| is_first)),
        };
    }
}

/// Turns a failure of fio into `Unavailable` if its message says that it can never work here.
pub(super) fn explained(error: DecodeError) -> DecodeError {
    let DecodeError::Unsuccessful { problem } = &error else {
        return error;
    };
    let is_denied = problem.contains("Operation not permitted");
    if is_denied && (problem.contains("io_queue_init") || problem.contains("io_uring")) {
        return DecodeError::Unavailable(Reason::BlockedSyscall("io_uring_setup".to_owned()));
    }
    let is_absent = problem.contains("Function not implemented");
    if is_absent && (problem.contains("io_queue_init") || problem.contains("io_uring")) {
        return DecodeError::Unavailable(Reason::Unsupported("io_uring".to_owned()));
    }
    if problem.contains("engine") && problem.contains("not loadable") {
        return DecodeError::Unavailable(Reason::Unsupported(
            "this fio was built without the I/O engine that is asked for".to_owned(),
        ));
    }
    error
}

/// The last complete JSON object with jobs that starts at the beginning of a line.
fn document(text: &str) -> Option<Value> {
    // fio's messages can be between the lines of the document.
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("fio:"))
        .collect();
    let text = kept.join("\n");
    let mut found = None;
    let mut rest = text.as_str();
    while let Some(start) = next_object(rest) {
        let mut documents = serde_json::Deserializer::from_str(&rest[start..]).into_iter::<Value>();
        let whole = documents.next().and_then(Result::ok);
        let length = documents.byte_offset().max(1);
        if let Some(whole) = whole.filter(|whole| whole.get("jobs").is_some()) {
            found = Some(whole);
        }
        rest = rest.get(start + length..).unwrap_or_default();
    }
    found
}

/// The offset of the next line that starts an object.
fn next_object(text: &str) -> Option<usize> {
    if text.starts_with('{') {
        return Some(0);
    }
    text.find("\n{").map(|position| position + 1)
}

/// The totals of all block devices. A device and the one below it would be counted twice, so `aggr_` keys and slaves
/// are not added.
fn devices(document: &Value) -> Option<Devices> {
    let devices = document.get("disk_util")?.as_array()?;
    if devices.is_empty() {
        return None;
    }
    let sum = |key: &str| {
        devices
            .iter()
            .map(|device| number(device, key).ok())
            .sum::<Option<f64>>()
    };
    let bytes = |key: &str| sum(key).map(|sectors| sectors * 512.0);
    let busy = devices
        .iter()
        .filter_map(|device| number(device, "util").ok());
    Some(Devices {
        read_bytes: bytes("read_sectors"),
        write_bytes: bytes("write_sectors"),
        operations: sum("read_ios").zip(sum("write_ios")).map(|(a, b)| a + b),
        busy: busy.reduce(f64::max).map(|percent| percent / 100.0),
    })
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// A finite number that is not negative.
fn number(value: &Value, key: &str) -> Result<f64, DecodeError> {
    value
        .get(key)
        .and_then(Value::as_f64)
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| garbled(&format!("`{key}` is no number that is not below 0")))
}

fn garbled(problem: &str) -> DecodeError {
    DecodeError::garbled("fio's JSON", problem)
}
