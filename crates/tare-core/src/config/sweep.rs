//! Expands sweeps: an entry of a study file with several values of a parameter becomes one workload for each value,
//! and with several parameters one for each combination.
//!
//! Limits: does not check whether a budget is enough for so many; with a budget, time goes where it decides
//! something.

use std::ops::Range;

use toml::Spanned;

use super::Table;
use super::error::{Source, StudyError};
use super::file::Workload;

/// More points than this are an error: each is measured in every arm and block.
const MOST_POINTS: usize = 200;

/// Returns the parameters of every point; those of the entry itself if it has no sweep.
pub(super) fn points(source: &Source<'_>, entry: &Workload) -> Result<Vec<Table>, StudyError> {
    let mut points = vec![entry.params.clone()];
    for (key, values) in &entry.sweep {
        let name = key.get_ref();
        let wrong = |span: Range<usize>, problem: String, hint: String| {
            Err(source.error(Some(span), problem, Some(hint)))
        };
        let is_given = entry.params.keys().any(|other| other.get_ref() == name);
        if is_given {
            return wrong(
                key.span(),
                format!("`{name}` has a value in `params` and several in `sweep`"),
                "leave out one of the two".into(),
            );
        }
        let given = match values.get_ref() {
            toml::Value::Array(given) if !given.is_empty() => given,
            _ => {
                return wrong(
                    values.span(),
                    format!("`{name}` must be a list of values"),
                    format!("for example `{name} = [1, 4, 16]`"),
                );
            }
        };
        let twice = (1..given.len()).find(|place| given[..*place].contains(&given[*place]));
        if let Some(place) = twice {
            return wrong(
                values.span(),
                format!("`{name}` has the value {} twice", given[place]),
                "a point is measured in every block anyway".into(),
            );
        }
        let n_points = points.len() * given.len();
        if n_points > MOST_POINTS {
            return wrong(
                values.span(),
                format!(
                    "the sweep has {n_points} points or more, and each is measured in every arm and block"
                ),
                format!("use at most {MOST_POINTS}"),
            );
        }
        points = points
            .iter()
            .flat_map(|point| {
                given.iter().map(|value| {
                    let mut point = point.clone();
                    point.insert(key.clone(), Spanned::new(values.span(), value.clone()));
                    point
                })
            })
            .collect();
    }
    Ok(points)
}
