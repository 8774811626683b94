//! `pyperf`: times a Python statement with pyperf, in separate processes.
//!
//! pyperf starts several processes and writes every value of each to JSON, with warm-ups apart. All values of all
//! processes are used; the process that only chooses the number of loops has none. Values are seconds, bytes or plain
//! numbers, as the file says, and each kind is a separate metric.
//! Limits: does not separate the interpreter's build from the environment; the version is compared before the first
//! trial.

use serde::Deserialize;
use tare_model::{CommandCall, Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::tool_text::{file, fitting, garbled, is_argument, whole};
use super::{DecodeError, ParamError, Tool, Workload, command_output, python_tool};

const ID: &str = "pyperf";
/// The file with the values.
const RESULT_FILE: &str = "pyperf.json";

metrics! {
    TIME = "pyperf.statement.time", Nanosecond, Lower, Compute: "Time of one execution of the statement, averaged by pyperf over one value's loops, warm-ups left out.";
    SIZE = "pyperf.statement.size", Byte, Lower, Compute: "Peak of a process's memory while the statement was executed, as pyperf tracked it.";
    COUNT = "pyperf.statement.count", Count, Lower, Compute: "The whole number that the measured function returned, warm-ups left out.";
}

#[derive(Debug)]
pub(super) struct Pyperf;

impl Workload for Pyperf {
    declared! {
        ID: "a statement of Python, timed by pyperf";
        params {
            "processes" = Int(2), Between(1, 1000): "processes that time the statement, 1 to 1000";
            "values" = Int(3), Between(1, 1000): "values of each process, 1 to 1000";
            "warmups" = Int(1), Between(0, 1000): "values of each process that are left out, 0 to 1000";
            "loops" = Int(0), Between(0, 1_000_000_000): "executions behind one value, 0 to 1000000000; 0 lets pyperf choose";
            "statement" = Text("sum(range(1000))"): "what is timed";
            "setup" = Text("pass"): "what is executed once before";
            "python" = Text("python3"): "the interpreter, by name or path; it must have the module `pyperf`";
        }
        metrics &[TIME, SIZE, COUNT];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let python = python_tool::program(&params)?;
        let code = |name| fitting(&params, name, is_argument, "use a statement of Python");
        let mut arguments: Vec<String> = ["-m", "pyperf", "timeit", "--quiet"]
            .map(str::to_owned)
            .to_vec();
        arguments.extend([
            format!("--processes={}", whole(&params, "processes")),
            format!("--values={}", whole(&params, "values")),
            format!("--warmups={}", whole(&params, "warmups")),
        ]);
        if params.int("loops") != Some(0) {
            arguments.push(format!("--loops={}", whole(&params, "loops")));
        }
        arguments.extend([
            format!("--setup={}", code("setup")?),
            format!("--output={RESULT_FILE}"),
            "--".to_owned(),
            code("statement")?.to_owned(),
        ]);
        let call = CommandCall {
            collect: vec![RESULT_FILE.to_owned()],
            ..CommandCall::new(python, arguments)
        };
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![python_tool::tool_of_package(
            params,
            "json, resource, shutil, statistics",
            "pyperf",
        )]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let suite: Suite = serde_json::from_str(file(ID, &report, RESULT_FILE)?)
            .map_err(|error| garbled(ID, super::unreadable(&error)))?;
        if suite.version.as_deref() != Some("1.0") {
            return Err(garbled(ID, "the file is not of version 1.0"));
        }
        let [benchmark] = &suite.benchmarks[..] else {
            return Err(garbled(
                ID,
                format!(
                    "it has {} benchmarks instead of one",
                    suite.benchmarks.len()
                ),
            ));
        };
        let unit = benchmark
            .metadata
            .unit
            .as_deref()
            .or(suite.metadata.unit.as_deref())
            .or_else(|| {
                let mut units = benchmark
                    .runs
                    .iter()
                    .filter_map(|run| run.metadata.unit.as_deref());
                units.next()
            });
        let (metric, factor) = match unit {
            None | Some("second") => (&TIME, 1e9),
            Some("byte") => (&SIZE, 1.0),
            Some("integer") => (&COUNT, 1.0),
            Some(other) => {
                return Err(garbled(
                    ID,
                    format!("the unit `{}` is unknown", other.escape_debug()),
                ));
            }
        };
        let values = benchmark.runs.iter().flat_map(|run| &run.values);
        let values = values.map(|value| value * factor).collect();
        Ok(vec![command_output::sample(metric, values)?])
    }
}

/// The parts of pyperf's file that are read.
#[derive(Deserialize)]
struct Suite {
    version: Option<String>,
    benchmarks: Vec<Benchmark>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Benchmark {
    runs: Vec<Run>,
    #[serde(default)]
    metadata: Metadata,
}

/// One process. `warmups`, pairs of loops and value, is not read.
#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    unit: Option<String>,
}

#[cfg(test)]
mod tests {
    use tare_model::outcome::Bytes;

    use super::super::command_output::tests::raw_with_files;
    use super::*;

    fn decoded(json: &str) -> Result<Vec<Sample>, DecodeError> {
        Pyperf.decode(&raw_with_files(&[(RESULT_FILE, json)]))
    }

    #[test]
    fn warm_ups_are_left_out_and_units_are_obeyed() {
        let of = |unit: &str| {
            decoded(&format!(
                r#"{{"version":"1.0","metadata":{{{unit}}},"benchmarks":[{{"runs":[
                {{"warmups":[[1,9.0]],"metadata":{{"calibrate_loops":4}}}},
                {{"warmups":[[4,9.0]],"values":[0.5,0.25]}},{{"values":[2]}}]}}]}}"#
            ))
        };
        let samples = of(r#""unit":"second""#).unwrap();
        assert_eq!(samples[0].metric.as_str(), TIME.id);
        assert_eq!(samples[0].observations, [5e8, 2.5e8, 2e9]);
        assert_eq!(of("").unwrap()[0].metric.as_str(), TIME.id);
        let samples = of(r#""unit":"byte""#).unwrap();
        assert_eq!(samples[0].metric.as_str(), SIZE.id);
        assert_eq!(samples[0].observations, [0.5, 0.25, 2.0]);
        assert!(of(r#""unit":"fortnight""#).is_err());
    }

    #[test]
    fn pyperf_file_without_exactly_one_series_is_refused() {
        for json in [
            r#"{"version":"1.0","benchmarks":[]}"#,
            r#"{"version":"1.0","benchmarks":[{"runs":[]}]}"#,
            r#"{"version":"1.0","benchmarks":[{"runs":[{"values":[1]}]},{"runs":[{"values":[1]}]}]}"#,
            r#"{"version":"2.0","benchmarks":[{"runs":[{"values":[1]}]}]}"#,
            r#"{"version":"1.0","benchmarks":[{"runs":[{"values":[0]}]}]}"#,
        ] {
            assert!(decoded(json).is_err(), "{json}");
        }
        let mut raw = raw_with_files(&[]);
        assert!(Pyperf.decode(&raw).is_err());
        raw.stdout = Bytes(b"{".to_vec());
        assert!(Pyperf.decode(&raw).is_err());
    }
}
