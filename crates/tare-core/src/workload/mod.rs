//! Workloads: what an arm runs, one file each. Making the recipe and decoding the output are both pure.
//!
//! A workload says what to run ([`Workload::recipe`]) and how to decode the output ([`Workload::decode`]); it does no
//! I/O and does not depend on environments. To add one, add a file here and an entry in [`WORKLOADS`].

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

mod benchmark_dotnet;
mod blas;
mod blas_inverse;
mod blas_matrices;
mod blas_together;
mod command;
pub mod command_output;
pub mod compared_command;
mod copy_up;
pub mod declared;
mod disk_random;
mod disk_sequential;
pub mod fio;
mod fsync;
pub mod hpcc;
pub mod instances;
pub mod iozone;
pub mod iperf3;
pub mod netcat;
pub mod paired;
pub mod php_pages;
mod pi;
mod pi_loop;
mod pi_numpy;
pub mod ping;
pub mod probe_output;
mod pyperf;
mod python_des;
pub mod python_files;
mod python_mix;
pub mod python_tool;
pub mod recorded;
mod redis_benchmark;
pub mod sanity;
pub mod service;
pub mod start_up;
pub mod stoppable;
mod stress_ng;
mod sysbench_cpu;
mod sysbench_fileio;
mod sysbench_memory;
pub mod sysbench_output;
mod tcp_connect;
mod tcp_round_trip;
mod tcp_stream;
pub mod tool_params;
pub mod tool_text;
mod udp_round_trip;
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
    &python_des::ENTRY,
    &python_files::PythonFiles,
    &python_mix::ENTRY,
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

/// The workload with this id.
pub fn find(id: &str) -> Option<&'static dyn Workload> {
    // Called for every trial of a run.
    static BY_ID: LazyLock<BTreeMap<&str, &'static dyn Workload>> = LazyLock::new(|| {
        let all = WORKLOADS.iter().copied();
        all.map(|workload| (workload.id(), workload)).collect()
    });
    BY_ID.get(id).copied()
}

/// The metric with this id.
pub fn metric(id: &str) -> Option<&'static MetricSpec> {
    let mut metrics = WORKLOADS.iter().flat_map(|workload| workload.metrics());
    metrics.find(|metric| metric.id == id)
}

/// The parameters with the workload's defaults, or unchanged if the workload is unknown or rejects them.
pub(crate) fn completed(workload: &str, params: &Params, path: Option<Path>) -> Params {
    let whole = find(workload).and_then(|found| found.complete(params, path).ok());
    whole.unwrap_or_else(|| params.clone())
}

/// A program that a workload runs inside the arm, and how to print its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name on the search path, or its path.
    pub program: String,
    /// The arguments that print its version; empty if there are none.
    pub version: Vec<String>,
    /// Distribution packages whose files it opens by name at run time, such as an interpreter's library. They are
    /// packed into an image in addition to the program and its shared libraries.
    pub packages: Vec<String>,
    /// The arguments that print the files and folders it opens by name at run time, one absolute path a line; empty
    /// if there are none. For programs whose packages have different names in each distribution.
    pub files_told_by: Vec<String>,
}

impl Tool {
    /// A program that prints its version with these arguments, and opens nothing by name.
    pub fn new(program: &str, version: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            version: version.iter().map(|&word| word.to_owned()).collect(),
            ..Self::default()
        }
    }
}

/// Names the programs that a workload runs with any parameters, each with the arguments that print its version.
macro_rules! programs {
    ($($program:literal $version:expr),+) => {
        fn tools(&self, _params: &::tare_model::Params) -> Vec<$crate::workload::Tool> {
            vec![$($crate::workload::Tool::new($program, &$version)),+]
        }
    };
}
use programs;

/// The number of threads of a trial, and the processors they may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Threads of the program's pool.
    pub threads: u32,
    /// Processors on which it may run.
    pub cpus: u32,
    /// Its CPU quota in processors, if it has one.
    pub quota: Option<f64>,
}

/// The reason why parameters are rejected; `param` names the invalid one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ParamError {
    /// The parameter's name.
    pub param: String,
    /// The problem with it.
    pub problem: String,
    /// A valid alternative, if known.
    pub hint: Option<String>,
}

impl ParamError {
    /// What is wrong with `param`, and what to do about it.
    pub fn new(param: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            param: param.to_owned(),
            problem: problem.into(),
            hint: Some(hint.into()),
        }
    }

    /// An error for a rejected value; `hint` says which are valid.
    pub fn refused(param: &str, given: Option<&Value>, hint: impl Into<String>) -> Self {
        let given = given.map_or_else(String::new, ToString::to_string);
        let problem = format!("`{param}` cannot be `{}`", given.escape_default());
        Self::new(param, problem, hint)
    }
}

/// Checks that the workload supports a path.
///
/// # Errors
/// The path is not supported, or is given for a workload with one end, or missing for one with two.
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
    let hint = if paths.is_empty() {
        "leave the path out".to_owned()
    } else {
        format!("use one of {known}")
    };
    Err(ParamError::new("path", problem, hint))
}

/// The problem in a JSON text, escaped: the parser's message quotes foreign text.
pub fn unreadable(error: &serde_json::Error) -> String {
    error.to_string().escape_debug().to_string()
}

/// The reason why raw output cannot be decoded. There are no partial results.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The output is not in the declared format.
    #[error("not readable as {format}: {problem}")]
    Garbled {
        /// The format.
        format: String,
        /// The problem.
        problem: String,
    },
    /// The program failed.
    #[error("{problem}")]
    Unsuccessful {
        /// How it ended and what it printed, control characters escaped.
        problem: String,
    },
    /// The program can never work here.
    #[error(transparent)]
    Unavailable(Reason),
    /// A value is missing, infinite or not a number.
    #[error("{metric} has no usable value: {problem}")]
    NoValue {
        /// The metric.
        metric: String,
        /// The problem.
        problem: String,
    },
}

impl DecodeError {
    /// An error for output that is not of this format.
    pub fn garbled(format: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Garbled {
            format: format.into(),
            problem: problem.into(),
        }
    }

    /// An error for a metric without a usable value.
    pub fn no_value(metric: &MetricSpec, problem: impl Into<String>) -> Self {
        Self::NoValue {
            metric: metric.id.to_owned(),
            problem: problem.into(),
        }
    }
}

/// A workload: how to run it, and how to decode its output.
pub trait Workload: Sync {
    /// Its declaration.
    fn declared(&self) -> &Declared;
    /// Its name.
    fn id(&self) -> &'static str {
        self.declared().id
    }
    /// A description in one sentence.
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
    /// Checks the path and fills in the parameters' defaults.
    ///
    /// # Errors
    /// A parameter is unknown or its value invalid, the path is not supported, or a required one is missing.
    fn complete(&self, params: &Params, path: Option<Path>) -> Result<Params, ParamError> {
        check_path(self.id(), self.paths(), path)?;
        self.declared().complete(params)
    }
    /// What to execute, for complete parameters.
    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError>;
    /// The programs that it runs, for complete parameters; empty for a probe.
    fn tools(&self, _params: &Params) -> Vec<Tool> {
        Vec::new()
    }
    /// Whether its program may be stopped and resumed, unless an observation of it says otherwise: it does not
    /// measure anything by its own clock.
    fn may_be_stopped(&self) -> bool {
        false
    }
    /// The name of the probe, if its report holds one series for each metric and nothing else. The report is then
    /// decoded in one pass, with the same result as [`Workload::decode`].
    fn plain_probe(&self) -> Option<&'static str> {
        None
    }
    /// The samples and the remark for a trial that was ended at its time limit, if its parameters count such trials.
    fn cut_off(&self, _params: &Params, _limit_ns: u64) -> Option<(Vec<Sample>, Remark)> {
        None
    }
    /// A reduced output to store, if all of it is not needed; it decodes to the same.
    fn stored(&self, _params: &Params, _raw: &RawOutput) -> Option<RawOutput> {
        None
    }
    /// Decodes the output of a trial.
    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError>;
    /// How the value changed during the trial, if the program reports it step by step.
    fn course(&self, _raw: &RawOutput) -> Option<Course> {
        None
    }
    /// The number of threads and processors of a trial, if its output contains them; several instances are summed.
    fn demand(&self, _raw: &RawOutput) -> Option<Demand> {
        None
    }
    /// When the measured work began and ended, if the program reports it; otherwise the whole program's span is used,
    /// preparations included.
    fn span(&self, _raw: &RawOutput) -> Option<WorkSpan> {
        None
    }
    /// Doubts about a trial that [`Workload::decode`] accepts; they label its cells and drop nothing. Empty for
    /// output that cannot be decoded.
    fn remarks(&self, _raw: &RawOutput) -> Vec<Remark> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registered::assert_registered;

    /// Files in this folder that are not workloads.
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
    fn every_workload_file_is_registered_under_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/workload");
        let ids = WORKLOADS.iter().map(|workload| workload.id());
        assert_registered(folder, ".rs", |name| SHARED.contains(&name), ids);
    }

    #[test]
    fn metric_ids_are_unique_area_thing_quantity() {
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
