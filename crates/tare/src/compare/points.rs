//! The stored comparisons as points of a history.

use crate::compare::history::Point;
use crate::compare::limits::Limits;
use crate::compare::{STUDY, row, study};
use crate::cx::{Clock, SystemClock};
use crate::failed::Failed;
use crate::recount::{self, lines};
use crate::report::compared;
use crate::store::Store;

/// What the points are ratios to.
#[derive(Clone, PartialEq)]
pub(crate) struct Reference {
    driver: String,
    settings: tare_model::Params,
    pub(crate) label: String,
}

/// Returns the points relative to the newest reference, oldest first, and the number of points with another one.
pub(crate) fn points(
    store: &Store,
    metric: &str,
    wanted_arm: Option<&str>,
    since_ns: Option<u64>,
) -> Result<(Vec<Point>, usize, Option<Reference>), Failed> {
    let from_ns = since_ns.map(|ns| {
        SystemClock::default()
            .unix_ns()
            .saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX))
    });
    let stored = lines::answers(store.runs()?);
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
            let arm = wanted_arm.is_none_or(|arm| arm == row.arm);
            arm && (row.name == metric || compared::shown::row_metric(row) == metric)
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
