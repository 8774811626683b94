//! `--dry-run`: prints what a run or a question would do.

use tare_model::Study;

use crate::failed::Failed;
use crate::output;
use crate::report;

/// Prints the plan.
pub(crate) fn print(lines: &[String]) -> Result<(), Failed> {
    Ok(output::text(&shown(lines))?)
}

fn shown(lines: &[String]) -> String {
    let lines = lines
        .iter()
        .map(|line| format!("{}\n", output::printable(line)));
    lines
        .chain(["dry run: nothing was measured\n".to_owned()])
        .collect()
}

/// Describes what `tare why` would do with a command of the host in an environment.
pub(crate) fn of_command(command: &[String], driver: &str, budget_ns: u64) -> Vec<String> {
    vec![
        format!("command: {}", report::command_line(command)),
        format!("where: on this machine with your own rights, and in `{driver}`"),
        how_often(budget_ns),
        "reaches: on this machine all that you reach; inside what the environment shows".to_owned(),
        LEFT.to_owned(),
    ]
}

/// How often a command of one second fits into the budget.
pub(crate) fn times(budget_ns: u64) -> u64 {
    (budget_ns / 1_000_000_000).max(1)
}

/// Describes how often a command would be run.
pub(crate) fn how_often(budget_ns: u64) -> String {
    format!(
        "how often: again and again for up to {}, which is {} times if it takes 1 s",
        report::terminal::time(budget_ns as f64),
        times(budget_ns)
    )
}

/// Describes what `tare run` would do with a study.
pub(crate) fn of_study(study: &Study) -> String {
    let mut lines = vec![format!("study: {}", study.id)];
    for arm in &study.arms {
        let settings: Vec<String> = arm
            .settings
            .0
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let settings = if settings.is_empty() {
            "its defaults".to_owned()
        } else {
            settings.join(", ")
        };
        lines.push(format!("arm: {} ({}) with {settings}", arm.id, arm.driver));
    }
    for workload in &study.workloads {
        lines.push(format!("workload: {}", workload.id));
    }
    lines.push(format!(
        "how often: at most {} blocks, each workload once in each arm per block; about {} a block",
        study.blocks_max,
        report::terminal::time(study.block_ns() as f64)
    ));
    lines.push("reaches: what each arm's settings show of this machine".to_owned());
    lines.push(LEFT.to_owned());
    shown(&lines)
}

/// Leftovers after a power failure.
const LEFT: &str = "left if the power fails meanwhile: what the run made, named `tare-…`, and its folder; `tare clean` removes them";
