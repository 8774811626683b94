//! A program that is run as a trial, and what it left: the arguments and the result of the probe `command`.
//!
//! Workloads around other people's tools say with a [`CommandCall`] what to run and read from a
//! [`CommandReport`] what came of it. Nothing passes through a shell: arguments are a list.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::outcome::{Bytes, Exit};
use crate::params::Params;
use crate::recipe::ProbeCall;

/// The name of the probe that runs a program.
pub const COMMAND_PROBE: &str = "command";

/// The argument of the probe that holds the call as JSON.
const CALL: &str = "call";

/// Stands in arguments and files for the address of the other end of a pair; in the server's own, for the address
/// on which it is to listen.
pub const ADDRESS: &str = "{address}";
/// The argument that says how long a server may take until it listens, milliseconds.
pub const READY_MS: &str = "ready_ms";
/// Stands in arguments and files for the port of a pair's server.
pub const PORT: &str = "{port}";
/// Stands in arguments and files of a pair's server for the address on which it is to listen.
pub const BIND: &str = "{bind}";
/// Stands in arguments and files for the fresh folder in which the program is started.
pub const FOLDER: &str = "{folder}";
/// All that is filled in.
pub const PLACEHOLDERS: [&str; 4] = [ADDRESS, PORT, BIND, FOLDER];

/// Over what a program serves.
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
    /// Through a pipe into the report.
    #[default]
    Kept,
    /// To `/dev/null`.
    Discarded,
    /// To wherever the first process of the environment writes, as the output of a container's own program
    /// does: through an engine's pipe, log driver or terminal. Nothing of it is in the report.
    Console,
}

/// A number in a program's output that is the value of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pick {
    /// A regular expression; its first group, else the whole match, is the number. Which of several matches
    /// count is the workload's to say.
    pub pattern: String,
    /// Whether a larger number is the better one.
    #[serde(default)]
    pub more_is_better: bool,
    /// The metric that it is the value of, where it is not just a number of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}

/// A program to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
pub struct CommandCall {
    /// The program, by its name on the search path or by its path, and its arguments. Placeholders
    /// ([`ADDRESS`], [`BIND`], [`PORT`], [`FOLDER`]) are replaced.
    pub argv: Vec<String>,
    /// Environment variables that are set in addition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Files that are written into the fresh folder before the program is started, by name. Placeholders are
    /// replaced in them as well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// What it reads from standard input; nothing (`/dev/null`) for `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Where its standard output goes.
    #[serde(default)]
    pub stdout: Stdout,
    /// Files of the fresh folder that come back with the report, by name; one that does not exist is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<String>,
    /// Where it is started, if not in the fresh folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Exit statuses other than 0 that are no failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<i32>,
    /// For the server of a pair: it has started when it listens on [`PORT`], which the agent chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<Transport>,
    /// A file from which it reads its standard input, instead of `stdin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_file: Option<String>,
    /// Whether it gets `variables` only, and none of the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean: bool,
    /// Whether its processes are looked at while it runs ([`Seen`]): costs it a little time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// Whether its output is sent to the host while it runs ([`Reply::Printed`](crate::wire::Reply::Printed)): it passes
    /// through the agent then, wherever it goes on to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_output: bool,
    /// Whether what it prints is stored although nothing is read from it; for those who store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_output: bool,
    /// Files whose pages are dropped from the cache before it is started, and outside of its time; one that is not
    /// there is passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cold: Vec<String>,
    /// Which number of its output is wanted; comes back with the report for those who read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// How it is stopped on its way and goes on again; `None` for a program that runs to its end in one go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_slices: Option<InSlices>,
    /// How many times it runs, one run after another, each in a fresh folder; once for `None`. Of several the report
    /// has the mean time and use of a run, and all else of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<NonZeroU32>,
    /// Whether a run that is ended at its limit counts as one that took at least so long; for those who read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// For a server: the client on the host that asks it, as JSON. It is the host's business; no agent reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// How a program that computes is cut: it runs for a slice, with all its processes, and is stopped until its next
/// turn; where no turns are taken, for twice as long as it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InSlices {
    /// What a slice aims at, nanoseconds.
    pub ns: u64,
    /// Whether one processor is all that it uses, so that it can be bound to the one of its block.
    pub one_processor: bool,
}

/// What a program has to do with the world outside of it, which does not stop with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// A socket was open.
    Socket,
    /// A timer was set.
    Timer,
    /// A terminal was open.
    Terminal,
    /// One of its processes began a session of its own.
    Session,
    /// It is told when it goes on: it has a handler for SIGCONT.
    Continued,
    /// One of its processes was stopped by another.
    Stopped,
}

/// What was seen of a program's processes while it ran, by looking every few milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The most threads at once, of all its processes together.
    pub threads: u32,
    /// The most processes at once.
    pub processes: u32,
    /// Files mapped as code into any of them.
    pub mapped: BTreeSet<String>,
    /// Regular files that any of them had open, by path; those that were removed meanwhile are left out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
    /// Those of them that were only read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub read: BTreeSet<String>,
    /// The most bytes at once of the files in `/dev/shm` that any of them had open or mapped, also of those that
    /// were removed meanwhile.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub shared_memory_bytes: u64,
    /// How long it was looked at, nanoseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub watched_ns: u64,
    /// How much of that began with a look at which none of its threads ran or was ready to.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub idle_ns: u64,
    /// What does not stop when it does.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ties: BTreeSet<Tie>,
    /// Lines of `/proc/<pid>/status` of its first process that tell how it was treated, by name.
    pub status: BTreeMap<String, String>,
    /// The file that its first process executed, of several the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed: Option<String>,
    /// SHA-256 of files of `mapped` and `read`, of those that are not large, as hexadecimal digits.
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
    /// A call of `program` with `arguments`.
    pub fn new<T: Into<String>>(program: &str, arguments: impl IntoIterator<Item = T>) -> Self {
        let mut argv = vec![program.to_owned()];
        argv.extend(arguments.into_iter().map(Into::into));
        Self {
            argv,
            ..Self::default()
        }
    }

    /// The same with a file in its folder.
    #[must_use]
    pub fn with_file(mut self, name: &str, text: impl Into<String>) -> Self {
        self.files.insert(name.to_owned(), text.into());
        self
    }

    /// The same with an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// As a call of the probe.
    pub fn to_probe(&self) -> ProbeCall {
        let json = serde_json::to_string(self).expect("texts and numbers are always JSON");
        ProbeCall {
            name: COMMAND_PROBE.to_owned(),
            args: Params::new().with(CALL, json),
        }
    }

    /// From the arguments of the probe.
    ///
    /// # Errors
    /// What is missing or not understood.
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

/// What a program left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandReport {
    /// The arguments with which it was run, placeholders replaced.
    pub argv: Vec<String>,
    /// The file that was executed.
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
    /// The files asked for that exist.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Bytes>,
    /// Between the request to start it and its end, nanoseconds on the monotonic clock, without the time in which
    /// it was stopped; the mean of several runs.
    pub wall_ns: u64,
    /// How often it was stopped.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub stops: u64,
    /// What it and those of its children that it reaped used, by name: `user_ns`, `sys_ns`, `max_rss_bytes`,
    /// `minflt`, `majflt`, `inblock` and `oublock` (blocks of 512 bytes), `nvcsw`, `nivcsw`; and `permitted_cpus`, the processors on which affinity and quota
    /// let it run. Absent where the system does not tell.
    #[serde(default)]
    pub usage: BTreeMap<String, f64>,
    /// Processes that it had left running when it ended, and that were ended then.
    #[serde(default)]
    pub left_running: u32,
    /// What was seen of it while it ran, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// The call's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// The call's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerated: Vec<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_survives_the_way_through_the_probes_arguments() {
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
