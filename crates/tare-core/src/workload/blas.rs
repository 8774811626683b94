//! What the workloads around NumPy's linear algebra share: the call of a program, the size of the library's pool of
//! threads, and what every program tells of it.
//!
//! A BLAS brings a pool of threads of its own, one for each processor that it sees, and these wait for each other by
//! spinning. So the pool's size is a parameter, and every trial tells how many threads there were and what they had.
//! This file is no workload.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tare_model::{
    CommandCall, Params, Path, RawOutput, Recipe, Sample, SpanClock, Value, WorkSpan,
};

use super::command_output::{report, stdout};
use super::declared::Declared;
use super::sanity::MORE_THREADS_THAN_CPUS;
use super::{
    Accepts, DecodeError, DefaultValue, Demand, ParamError, ParamSpec, Remark, Tool, Workload,
    python_tool, unreadable,
};

/// A workload around NumPy's linear algebra.
#[derive(Debug)]
pub(super) struct Blas {
    pub(super) declared: Declared,
    /// The program, beside the interpreter.
    pub(super) script: &'static str,
    /// The parameters, whole numbers, that are its arguments before the pool's size.
    pub(super) numbers: &'static [&'static str],
    /// Reads what it printed.
    pub(super) decode: fn(&RawOutput) -> Result<Vec<Sample>, DecodeError>,
}

impl Workload for Blas {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let mut arguments = vec![
            // Neither the user's own packages nor the surroundings' settings, and no compiled copies left.
            "-I".to_owned(),
            "-B".to_owned(),
            format!("{}/{FILE}", tare_model::command::FOLDER),
        ];
        let number = |name: &&str| params.int(name).unwrap_or_default().to_string();
        arguments.extend(self.numbers.iter().map(number));
        arguments.push(threads(&params)?);
        let call = CommandCall::new(&python(&params)?, arguments).with_file(FILE, self.script);
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
/// Debian's own interpreter, for which its packages are made: another one that comes first on the search path has
/// other packages or none.
const INTERPRETER: &str = "/usr/bin/python3";
/// The word for the library's own choice.
const DEFAULT_THREADS: &str = "default";
/// More threads than this are no pool that a library would make.
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

/// What a program printed.
///
/// # Errors
/// It failed, or printed something else.
pub(super) fn parsed<T: DeserializeOwned>(raw: &RawOutput) -> Result<T, DecodeError> {
    let report = report(raw)?;
    serde_json::from_str(&stdout(&report)).map_err(|error| DecodeError::Garbled {
        format: "the JSON of a program around NumPy".to_owned(),
        problem: unreadable(&error),
    })
}

/// What every program tells of the pool.
#[derive(Debug, Deserialize)]
struct Pool {
    threads: Option<u32>,
    cpus: Option<u32>,
    quota: Option<f64>,
}

impl Pool {
    /// The threads and what they may run on; `None` where the program could not tell.
    fn demand(&self) -> Option<Demand> {
        Some(Demand {
            threads: self.threads?,
            cpus: self.cpus?,
            quota: self.quota.filter(|quota| *quota > 0.0),
        })
    }
}

/// When a program was at work, by the kernel's clock; every one tells it.
fn span(raw: &RawOutput) -> Option<WorkSpan> {
    #[derive(Deserialize)]
    struct Printed {
        span_ns: [u64; 2],
    }
    let [start_ns, end_ns] = parsed::<Printed>(raw).ok()?.span_ns;
    Some(WorkSpan {
        start_ns,
        end_ns,
        clock: SpanClock::Kernel,
    })
}

/// Says so if there were more threads than they had processors.
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
fn python(params: &Params) -> Result<String, ParamError> {
    match params.value(PYTHON.name) {
        None => Ok(INTERPRETER.to_owned()),
        Some(Value::Text(path)) if !path.is_empty() && !path.contains(char::is_control) => {
            Ok(path.clone())
        }
        Some(other) => Err(ParamError::refused(
            PYTHON.name,
            Some(other),
            format!("use a path such as `{INTERPRETER}`"),
        )),
    }
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
    fn the_programs_have_none_of_the_placeholders_that_are_filled_in() {
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
