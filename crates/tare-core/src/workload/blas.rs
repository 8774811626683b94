//! Shared code of the workloads with NumPy's linear algebra: the program's call, the size of the library's thread
//! pool, and the common part of the output.
//!
//! A BLAS has a pool with one thread for each processor that it sees, and these wait for each other by spinning. The
//! pool's size is therefore a parameter, and every trial reports the number of threads and the processors they had.
//! Not a workload itself.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tare_model::{
    CommandCall, Params, Path, RawOutput, Recipe, Sample, SpanClock, Value, WorkSpan,
};

use super::command_output::{report, stdout};
use super::declared::Declared;
use super::sanity::MORE_THREADS_THAN_CPUS;
use super::tool_text::fitting;
use super::{
    Accepts, DecodeError, DefaultValue, Demand, ParamError, ParamSpec, Remark, Tool, Workload,
    python_tool, unreadable,
};

/// A workload around NumPy's linear algebra.
#[derive(Debug)]
pub(super) struct Blas {
    pub(super) declared: Declared,
    /// The program that the interpreter runs.
    pub(super) script: &'static str,
    /// The names of the parameters that are its arguments before the pool's size.
    pub(super) arguments: &'static [&'static str],
    /// Decodes its output.
    pub(super) decode: fn(&RawOutput) -> Result<Vec<Sample>, DecodeError>,
}

impl Workload for Blas {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let mut arguments = vec![
            // Ignores the user's packages and Python variables, and writes no bytecode.
            "-I".to_owned(),
            "-B".to_owned(),
            format!("{}/{FILE}", tare_model::command::FOLDER),
        ];
        let values = self.arguments.iter().filter_map(|name| params.0.get(*name));
        arguments.extend(values.map(ToString::to_string));
        arguments.push(threads(&params)?);
        let call = CommandCall::new(python(&params)?, arguments).with_file(FILE, self.script);
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![python_tool::tool(params, MODULES)]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        (self.decode)(raw)
    }

    fn demand(&self, raw: &RawOutput) -> Option<Demand> {
        parsed::<Pool>(raw).ok()?.demand()
    }

    fn span(&self, raw: &RawOutput) -> Option<WorkSpan> {
        span(raw)
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        remarks(self.demand(raw))
    }
}

/// What the programs import.
const MODULES: &str = "json, os, sys, time, numpy, numpy.linalg, numpy.random";

/// The program's name in the trial's folder.
const FILE: &str = "matrices.py";
/// Debian's interpreter, for which its packages are made: another one that comes first on the search path has other
/// packages or none.
const INTERPRETER: &str = "/usr/bin/python3";
/// The value for the library's choice.
const DEFAULT_THREADS: &str = "default";
/// The maximum number of threads; no library makes a larger pool.
const MOST_THREADS: i64 = 1024;

/// The parameter for the pool's size.
pub(super) const THREADS: ParamSpec = ParamSpec {
    name: "threads",
    default: DefaultValue::Text(DEFAULT_THREADS),
    accepts: Accepts::Any,
    doc: "threads of the library's pool: `default` for its own choice, or 1 to 1024",
};

/// The parameter for the interpreter.
pub(super) const PYTHON: ParamSpec = ParamSpec {
    name: "python",
    default: DefaultValue::Text(INTERPRETER),
    accepts: Accepts::Any,
    doc: "the interpreter, by its path or its name on the search path; it must find NumPy",
};

/// Parses a program's output.
///
/// # Errors
/// The program failed, or printed something else.
pub(super) fn parsed<T: DeserializeOwned>(raw: &RawOutput) -> Result<T, DecodeError> {
    let report = report(raw)?;
    serde_json::from_str(&stdout(&report)).map_err(|error| {
        DecodeError::garbled("the JSON of a program around NumPy", unreadable(&error))
    })
}

/// What every program prints about the pool.
#[derive(Debug, Deserialize)]
struct Pool {
    threads: Option<u32>,
    cpus: Option<u32>,
    quota: Option<f64>,
}

impl Pool {
    /// The threads and what they may run on; `None` if the program could not find out.
    fn demand(&self) -> Option<Demand> {
        Some(Demand {
            threads: self.threads?,
            cpus: self.cpus?,
            quota: self.quota.filter(|quota| *quota > 0.0),
        })
    }
}

/// When a program was at work, by the kernel's clock; all of them print it.
fn span(raw: &RawOutput) -> Option<WorkSpan> {
    #[derive(Deserialize)]
    struct ProgramOutput {
        span_ns: [u64; 2],
    }
    let [start_ns, end_ns] = parsed::<ProgramOutput>(raw).ok()?.span_ns;
    Some(WorkSpan {
        start_ns,
        end_ns,
        clock: SpanClock::Kernel,
    })
}

/// A remark if there were more threads than processors.
fn remarks(demand: Option<Demand>) -> Vec<Remark> {
    let Some(demand) = demand else {
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

/// The pool's size as an argument.
fn threads(params: &Params) -> Result<String, ParamError> {
    let hint = || format!("use `{DEFAULT_THREADS}` or a whole number from 1 to {MOST_THREADS}");
    match params.value(THREADS.name) {
        None => Ok(DEFAULT_THREADS.to_owned()),
        Some(Value::Text(word)) if word == DEFAULT_THREADS => Ok(word.clone()),
        Some(Value::Int(number)) if (1..=MOST_THREADS).contains(number) => Ok(number.to_string()),
        Some(other) => Err(ParamError::refused(THREADS.name, Some(other), hint())),
    }
}

/// The interpreter.
fn python(params: &Params) -> Result<&str, ParamError> {
    let fits = |path: &str| !path.is_empty() && !path.contains(char::is_control);
    let hint = format!("use a path such as `{INTERPRETER}`");
    fitting(params, PYTHON.name, fits, &hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_the_librarys_choice_or_a_number() {
        let of = |value: Value| threads(&Params::new().with("threads", value));
        assert!(of("default".into()).is_ok() && of(4i64.into()).is_ok());
        for bad in [
            Value::Int(0),
            Value::Int(2_000),
            "all".into(),
            Value::Bool(true),
        ] {
            assert_eq!(of(bad).unwrap_err().param, "threads");
        }
    }

    #[test]
    fn blas_scripts_contain_no_placeholders() {
        for script in [
            include_str!("blas_common.py"),
            include_str!("blas_inverse.py"),
            include_str!("blas_matrices.py"),
            include_str!("blas_together.py"),
        ] {
            for placeholder in tare_model::command::PLACEHOLDERS {
                assert!(!script.contains(placeholder), "{placeholder}");
            }
        }
    }
}
