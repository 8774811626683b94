//! `tare runs`: lists and deletes stored runs.

use clap::Args;
use serde_json::json;
use tare_model::StoppedBy;
use tare_model::study::A_PRIME;

use super::{Exit, Failed, output};
use crate::report::command_line;
use crate::session::home::GivenPaths;
use crate::store::{RunLine, Store};

#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Print JSON, one object per run.
    #[arg(long)]
    json: bool,
    /// List every run, also those that a `tare why` consists of.
    #[arg(long)]
    all: bool,
    /// Delete this run with everything that it stored, also what its commands printed. For good.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["json", "all"])]
    delete: Option<String>,
}

impl Runs {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        if let Some(run) = &self.delete {
            return delete(place, run);
        }
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
            let runs = if self.all { runs } else { answers(runs) };
            let rows: Vec<Vec<String>> =
                std::iter::once(head).chain(runs.iter().map(row)).collect();
            output::text(&output::columns(&rows))?;
        }
        Ok(Exit::Done)
    }
}

/// Deletes a run from the store.
fn delete(place: &GivenPaths, run: &str) -> Result<Exit, Failed> {
    let file = place.store_file()?;
    // Resolved read-only first, so that a wrong name creates and changes nothing.
    let run = Store::open_to_read(&file)?.resolve(run)?;
    let mut store = Store::open(&file)?;
    store.delete(&run)?;
    output::tell(&format!("{run} is deleted"));
    Ok(Exit::Done)
}

/// Returns one line per answer, under the name of its last run: earlier runs of the same study are merged into it.
/// Newest first.
pub(super) fn answers(runs: Vec<RunLine>) -> Vec<RunLine> {
    let mut answers: Vec<RunLine> = Vec::new();
    for run in runs {
        let later = answers.iter_mut().find(|later| {
            later.study == run.study && later.before.as_deref() == Some(run.id.as_str())
        });
        match later {
            Some(later) => {
                later.started_unix_ns = run.started_unix_ns;
                later.n_trials += run.n_trials;
                later.wall_ns += run.wall_ns;
                later.before = run.before;
            }
            None => answers.push(run),
        }
    }
    answers
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

/// Describes a run: the command of an answer and its environment, or the study's title.
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

    fn line() -> RunLine {
        RunLine {
            id: RunId::new("r").unwrap(),
            study: "why".to_owned(),
            title: "the command on the host and inside".to_owned(),
            arms: ["host", A_PRIME, "docker", "off-1"]
                .map(str::to_owned)
                .to_vec(),
            command: Some(["python3", "app.py"].map(str::to_owned).to_vec()),
            workloads: vec!["user-command".to_owned()],
            before: None,
            started_unix_ns: 0,
            n_trials: 1,
            stopped_by: None,
            wall_ns: 0,
        }
    }

    #[test]
    fn an_answer_is_one_line_however_many_runs_it_took() {
        let of = |id: &str, study: &str, before: Option<&str>, at| RunLine {
            id: RunId::new(id).unwrap(),
            study: study.to_owned(),
            before: before.map(str::to_owned),
            started_unix_ns: at,
            ..line()
        };
        let runs = vec![
            of("proof", "proof", Some("other"), 5),
            of("c", "why", Some("b"), 4),
            of("other", "quick", None, 3),
            of("b", "why", Some("a"), 2),
            of("gone", "why", Some("no-such"), 1),
            of("a", "why", Some("c"), 0),
        ];
        let shown: Vec<_> = answers(runs)
            .into_iter()
            .map(|run| (run.id.to_string(), run.n_trials, run.started_unix_ns))
            .collect();
        let expected = [
            ("proof", 1, 5),
            ("c", 3, 0),
            ("other", 1, 3),
            ("gone", 1, 1),
        ];
        let expected = expected.map(|(id, trials, at)| (id.to_owned(), trials, at));
        assert_eq!(shown, expected);
    }

    #[test]
    fn run_summary_is_one_short_line() {
        let mut line = line();
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
