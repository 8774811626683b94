//! `command`: runs a user's command.
//!
//! The command is a list of arguments and never passes through a shell (for one, use `["sh", "-c", …]`). It is timed
//! from the request to its end. Other values can be picked from its output by a regular expression. The expression
//! and the tolerated exit statuses travel with the call and come back with its report, so that the stored output can
//! be decoded without the study.
//! Limits: does not check that the command did the same work in every arm; its output is stored for the user to
//! compare.

use regex::Regex;
use tare_model::command::Pick;
use tare_model::counter;
use tare_model::{
    CommandCall, CommandReport, Params, Path, RawOutput, Recipe, Sample, Value, command, metrics,
};

use super::declared::declared;
use super::tool_text::{garbled, is_argument, number, output_text, text};
use super::{DecodeError, ParamError, Tool, Workload, command_output};

const ID: &str = "command";

metrics! {
    WALL = "command.run.wall", Nanosecond, Lower, Compute: "Time from the request to start the command until it has ended.";
    CPU = "command.run.cpu", Nanosecond, Lower, Compute: "Processor time in user space and kernel of the command and of those of its children that it waited for.";
    PICKED = "command.run.picked", Count, Lower, Compute: "The number that `pick` found in the command's output, for which smaller is better.";
    PICKED_RATE = "command.run.picked-rate", Count, Higher, Compute: "The number that `pick` found in the command's output, for which larger is better.";
}

#[derive(Debug)]
pub(super) struct AnyCommand;

impl Workload for AnyCommand {
    declared! {
        ID: "a command of your own, from its start to its end";
        params {
            "better" = Text("lower"), OneOf(&["lower", "higher"]): "`lower` or `higher`: which picked numbers are the better ones";
            "argv" = Text("true"): "the program and its arguments, as a list of texts; `{folder}` stands for the fresh folder in which it is started";
            "directory" = Text(""): "an absolute path in the arm where it is started, if not in a fresh folder";
            "pick" = Text(""): "a regular expression whose first group is a number in what the command prints; every match is a value";
            "tolerated" = Text(""): "a list of exit statuses other than 0 that are no failure";
        }
        metrics &[WALL, CPU, PICKED, PICKED_RATE];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let argv = argv(&params)?;
        let pick = text(&params, "pick");
        if !pick.is_empty() {
            expression(pick).map_err(|problem| {
                ParamError::new(
                    "pick",
                    format!("`pick` is no usable regular expression: {problem}"),
                    "put a group around the number, such as `\"took ([0-9.]+) s\"`",
                )
            })?;
        }
        let directory = text(&params, "directory");
        let is_usable =
            directory.is_empty() || (directory.starts_with('/') && is_argument(directory));
        if !is_usable {
            return Err(ParamError::new(
                "directory",
                format!("`directory` cannot be `{}`", directory.escape_debug()),
                "use an absolute path of the arm",
            ));
        }
        let call = CommandCall {
            directory: (!directory.is_empty()).then(|| directory.to_owned()),
            tolerated: tolerated(&params)?,
            pick: (!pick.is_empty()).then(|| Pick {
                pattern: pick.to_owned(),
                more_is_better: text(&params, "better") == "higher",
                metric: None,
            }),
            argv,
            ..CommandCall::default()
        };
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        let program = argv(params).ok().and_then(|argv| argv.into_iter().next());
        program
            .map(|program| Tool::new(&program, &[]))
            .into_iter()
            .collect()
    }

    fn may_be_stopped(&self) -> bool {
        true
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let mut samples = vec![command_output::sample(&WALL, vec![report.wall_ns as f64])?];
        let cpu_ns = [counter::USER, counter::SYS]
            .iter()
            .filter_map(|name| report.usage.get(*name))
            .sum::<f64>();
        // A command shorter than the accounting's resolution has no CPU time.
        if cpu_ns != 0.0 {
            samples.push(command_output::sample(&CPU, vec![cpu_ns])?);
        }
        if let Some(pick) = &report.pick {
            let metric = if pick.more_is_better {
                &PICKED_RATE
            } else {
                &PICKED
            };
            samples.push(command_output::sample(
                metric,
                picked(&pick.pattern, &report)?,
            )?);
        }
        Ok(samples)
    }
}

/// The program and its arguments.
fn argv(params: &Params) -> Result<Vec<String>, ParamError> {
    let refused = |problem: String| {
        ParamError::new(
            "argv",
            problem,
            "write a list of texts, such as `argv = [\"gzip\", \"-k\", \"file\"]`",
        )
    };
    let argv: Vec<String> = match params.value("argv") {
        Some(Value::List(values)) => values.iter().map(ToString::to_string).collect(),
        Some(Value::Text(program)) => vec![program.clone()],
        None => vec!["true".to_owned()],
        Some(other) => return Err(refused(format!("`argv` cannot be `{other}`"))),
    };
    if argv.first().is_none_or(String::is_empty) {
        return Err(refused("`argv` names no program".to_owned()));
    }
    for argument in &argv {
        if !is_argument(argument) {
            return Err(refused(format!(
                "`{}` holds a zero byte",
                argument.escape_debug()
            )));
        }
        for stands in [command::ADDRESS, command::PORT] {
            if argument.contains(stands) {
                return Err(refused(format!(
                    "`{}` holds `{stands}`, which is for workloads with two ends",
                    argument.escape_debug()
                )));
            }
        }
    }
    Ok(argv)
}

fn tolerated(params: &Params) -> Result<Vec<i32>, ParamError> {
    let statuses = match params.value("tolerated") {
        Some(Value::List(values)) => values
            .iter()
            .map(|value| match value {
                Value::Int(status) => i32::try_from(*status).ok(),
                _ => None,
            })
            .map(|status| status.filter(|status| (1..=255).contains(status)))
            .collect(),
        Some(Value::Text(text)) if text.is_empty() => Some(Vec::new()),
        None => Some(Vec::new()),
        Some(_) => None,
    };
    statuses.ok_or_else(|| {
        ParamError::new(
            "tolerated",
            "`tolerated` holds something that is no exit status",
            "write a list of whole numbers from 1 to 255",
        )
    })
}

/// Compiles a regular expression with one group.
fn expression(pick: &str) -> Result<Regex, String> {
    let expression = Regex::new(pick).map_err(|error| error.to_string())?;
    match expression.captures_len() {
        2 => Ok(expression),
        1 => Err("it has no group".to_owned()),
        _ => Err("it has several groups".to_owned()),
    }
}

/// Every number that the expression finds, first in stdout, then in stderr.
fn picked(pick: &str, report: &CommandReport) -> Result<Vec<f64>, DecodeError> {
    let expression = expression(pick).map_err(|problem| garbled(ID, problem))?;
    let output = output_text(report);
    expression
        .captures_iter(&output)
        .filter_map(|captures| captures.get(1))
        .map(|group| {
            number(group.as_str()).ok_or_else(|| {
                let problem = format!("`{}` is no number", group.as_str().escape_debug());
                DecodeError::no_value(&PICKED, problem)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tare_model::outcome::Bytes;

    use super::super::command_output::tests::{call_of, raw_with};
    use super::*;

    fn list(texts: &[&str]) -> Value {
        Value::List(texts.iter().map(|text| (*text).into()).collect())
    }

    fn call(params: &Params) -> Result<CommandCall, ParamError> {
        call_of(&AnyCommand, params)
    }

    /// The raw output of a run of `call` that printed `stdout`.
    fn left(call: &CommandCall, stdout: &str, code: i32) -> RawOutput {
        raw_with(code, |report| {
            report.stdout = Bytes(stdout.into());
            report.pick = call.pick.clone();
            report.tolerated = call.tolerated.clone();
            report.usage.insert("user_ns".into(), 5e6);
        })
    }

    #[test]
    fn every_match_of_the_expression_is_a_value() {
        let params = Params::new()
            .with("argv", list(&["sh", "-c", "echo 'a b'"]))
            .with("pick", r"took ([0-9]{1,3}\.[0-9]+) s")
            .with("better", "higher");
        let call = call(&params).unwrap();
        assert_eq!(call.argv, ["sh", "-c", "echo 'a b'"]);
        let samples = AnyCommand
            .decode(&left(&call, "took 1.5 s\nx took 20.25 s\n", 0))
            .unwrap();
        let values: Vec<_> = samples
            .iter()
            .map(|sample| (sample.metric.as_str(), &sample.observations[..]))
            .collect();
        assert_eq!(
            values,
            [
                ("command.run.wall", &[1e6][..]),
                ("command.run.cpu", &[5e6][..]),
                ("command.run.picked-rate", &[1.5, 20.25][..]),
            ]
        );
        let nothing = AnyCommand.decode(&left(&call, "it was quick\n", 0));
        assert!(matches!(nothing, Err(DecodeError::NoValue { .. })));
    }

    #[test]
    fn a_picked_text_that_is_no_number_is_an_error() {
        let call = call(&Params::new().with("pick", "= (.*)")).unwrap();
        assert!(AnyCommand.decode(&left(&call, "x = nan\n", 0)).is_err());
        assert!(AnyCommand.decode(&left(&call, "x = 12\n", 0)).is_ok());
    }

    #[test]
    fn only_tolerated_ends_are_readings() {
        let params = Params::new().with("tolerated", Value::List(vec![1i64.into(), 3i64.into()]));
        let call = call(&params).unwrap();
        assert!(AnyCommand.decode(&left(&call, "", 3)).is_ok());
        let error = AnyCommand
            .decode(&left(&call, "no such file", 2))
            .unwrap_err();
        assert!(error.to_string().contains("status 2"), "{error}");
    }

    #[test]
    fn unusable_command_parameter_is_refused_by_name() {
        let of = |name: &str, value: Value| {
            let error = call(&Params::new().with(name, value)).unwrap_err();
            assert!(error.hint.is_some());
            error.param
        };
        assert_eq!(of("argv", Value::List(Vec::new())), "argv");
        assert_eq!(of("argv", list(&[""])), "argv");
        assert_eq!(of("argv", list(&["a", "b\0c"])), "argv");
        assert_eq!(of("argv", list(&["curl", "http://x:{port}/"])), "argv");
        assert_eq!(of("argv", true.into()), "argv");
        assert_eq!(of("pick", "(".into()), "pick");
        assert_eq!(of("pick", "no group".into()), "pick");
        assert_eq!(of("pick", "(a)(b)".into()), "pick");
        assert_eq!(of("directory", "relative".into()), "directory");
        assert_eq!(of("tolerated", list(&["x"])), "tolerated");
        assert_eq!(of("better", "faster".into()), "better");
    }

    #[test]
    fn regex_with_braces_roundtrips_unchanged() {
        for pick in [
            r"\{port\}=([0-9]{2})",
            "(x{1})",
            r"a\\\{(1)",
            "[{folder}{port}] ([0-9])",
        ] {
            let call = call(&Params::new().with("pick", pick)).unwrap();
            assert_eq!(call.pick.unwrap().pattern, pick);
        }
    }
}
