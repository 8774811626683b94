//! `stress-ng`: runs one of stress-ng's stressors, measured in "bogus operations" per second.
//!
//! What an operation is depends on the stressor and the version, so numbers are comparable only between arms that run
//! the same build. Version 0.14.02 changed the scale (it normalises the operations of the CPU methods); the two
//! scales are separate metrics, so that they are never compared. Numbers come from the YAML file, which names its
//! version. A log alone is also accepted; if its wording is older than 0.15.05, its scale is unknown and counts as
//! the old one.
//! stress-ng exits with 0 when it skipped everything, and prints numbers that it calls untrustworthy. Both are only
//! in the text, and are rejected.
//! Limits: does not see how the operations are spread over a stressor's many methods.

use tare_model::{CommandCall, Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::tool_text::{agreeing, fitting, garbled, number, output_text, whole};
use super::{DecodeError, ParamError, Workload, command_output, programs};

const ID: &str = "stress-ng";
/// The file with the results.
const METRICS_FILE: &str = "metrics.yaml";
/// The first version that normalises operations.
const NORMALISED: [u32; 3] = [0, 14, 2];

metrics! {
    RATE = "stress-ng.operation.rate", OperationPerSecond, Higher, Compute: "Bogus operations of all workers per second of real time, on the scale since 0.14.02.";
    CPU_RATE = "stress-ng.operation-per-cpu.rate", OperationPerSecond, Higher, Compute:
        "Bogus operations per second of processor time in user space and kernel, on the scale since 0.14.02.";
    SYSTEM = "stress-ng.system.share", Ratio, Lower, Compute: "Share of the stressor's processor time that it spent in the kernel.";
    OLD_RATE = "stress-ng.old-operation.rate", OperationPerSecond, Higher, Compute:
        "Bogus operations of all workers per second of real time, of a version before 0.14.02 or that does not say.";
    OLD_CPU_RATE = "stress-ng.old-operation-per-cpu.rate", OperationPerSecond, Higher, Compute:
        "Bogus operations per second of processor time, of a version before 0.14.02 or that does not say.";
}

#[derive(Debug)]
pub(super) struct StressNg;

impl Workload for StressNg {
    declared! {
        ID: "a stressor of stress-ng, in its own operations per second";
        params {
            "workers" = Int(1), Between(1, 1024): "processes, 1 to 1024";
            "seconds" = Int(1), Between(1, 3600): "duration in seconds, 1 to 3600";
            "stressor" = Text("cpu"): "the stressor's name, such as `cpu`, `vm`, `switch`; `stress-ng --stressors` lists them";
            "method" = Text(""): "the stressor's method, such as `matrixprod`; empty for its default";
            "bytes" = Text(""): "the stressor's amount of memory or data, such as `1500M`; empty for its default";
        }
        metrics &[RATE, CPU_RATE, SYSTEM, OLD_RATE, OLD_CPU_RATE];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let is_name = |name: &str| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
                && !name.starts_with('-')
        };
        let stressor = fitting(
            &params,
            "stressor",
            |name| is_name(name) && !name.is_empty(),
            "use a name that `stress-ng --stressors` prints",
        )?;
        let method = fitting(
            &params,
            "method",
            is_name,
            "use a name that `stress-ng --STRESSOR-method list` prints",
        )?;
        let bytes = fitting(
            &params,
            "bytes",
            |text| {
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".%".contains(&byte))
            },
            "use a number with a unit, such as `256M`",
        )?;
        let mut arguments = vec![
            format!("--{stressor}"),
            whole(&params, "workers"),
            "--timeout".to_owned(),
            whole(&params, "seconds"),
        ];
        for (option, value) in [("method", method), ("bytes", bytes)] {
            if !value.is_empty() {
                arguments.extend([format!("--{stressor}-{option}"), value.to_owned()]);
            }
        }
        arguments.extend(["--metrics", "--yaml", METRICS_FILE].map(str::to_owned));
        let call = CommandCall {
            collect: vec![METRICS_FILE.to_owned()],
            ..CommandCall::new("stress-ng", arguments)
        };
        Ok(Recipe::Probe(call.to_probe()))
    }

    programs! { "stress-ng" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let log = output_text(&report);
        complaint(&log)?;
        let row = match report.files.get(METRICS_FILE) {
            Some(bytes) => from_yaml(&String::from_utf8_lossy(&bytes.0))?,
            None => from_log(&log)?,
        };
        // Logs round times to 10 ms, too coarse to check very short ones.
        if row.real_s >= 0.5 {
            agreeing(ID, "the rate", row.rate, row.operations / row.real_s)?;
        }
        let (rate, cpu_rate) = if row.is_normalised {
            (&RATE, &CPU_RATE)
        } else {
            (&OLD_RATE, &OLD_CPU_RATE)
        };
        let mut samples = vec![command_output::sample(rate, vec![row.rate])?];
        // A sleeping stressor uses less CPU time than the clock can resolve.
        if row.cpu_rate != 0.0 {
            samples.push(command_output::sample(cpu_rate, vec![row.cpu_rate])?);
        }
        let [user_s, system_s] = row.processor_s;
        // Less than a tick is printed as 0.
        if system_s > 0.0 && user_s >= 0.0 {
            let share = vec![system_s / (user_s + system_s)];
            samples.push(command_output::sample(&SYSTEM, share)?);
        }
        Ok(samples)
    }
}

/// The results of one stressor.
#[derive(Debug, Clone, Copy)]
struct Row {
    operations: f64,
    real_s: f64,
    rate: f64,
    cpu_rate: f64,
    /// CPU time in user space and in the kernel, seconds.
    processor_s: [f64; 2],
    is_normalised: bool,
}

/// Returns an error if stress-ng itself reports that the results are unusable.
fn complaint(log: &str) -> Result<(), DecodeError> {
    let unsuccessful = |line: &str| DecodeError::Unsuccessful {
        problem: format!("stress-ng says `{}`", line.trim().escape_debug()),
    };
    for line in log.lines().filter(|line| line.contains("stress-ng: ")) {
        let is_bad = line.contains("stress-ng: error:")
            || line.contains("stress-ng: fail:")
            || line.contains("No stress workers invoked")
            || line.contains("unsuccessful run")
            || line.contains("will be skipped");
        let message = line.rsplit_once("] ").map_or(line, |(_, message)| message);
        let counted = |label: &str| {
            message
                .trim()
                .strip_prefix(label)
                .map(|rest| rest.split([':', ' ']).find(|word| !word.is_empty()))
        };
        let is_above_none = |label: &str| counted(label).is_some_and(|count| count != Some("0"));
        let is_none = |label: &str| counted(label).is_some_and(|count| count == Some("0"));
        if is_bad
            || is_above_none("skipped:")
            || is_above_none("failed:")
            || is_above_none("metrics untrustworthy:")
            || is_none("passed:")
        {
            return Err(unsuccessful(line));
        }
    }
    Ok(())
}

/// Parses the relevant lines of the YAML: the version and the list `metrics` with one entry.
fn from_yaml(yaml: &str) -> Result<Row, DecodeError> {
    let unquoted = |value: &str| value.trim().trim_matches(['\'', '"']).to_owned();
    let version = yaml
        .lines()
        .find_map(|line| line.trim().strip_prefix("stress-ng-version:"))
        .map(unquoted)
        .ok_or_else(|| garbled(ID, "the file does not name a version"))?;
    let version = version_number(&version)
        .ok_or_else(|| garbled(ID, format!("`{}` is no version", version.escape_debug())))?;
    let mut entries = yaml
        .lines()
        .skip_while(|line| line.trim_end() != "metrics:")
        .skip(1)
        // The next key without indentation ends the list.
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .peekable();
    let is_entry = |line: &str| line.trim_start().starts_with("- stressor:");
    while entries.peek().is_some_and(|line| !is_entry(line)) {
        entries.next();
    }
    if entries.next().is_none() {
        return Err(garbled(ID, "the file has no figures"));
    }
    let lines: Vec<&str> = entries.collect();
    if lines.iter().any(|line| is_entry(line)) {
        return Err(garbled(ID, "the file has figures of several stressors"));
    }
    let figure = |key: &str| {
        let mut values = lines
            .iter()
            .filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix(':'));
        match (values.next().and_then(number), values.next()) {
            (Some(value), None) => Ok(value),
            _ => Err(garbled(ID, format!("`{key}` has no figure"))),
        }
    };
    Ok(Row {
        operations: figure("bogo-ops")?,
        real_s: figure("wall-clock-time")?,
        rate: figure("bogo-ops-per-second-real-time")?,
        cpu_rate: figure("bogo-ops-per-second-usr-sys-time")?,
        processor_s: [figure("user-time")?, figure("system-time")?],
        is_normalised: version >= NORMALISED,
    })
}

fn version_number(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next()??, parts.next()??, parts.next()) {
        (major, minor, Some(Some(patch))) => Some([major, minor, patch]),
        (major, minor, None) => Some([major, minor, 0]),
        _ => None,
    }
}

/// Parses the table of a log: the line after its two headings.
fn from_log(log: &str) -> Result<Row, DecodeError> {
    let mut table = log
        .lines()
        .skip_while(|line| !(line.contains("] stressor") && line.contains("bogo ops")))
        .skip(1)
        .skip_while(|line| line.contains("(secs)"));
    let row = table
        .next()
        .ok_or_else(|| garbled(ID, "there is no table of figures"))?;
    let (tag, cells) = row
        .split_once("] ")
        .ok_or_else(|| garbled(ID, "the table has no figures"))?;
    let is_row = |line: &str| {
        let cells = line.split_once("] ").map_or("", |(_, cells)| cells);
        let mut words = cells.split_whitespace();
        let is_name = words.next().is_some_and(|word| !word.ends_with(':'));
        is_name
            && words.next().is_some_and(|word| word.parse::<u64>().is_ok())
            && words.count() >= 5
    };
    if table.next().is_some_and(is_row) {
        return Err(garbled(ID, "the table has figures of several stressors"));
    }
    let figures: Vec<f64> = cells.split_whitespace().skip(1).map_while(number).collect();
    let [operations, real_s, user_s, system_s, rate, cpu_rate, ..] = figures[..] else {
        return Err(garbled(
            ID,
            format!("`{}` is no row of figures", cells.trim().escape_debug()),
        ));
    };
    Ok(Row {
        operations,
        real_s,
        rate,
        cpu_rate,
        processor_s: [user_s, system_s],
        // `metrc:` and `metric:` came with 0.15.05, after the change of scale.
        is_normalised: tag.contains("metrc:") || tag.contains("metric:"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::*;

    const TABLE: &str = "stress-ng: metrc: [7] stressor bogo ops real time usr time sys time bogo ops/s bogo ops/s\n\
        stress-ng: metrc: [7] (secs) (secs) (secs) (real time) (usr+sys time)\n";

    fn decoded(log: &str) -> Result<Vec<Sample>, DecodeError> {
        StressNg.decode(&raw(0, log.as_bytes(), b""))
    }

    #[test]
    fn stress_ng_success_with_complaint_is_an_error() {
        let good = format!("{TABLE}stress-ng: metrc: [7] cpu 100 1.00 1.00 0.00 100.00 100.00\n");
        assert_eq!(decoded(&good).unwrap().len(), 2);
        for complaint in [
            "stress-ng: info: [7] skipped: 1: apparmor (1)",
            "stress-ng: info: [7] passed: 0",
            "stress-ng: info: [7] failed: 1: cpu (1)",
            "stress-ng: info: [7] metrics untrustworthy: 1",
            "stress-ng: error: [7] No stress workers invoked (one or more were unsupported)",
            "stress-ng: fail: [7] cpu: checksum differs",
            "stress-ng: info: [7] apparmor stressor will be skipped, AppArmor is not enabled",
            "stress-ng: info: [7] unsuccessful run completed in 1.00s",
        ] {
            let error = decoded(&format!("{good}{complaint}\n")).unwrap_err();
            assert!(
                matches!(error, DecodeError::Unsuccessful { .. }),
                "{complaint}"
            );
        }
    }

    #[test]
    fn invalid_or_multiple_stressor_rows_are_refused() {
        for rows in [
            "stress-ng: metrc: [7] cpu 100 1.00 1.00 0.00 -nan 100.00\n",
            "stress-ng: metrc: [7] cpu 100 1.00 1.00 0.00 nan nan\n",
            "stress-ng: metrc: [7] cpu 0 1.00 1.00 0.00 0.00 0.00\n",
            "stress-ng: metrc: [7] cpu 100 1.00 1.00 0.00 500.00 100.00\n",
            "stress-ng: metrc: [7] cpu 100 1.00 1.00 0.00 100.00 100.00\nstress-ng: metrc: [7] vm 100 1.00 1.00 0.00 100.00 100.00\n",
            "",
        ] {
            assert!(decoded(&format!("{TABLE}{rows}")).is_err(), "{rows}");
        }
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for (text, is_normalised) in [
            ("0.13.12", false),
            ("0.14.01", false),
            ("0.14.02", true),
            ("0.17.06", true),
            ("0.9.40", false),
        ] {
            assert_eq!(
                version_number(text).unwrap() >= NORMALISED,
                is_normalised,
                "{text}"
            );
        }
        for text in ["", "x", "0", "0.14.x"] {
            assert!(version_number(text).is_none(), "{text}");
        }
    }
}
