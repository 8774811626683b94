//! `blas-inverse`: inversions of a dense matrix by NumPy and whichever BLAS it is linked with.
//!
//! Why beside the agent's own matrix probe: a BLAS brings a pool of threads of its own, one for each processor
//! that it sees, and these wait for each other by spinning. Alone that is fast; a second instance makes threads
//! wait for processors that others use up waiting. Danilova & Sergeev (2024, table 1) saw a second instance cost
//! 45 times as much and a third 106 times, on small matrices. So the pool's size is a parameter, and every trial
//! tells how many threads there were and how many processors they had.
//! Inside the timed region: one call of `numpy.linalg.inv` each, by `perf_counter_ns`. Outside: the interpreter,
//! the import of NumPy, the making of the matrix, a first inversion whose result is checked.
//! Several instances are started together as processes; their inversions begin when each has imported NumPy, so
//! that they overlap the better, the more repeats there are. The program tells when its inversions began and ended.
//! One inversion is told beside all of them together, because threads that wait make a few of many small inversions
//! last hundreds of times longer: the typical one shows none of it, and the sum, which is what a user waits, all.
//! Known bias: the interpreter's own time in each call, about a microsecond.
//! What it cannot see: which kernel the library chose for the processor.

use serde::Deserialize;
use tare_model::{
    Better, CommandCall, MetricSpec, Params, Path, RawOutput, Recipe, ResourceClass, Sample,
    SpanClock, Unit, Value, WorkSpan,
};

use super::command_output::{report, sample, stdout};
use super::probe_output::{Accepts, checked};
use super::python_tool;
use super::sanity::MORE_THREADS_THAN_CPUS;
use super::{
    DecodeError, DefaultValue, Demand, ParamError, ParamSpec, Remark, Tool, Workload, unreadable,
};

/// The workload.
pub static WORKLOAD: BlasInverse = BlasInverse;

/// The program that is run, beside the interpreter.
const SCRIPT: &str = include_str!("blas_inverse.py");
/// What it imports.
const MODULES: &str = "json, os, sys, time, numpy, numpy.linalg, numpy.random";
/// Its name in the trial's folder.
const FILE: &str = "inverse.py";
/// Debian's own interpreter, for which its packages are made: another one that comes first on the search path has
/// other packages or none.
const INTERPRETER: &str = "/usr/bin/python3";
/// The word for the library's own choice.
const DEFAULT_THREADS: &str = "default";
/// More threads than this are no pool that a library would make.
const MOST_THREADS: i64 = 1024;

const METRIC: MetricSpec = MetricSpec {
    id: "blas.inverse.time",
    unit: Unit::Nanosecond,
    better: Better::Lower,
    class: ResourceClass::Compute,
    floor_ok: true,
    doc: "Time of one inversion of a dense matrix of 64-bit floating-point numbers by NumPy.",
};
const ALL: MetricSpec = MetricSpec {
    id: "blas.inversions.time",
    unit: Unit::Nanosecond,
    better: Better::Lower,
    class: ResourceClass::Compute,
    floor_ok: false,
    doc: "Time of all inversions of a trial together, the pauses among them left out.",
};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct BlasInverse;

impl Workload for BlasInverse {
    fn id(&self) -> &'static str {
        "blas-inverse"
    }

    fn about(&self) -> &'static str {
        "Inversions of a dense matrix by NumPy, with the BLAS library's own pool of threads."
    }

    fn params(&self) -> &'static [ParamSpec] {
        &[
            ParamSpec {
                name: "size",
                default: DefaultValue::Int(200),
                doc: "order of the matrix, 2 to 8000",
            },
            ParamSpec {
                name: "repeats",
                default: DefaultValue::Int(300),
                doc: "inversions in one trial, 1 to 100000",
            },
            ParamSpec {
                name: "threads",
                default: DefaultValue::Text(DEFAULT_THREADS),
                doc: "threads of the library's pool: `default` for its own choice, or 1 to 1024",
            },
            ParamSpec {
                name: "python",
                default: DefaultValue::Text(INTERPRETER),
                doc: "the interpreter, by its path or its name on the search path; it must find NumPy",
            },
        ]
    }

    fn metrics(&self) -> &'static [MetricSpec] {
        &[METRIC, ALL]
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        if let Some(path) = path {
            return Err(ParamError {
                param: "path".to_owned(),
                problem: format!("`{}` has one end and no path `{}`", self.id(), path.name()),
                hint: Some("leave the path out".to_owned()),
            });
        }
        let numbers = [Accepts::Between(2, 8_000), Accepts::Between(1, 100_000)];
        let params = checked(self.id(), params, self.params(), &numbers)?;
        let threads = threads(&params)?;
        let number = |name| params.int(name).unwrap_or_default().to_string();
        let call = CommandCall::new(
            &python(&params)?,
            [
                // Neither the user's own packages nor the surroundings' settings, and no compiled copies left.
                "-I".to_owned(),
                "-B".to_owned(),
                format!("{}/{FILE}", tare_model::command::FOLDER),
                number("size"),
                number("repeats"),
                threads,
            ],
        )
        .with_file(FILE, SCRIPT);
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![python_tool::tool(params, MODULES)]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let told = told(raw)?;
        let all_ns = told.times_ns.iter().sum();
        Ok(vec![
            sample(&METRIC, told.times_ns)?,
            sample(&ALL, vec![all_ns])?,
        ])
    }

    fn demand(&self, raw: &RawOutput) -> Option<Demand> {
        let told = told(raw).ok()?;
        Some(Demand {
            threads: told.threads?,
            cpus: told.cpus?,
            quota: told.quota.filter(|quota| *quota > 0.0),
        })
    }

    fn span(&self, raw: &RawOutput) -> Option<WorkSpan> {
        let [start_ns, end_ns] = told(raw).ok()?.span_ns;
        Some(WorkSpan {
            start_ns,
            end_ns,
            clock: SpanClock::Kernel,
        })
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        let Some(demand) = self.demand(raw) else {
            return Vec::new();
        };
        let affinity = f64::from(demand.cpus);
        let cpus = demand.quota.map_or(affinity, |quota| quota.min(affinity));
        if f64::from(demand.threads) <= cpus {
            return Vec::new();
        }
        vec![Remark::new(
            MORE_THREADS_THAN_CPUS,
            format!("{} threads on {cpus} CPUs", demand.threads),
        )]
    }
}

/// What the program prints; what only a reader of the raw output needs is left out.
#[derive(Debug, Deserialize)]
struct Told {
    times_ns: Vec<f64>,
    span_ns: [u64; 2],
    threads: Option<u32>,
    cpus: Option<u32>,
    quota: Option<f64>,
}

fn told(raw: &RawOutput) -> Result<Told, DecodeError> {
    let report = report(raw)?;
    serde_json::from_str(&stdout(&report)).map_err(|error| DecodeError::Garbled {
        format: "the JSON of blas-inverse".to_owned(),
        problem: unreadable(&error),
    })
}

/// The pool's size as an argument.
fn threads(params: &Params) -> Result<String, ParamError> {
    let wrong = |given: &str| ParamError {
        param: "threads".to_owned(),
        problem: format!("`threads` cannot be `{}`", given.escape_default()),
        hint: Some(format!(
            "use `{DEFAULT_THREADS}` or a whole number from 1 to {MOST_THREADS}"
        )),
    };
    match params.value("threads") {
        None => Ok(DEFAULT_THREADS.to_owned()),
        Some(Value::Text(word)) if word == DEFAULT_THREADS => Ok(word.clone()),
        Some(Value::Int(number)) if (1..=MOST_THREADS).contains(number) => Ok(number.to_string()),
        Some(other) => Err(wrong(&other.to_string())),
    }
}

/// The interpreter.
fn python(params: &Params) -> Result<String, ParamError> {
    let wrong = |given: &str| ParamError {
        param: "python".to_owned(),
        problem: format!("`python` cannot be `{}`", given.escape_default()),
        hint: Some(format!("use a path such as `{INTERPRETER}`")),
    };
    match params.value("python") {
        None => Ok(INTERPRETER.to_owned()),
        Some(Value::Text(path)) if !path.is_empty() && !path.contains(char::is_control) => {
            Ok(path.clone())
        }
        Some(other) => Err(wrong(&other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::*;

    const OUTPUT: &str = r#"{"times_ns": [1000, 3000, 2000], "span_ns": [10, 7000], "threads": 2, "limit": null, "cpus": 2,
        "quota": null, "libraries": ["/usr/lib/libblas.so.3"], "numpy": "1.24.2"}"#;

    #[test]
    fn every_inversion_is_an_observation() {
        let samples = WORKLOAD.decode(&raw(0, OUTPUT.as_bytes(), b"")).unwrap();
        assert_eq!(samples[0].observations, [1000.0, 3000.0, 2000.0]);
        assert_eq!(samples[1].metric.as_str(), ALL.id);
        assert_eq!(samples[1].observations, [6000.0]);
        let demand = WORKLOAD.demand(&raw(0, OUTPUT.as_bytes(), b"")).unwrap();
        assert_eq!((demand.threads, demand.cpus, demand.quota), (2, 2, None));
        let span = WORKLOAD.span(&raw(0, OUTPUT.as_bytes(), b"")).unwrap();
        assert_eq!((span.start_ns, span.end_ns), (10, 7_000));
        assert!(WORKLOAD.remarks(&raw(0, OUTPUT.as_bytes(), b"")).is_empty());
    }

    #[test]
    fn a_pool_that_is_larger_than_what_it_may_run_on_is_remarked() {
        let limited = OUTPUT.replace("\"quota\": null", "\"quota\": 1.5");
        let remarks = WORKLOAD.remarks(&raw(0, limited.as_bytes(), b""));
        assert_eq!(remarks[0].id, MORE_THREADS_THAN_CPUS);
        assert_eq!(remarks[0].detail, "2 threads on 1.5 CPUs");
    }

    #[test]
    fn a_program_that_ended_badly_or_printed_something_else_is_no_reading() {
        for (code, output) in [(1, OUTPUT), (0, "Illegal instruction"), (0, "{}")] {
            assert!(WORKLOAD.decode(&raw(code, output.as_bytes(), b"")).is_err());
            assert_eq!(WORKLOAD.demand(&raw(code, output.as_bytes(), b"")), None);
        }
        let nothing = OUTPUT.replace("[1000, 3000, 2000]", "[]");
        assert!(WORKLOAD.decode(&raw(0, nothing.as_bytes(), b"")).is_err());
    }

    #[test]
    fn threads_are_the_librarys_choice_or_a_number() {
        let recipe = |value: Value| WORKLOAD.recipe(&Params::new().with("threads", value), None);
        assert!(recipe("default".into()).is_ok() && recipe(4i64.into()).is_ok());
        for bad in [
            Value::Int(0),
            Value::Int(2_000),
            "all".into(),
            Value::Bool(true),
        ] {
            assert_eq!(recipe(bad).unwrap_err().param, "threads");
        }
    }

    #[test]
    fn the_program_has_none_of_the_placeholders_that_are_filled_in() {
        for placeholder in [
            tare_model::command::ADDRESS,
            tare_model::command::PORT,
            tare_model::command::FOLDER,
            tare_model::command::BIND,
        ] {
            assert!(!SCRIPT.contains(placeholder), "{placeholder}");
        }
    }
}
