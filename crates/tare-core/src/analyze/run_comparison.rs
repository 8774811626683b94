//! Compares two runs of the same question: does the second reproduce the first?
//!
//! The runs are compared by overhead, not by value: another machine is faster or slower, but the environment's
//! overhead can still be the same. The quotient of the two ratios has an interval made of both, because the runs
//! share no block ([`difference_of_independent`]). It is judged like any ratio: with the margin, as the same,
//! different or inconclusive. What forbids calling either cell equal also forbids it for the quotient, and
//! qualifications of either cell apply to the row.
//! Limits: does not explain why the runs differ; what is known of the machines is in the dossiers.

use tare_model::Verdict;
use tare_model::dossier::{Dossier, DossierCell, Span};
use tare_stats::{Interval, difference_of_independent, verdict};

use super::LEVEL;
use super::diagnostics::{DIFFERENT_TOOL, DRIFTING_EFFECT, EMULATED, ONE_LAUNCH};
use super::effect::not_within;
use super::flag::THROTTLED;

/// Flags that a reader must know before taking a cell for an overhead, each with a short meaning.
const QUALIFICATIONS: [(&str, &str); 5] = [
    (EMULATED, "emulated"),
    (DIFFERENT_TOOL, "different tool"),
    (THROTTLED, "throttled"),
    (DRIFTING_EFFECT, "drifting"),
    (ONE_LAUNCH, "one start"),
];

/// A metric that both runs measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The cell of the first run.
    pub first: &'a DossierCell,
    /// The cell of the second run.
    pub second: &'a DossierCell,
    /// The second's cost ratio over the first's; `None` if either has none.
    pub quotient: Option<Span>,
    /// Verdict on the quotient: a cost if the environment costs more in the second run.
    pub verdict: Verdict,
}

impl Row<'_> {
    /// Returns the qualifications of either cell, a word or two each.
    pub fn qualifications(&self) -> impl Iterator<Item = &'static str> {
        let is_flagged = |id: &str| {
            let mut cells = [self.first, self.second].into_iter();
            cells.any(|cell| has(cell, id))
        };
        QUALIFICATIONS
            .into_iter()
            .filter_map(move |(id, word)| is_flagged(id).then_some(word))
    }
}

fn has(cell: &DossierCell, id: &str) -> bool {
    cell.flags.iter().any(|flag| flag.id == id)
}

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison<'a> {
    /// Metrics that both measured, in the second's order.
    pub rows: Vec<Row<'a>>,
    /// Cells that only the first has.
    pub only_first: Vec<&'a DossierCell>,
    /// Cells that only the second has.
    pub only_second: Vec<&'a DossierCell>,
}

/// Whether two cells are of the same metric of the same work, whatever their arms.
pub fn is_same_metric(one: &DossierCell, other: &DossierCell) -> bool {
    one.metric == other.metric
        && one.workload == other.workload
        && one.params == other.params
        && one.path == other.path
        && one.instances == other.instances
        && one.spread == other.spread
}

/// Whether two cells ask the same question: the same metric of the same arm against the same baseline, by the same
/// timed work.
pub fn is_same_question(one: &DossierCell, other: &DossierCell) -> bool {
    one.arm == other.arm
        && one.baseline == other.baseline
        && one.revision == other.revision
        && is_same_metric(one, other)
}

/// Compares two dossiers.
pub fn beside<'a>(first: &'a Dossier, second: &'a Dossier) -> RunComparison<'a> {
    let counterpart = |cell: &DossierCell| {
        let mut all = first.cells.iter();
        all.find(|other| is_same_question(other, cell))
    };
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut only_second = Vec::new();
    for cell in &second.cells {
        match counterpart(cell) {
            Some(other) => rows.push(row(other, cell)),
            None => only_second.push(cell),
        }
    }
    let is_met = |cell: &&DossierCell| rows.iter().any(|row| std::ptr::eq(row.first, *cell));
    let only_first = first.cells.iter().filter(|cell| !is_met(cell)).collect();
    RunComparison {
        rows,
        only_first,
        only_second,
    }
}

/// Compares two cells that ask the same question.
pub fn row<'a>(first: &'a DossierCell, second: &'a DossierCell) -> Row<'a> {
    let narrow = quotient(first.ratio90, second.ratio90, 0.90);
    let quotient = quotient(first.ratio, second.ratio, LEVEL);
    let verdict = match (&quotient, &narrow) {
        (Some(ci95), Some(ci90)) => verdict(ci95, ci90, second.margin),
        _ => Verdict::Inconclusive,
    };
    let drifts = [first, second]
        .iter()
        .any(|cell| has(cell, DRIFTING_EFFECT));
    let verdict = if drifts { not_within(verdict) } else { verdict };
    let quotient = quotient.map(|interval| {
        let ratio = interval.exp();
        Span::new(ratio.low, ratio.point, ratio.high)
    });
    Row {
        first,
        second,
        quotient,
        verdict,
    }
}

/// ln of the second over the first; `None` if an end has no logarithm.
fn quotient(first: Option<Span>, second: Option<Span>, level: f64) -> Option<Interval> {
    let logarithm = |span: Span| -> Option<Interval> {
        let ends = [span.low, span.point, span.high];
        let has_logarithm = |end: &f64| end.is_finite() && *end > 0.0;
        let [low, point, high] = ends.map(f64::ln);
        ends.iter()
            .all(has_logarithm)
            .then_some(Interval::new(low, point, high, level))
    };
    let (first, second) = (logarithm(first?)?, logarithm(second?)?);
    Some(difference_of_independent(&first, &second))
}
