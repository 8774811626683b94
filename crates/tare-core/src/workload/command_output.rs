//! Shared code of the workloads that run external tools: the report of the program.
//!
//! A trial's raw output is the probe's report of the whole run, which includes the tool's output. The tool's decoder
//! chooses which part to read (stdout, a file it wrote). Whether the program succeeded is decided here, so that no
//! decoder mistakes partial output for complete output.
//! Limits: a tool that fails and only prints so is not detected; its decoder has to check.
//! Not a workload itself.

use tare_model::outcome::Exit;
use tare_model::{CommandReport, MetricId, MetricSpec, RawOutput, Sample, counter};

use super::{DecodeError, probe_output};

/// How much of a failed program's output an error repeats, bytes.
const SAID_LIMIT: usize = 400;

/// The report of a program that exited with status 0 or one that its call tolerates.
///
/// # Errors
/// [`DecodeError::Unsuccessful`] for any other end, with the last bytes of the program's output.
pub fn report(raw: &RawOutput) -> Result<CommandReport, DecodeError> {
    let Some(report) = probe_output::report(raw)?.command else {
        let format = raw.format.escape_default().to_string();
        let problem = "it is not the report of a program";
        return Err(DecodeError::garbled(format, problem));
    };
    let how = match report.exit {
        Exit::Code(code) if code == 0 || report.tolerated.contains(&code) => return Ok(report),
        Exit::Code(code) => format!("exited with status {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    };
    let stderr_text = if report.stderr.0.is_empty() {
        &report.stdout.0
    } else {
        &report.stderr.0
    };
    let shown =
        String::from_utf8_lossy(&stderr_text[stderr_text.len().saturating_sub(SAID_LIMIT)..]);
    Err(DecodeError::Unsuccessful {
        problem: format!(
            "`{}` {how}{}{}",
            report.program.escape_debug(),
            if shown.trim().is_empty() { "" } else { ": " },
            shown.trim().escape_debug()
        ),
    })
}

/// CPU time in user space and kernel, nanoseconds; `None` if it was not counted.
pub fn cpu_ns(report: &CommandReport) -> Option<f64> {
    let of = |name: &str| report.usage.get(name);
    Some(of(counter::USER)? + of(counter::SYS)?)
}

/// Stdout as text; invalid UTF-8 is replaced.
pub fn stdout(report: &CommandReport) -> String {
    String::from_utf8_lossy(&report.stdout.0).into_owned()
}

/// A sample of a metric that cannot be 0, such as a time or a rate.
///
/// # Errors
/// [`DecodeError::NoValue`] unless there is a value and all are finite and positive.
pub fn sample(metric: &MetricSpec, observations: Vec<f64>) -> Result<Sample, DecodeError> {
    checked(metric, observations, |value| value > 0.0)
}

/// A sample of a metric that can be 0, such as a count of errors.
///
/// # Errors
/// [`DecodeError::NoValue`] unless there is a value and all are finite and not negative.
pub fn sample_or_nothing(
    metric: &MetricSpec,
    observations: Vec<f64>,
) -> Result<Sample, DecodeError> {
    checked(metric, observations, |value| value >= 0.0)
}

fn checked(
    metric: &MetricSpec,
    observations: Vec<f64>,
    is_value: fn(f64) -> bool,
) -> Result<Sample, DecodeError> {
    if observations.is_empty() {
        return Err(DecodeError::no_value(metric, "there is none"));
    }
    let mut values = observations.iter();
    if let Some(value) = values.find(|value| !(value.is_finite() && is_value(**value))) {
        let problem = format!("`{value}` is no value of it");
        return Err(DecodeError::no_value(metric, problem));
    }
    Ok(Sample {
        metric: MetricId::new(metric.id).expect("the ids of metrics are checked by a test"),
        observations,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use tare_model::outcome::Bytes;
    use tare_model::{CommandCall, Params, ProbeReport, Recipe};

    use super::super::{ParamError, Workload};
    use super::*;
    pub(crate) use crate::testing::raw;

    /// The raw output of a trial whose program exited with `code`, and its report changed.
    pub(crate) fn raw_with(code: i32, change: impl FnOnce(&mut CommandReport)) -> RawOutput {
        let mut raw = raw(code, b"", b"");
        let mut report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
        change(report.command.as_mut().unwrap());
        raw.stdout = Bytes(serde_json::to_vec(&report).unwrap());
        raw
    }

    /// The raw output of a trial whose program succeeded and left these files.
    pub(crate) fn raw_with_files(files: &[(&str, &str)]) -> RawOutput {
        raw_with(0, |report| {
            report.files = files
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Bytes(text.as_bytes().to_vec())))
                .collect();
        })
    }

    /// The call of a workload with one end.
    pub(crate) fn call_of(
        workload: &dyn Workload,
        params: &Params,
    ) -> Result<CommandCall, ParamError> {
        match workload.recipe(params, None)? {
            Recipe::Probe(probe) => Ok(CommandCall::from_args(&probe.args).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn failed_program_is_an_error_with_its_stderr() {
        let error = report(&raw(2, b"half an output", b"no such \x1b[31mfile\n")).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("status 2") && text.contains("no such"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let tolerating = |code: i32| raw_with(2, |report| report.tolerated = vec![code]);
        assert!(report(&tolerating(2)).is_ok());
        assert!(report(&tolerating(1)).is_err());
    }

    #[test]
    fn only_positive_finite_numbers_are_samples() {
        let metric = super::super::WORKLOADS[0].metrics()[0];
        assert!(sample(&metric, vec![1.0, 2.0]).is_ok());
        for bad in [
            vec![],
            vec![0.0],
            vec![1.0, f64::NAN],
            vec![f64::INFINITY],
            vec![-1.0],
        ] {
            assert!(sample(&metric, bad).is_err());
        }
        assert!(sample_or_nothing(&metric, vec![0.0, 2.0]).is_ok());
        for bad in [vec![], vec![f64::NAN], vec![-1.0]] {
            assert!(sample_or_nothing(&metric, bad).is_err());
        }
    }
}
