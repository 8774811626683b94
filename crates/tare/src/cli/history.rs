//! `tare history`: where a metric changed over the stored comparisons.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Exit, Failed, output, recount, runs};
use crate::compare::history::{self, Point, Search, changes};
use crate::compare::limits::Limits;
use crate::compare::{STUDY, row, study};
use crate::config::units;
use crate::cx::{Clock, SystemClock, files};
use crate::report::compared;
use crate::session::home::GivenPaths;
use crate::store::Store;

#[derive(Debug, Args)]
pub(crate) struct History {
    /// The row: `wall`, `cpu`, `memory`, …
    #[arg(value_name = "METRIC", default_value = "wall")]
    metric: String,
    /// Show this arm, where comparisons have several.
    #[arg(long, value_name = "ARM")]
    arm: Option<String>,
    /// Go back so far only: `90d`, `12h` (default: all).
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<u64>,
    /// Show changes in the first and last points too.
    #[arg(long)]
    provisional: bool,
    /// Write points and changes as JSON; `-` prints them.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A time that may also be given in days.
fn since(text: &str) -> Result<u64, String> {
    let days = text
        .strip_suffix('d')
        .and_then(|number| number.parse::<u64>().ok());
    match days {
        Some(days) => Ok(days.saturating_mul(86_400_000_000_000)),
        None => units::some_duration_ns(text),
    }
}

/// What the points are ratios to.
#[derive(Clone, PartialEq)]
struct Reference {
    driver: String,
    settings: tare_model::Params,
    label: String,
}

impl History {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let store = Store::open_to_read(&place.store_file()?)?;
        let (points, others, reference) = self.points(&store)?;
        let Some(reference) = reference.filter(|_| !points.is_empty()) else {
            return Err(Failed::new(
                Exit::Usage,
                format!("no stored comparison has a row `{}`", output::printable(&self.metric)),
            )
            .hint("each `tare compare REFERENCE CMD` adds a point; rows are `wall`, `cpu`, `memory`, …"));
        };
        let search = Search::new(self.provisional);
        let found = changes(&points, search);
        if let Some(file) = &self.json {
            let json = json!({
                "history": 1, "metric": self.metric, "reference": reference.label,
                "search": search, "points": points, "changes": found, "other_references": others,
            });
            let text = format!("{json:#}\n");
            if file.as_os_str() == "-" {
                output::data(&text)?;
                return Ok(Exit::Done);
            }
            files::write_output(file, text.as_bytes())?;
        }
        let about = (self.metric.as_str(), reference.label.as_str());
        output::text(&history::drawn(about, (&points, others), &found, search))?;
        Ok(Exit::Done)
    }

    /// Returns the points relative to the newest reference, oldest first, and the number of points with another one.
    fn points(&self, store: &Store) -> Result<(Vec<Point>, usize, Option<Reference>), Failed> {
        let from_ns = self.since.map(|ns| {
            SystemClock::default()
                .unix_ns()
                .saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX))
        });
        let stored = runs::answers(store.runs()?);
        let mut points = Vec::new();
        let (mut others, mut reference) = (0, None);
        // The newest first.
        for line in stored.iter().filter(|line| line.study == STUDY) {
            if from_ns.is_some_and(|from_ns| line.started_unix_ns < from_ns) {
                continue;
            }
            let study = store.run_without_records(&line.id)?.study;
            let dossier = recount::dossier(store, &line.id)?;
            let labels = study::labels(&study);
            let rows = row::rows(&dossier, &Limits::default());
            let row = rows.iter().find(|row| {
                let arm = self.arm.as_ref().is_none_or(|arm| *arm == row.arm);
                arm && (row.name == self.metric || compared::shown::row_metric(row) == self.metric)
            });
            let Some((row, (change, base))) =
                row.and_then(|row| Some((row, row.change.zip(row.base)?)))
            else {
                continue;
            };
            let arm = &study.arms[0];
            let own = Reference {
                driver: arm.driver.clone(),
                settings: arm.settings.clone(),
                label: labels[0].label.clone(),
            };
            if *reference.get_or_insert_with(|| own.clone()) != own {
                others += 1;
                continue;
            }
            let side = labels.iter().find(|side| side.arm == row.arm);
            points.push(Point {
                run: line.id.to_string(),
                started: dossier.started.clone(),
                label: side.map_or_else(String::new, |side| side.label.clone()),
                ratio: 1.0 + change.point,
                low: 1.0 + change.low,
                high: 1.0 + change.high,
                reference: base,
            });
        }
        points.reverse();
        Ok((points, others, reference))
    }
}
