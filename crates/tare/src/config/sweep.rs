//! Sweeps: one entry of a study file that names several values of a parameter becomes one workload for each of them,
//! and of several parameters one for each combination.
//!
//! What it cannot see: whether a budget bears so many; with one, time goes where it decides something.

use std::ops::Range;

use toml::Spanned;

use super::Table;
use super::error::{Source, StudyError};
use super::file::Workload;

/// More points than this are a mistake: each is measured in every arm and block.
const MOST_POINTS: usize = 200;

/// The parameters of every point; those of the entry itself where it has no sweep.
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

#[cfg(test)]
mod tests {
    use crate::config::{Adjustments, parse};

    fn study(workload: &str) -> Result<tare_model::Study, String> {
        let text = format!(
            "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"page-load\"\n{workload}"
        );
        parse("mine.toml", &text, &Adjustments::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_combination_of_the_values_is_a_workload_with_the_other_parameters_as_they_are() {
        let study =
            study("[workload.params]\nbytes = 512\n[workload.sweep]\nfiles = [10, 100, 1000]\n")
                .unwrap();
        let params: Vec<(Option<i64>, Option<i64>)> = study
            .workloads
            .iter()
            .map(|spec| (spec.params.int("files"), spec.params.int("bytes")))
            .collect();
        assert_eq!(
            params,
            [
                (Some(10), Some(512)),
                (Some(100), Some(512)),
                (Some(1000), Some(512))
            ]
        );
        let grid = "[workload.sweep]\nbytes = [0, 4096]\nfiles = [1, 2, 3]\n";
        assert_eq!(self::study(grid).unwrap().workloads.len(), 6);
    }

    #[test]
    fn a_sweep_that_says_nothing_or_too_much_is_refused_where_it_stands() {
        let many: Vec<String> = (1..=5000).map(|n| n.to_string()).collect();
        for (sweep, says) in [
            ("[workload.sweep]\nfiles = 3\n".to_owned(), "must be a list"),
            (
                "[workload.sweep]\nfiles = []\n".to_owned(),
                "must be a list",
            ),
            ("[workload.sweep]\nfiles = [1, 2, 1]\n".to_owned(), "twice"),
            (
                "[workload.sweep]\nfiels = [1, 2]\n".to_owned(),
                "did you mean",
            ),
            (
                "[workload.sweep]\nfiles = [1, 0]\n".to_owned(),
                "`files` cannot be `0`",
            ),
            (
                "[workload.params]\nfiles = 1\n[workload.sweep]\nfiles = [1, 2]\n".to_owned(),
                "leave out one",
            ),
            (
                format!("[workload.sweep]\nfiles = [{}]\n", many.join(", ")),
                "5000 points",
            ),
        ] {
            let error = study(&sweep).unwrap_err();
            assert!(error.contains(says), "{sweep}: {error}");
            assert!(error.contains("mine.toml:"), "{error}");
        }
    }
}
