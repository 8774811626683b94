//! `tare runs`: lists and deletes stored runs.

use clap::Args;
use serde_json::json;
use tare_model::StoppedBy;

use super::{Exit, Failed, output};
use crate::recount::lines::{about, answers, ended, started};
use crate::session::home::GivenPaths;
use crate::store::RunLine;

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
        let runs = place.store_to_read()?.runs()?;
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
    // Resolved read-only first, so that a wrong name creates and changes nothing.
    let run = place.store_to_read()?.resolve(run)?;
    place.store()?.delete(&run)?;
    output::tell(&format!("{run} is deleted"));
    Ok(Exit::Done)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recount::lines::tests::line;

    #[test]
    fn row_is_one_line_that_cannot_steer_the_terminal() {
        let line = RunLine {
            command: None,
            title: "a\u{1b}[31m\nb".to_owned(),
            ..line()
        };
        let texts = row(&line);
        assert!(!texts.concat().contains(['\u{1b}', '\n']), "{texts:?}");
    }
}
