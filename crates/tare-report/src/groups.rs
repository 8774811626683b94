//! Groups the cells of an arm by outcome: overhead, gain, within the margin, not significant after correction,
//! inconclusive, not measured. Largest first in each.
//!
//! Table and page show the same groups in the same order, so that readers find the same things in both.

use std::collections::BTreeMap;

use tare_model::Verdict;
use tare_model::dossier::DossierCell;

use super::words::is_doubted;
use tare_core::analyze::run_comparison::is_same_metric;

/// The outcome of a cell, for a reader interested in overhead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Overhead.
    More,
    /// Gain.
    Less,
    /// No relevant difference.
    Nothing,
    /// A difference that does not survive the correction for the arm's metrics.
    ByItself,
    /// Inconclusive.
    Open,
    /// Without a ratio.
    Missing,
}

impl Group {
    /// All groups, in display order.
    pub(crate) const ALL: [Self; 6] = [
        Self::More,
        Self::Less,
        Self::Nothing,
        Self::ByItself,
        Self::Open,
        Self::Missing,
    ];

    /// Returns the group of a cell.
    pub(crate) fn for_cell(cell: &DossierCell) -> Self {
        if cell.ratio.is_none() {
            return Self::Missing;
        }
        if is_doubted(cell) {
            return Self::ByItself;
        }
        match cell.verdict {
            Verdict::MaterialCost | Verdict::Cost => Self::More,
            Verdict::Gain | Verdict::MaterialGain => Self::Less,
            Verdict::NegligibleCost | Verdict::Equivalent | Verdict::NegligibleGain => {
                Self::Nothing
            }
            Verdict::Inconclusive => Self::Open,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::More => "Overhead",
            Self::Less => "Gain",
            Self::Nothing => "Within the margin",
            Self::ByItself => "Not significant after correction",
            Self::Open => "Inconclusive",
            Self::Missing => "Without a ratio",
        }
    }

    /// A sign that carries the same information as the colour.
    pub(crate) fn sign(self) -> char {
        match self {
            Self::More => '▲',
            Self::Less => '▼',
            Self::Nothing => '=',
            Self::ByItself => '~',
            Self::Open => '?',
            Self::Missing => '–',
        }
    }

    /// One word, for use in files.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Nothing => "nothing",
            Self::ByItself => "alone",
            Self::Open => "open",
            Self::Missing => "missing",
        }
    }
}

/// Returns the sort weight of a cell in its group: the size of the difference, or the width of the interval if
/// inconclusive.
fn weight(cell: &DossierCell) -> f64 {
    let Some(ratio) = &cell.ratio else {
        return 0.0;
    };
    match Group::for_cell(cell) {
        Group::Open => (ratio.high / ratio.low).ln(),
        _ => ratio.point.ln().abs(),
    }
}

/// Returns the groups that have cells, each with its cells, largest first.
pub(crate) fn grouped<'a>(cells: &[&'a DossierCell]) -> Vec<(Group, Vec<&'a DossierCell>)> {
    Group::ALL
        .into_iter()
        .filter_map(|group| {
            let mut members: Vec<&DossierCell> = cells
                .iter()
                .copied()
                .filter(|cell| Group::for_cell(cell) == group)
                .collect();
            members.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
            (!members.is_empty()).then_some((group, members))
        })
        .collect()
}

/// The number of metrics of a workload in headlines and first tables.
const MOST_PRIMARY: usize = 3;

/// Returns the cells for the headline and first table of an arm: the first three metrics in each workload's table,
/// which starts with the workload's main metric.
pub(crate) fn primary<'a>(cells: &[&'a DossierCell]) -> Vec<&'a DossierCell> {
    let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let is_primary = |cell: &&&'a DossierCell| {
        let metrics = seen.entry(&cell.workload).or_default();
        if !metrics.contains(&cell.metric.as_str()) {
            metrics.push(&cell.metric);
        }
        let place = metrics.iter().position(|metric| *metric == cell.metric);
        place < Some(MOST_PRIMARY)
    };
    cells.iter().filter(is_primary).copied().collect()
}

/// Groups cells by metric of the same work, in order of appearance.
pub(crate) fn by_metric(cells: &[DossierCell]) -> Vec<Vec<&DossierCell>> {
    let mut metrics: Vec<Vec<&DossierCell>> = Vec::new();
    for cell in cells {
        let mut known = metrics.iter_mut();
        match known.find(|of_same| is_same_metric(of_same[0], cell)) {
            Some(of_same) => of_same.push(cell),
            None => metrics.push(vec![cell]),
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::testing as composed;

    #[test]
    fn first_three_metrics_of_a_workload_are_primary() {
        let cell = composed::stored().cells.swap_remove(0);
        let named = |workload: &str, metric: &str| {
            let mut cell = cell.clone();
            workload.clone_into(&mut cell.workload);
            metric.clone_into(&mut cell.metric);
            cell
        };
        let cells = [
            named("one", "a"),
            named("one", "a"),
            named("one", "b"),
            named("two", "d"),
            named("one", "c"),
            named("one", "d"),
        ];
        let all: Vec<&DossierCell> = cells.iter().collect();
        let primary = primary(&all);
        assert_eq!(primary.len(), 5);
        assert!(
            !primary
                .iter()
                .any(|cell| cell.workload == "one" && cell.metric == "d")
        );
    }
}
