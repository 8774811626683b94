//! `tare history`: where a metric changed over the stored comparisons.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Exit, Failed, output};
use crate::compare::history::{self, Search, changes};
use crate::compare::points::points;
use crate::config::units;
use crate::session::home::GivenPaths;

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

impl History {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let store = place.store_to_read()?;
        let (points, others, reference) =
            points(&store, &self.metric, self.arm.as_deref(), self.since)?;
        let Some(reference) = reference.filter(|_| !points.is_empty()) else {
            return Err(Failed::usage(format!("no stored comparison has a row `{}`", self.metric),
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
            if output::write_json(file, &format!("{json:#}\n"))? {
                return Ok(Exit::Done);
            }
        }
        let about = (self.metric.as_str(), reference.label.as_str());
        output::text(&history::drawn(about, (&points, others), &found, search))?;
        Ok(Exit::Done)
    }
}
