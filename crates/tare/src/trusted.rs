//! Shows what a study from elsewhere would run before asking the user to trust it.
//!
//! A study is a program: its workloads and settings name commands, folders, users and engines. The text is made from
//! the study that would be run, never from a file next to it. Limits: it cannot show what the commands do.

use tare_model::{Params, Study, Value};

use crate::failed::Failed;
use crate::plan::Plan;
use tare_core::foreign::harmless;

/// Most characters printed per value, and most lines; the text says how many more there are.
const MOST_LETTERS: usize = 500;
const MOST_LINES: usize = 40;

/// Refuses a study whose plan is too large. Checked before the user is asked, because planning would not end.
pub(crate) fn check_size(study: &Study) -> Result<(), Failed> {
    if Plan::fits(study) {
        return Ok(());
    }
    Err(Failed::usage(format!(
        "the study plans {} blocks of {} arms and {} workloads, which are too many",
        study.blocks_max,
        study.arms.len(),
        study.workloads.len()
    ))
    .hint("ask the sender for one with fewer blocks"))
}

/// The refusal to run a study from elsewhere without consent, listing what it would run. `what` is its subject.
pub(crate) fn refusal(what: &str, study: &Study) -> Failed {
    let mut lines = would_run(study);
    let n_more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if n_more > 0 {
        lines.push(format!("and {n_more} more"));
    }
    Failed::usage(format!(
        "{what} runs what its study names:\n  {}",
        lines.join("\n  ")
    ))
}

/// One line for everything that a study runs, mounts or asks of an environment.
fn would_run(study: &Study) -> Vec<String> {
    let workloads = study
        .workloads
        .iter()
        .map(|it| line("workload", it.id.as_str(), &it.params));
    let arms = study
        .arms
        .iter()
        .filter(|it| !it.stored_settings().is_empty());
    let arms = arms.map(|it| {
        let name = format!("{} ({})", it.id, it.driver);
        line("arm", &name, &it.stored_settings())
    });
    workloads.chain(arms).collect()
}

fn line(kind: &str, name: &str, params: &Params) -> String {
    let message: Vec<String> = params
        .0
        .iter()
        .map(|(name, value)| format!("{name} = {}", shown(value)))
        .collect();
    let line = if message.is_empty() {
        format!("{kind} {name}")
    } else {
        format!("{kind} {name}: {}", message.join(", "))
    };
    harmless(&line)
}

/// Formats a value as JSON, so that list items stay separate; text that is JSON already stays unchanged.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Text(text) if text.starts_with('{') => text.clone(),
        other => serde_json::to_string(other).unwrap_or_default(),
    };
    let n_letters = text.chars().count();
    if n_letters <= MOST_LETTERS {
        return text;
    }
    let begin: String = text.chars().take(MOST_LETTERS).collect();
    format!("{begin}… ({n_letters} letters)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::{ArmId, ArmSpec, WorkloadId, study::WorkloadSpec};

    fn study(argv: &[&str]) -> Study {
        let words = argv.iter().map(|word| Value::from(*word)).collect();
        let params = Params::new().with("argv", Value::List(words));
        let host = ArmId::new("host").unwrap();
        let settings = Params::new().with("binds", "/etc:/etc:rw");
        let arms = vec![
            ArmSpec::new(host.clone(), "host", Params::new()),
            ArmSpec::new(ArmId::new("box").unwrap(), "container", settings),
        ];
        let workload = WorkloadSpec::new(WorkloadId::new("command").unwrap(), params);
        Study::new("s", host, arms, vec![workload])
    }

    #[test]
    fn trust_refusal_quotes_commands_and_binds_escaped() {
        let shown = refusal("to repeat it", &study(&["sh", "-c", "rm -r\u{1b}[2J\n/"]));
        for said in [
            r#"workload command: argv = ["sh","-c","rm -r\u001b[2J\n/"]"#,
            r#"arm box (container): binds = "/etc:/etc:rw""#,
        ] {
            assert!(shown.message.contains(said), "{shown}");
        }
        let long = refusal("it", &study(&[&"x".repeat(9_000)]));
        assert!(long.message.contains("(9004 letters)"), "{long}");
        assert!(long.message.len() < 1_000, "{long}");
    }

    #[test]
    fn oversized_plan_is_refused_before_building() {
        let mut study = study(&["true"]);
        assert!(check_size(&study).is_ok());
        study.blocks_max = u32::MAX;
        assert!(check_size(&study).is_err());
    }
}
