//! Expands sweeps: an entry of a study file with several values of a parameter becomes one workload for each value,
//! and with several parameters one for each combination.
//!
//! A condition such as `record <= size` leaves combinations out.
//! Limits: does not check whether a budget is enough for so many; with a budget, time goes where it decides
//! something.

use std::ops::Range;

use tare_model::Value;
use toml::Spanned;

use super::Table;
use super::error::{Source, StudyError};
use super::file::{Workload, plain};

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
    match &entry.condition {
        Some(condition) => chosen(source, condition, points),
        None => Ok(points),
    }
}

/// Returns the points for which the condition holds.
fn chosen(
    source: &Source<'_>,
    text: &Spanned<String>,
    points: Vec<Table>,
) -> Result<Vec<Table>, StudyError> {
    let wrong =
        |(problem, hint): Wrong| source.error(Some(text.span()), problem, Some(hint.to_owned()));
    let (left, right, compare) = comparison(text.get_ref()).map_err(wrong)?;
    let mut kept = Vec::new();
    for point in points {
        let level = |term| level(term, &point).map_err(wrong);
        if compare(level(left)?, level(right)?) {
            kept.push(point);
        }
    }
    if kept.is_empty() {
        let problem = format!("`{}` holds for no combination", text.get_ref());
        return Err(wrong((problem, "nothing would be measured")));
    }
    Ok(kept)
}

/// What is wrong with a condition, and a hint.
type Wrong = (String, &'static str);

type Compare = fn(i64, i64) -> bool;

/// The comparisons of a condition; longer signs first, because shorter ones are parts of them.
const SIGNS: [(&str, Compare); 6] = [
    ("<=", |left, right| left <= right),
    (">=", |left, right| left >= right),
    ("==", |left, right| left == right),
    ("!=", |left, right| left != right),
    ("<", |left, right| left < right),
    (">", |left, right| left > right),
];

/// Reads a comparison of two parameters, or of one with a number or a size.
fn comparison(text: &str) -> Result<(&str, &str, Compare), Wrong> {
    let parts = SIGNS.iter().find_map(|(sign, compare)| {
        let (left, right) = text.split_once(sign)?;
        Some((left.trim(), right.trim(), *compare))
    });
    parts.ok_or_else(|| {
        let hint = "for example `record <= size`";
        (format!("`{text}` compares nothing"), hint)
    })
}

/// The number or size that a term of a condition stands for at a point.
fn level(term: &str, point: &Table) -> Result<i64, Wrong> {
    let given = point.iter().find(|(name, _)| name.get_ref() == term);
    let value = match given {
        Some((_, value)) => plain(value.get_ref()),
        None => Some(
            term.parse()
                .map_or_else(|_| Value::Text(term.to_owned()), Value::Int),
        ),
    };
    value.and_then(|value| value.level()).ok_or_else(|| {
        (
            format!("`{term}` has no number or size here"),
            "compare what stands below `params` or `sweep`, or with a value such as `64k`",
        )
    })
}
