//! `start-up`: times the lifecycle of an environment from outside.
//!
//! The engine creates the environment, waits for the agent's first answer from inside and removes everything. This
//! file decodes the timestamps, and the memory and disk usage of the idle environment. The agent's start is included,
//! equally in every environment.
//! With `held`, other environments of the arm are idle meanwhile: a sweep over it shows what the n-th one needs.
//! Limits: does not include what a user's program needs beyond its first instruction. The arm's resident instance, and
//! those that another workload of the study asks for, are idle meanwhile too.

use tare_model::outcome::Exit;
use tare_model::{LIFECYCLE_FORMAT, LifecycleReport, Params, Path, RawOutput, Recipe, Sample};

use super::declared::declared;
use super::{DecodeError, ParamError, Workload, command_output};

/// Creating an environment, its first instruction, removing it.
#[derive(Debug)]
pub struct StartUp;

impl Workload for StartUp {
    declared! {
        "start-up": "creating an environment, its first instruction, removing it";
        params {
            "held" = Int(0), Between(0, 64): "number of idle environments of the same arm that run meanwhile, 0 to 64";
        }
        Nanosecond, Lower, StartUp {
            "start-up.ready.time": "Time from asking for an environment to the first answer of the agent inside.";
            "start-up.total.time": "Time from asking for an environment until it has answered, been stopped and been removed.";
            "start-up.stop.time": "Time from asking for an environment's end until it has been stopped and removed.";
        }
        Byte, Lower, StartUp {
            "start-up.memory.size":
                "Memory of this machine's that an environment holds after its first answer, while nothing but the agent runs in it; what its engine holds is not included.";
        }
        Nanosecond, Lower, StartUp {
            "start-up.create.time": "Part of the time until ready: from asking for an environment until it is there and the agent is started in it.";
            "start-up.first.time": "Part of the time until ready: from then to the first answer of the agent inside.";
        }
        Byte, Lower, StartUp {
            "start-up.disk.size":
                "Disk that it takes then where it runs: its image, or a machine's kernel, first file system and disk, counted whole however many share them, and what was written over it; no volume, and nothing of the host's that is only shown inside.";
            "start-up.all-memory.size":
                "Memory of this machine's that this environment and the idle ones that `held` asks for hold together.";
        }
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let held = params.int("held").and_then(|held| u32::try_from(held).ok());
        Ok(Recipe::Lifecycle {
            held: held.unwrap_or(0),
        })
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        if raw.format != LIFECYCLE_FORMAT {
            return Err(garbled(format!(
                "the format is `{}`",
                raw.format.escape_default()
            )));
        }
        if raw.exit != Exit::Code(0) {
            return Err(garbled("the environment's life did not end well"));
        }
        let report: LifecycleReport =
            serde_json::from_slice(&raw.stdout.0).map_err(|error| garbled(error.to_string()))?;
        let created_ns = report.created_ns;
        let no_value = |problem| Err(DecodeError::no_value(&self.metrics()[0], problem));
        if report.ready_ns <= created_ns {
            return no_value("the first answer is not after the creation");
        }
        if report.removed_ns < report.ready_ns {
            return no_value("the removal is before the first answer");
        }
        let started_ns = report.started_ns;
        let values = [
            Some(report.ready_ns - created_ns),
            Some(report.removed_ns - created_ns),
            report.stop_ns,
            report.memory_bytes,
            started_ns.map(|at| at.saturating_sub(created_ns)),
            started_ns.map(|at| report.ready_ns.saturating_sub(at)),
            report.disk_bytes,
            report.all_memory_bytes,
        ];
        let mut samples = Vec::new();
        for (metric, value) in self.metrics().iter().zip(values) {
            // Earlier reports have only the first two, and some environments cannot be inspected from outside; 0 means
            // unknown.
            if let Some(value) = value.filter(|value| *value > 0) {
                samples.push(command_output::sample(metric, vec![value as f64])?);
            }
        }
        Ok(samples)
    }
}

fn garbled(problem: impl Into<String>) -> DecodeError {
    DecodeError::garbled(LIFECYCLE_FORMAT, problem)
}

#[cfg(test)]
mod tests {
    use tare_model::outcome::Bytes;

    use super::*;

    fn raw(stdout: &str) -> RawOutput {
        RawOutput {
            format: LIFECYCLE_FORMAT.to_owned(),
            stdout: Bytes(stdout.as_bytes().to_vec()),
            stderr: Bytes::default(),
            exit: Exit::Code(0),
        }
    }

    const GOOD: &str = r#"{"created_ns":10,"ready_ns":250000010,"removed_ns":600000010}"#;

    #[test]
    fn both_times_count_from_the_creation() {
        let samples = StartUp.decode(&raw(GOOD)).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].metric.as_str(), "start-up.ready.time");
        assert_eq!(samples[0].observations, [250e6]);
        assert_eq!(samples[1].metric.as_str(), "start-up.total.time");
        assert_eq!(samples[1].observations, [600e6]);
    }

    #[test]
    fn stop_time_memory_and_disk_are_read_if_reported() {
        let held = r#","stop_ns":350000000,"memory_bytes":4096,"disk_bytes":8192}"#;
        let shown = GOOD.replace('}', held);
        let samples = StartUp.decode(&raw(&shown)).unwrap();
        let read: Vec<(&str, f64)> = samples
            .iter()
            .map(|sample| (sample.metric.as_str(), sample.observations[0]))
            .collect();
        assert_eq!(
            read[2..],
            [
                ("start-up.stop.time", 350e6),
                ("start-up.memory.size", 4096.0),
                ("start-up.disk.size", 8192.0)
            ]
        );
        let parts = GOOD.replace('}', r#","started_ns":240000010}"#);
        let samples = StartUp.decode(&raw(&parts)).unwrap();
        let parts = [&samples[2], &samples[3]].map(|it| it.observations[0].to_string());
        assert_eq!(parts, ["240000000", "10000000"]);
        let without = GOOD.replace('}', r#","stop_ns":1,"memory_bytes":0}"#);
        assert_eq!(StartUp.decode(&raw(&without)).unwrap().len(), 3);
    }

    #[test]
    fn missing_or_unordered_marks_yield_no_samples() {
        for text in [
            "",
            "{}",
            r#"{"created_ns":0,"ready_ns":5}"#,
            r#"{"created_ns":0,"ready_ns":-5,"removed_ns":9}"#,
            r#"{"created_ns":0,"ready_ns":5.5,"removed_ns":9}"#,
            r#"{"created_ns":0,"ready_ns":null,"removed_ns":9}"#,
            r#"{"created_ns":5,"ready_ns":5,"removed_ns":9}"#,
            r#"{"created_ns":0,"ready_ns":0,"removed_ns":9}"#,
            r#"{"created_ns":6,"ready_ns":5,"removed_ns":9}"#,
            r#"{"created_ns":0,"ready_ns":9,"removed_ns":5}"#,
            r#"{"created_ns":0,"ready_ns":5,"removed_ns":9} and more"#,
        ] {
            assert!(StartUp.decode(&raw(text)).is_err(), "{text}");
        }
        for length in 0..GOOD.len() {
            assert!(StartUp.decode(&raw(&GOOD[..length])).is_err(), "{length}");
        }
    }

    #[test]
    fn failed_lifecycle_or_other_format_is_refused() {
        let mut bad = raw(GOOD);
        bad.exit = Exit::Signal(9);
        assert!(StartUp.decode(&bad).is_err());
        let mut other = raw(GOOD);
        other.format = "probe/1".to_owned();
        assert!(StartUp.decode(&other).is_err());
    }

    #[test]
    fn it_takes_the_number_held_and_no_path() {
        for (params, held) in [(Params::new(), 0), (Params::new().with("held", 7i64), 7)] {
            assert_eq!(
                StartUp.recipe(&params, None),
                Ok(Recipe::Lifecycle { held })
            );
        }
        let many = Params::new().with("held", 65i64);
        assert_eq!(StartUp.recipe(&many, None).unwrap_err().param, "held");
        let error = StartUp
            .recipe(&Params::new().with("n", 3i64), None)
            .unwrap_err();
        assert_eq!(error.param, "n");
        let error = StartUp
            .recipe(&Params::new(), Some(Path::Loopback))
            .unwrap_err();
        assert_eq!(error.param, "path");
    }
}
