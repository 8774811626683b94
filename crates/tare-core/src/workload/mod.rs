//! Workloads: what is run. One file each; both halves are pure.
//!
//! A workload says what to run ([`Workload::recipe`]) and how to read the bytes ([`Workload::decode`]); it
//! does no I/O and knows nothing of environments. Adding one is a file here and a word in [`WORKLOADS`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tare_model::course::Course;
use tare_model::{MetricSpec, Params, Path, RawOutput, Reason, Recipe, Sample, Value, WorkSpan};

pub use declared::{Accepts, Declared, DefaultValue, ParamSpec};
pub use sanity::Remark;

mod allocate;
mod chase;
mod clock;
mod date;
mod des;
mod directory;
mod environment;
mod files;
mod float;
mod getppid;
mod integer;
mod lines;
mod matrix;
mod mounts;
mod mutex;
mod page_load;
mod pipe;
mod random;
mod random_access;
mod read_files;
mod regex;
mod socket;
mod spawn;
mod stat;
mod tasks;
mod threads;
mod timer;
mod touch;
mod triad;

pub mod benchmark_dotnet;
mod blas;
pub mod blas_inverse;
pub mod blas_matrices;
pub mod blas_together;
pub mod command;
pub mod command_output;
pub mod compared_command;
pub mod copy_up;
pub mod declared;
pub mod disk_random;
pub mod disk_sequential;
pub mod fio;
pub mod fsync;
pub mod hpcc;
pub mod instances;
pub mod iozone;
pub mod iperf3;
pub mod netcat;
pub mod paired;
pub mod php_pages;
mod pi;
pub mod pi_loop;
pub mod pi_numpy;
pub mod ping;
pub mod probe_output;
pub mod pyperf;
pub mod python_des;
pub mod python_files;
pub mod python_mix;
pub mod python_tool;
pub mod recorded;
pub mod redis_benchmark;
pub mod sanity;
pub mod service;
pub mod start_up;
pub mod stoppable;
pub mod stress_ng;
pub mod sysbench_cpu;
pub mod sysbench_fileio;
pub mod sysbench_memory;
pub mod sysbench_output;
pub mod tcp_connect;
pub mod tcp_round_trip;
pub mod tcp_stream;
pub mod tool_params;
pub mod tool_text;
pub mod udp_round_trip;
pub mod user_command;

/// Every workload.
pub static WORKLOADS: &[&dyn Workload] = &[
    &allocate::ENTRY,
    &benchmark_dotnet::BenchmarkDotnet,
    &blas_inverse::ENTRY,
    &blas_matrices::ENTRY,
    &blas_together::ENTRY,
    &chase::ENTRY,
    &clock::ENTRY,
    &command::AnyCommand,
    &compared_command::ComparedCommand,
    &copy_up::ENTRY,
    &date::ENTRY,
    &des::ENTRY,
    &directory::ENTRY,
    &disk_random::ENTRY,
    &disk_sequential::ENTRY,
    &environment::ENTRY,
    &files::ENTRY,
    &fio::Fio,
    &float::ENTRY,
    &fsync::ENTRY,
    &getppid::ENTRY,
    &hpcc::Hpcc,
    &integer::ENTRY,
    &iozone::Iozone,
    &iperf3::Iperf3,
    &lines::ENTRY,
    &matrix::ENTRY,
    &mounts::ENTRY,
    &mutex::ENTRY,
    &netcat::Netcat,
    &page_load::ENTRY,
    &php_pages::PhpPages,
    &pi_loop::PI_LOOP,
    &pi_numpy::PI_NUMPY,
    &ping::Ping,
    &pipe::ENTRY,
    &pyperf::Pyperf,
    &python_des::PythonDes,
    &python_files::PythonFiles,
    &python_mix::PythonMix,
    &random::ENTRY,
    &random_access::ENTRY,
    &read_files::ENTRY,
    &redis_benchmark::RedisBenchmark,
    &regex::ENTRY,
    &service::Service,
    &socket::ENTRY,
    &spawn::ENTRY,
    &start_up::StartUp,
    &stat::ENTRY,
    &stress_ng::StressNg,
    &sysbench_cpu::SysbenchCpu,
    &sysbench_fileio::SysbenchFileio,
    &sysbench_memory::SysbenchMemory,
    &tasks::ENTRY,
    &tcp_connect::ENTRY,
    &tcp_round_trip::ENTRY,
    &tcp_stream::ENTRY,
    &threads::ENTRY,
    &timer::ENTRY,
    &touch::ENTRY,
    &triad::ENTRY,
    &udp_round_trip::ENTRY,
    &user_command::UserCommand,
];

/// The workload of this name.
pub fn find(id: &str) -> Option<&'static dyn Workload> {
    // Asked for every trial of a run.
    static BY_ID: LazyLock<BTreeMap<&str, &'static dyn Workload>> = LazyLock::new(|| {
        let all = WORKLOADS.iter().copied();
        all.map(|workload| (workload.id(), workload)).collect()
    });
    BY_ID.get(id).copied()
}

/// The parameters with the workload's defaults, as far as it is known and takes them.
pub(crate) fn completed(workload: &str, params: &Params, path: Option<Path>) -> Params {
    let whole = find(workload).and_then(|found| found.complete(params, path).ok());
    whole.unwrap_or_else(|| params.clone())
}

/// A program that a workload runs inside the arm: what has to be there, and how it tells its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name on the search path, or its path.
    pub program: String,
    /// The arguments with which it prints its version; empty where it cannot.
    pub version: Vec<String>,
    /// Packages of the distribution whose files it opens by name at run time, such as an interpreter's
    /// library; those with which an image has to be packed beside the program and its shared libraries.
    pub packages: Vec<String>,
    /// The arguments with which it prints, one absolute path a line, the files and folders that it opens by
    /// name at run time; empty where it cannot. For programs whose packages have another name on every
    /// distribution.
    pub files_told_by: Vec<String>,
}

impl Tool {
    /// A program that prints its version when it is started with these arguments, and opens nothing by name.
    pub fn new(program: &str, version: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            version: version.iter().map(|&word| word.to_owned()).collect(),
            ..Self::default()
        }
    }
}

/// How many threads a trial computes with at once, and what they may run on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Threads of the program's pool.
    pub threads: u32,
    /// Processors on which it may run.
    pub cpus: u32,
    /// Processors' worth of time that its control group is given, if that is limited.
    pub quota: Option<f64>,
}

/// Why parameters are not acceptable; `param` names the offender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ParamError {
    /// The parameter.
    pub param: String,
    /// What is wrong with it.
    pub problem: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl ParamError {
    /// `param` cannot have the value that was given; `hint` says which it can.
    pub fn refused(param: &str, given: Option<&Value>, hint: impl Into<String>) -> Self {
        let given = given.map_or_else(String::new, ToString::to_string);
        Self {
            param: param.to_owned(),
            problem: format!("`{param}` cannot be `{}`", given.escape_default()),
            hint: Some(hint.into()),
        }
    }
}

/// Checks that a path is one of the workload's own.
///
/// # Errors
/// It is another one, there is one where the workload has one end, or none where it has two.
pub fn check_path(workload: &str, paths: &[Path], path: Option<Path>) -> Result<(), ParamError> {
    let problem = match path {
        None if paths.is_empty() => return Ok(()),
        Some(path) if paths.contains(&path) => return Ok(()),
        None => format!("`{workload}` has two ends and needs one of its paths"),
        Some(path) if paths.is_empty() => {
            format!("`{workload}` has one end and no path `{}`", path.name())
        }
        Some(path) => format!("`{workload}` cannot be run over the path `{}`", path.name()),
    };
    let known = declared::listed(paths.iter().map(|path| path.name()));
    Err(ParamError {
        param: "path".to_owned(),
        problem,
        hint: Some(if paths.is_empty() {
            "leave the path out".to_owned()
        } else {
            format!("use one of {known}")
        }),
    })
}

/// What is wrong with JSON, in the parser's words: it quotes what it did not expect, which is foreign text.
pub fn unreadable(error: &serde_json::Error) -> String {
    error.to_string().escape_debug().to_string()
}

/// Why raw output cannot be read. Never partial numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not in the format that it claims.
    #[error("not readable as {format}: {problem}")]
    Garbled {
        /// The format.
        format: String,
        /// What is wrong.
        problem: String,
    },
    /// The program that was run did not do its work.
    #[error("{problem}")]
    Unsuccessful {
        /// How it ended and what it said, control characters escaped.
        problem: String,
    },
    /// The program could not work here, and never will.
    #[error(transparent)]
    Unavailable(Reason),
    /// A value is missing, infinite or not a number.
    #[error("{metric} has no usable value: {problem}")]
    NoValue {
        /// The metric.
        metric: String,
        /// What is wrong.
        problem: String,
    },
}

/// What is run.
pub trait Workload: Sync {
    /// What it declares of itself.
    fn declared(&self) -> &Declared;
    /// Its name.
    fn id(&self) -> &'static str {
        self.declared().id
    }
    /// One sentence.
    fn about(&self) -> &'static str {
        self.declared().about
    }
    /// Its parameters.
    fn params(&self) -> &'static [ParamSpec] {
        self.declared().params
    }
    /// Its metrics.
    fn metrics(&self) -> &'static [MetricSpec] {
        self.declared().metrics
    }
    /// The paths it can be run over; empty for a workload with one end.
    fn paths(&self) -> &'static [Path] {
        &[]
    }
    /// The parameters with the defaults filled in, for a path that it has.
    ///
    /// # Errors
    /// A parameter is unknown or its value not taken, the path is none of its own, or there is none where it needs one.
    fn complete(&self, params: &Params, path: Option<Path>) -> Result<Params, ParamError> {
        check_path(self.id(), self.paths(), path)?;
        self.declared().complete(params)
    }
    /// What to execute, for complete parameters.
    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError>;
    /// The programs that it runs, for complete parameters; none for a probe.
    fn tools(&self, _params: &Params) -> Vec<Tool> {
        Vec::new()
    }
    /// Whether the program that it runs may be stopped on its way, if a look at it finds nothing against that: it
    /// measures nothing by a clock of its own.
    fn may_be_stopped(&self) -> bool {
        false
    }
    /// The probe whose report holds one series for each metric and nothing else to be read: then it is read in one
    /// go with everything that a report tells, and gives what [`Workload::decode`] gives.
    fn plain_probe(&self) -> Option<&'static str> {
        None
    }
    /// What a trial says that was ended at its limit, where its parameters want that to count: samples, with what is
    /// to be said of them.
    fn cut_off(&self, _params: &Params, _limit_ns: u64) -> Option<(Vec<Sample>, Remark)> {
        None
    }
    /// What of a trial's output is stored, where that is less than all of it: what decodes to the same.
    fn stored(&self, _params: &Params, _raw: &RawOutput) -> Option<RawOutput> {
        None
    }
    /// Reads what a trial left.
    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError>;
    /// How the trial went from beginning to end, where the program tells it step by step.
    fn course(&self, _raw: &RawOutput) -> Option<Course> {
        None
    }
    /// How many threads a trial computed with and on what, where its output tells; several instances add up.
    fn demand(&self, _raw: &RawOutput) -> Option<Demand> {
        None
    }
    /// When the measured work began and ended, for a program that tells it itself; else that of the whole program
    /// is taken, its preparations included.
    fn span(&self, _raw: &RawOutput) -> Option<WorkSpan> {
        None
    }
    /// What is to be said of a trial that [`Workload::decode`] could read: a doubt that labels its cells and
    /// drops nothing. None for output that cannot be read.
    fn remarks(&self, _raw: &RawOutput) -> Vec<Remark> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registered::assert_registered;

    /// Files in this folder that are no workload.
    const SHARED: &[&str] = &[
        "mod",
        "blas",
        "command-output",
        "declared",
        "instances",
        "paired",
        "pi",
        "probe-output",
        "python-tool",
        "sanity",
        "stoppable",
        "sysbench-output",
        "recorded",
        "tool-params",
        "tool-text",
    ];

    #[test]
    fn every_file_in_this_folder_is_a_registered_workload_of_the_same_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/workload");
        let ids = WORKLOADS.iter().map(|workload| workload.id());
        assert_registered(folder, ".rs", |name| SHARED.contains(&name), ids);
    }

    #[test]
    fn metric_ids_are_unique_and_have_the_form_area_thing_quantity() {
        let mut seen = BTreeSet::new();
        for workload in WORKLOADS {
            assert!(!workload.metrics().is_empty(), "{}", workload.id());
            for metric in workload.metrics() {
                assert!(seen.insert(metric.id), "{} is defined twice", metric.id);
                assert!(tare_model::MetricId::new(metric.id).is_ok());
                let parts: Vec<&str> = metric.id.split('.').collect();
                assert!(parts.len() >= 3, "{}", metric.id);
                for part in parts {
                    assert!(
                        part.starts_with(|letter: char| letter.is_ascii_lowercase())
                            && part.chars().all(|letter| letter.is_ascii_lowercase()
                                || letter.is_ascii_digit()
                                || letter == '-'),
                        "{}",
                        metric.id
                    );
                }
                assert!(metric.doc.ends_with('.'), "{} has no sentence", metric.id);
            }
        }
    }

    #[test]
    fn every_default_is_acceptable() {
        for workload in WORKLOADS {
            let defaults = workload
                .params()
                .iter()
                .fold(Params::new(), |params, spec| {
                    params.with(spec.name, spec.default)
                });
            let paths = workload.paths().iter().copied().map(Some);
            let none = workload.paths().is_empty().then_some(None);
            for path in paths.chain(none) {
                if let Err(error) = workload.recipe(&defaults, path) {
                    panic!("{}: {error}", workload.id());
                }
            }
        }
    }
}
