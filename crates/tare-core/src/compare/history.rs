//! Finds change points of a metric over stored comparisons, by E-divisive with a t-test.
//!
//! A point is the logarithm of a ratio to a frozen reference measured in the same blocks, so that the state of the
//! machine cancels. A split is where the energy distance between the points before and after it is largest (Matteson
//! and James 2014). It counts if Welch's t-test between the two parts is significant; both parts are then searched
//! again. Nothing is random: the same points give the same changes (Fleming and others 2023).
//! Limits: no change is reported at the first five and the last two points unless provisional ones are requested.

use serde::Serialize;
use tare_stats::special::t_upper;

use crate::foreign::harmless;

/// Width of a bar of the figure, in columns.
const BAR: usize = 24;

/// Number of points at the start without a search for changes.
const FIRST: usize = 5;
/// Number of points at the end without a search for changes.
const LAST: usize = 2;

/// Parameters of the search; printed with the changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Search {
    /// Largest p of the t-test at which a split counts.
    pub max_p: f64,
    /// Number of points at the start without changes.
    pub first: usize,
    /// Number of points at the end without changes.
    pub last: usize,
}

impl Search {
    /// Creates the usual search, or one that also finds provisional changes.
    pub fn new(is_provisional: bool) -> Self {
        Self {
            max_p: 0.001,
            first: if is_provisional { 2 } else { FIRST },
            last: if is_provisional { 1 } else { LAST },
        }
    }
}

/// One point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The stored run.
    pub run: String,
    /// Its start time, in the dossier's format.
    pub started: String,
    /// The command or version compared with the reference.
    pub label: String,
    /// The ratio to the reference.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// The reference's level.
    pub reference: f64,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The first point after it.
    pub at: usize,
    /// Its size: 0.05 is 5 % more.
    pub by: f64,
    /// p of the t-test.
    pub p: f64,
    /// Whether the reference changed there too, so that the machine is responsible.
    pub machine: bool,
}

/// Returns the changes of the ratios, in order.
pub fn changes(points: &[Point], search: Search) -> Vec<Change> {
    let of = |value: fn(&Point) -> f64| -> Vec<f64> {
        points.iter().map(|point| value(point).ln()).collect()
    };
    let of_machine = splits(&of(|point| point.reference), search);
    let values = of(|point| point.ratio);
    let found = splits(&values, search);
    let ends = found.iter().map(|(at, _)| *at).chain([values.len()]);
    let mut begin = 0;
    let mut changes: Vec<Change> = Vec::new();
    for (end, (at, p)) in ends.skip(1).zip(&found) {
        let (before, after) = (mean(&values[begin..*at]), mean(&values[*at..end]));
        changes.push(Change {
            at: *at,
            by: (after - before).exp() - 1.0,
            p: *p,
            machine: of_machine.iter().any(|(place, _)| place.abs_diff(*at) <= 1),
        });
        begin = *at;
    }
    changes
}

/// Returns the splits of a series, in order, each with the p of its t-test.
fn splits(values: &[f64], search: Search) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((begin, end)) = parts.pop() {
        let least = (begin + 2).max(search.first);
        let most = end
            .saturating_sub(2)
            .min(values.len().saturating_sub(search.last));
        let best = (least..=most)
            .map(|at| (at, divergence(&values[begin..at], &values[at..end])))
            .max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
        let Some((at, _)) = best else {
            continue;
        };
        let p = welch(&values[begin..at], &values[at..end]);
        if p <= search.max_p {
            found.push((at, p));
            parts.extend([(begin, at), (at, end)]);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found
}

/// The energy distance between two samples, weighted by their sizes.
fn divergence(left: &[f64], right: &[f64]) -> f64 {
    let (n, m) = (left.len() as f64, right.len() as f64);
    let between: f64 = left
        .iter()
        .flat_map(|one| right.iter().map(move |other| (one - other).abs()))
        .sum();
    let within = |values: &[f64]| -> f64 {
        let pairs = values
            .iter()
            .enumerate()
            .flat_map(|(place, one)| values[..place].iter().map(move |other| (one - other).abs()));
        let count = values.len() as f64;
        pairs.sum::<f64>() / (count * (count - 1.0) / 2.0)
    };
    n * m / (n + m) * (2.0 * between / (n * m) - within(left) - within(right))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Two-sided p of Welch's t-test.
fn welch(left: &[f64], right: &[f64]) -> f64 {
    let error = |values: &[f64]| {
        let middle = mean(values);
        let sum: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
        let count = values.len() as f64;
        (sum / (count - 1.0) / count, count - 1.0)
    };
    let ((one, freedom), (other, other_freedom)) = (error(left), error(right));
    let difference = (mean(left) - mean(right)).abs();
    let both = one + other;
    if both <= 0.0 {
        return if difference > 0.0 { 0.0 } else { 1.0 };
    }
    let df = both * both / (one * one / freedom + other * other / other_freedom);
    2.0 * t_upper(difference / both.sqrt(), df)
}

/// Draws points and changes of a row as a ratio to a reference; `others` points have another reference.
pub fn drawn(
    (row, reference): (&str, &str),
    (points, others): (&[Point], usize),
    changes: &[Change],
    search: Search,
) -> String {
    let ratios = || points.iter().map(|point| point.ratio);
    let most = ratios().fold(f64::MIN, f64::max);
    let least = ratios().fold(f64::MAX, f64::min);
    let mut lines = vec![
        format!("{row} as a ratio to {}", harmless(reference)),
        String::new(),
    ];
    for (place, point) in points.iter().enumerate() {
        if let Some(change) = changes.iter().find(|change| change.at == place) {
            lines.push(format!("  ── {}", named(change)));
        }
        let share = (point.ratio - least) / (most - least).max(f64::MIN_POSITIVE);
        let at = tare_model::whole_place(share * (BAR - 1) as f64);
        let bar = format!("{}●", " ".repeat(at.min(BAR - 1)));
        lines.push(format!(
            "  {}  {:.3} [{:.3}, {:.3}] {bar:<BAR$} {}",
            point.started,
            point.ratio,
            point.low,
            point.high,
            harmless(&point.label)
        ));
    }
    lines.push(String::new());
    lines.push(match changes.len() {
        0 => format!("no change in {} points", points.len()),
        1 => format!("1 change in {} points", points.len()),
        count => format!("{count} changes in {} points", points.len()),
    });
    lines.push(format!(
        "E-divisive with a t-test, p ≤ {}; none in the first {} and last {} points",
        search.max_p, search.first, search.last
    ));
    if others > 0 {
        lines.push(format!(
            "{others} points have another reference and are not joined"
        ));
    }
    let last = changes
        .iter()
        .rev()
        .find(|change| change.by > 0.0 && !change.machine);
    lines.extend(last.and_then(|change| bisect(points, change)));
    lines.join("\n") + "\n"
}

fn named(change: &Change) -> String {
    let machine = if change.machine {
        ", and the reference changed too: the machine"
    } else {
        ""
    };
    let word = if change.by > 0.0 { "more" } else { "less" };
    format!(
        "{:.1} % {word} (p = {:.1e}){machine}",
        change.by.abs() * 100.0,
        change.p
    )
}

/// Returns the command line that finds the commit, if both sides of a change are revisions.
fn bisect(points: &[Point], change: &Change) -> Option<String> {
    let sha = |place: usize| {
        let word = points.get(place)?.label.split(' ').next()?.to_owned();
        let is_sha = word.len() >= 7 && word.bytes().all(|it| it.is_ascii_hexdigit());
        is_sha.then_some(word)
    };
    let (good, bad) = (sha(change.at.checked_sub(1)?)?, sha(change.at)?);
    Some(format!(
        "which commit: git bisect start {bad} {good} && git bisect run tare gate --bisect --base {good} --build 'BUILD' -- CMD"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_stats::Stream;

    /// Ratios with noise of 1 % at these levels, twelve points each.
    fn series(levels: &[f64], machine: &[f64], seed: u64) -> Vec<Point> {
        let mut random = Stream::new(seed, 1, 0);
        let mut points = Vec::new();
        for (level, reference) in levels.iter().zip(machine) {
            for _ in 0..12 {
                let ratio = level * (0.01 * random.normal()).exp();
                points.push(Point {
                    run: format!("r{}", points.len()),
                    started: String::new(),
                    label: String::new(),
                    ratio,
                    low: ratio,
                    high: ratio,
                    reference: reference * (0.01 * random.normal()).exp(),
                });
            }
        }
        points
    }

    fn usual(points: &[Point]) -> Vec<Change> {
        changes(points, Search::new(false))
    }

    #[test]
    fn steps_are_found_where_they_are_and_always_the_same() {
        let points = series(&[1.0, 1.1, 1.02], &[1.0; 3], 1);
        let found = usual(&points);
        let places: Vec<usize> = found.iter().map(|change| change.at).collect();
        assert_eq!(places, [12, 24], "{found:?}");
        assert!(
            (found[0].by - 0.1).abs() < 0.02 && found[1].by < -0.05,
            "{found:?}"
        );
        assert!(found.iter().all(|change| !change.machine));
        assert_eq!(usual(&points), found);
    }

    #[test]
    fn step_that_the_reference_shows_too_is_the_machines() {
        let points = series(&[1.0, 1.2], &[1.0, 1.3], 2);
        let found = usual(&points);
        assert_eq!(found.len(), 1);
        assert!(found[0].machine);
    }

    #[test]
    fn unchanged_series_seldom_have_a_change() {
        let wrong = (0..300)
            .filter(|seed| !usual(&series(&[1.0; 4], &[1.0; 4], *seed)).is_empty())
            .count();
        // The t-test is made at the best of many splits, so its p is too small.
        assert!(wrong <= 30, "{wrong} of 300");
    }

    #[test]
    fn change_at_last_points_requires_provisional_search() {
        let mut points = series(&[1.0, 1.0], &[1.0; 2], 3);
        let count = points.len();
        for point in &mut points[count - 2..] {
            point.ratio *= 1.5;
        }
        assert!(usual(&points).iter().all(|it| it.at <= count - 2));
        for few in 0..4 {
            assert!(usual(&points[..few]).is_empty());
        }
    }
}
