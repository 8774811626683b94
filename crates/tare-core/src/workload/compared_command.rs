//! `compared-command`: a command of `tare compare` and `tare gate`, with more metrics than `user-command`.
//!
//! The call is the same JSON text as that of [`user_command`]; wall time, CPU time and the number in the output are
//! decoded the same way. In addition: peak memory, page faults, context switches and device bytes, which the kernel
//! counts for each process and which are often exact.
//! Limits: peak memory and counts cover the command and the children that it waited for.

use tare_model::{
    CommandReport, MetricSpec, Params, Path, RawOutput, Recipe, Sample, counter, metrics,
};

use super::declared::declared;
use super::{DecodeError, ParamError, Workload, command_output, user_command};

/// The parameter that holds the call.
pub use user_command::CALL;

/// The workload.
#[derive(Debug)]
pub struct ComparedCommand;

metrics! {
    /// Wall time.
    pub WALL = "compared.wall.time", Nanosecond, Lower, Compute, floor: "From the request to start the command until its first process has ended.";
    /// CPU time.
    pub CPU = "compared.cpu.time", Nanosecond, Lower, Compute, floor: "Processor time, user and system, of the command and those of its children that it waited for.";
    /// Peak memory.
    pub MEMORY = "compared.memory.peak", Byte, Lower, Compute: "The largest resident set of the command or of one of its children.";
    /// A number in the output, lower is better.
    pub COST = "compared.picked.cost", Count, Lower, Compute: "The number that `--metric` finds in the output; less is better.";
    /// A number in the output, higher is better.
    pub RATE = "compared.picked.rate", Count, Higher, Compute: "The number that `--metric` finds in the output; more is better.";
    /// Page faults.
    pub FAULTS = "compared.page.faults", Count, Lower, Compute: "Page faults of the command, with and without a read.";
    /// Voluntary context switches.
    pub SWITCHES = "compared.context.switches", Count, Lower, Compute: "Context switches that the command asked for by waiting.";
    /// Bytes read from devices.
    pub READ = "compared.bytes.read", Byte, Lower, Compute: "Bytes that were read from devices for the command.";
    /// Bytes written to devices.
    pub WRITTEN = "compared.bytes.written", Byte, Lower, Compute: "Bytes that the command wrote to devices.";
}

const ALL: &[MetricSpec] = &[
    WALL, CPU, MEMORY, COST, RATE, FAULTS, SWITCHES, READ, WRITTEN,
];
/// The metrics with a verdict; the others are counts that are shown if they repeat exactly.
const JUDGED: &[MetricSpec] = &[WALL, CPU, MEMORY, COST, RATE];
/// The unit in which the kernel counts device blocks.
const BLOCK_BYTES: f64 = 512.0;

/// Whether the metric has a verdict.
pub fn is_judged(metric: &str) -> bool {
    JUDGED.iter().any(|judged| judged.id == metric)
}

impl Workload for ComparedCommand {
    declared! {
        "compared-command": "a command that is compared with another: times, peak memory, and what the kernel counts";
        params {
            "call" = Text(r#"{"argv":["true"]}"#): "the command as JSON: argv, variables, directory, stdin_file, pick, …";
        }
        metrics ALL;
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        user_command::UserCommand.recipe(params, path)
    }

    fn stored(&self, params: &Params, raw: &RawOutput) -> Option<RawOutput> {
        user_command::UserCommand.stored(params, raw)
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let mut samples = Vec::new();
        for sample in user_command::UserCommand.decode(raw)? {
            let of_each = |place: usize| -> Vec<f64> {
                report.each_run_ns.iter().map(|run| run[place]).collect()
            };
            let (metric, each) = match sample.metric.as_str() {
                user_command::WALL => (&WALL, of_each(0)),
                user_command::CPU => (&CPU, of_each(1)),
                user_command::COST => (&COST, Vec::new()),
                user_command::RATE => (&RATE, Vec::new()),
                _ => continue,
            };
            // The CPU clock may not tick during a short run; then the mean of all counts.
            let observations = if each.is_empty() || each.contains(&0.0) {
                sample.observations
            } else {
                each
            };
            samples.push(command_output::sample(metric, observations)?);
        }
        for (metric, value) in counts(&report) {
            samples.push(command_output::sample_or_nothing(metric, vec![value])?);
        }
        Ok(samples)
    }
}

/// The kernel's counts for the command; metrics that it did not count are absent.
fn counts(report: &CommandReport) -> Vec<(&'static MetricSpec, f64)> {
    let of = |name: &str| report.usage.get(name).copied();
    let bytes = |name: &str| of(name).map(|blocks| blocks * BLOCK_BYTES);
    let faults = of(counter::MINFLT).zip(of(counter::MAJFLT));
    let all: [(&'static MetricSpec, Option<f64>); 5] = [
        (&MEMORY, of(counter::MAX_RSS)),
        (&FAULTS, faults.map(|(minor, major)| minor + major)),
        (&SWITCHES, of(counter::NVCSW)),
        (&READ, bytes(counter::INBLOCK)),
        (&WRITTEN, bytes(counter::OUBLOCK)),
    ];
    all.into_iter()
        .filter_map(|(metric, value)| Some((metric, value?)))
        .collect()
}

/// The same workload with only the metrics that have a verdict, to decide when there are enough blocks.
#[derive(Debug)]
pub struct Judged;

impl Workload for Judged {
    fn declared(&self) -> &super::Declared {
        static DECLARED: super::Declared = super::Declared {
            id: "compared-command",
            about: "the metrics of a compared command that a verdict is made of",
            params: &[],
            metrics: JUDGED,
        };
        &DECLARED
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        ComparedCommand.recipe(params, path)
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let mut samples = ComparedCommand.decode(raw)?;
        samples.retain(|sample| is_judged(sample.metric.as_str()));
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::command_output::tests::raw_with;

    #[test]
    fn interleaved_runs_are_observations_of_their_own() {
        let raw = raw_with(0, |report| {
            report.usage = [("user_ns", 9.0), ("sys_ns", 1.0)]
                .map(|(name, ns)| (name.to_owned(), ns))
                .into();
            report.each_run_ns = vec![[9.0, 8.0], [14.0, 13.0], [9.5, 8.5]];
        });
        let samples = ComparedCommand.decode(&raw).unwrap();
        let of = |id: &str| {
            let sample = samples.iter().find(|sample| sample.metric.as_str() == id);
            sample.unwrap().observations.clone()
        };
        assert_eq!(of(WALL.id), [9.0, 14.0, 9.5]);
        assert_eq!(of(CPU.id), [8.0, 13.0, 8.5]);
    }

    #[test]
    fn kernel_counters_become_metrics_if_present() {
        let usage = [
            ("user_ns", 2e6),
            ("sys_ns", 1e6),
            ("max_rss_bytes", 4096.0),
            ("minflt", 90.0),
            ("majflt", 2.0),
            ("oublock", 3.0),
        ];
        let usage = usage.map(|(name, value)| (name.to_owned(), value));
        let raw = raw_with(0, |report| report.usage = usage.into());
        let values = |workload: &dyn Workload| -> Vec<(String, f64)> {
            let samples = workload.decode(&raw).unwrap().into_iter();
            samples
                .map(|sample| (sample.metric.to_string(), sample.observations[0]))
                .collect()
        };
        let of = |id: &str, value: f64| (id.to_owned(), value);
        assert_eq!(
            values(&ComparedCommand),
            [
                of(WALL.id, 1e6),
                of(CPU.id, 3e6),
                of(MEMORY.id, 4096.0),
                of(FAULTS.id, 92.0),
                of(WRITTEN.id, 1536.0),
            ]
        );
        assert_eq!(values(&Judged).len(), 3);
    }
}
