//! `tare runs`: what the store holds.

use clap::Args;
use serde_json::json;
use tare_model::StoppedBy;
use tare_model::study::A_PRIME;

use super::home::Place;
use super::{Exit, Failed, output};
use crate::report::command_line;
use crate::store::{RunLine, Store};

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Runs {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let runs = Store::open_to_read(&place.store_file()?)?.runs()?;
        if self.json {
            let rows: Vec<serde_json::Value> = runs
                .iter()
                .map(|run| {
                    json!({"run": run.id, "study": run.study, "started": started(run.started_unix_ns), "trials": run.n_trials, "about": about(run),
                           "stopped_by": run.stopped_by.map(StoppedBy::name), "wall_s": run.wall_ns as f64 / 1e9})
                })
                .collect();
            output::data(&format!("{:#}\n", serde_json::Value::Array(rows)))?;
        } else if runs.is_empty() {
            output::tell("the store holds no run yet; `tare run` makes one");
        } else {
            let head = [
                "run",
                "study",
                "started (UTC)",
                "trials",
                "wall",
                "ended by",
                "about",
            ]
            .map(str::to_owned)
            .to_vec();
            let rows: Vec<Vec<String>> =
                std::iter::once(head).chain(runs.iter().map(row)).collect();
            output::data(&output::columns(&rows))?;
        }
        Ok(Exit::Done)
    }
}

fn row(run: &RunLine) -> Vec<String> {
    vec![
        run.id.to_string(),
        output::printable(&run.study),
        started(run.started_unix_ns),
        run.n_trials.to_string(),
        format!("{:.0} s", run.wall_ns as f64 / 1e9),
        ended(run).to_owned(),
        output::printable(&about(run)).replace('\n', " "),
    ]
}

/// The longest text about a run in a list.
const MOST_LETTERS: usize = 60;

/// What a run is about: the command of an answer and where it was asked about, or the study's title.
pub(super) fn about(run: &RunLine) -> String {
    let mut arms = run.arms.iter().skip(1).filter(|arm| *arm != A_PRIME);
    let text = match (&run.command, arms.next()) {
        (Some(command), Some(arm)) => format!("`{}` in {arm}", command_line(command)),
        (Some(command), None) => format!("`{}`", command_line(command)),
        (None, _) => run.title.clone(),
    };
    if text.chars().count() <= MOST_LETTERS {
        return text;
    }
    text.chars().take(MOST_LETTERS - 1).chain(['…']).collect()
}

/// How a run ended, in words.
pub(super) fn ended(run: &RunLine) -> &'static str {
    run.stopped_by
        .map_or("killed, or still running", StoppedBy::name)
}

/// A point in time as text, to the second, UTC.
pub(super) fn started(unix_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).map_or_else(
        |_| "unknown".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use tare_model::RunId;

    use super::*;

    #[test]
    fn a_run_says_what_it_is_about_in_one_short_line() {
        let mut line = RunLine {
            id: RunId::new("r").unwrap(),
            study: "why".to_owned(),
            title: "the command on the host and inside".to_owned(),
            arms: ["host", A_PRIME, "docker", "off-1"]
                .map(str::to_owned)
                .to_vec(),
            command: Some(["python3", "app.py"].map(str::to_owned).to_vec()),
            workloads: vec!["user-command".to_owned()],
            started_unix_ns: 0,
            n_trials: 1,
            stopped_by: None,
            wall_ns: 0,
        };
        assert_eq!(about(&line), "`python3 app.py` in docker");
        line.command = Some(vec!["x".repeat(500)]);
        assert_eq!(about(&line).chars().count(), MOST_LETTERS);
        line.command = None;
        assert_eq!(about(&line), line.title);
        line.title = "a\u{1b}[31m\nb".to_owned();
        assert!(
            row(&line)
                .iter()
                .all(|text| !text.contains(['\u{1b}', '\n']))
        );
    }
}
