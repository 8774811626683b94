//! Arguments and result of the probe `command`, which runs a program as a trial.
//!
//! Workloads that wrap third-party tools describe the program with a [`CommandCall`] and read its result from a
//! [`CommandReport`]. No shell is involved: arguments are a list.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::outcome::{Bytes, Exit};
use crate::params::Params;
use crate::recipe::ProbeCall;

/// Name of the probe that runs a program.
pub const COMMAND_PROBE: &str = "command";

/// Name of the probe's argument that holds the call as JSON.
const CALL: &str = "call";

/// Placeholder in arguments and files for the address of the other end of a pair; in the server's own, for the
/// address to listen on.
pub const ADDRESS: &str = "{address}";
/// The argument with the time that a server may take until it listens, milliseconds.
pub const READY_MS: &str = "ready_ms";
/// Placeholder in arguments and files for the port of a pair's server.
pub const PORT: &str = "{port}";
/// Placeholder in arguments and files of a pair's server for the address to listen on.
pub const BIND: &str = "{bind}";
/// Placeholder in arguments and files for the fresh folder that the program starts in.
pub const FOLDER: &str = "{folder}";
/// All placeholders that are replaced.
pub const PLACEHOLDERS: [&str; 4] = [ADDRESS, PORT, BIND, FOLDER];

/// Transport protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A stream.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Where a program's standard output goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdout {
    /// Into the report, through a pipe.
    #[default]
    Kept,
    /// To `/dev/null`.
    Discarded,
    /// To where the first process of the environment writes, like the output of a container's main program: through
    /// the engine's pipe, log driver or terminal. The report contains none of it.
    Console,
}

/// A number in a program's output that is the value of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// A regular expression; the number is its first group, or else the whole match. The workload decides which of
    /// several matches count.
    pub pattern: String,
    /// Whether larger is better.
    #[serde(default)]
    pub more_is_better: bool,
    /// The metric of the value, if it is not just a number chosen by the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}

/// A program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
pub struct CommandCall {
    /// The program, by name on the search path or by path, and its arguments. Placeholders ([`ADDRESS`], [`BIND`],
    /// [`PORT`], [`FOLDER`]) are replaced.
    pub argv: Vec<String>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Files written to the fresh folder before the program starts, by name. Placeholders in them are replaced as
    /// well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Text for its stdin; `/dev/null` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Where its stdout goes.
    #[serde(default)]
    pub stdout: Stdout,
    /// Files of the fresh folder to return with the report, by name; missing ones are omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// Working directory, if not the fresh folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Exit statuses other than 0 that are not failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<i32>,
    /// For the server of a pair: it has started when it listens on [`PORT`], which the agent chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listens: Option<Transport>,
    /// File to use as stdin instead of `stdin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin_file: Option<String>,
    /// Whether it gets `variables` only, and none of the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean: bool,
    /// Whether its processes are observed while it runs ([`ProcessSamples`]); slows it down slightly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// Length of a step in which its use of processors, memory and devices is recorded ([`UsageOverTime`]),
    /// nanoseconds; `None` for no record. Linux only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_step_ns: Option<u64>,
    /// Whether its output is sent to the host while it runs ([`Reply::Printed`](crate::wire::Reply::Printed)). The
    /// output then passes through the agent, wherever it goes afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_output: bool,
    /// Whether its output is stored although no value is read from it; for the code that stores.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_output: bool,
    /// Files whose pages are dropped from the page cache before it starts, outside the timed region; missing ones are
    /// skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold: Vec<String>,
    /// The number to read from its output; returned with the report for the code that reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// How it is stopped and continued in slices; `None` for a program that runs uninterrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_slices: Option<InSlices>,
    /// Number of runs, one after another, each in a fresh folder and, if interleaved, at its own turn; `None` means one.
    /// Of several, the report has the mean time and resource usage of a run, and everything else from the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<NonZeroU32>,
    /// Whether a run killed at its limit counts as one that took at least that long; for the code that reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Time after which the program is ended and reported as far as it got, nanoseconds. Linux only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_after_ns: Option<u64>,
    /// For a server: the client on the host that queries it, as JSON. Only the host reads this, never an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// How a computing program is sliced: it runs for a slice, with all its processes, and is stopped until its next
/// turn; without alternation, for twice as long as it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InSlices {
    /// Target length of a slice, nanoseconds.
    pub ns: u64,
    /// Whether it uses only one processor, so that it can be pinned to that of its block.
    pub one_processor: bool,
}

/// A program's connection to the outside that does not stop with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// A socket was open.
    Socket,
    /// A timer was set.
    Timer,
    /// A terminal was open.
    Terminal,
    /// One of its processes started a new session.
    Session,
    /// It notices when it is continued: it has a handler for SIGCONT.
    Continued,
    /// One of its processes was stopped by another.
    Stopped,
}

/// Observations of a program's processes while it ran, sampled every few milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSamples {
    /// Maximum number of threads at once, over all its processes.
    pub threads: u32,
    /// Maximum number of processes at once.
    pub processes: u32,
    /// Files mapped as code into any of them.
    pub mapped: BTreeSet<String>,
    /// Regular files that any of them had open, by path, without those removed meanwhile.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
    /// The files in `opened` that were only read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub read: BTreeSet<String>,
    /// Maximum size at once of the files in `/dev/shm` that any of them had open or mapped, bytes, including files
    /// removed meanwhile.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub shared_memory_bytes: u64,
    /// Observed time, nanoseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub watched_ns: u64,
    /// Part of it that began with a sample in which none of its threads was running or runnable.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub idle_ns: u64,
    /// Connections to the outside that do not stop when it does.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ties: BTreeSet<Tie>,
    /// Lines of `/proc/<pid>/status` of its first process that show how it was treated, by name.
    pub status: BTreeMap<String, String>,
    /// The file that its first process executed; the last one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executed: Option<String>,
    /// SHA-256 of the files in `mapped` and `read` that are not large, as hexadecimal digits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sha256: BTreeMap<String, String>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_nothing(number: &u64) -> bool {
    *number == 0
}

impl CommandCall {
    /// Creates a call of `program` with `arguments`.
    pub fn new<T: Into<String>>(program: &str, arguments: impl IntoIterator<Item = T>) -> Self {
        let mut argv = vec![program.to_owned()];
        argv.extend(arguments.into_iter().map(Into::into));
        Self {
            argv,
            ..Self::default()
        }
    }

    /// Adds a file to its folder.
    #[must_use]
    pub fn with_file(mut self, name: &str, text: impl Into<String>) -> Self {
        self.files.insert(name.to_owned(), text.into());
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Converts it to a call of the probe.
    pub fn to_probe(&self) -> ProbeCall {
        let json = serde_json::to_string(self).expect("texts and numbers are always JSON");
        ProbeCall {
            name: COMMAND_PROBE.to_owned(),
            args: Params::new().with(CALL, json),
        }
    }

    /// Reads the call from the arguments of the probe.
    ///
    /// # Errors
    /// Returns what is missing or cannot be parsed.
    pub fn from_args(args: &Params) -> Result<Self, String> {
        let text = args
            .text(CALL)
            .ok_or_else(|| format!("the argument `{CALL}` is missing"))?;
        let call: Self =
            serde_json::from_str(text).map_err(|error| format!("`{CALL}`: {error}"))?;
        if call.argv.first().is_none_or(String::is_empty) {
            return Err("there is no program to run".to_owned());
        }
        Ok(call)
    }
}

/// What a program and its children use while they run, in steps of equal length from its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageOverTime {
    /// Length of a step, nanoseconds.
    pub step_ns: u64,
    /// Number of processors kept busy in each step, on average.
    pub processors: Vec<f64>,
    /// Resident memory at the end of each step, bytes, summed over the processes.
    pub memory_bytes: Vec<f64>,
    /// Bytes read from devices in each step.
    pub read_bytes: Vec<f64>,
    /// Bytes written to devices in each step.
    pub written_bytes: Vec<f64>,
}

impl UsageOverTime {
    /// Adds the usage of another program that started at the same time.
    pub fn add(&mut self, other: &Self) {
        for (sum, values) in [
            (&mut self.processors, &other.processors),
            (&mut self.memory_bytes, &other.memory_bytes),
            (&mut self.read_bytes, &other.read_bytes),
            (&mut self.written_bytes, &other.written_bytes),
        ] {
            sum.resize(sum.len().max(values.len()), 0.0);
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += value;
            }
        }
    }
}

/// The result of running a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandReport {
    /// The arguments it ran with, placeholders replaced.
    pub argv: Vec<String>,
    /// The executed file.
    pub program: String,
    /// How it ended.
    pub exit: Exit,
    /// Standard output, at most its first 16 MiB.
    pub stdout: Bytes,
    /// Standard error, at most its first MiB.
    pub stderr: Bytes,
    /// Whether more was written than is kept.
    #[serde(default)]
    pub is_cut: bool,
    /// The requested files that exist.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Bytes>,
    /// Time from the request to start it to its end, nanoseconds on the monotonic clock, excluding time in which it
    /// was stopped; the mean of several runs.
    pub wall_ns: u64,
    /// Whether it was ended at `end_after_ns` of the call: `exit` says so too, and the rest is what it did until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ended_early: bool,
    /// Number of times it was stopped.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub stops: u64,
    /// Wall and CPU time of each of several interleaved runs, nanoseconds, in the order of their turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_run_ns: Vec<[f64; 2]>,
    /// Resource usage of the program and the children that it reaped, by name: `user_ns`, `sys_ns`, `max_rss_bytes`,
    /// `minflt`, `majflt`, `inblock` and `oublock` (blocks of 512 bytes), `nvcsw`, `nivcsw`; and `permitted_cpus`,
    /// the processors that affinity and quota allow it. Absent if the system does not report it.
    #[serde(default)]
    pub usage: BTreeMap<String, f64>,
    /// Its usage step by step, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_over_time: Option<UsageOverTime>,
    /// Number of processes that it left running; they were ended then.
    #[serde(default)]
    pub left_running: u32,
    /// Observations while it ran, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<ProcessSamples>,
    /// `pick` of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// `tolerated` of the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<i32>,
}

impl CommandReport {
    /// The report of a program that succeeded without output.
    pub fn silent(argv: Vec<String>, wall_ns: u64) -> Self {
        Self {
            program: argv.first().cloned().unwrap_or_default(),
            argv,
            wall_ns,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_call_roundtrips_through_probe_arguments() {
        let call = CommandCall::new("fio", ["--filename=a b", "it's"])
            .with_file("job", "x\n")
            .with_variable("A", "1");
        let probe = call.to_probe();
        assert_eq!(probe.name, "command");
        assert_eq!(CommandCall::from_args(&probe.args).unwrap(), call);
    }

    #[test]
    fn a_call_without_a_program_is_refused() {
        for args in [
            Params::new(),
            Params::new().with("call", "{"),
            Params::new().with("call", r#"{"argv":[]}"#),
            Params::new().with("call", r#"{"argv":[""]}"#),
        ] {
            assert!(CommandCall::from_args(&args).is_err());
        }
    }
}
