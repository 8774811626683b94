//! `tare runs`: what the store holds.

use clap::Args;
use serde_json::json;
use tare_model::StoppedBy;

use super::home::Place;
use super::{Exit, Failed, output};
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
                    json!({"run": run.id, "study": run.study, "started": started(run.started_unix_ns), "trials": run.n_trials,
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
        run.stopped_by
            .map_or("killed, or still running", StoppedBy::name)
            .to_owned(),
    ]
}

/// A point in time as text, to the second, UTC.
fn started(unix_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).map_or_else(
        |_| "unknown".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}
