//! `user-command`: runs a user's command and measures wall time, CPU time, or a number that it prints.
//!
//! The call is one JSON text (`tare_model::CommandCall`), because a command is a list of words, variables and a
//! folder, and must reach every arm unchanged. The call says which number of the output counts and comes back in the
//! report, so that a stored trial can be decoded without the study.
//! Limits: only the exit status shows whether the command did its work.

use std::cell::RefCell;
use std::collections::BTreeMap;

use regex::Regex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tare_model::command::Pick;
use tare_model::outcome::Bytes;
use tare_model::{
    CommandCall, CommandReport, MetricSpec, Params, Path, RawOutput, Recipe, Sample, metrics,
};

use super::declared::declared;
use super::{
    DecodeError, ParamError, Remark, Workload, command_output, probe_output, sanity, stoppable,
};

/// The parameter that holds the call.
pub const CALL: &str = "call";
/// The wall time metric.
pub const WALL: &str = "command.wall.time";
/// The CPU time metric.
pub const CPU: &str = "command.cpu.time";
/// The metric of a number in the output, lower is better.
pub const COST: &str = "command.picked.cost";
/// The metric of a number in the output, higher is better.
pub const RATE: &str = "command.picked.rate";
/// The metric of a request to a server.
pub const REQUEST: &str = "command.request.time";

/// The size limit of a compiled pattern, bytes.
const PATTERN_LIMIT: usize = 1 << 20;

/// The workload.
#[derive(Debug)]
pub struct UserCommand;

const METRICS: &[MetricSpec] = metrics! {
    Nanosecond, Lower, Compute {
        WALL, floor: "From the request to start the command until its first process has ended.";
        CPU, floor: "Processor time, user and system, of the command and those of its children that it waited for.";
    }
    Count, Lower, Compute {
        COST: "The number that a pattern finds in the output; less is better.";
    }
    Count, Higher, Compute {
        RATE: "The number that a pattern finds in the output; more is better.";
    }
    Nanosecond, Lower, Network {
        REQUEST: "Time of a request to a server, from its first byte to the last byte of the answer, as a client on the host measures it: the median of a trial (its mean where a processor quota is at work), or the percentile asked for.";
    }
};

/// Compiles a pattern.
///
/// # Errors
/// Says what is wrong with it, and where.
pub fn compiled(pattern: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(PATTERN_LIMIT)
        .build()
        .map_err(|error| error.to_string())
}

/// The last number that a pattern finds in a text: its first group, else the whole match. `None` if there is none, or
/// if it is not a number.
pub fn picked(pattern: &Regex, text: &str) -> Option<f64> {
    let found = pattern.captures_iter(text).last()?;
    let number = found.get(1).or_else(|| found.get(0))?;
    number.as_str().trim().parse().ok()
}

thread_local! {
    /// The latest pattern: a thousand trials use the same one.
    static LAST: RefCell<Option<(String, Regex)>> = const { RefCell::new(None) };
}

fn with_pattern<T>(pattern: &str, work: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    LAST.with_borrow_mut(|last| {
        if last.as_ref().is_none_or(|(text, _)| text != pattern) {
            *last = Some((pattern.to_owned(), compiled(pattern)?));
        }
        let (_, compiled) = last.as_ref().expect("it was put there just now");
        Ok(work(compiled))
    })
}

/// The metric of the number that `pick` finds.
fn metric_of(pick: &Pick) -> &'static MetricSpec {
    let usual = if pick.more_is_better { RATE } else { COST };
    let named = |id: &str| METRICS.iter().find(|metric| metric.id == id);
    let wanted = pick.metric.as_deref().and_then(named);
    wanted
        .or_else(|| named(usual))
        .expect("both are in the table")
}

/// The number that `pick` finds.
fn number(report: &CommandReport, pick: &Pick) -> Result<f64, DecodeError> {
    let texts = [&report.stdout.0, &report.stderr.0];
    let found = with_pattern(&pick.pattern, |pattern| {
        let mut texts = texts.iter().map(|bytes| String::from_utf8_lossy(bytes));
        texts.find_map(|text| picked(pattern, &text))
    });
    let found = found.and_then(|value| {
        let pattern = pick.pattern.escape_debug();
        value.ok_or_else(|| format!("`{pattern}` finds no number in the output"))
    });
    found.map_err(|problem| DecodeError::no_value(metric_of(pick), problem))
}

/// Stored in place of a text that is not needed.
#[derive(Serialize)]
struct Summed {
    bytes: usize,
    sha256: String,
}

/// The raw output with the command's stdout and stderr replaced by their lengths and SHA-256. `None` if they are
/// needed, because a number is picked from them or the command failed, or if they are empty.
pub fn without_output(raw: &RawOutput) -> Option<RawOutput> {
    let mut report = probe_output::report(raw).ok()?;
    let command = report.command.as_mut()?;
    let is_success = command.exit.is_success() || stoppable::is_tolerated(command);
    if !is_success || command.pick.is_some() {
        return None;
    }
    let mut summed = BTreeMap::new();
    for (name, text) in [
        ("stdout", &mut command.stdout),
        ("stderr", &mut command.stderr),
    ] {
        let Bytes(text) = std::mem::take(text);
        if !text.is_empty() {
            let digest = Sha256::digest(&text);
            let sha256 = digest.iter().fold(String::new(), |digits, byte| {
                digits + &format!("{byte:02x}")
            });
            let bytes = text.len();
            summed.insert(name, Summed { bytes, sha256 });
        }
    }
    if summed.is_empty() {
        return None;
    }
    let mut report = serde_json::to_value(&report).ok()?;
    report["command"]["not_kept"] = serde_json::to_value(summed).ok()?;
    Some(RawOutput {
        stdout: Bytes(serde_json::to_vec(&report).ok()?),
        ..raw.clone()
    })
}

impl Workload for UserCommand {
    declared! {
        "user-command": "a command of the user's: its wall time, processor time, or a number that it prints";
        params {
            "call" = Text(r#"{"argv":["true"]}"#): "the command as JSON: argv, variables, directory, stdin_file, pick, …";
        }
        metrics METRICS;
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let wrong = |param: &str, problem: String| ParamError {
            param: param.to_owned(),
            problem,
            hint: None,
        };
        if path.is_some() {
            return Err(wrong("path", "a command has one end and no path".into()));
        }
        if let Some(name) = params.0.keys().find(|name| *name != CALL) {
            return Err(wrong(
                name,
                format!("`user-command` has no parameter `{}`", name.escape_debug()),
            ));
        }
        let call = CommandCall::from_args(params).map_err(|problem| wrong(CALL, problem))?;
        if let Some(pick) = &call.pick {
            compiled(&pick.pattern).map_err(|problem| wrong(CALL, problem))?;
        }
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn cut_off(&self, params: &Params, limit_ns: u64) -> Option<(Vec<Sample>, Remark)> {
        CommandCall::from_args(params)
            .ok()
            .filter(|call| call.cut_off)?;
        let sample = command_output::sample(&METRICS[0], vec![limit_ns as f64]).ok()?;
        let detail = format!(
            "ended after {:.1} s, and counted as at least so long",
            limit_ns as f64 / 1e9
        );
        Some((vec![sample], Remark::new(sanity::CUT_OFF, detail)))
    }

    fn stored(&self, params: &Params, raw: &RawOutput) -> Option<RawOutput> {
        let keeps = CommandCall::from_args(params).is_ok_and(|call| call.keep_output);
        if keeps { None } else { without_output(raw) }
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let mut samples = vec![command_output::sample(
            &METRICS[0],
            vec![report.wall_ns as f64],
        )?];
        // The CPU clock may not tick during a short command: then there is no value.
        if let Some(cpu_ns) = command_output::cpu_ns(&report).filter(|ns| *ns > 0.0) {
            samples.push(command_output::sample(&METRICS[1], vec![cpu_ns])?);
        }
        if let Some(pick) = &report.pick {
            let value = vec![number(&report, pick)?];
            samples.push(command_output::sample(metric_of(pick), value)?);
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::command_output::tests::{raw, raw_with};

    /// The raw output of a trial with this pick.
    fn with_pick(stdout: &str, pick: Option<Pick>) -> RawOutput {
        raw_with(0, |report| {
            report.stdout = Bytes(stdout.into());
            report.pick = pick;
            report.usage.insert("user_ns".into(), 3e6);
            report.usage.insert("sys_ns".into(), 1e6);
        })
    }

    fn pick(pattern: &str, more_is_better: bool) -> Pick {
        Pick {
            pattern: pattern.into(),
            more_is_better,
            metric: None,
        }
    }

    #[test]
    fn wall_cpu_and_optional_output_number_are_read() {
        let plain = UserCommand.decode(&with_pick("12 rows\n", None)).unwrap();
        let ids: Vec<&str> = plain.iter().map(|sample| sample.metric.as_str()).collect();
        assert_eq!(ids, [WALL, CPU]);
        assert_eq!(plain[1].observations, [4e6]);
        let text = "warm-up: 5 op/s\nresult: 1.25e3 op/s\n";
        let picked = UserCommand
            .decode(&with_pick(text, Some(pick("([0-9.e]+) op/s$", true))))
            .unwrap();
        assert_eq!(picked[2].metric.as_str(), RATE);
        assert_eq!(picked[2].observations, [1250.0]);
    }

    #[test]
    fn unread_output_is_not_stored() {
        let params = |keep: bool| {
            let call = CommandCall {
                keep_output: keep,
                ..CommandCall::new("true", [""; 0])
            };
            Params::new().with(CALL, serde_json::to_string(&call).unwrap())
        };
        let printed = with_pick("password=s3cr3t-9f\n", None);
        assert_eq!(UserCommand.stored(&params(true), &printed), None);
        let stored = UserCommand.stored(&params(false), &printed).unwrap();
        let text = String::from_utf8(stored.stdout.0.clone()).unwrap();
        assert!(!text.contains("s3cr3t"), "{text}");
        assert!(
            text.contains(
                "\"sha256\":\"1774645412a2f6f7e6080769dc7a16c54f9ba45b99460026d161f2f6aefc2aae\""
            ),
            "{text}"
        );
        assert!(text.contains("\"bytes\":19"), "{text}");
        // The same samples, and nothing more to remove.
        assert_eq!(UserCommand.decode(&stored), UserCommand.decode(&printed));
        assert_eq!(UserCommand.stored(&params(false), &stored), None);
    }

    #[test]
    fn output_with_pick_or_failure_is_stored() {
        let picked = with_pick("5 op/s", Some(pick("([0-9]+) op/s", true)));
        assert_eq!(without_output(&picked), None);
        assert_eq!(without_output(&raw(3, b"", b"no such table\n")), None);
        assert_eq!(without_output(&raw(0, b"", b"")), None);
    }

    #[test]
    fn cut_off_run_counts_as_lower_bound_if_enabled() {
        let of = |call: &str| UserCommand.cut_off(&Params::new().with(CALL, call), 2_500_000_000);
        let (samples, remark) = of(r#"{"argv":["x"],"cut_off":true}"#).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].metric.as_str(), WALL);
        assert_eq!(samples[0].observations, [2.5e9]);
        assert!(remark.detail.contains("2.5 s"), "{remark:?}");
        assert_eq!(of(r#"{"argv":["x"]}"#), None);
    }

    #[test]
    fn an_output_without_the_number_is_no_reading() {
        for (text, pattern) in [
            ("", "[0-9]+"),
            ("n = many", "n = (.*)"),
            ("n = 0", "n = (.*)"),
        ] {
            let error = UserCommand
                .decode(&with_pick(text, Some(pick(pattern, false))))
                .unwrap_err();
            assert!(matches!(error, DecodeError::NoValue { .. }), "{error}");
        }
    }

    #[test]
    fn invalid_call_or_pattern_is_refused() {
        for call in ["", "{}", r#"{"argv":["x"],"pick":{"pattern":"("}}"#] {
            let params = Params::new().with(CALL, call);
            assert_eq!(
                UserCommand.recipe(&params, None).unwrap_err().param,
                CALL,
                "{call}"
            );
        }
    }
}
