//! Values over a parameter or the number of instances as a figure: one line per arm, with intervals.
//!
//! A sweep is anything measured at three or more values of one integer or size, with all else equal. Its levels are
//! ordered, so lines join them. Levels are placed linearly, or logarithmically if they span a factor of eight.

use std::collections::BTreeMap;
use std::fmt::Write;

use tare_model::distinguishing::distinguishing_params;
use tare_model::dossier::{Dossier, DossierCell, Span};

use super::lines::{Plot, levels as levels_of};
use super::plain;
use super::{Figure, interval_text};

/// The minimum number of levels of a sweep.
const FEWEST_LEVELS: usize = 3;
/// The axis name for the number of instances.
const INSTANCES: &str = "instances";
/// One sweep: its axis and the values of each arm.
struct Sweep<'a> {
    of: &'a DossierCell,
    axis: &'a str,
    /// The values of each arm by level, in order of appearance.
    lines: Vec<(&'a str, BTreeMap<i64, Span>)>,
}

/// Draws a figure for every sweep.
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
    drawn(dossier, |_| true)
}

/// Draws a figure for every sweep of a parameter.
pub(crate) fn of_parameters(dossier: &Dossier) -> Vec<Figure> {
    drawn(dossier, |sweep| sweep.axis != INSTANCES)
}

fn drawn(dossier: &Dossier, is_wanted: impl Fn(&Sweep<'_>) -> bool) -> Vec<Figure> {
    let sweeps = sweeps(&dossier.cells);
    (1..)
        .zip(&sweeps)
        .filter(|(_, sweep)| is_wanted(sweep))
        .map(|(number, sweep)| Figure {
            name: format!("sweep-{number}-{}", plain(&sweep.of.metric)),
            svg: sweep.draw(dossier, &sweep.distinguishing_suffix(&sweeps)),
        })
        .collect()
}

fn sweeps(cells: &[DossierCell]) -> Vec<Sweep<'_>> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        for (axis, level) in levels(cell) {
            let place = *known.entry(all_but(cell, &[axis])).or_insert_with(|| {
                sweeps.push(Sweep {
                    of: cell,
                    axis,
                    lines: Vec::new(),
                });
                sweeps.len() - 1
            });
            let sweep = &mut sweeps[place];
            sweep.add(&cell.baseline, level, cell.base);
            sweep.add(&cell.arm, level, cell.env);
        }
    }
    sweeps.retain(|sweep| levels_of(&sweep.lines).len() >= FEWEST_LEVELS);
    sweeps
}

/// Returns the possible levels of a cell: its integers and sizes, and its number of instances.
pub(super) fn levels(cell: &DossierCell) -> Vec<(&str, i64)> {
    let params = cell.params.0.iter();
    params
        .filter_map(|(name, value)| Some((name.as_str(), value.level()?)))
        .chain([(INSTANCES, i64::from(cell.instances))])
        .collect()
}

/// Formats a level; a size in the largest unit that divides it.
pub(super) fn shown(level: i64) -> String {
    [(30, "g"), (20, "m"), (10, "k")]
        .into_iter()
        .find(|(shift, _)| level > 0 && level % (1 << shift) == 0)
        .map_or_else(
            || level.to_string(),
            |(shift, unit)| format!("{}{unit}", level >> shift),
        )
}

/// Returns a key that all cells of a sweep over `axes` share: everything that identifies their work, without `axes`.
pub(super) fn all_but(cell: &DossierCell, axes: &[&str]) -> String {
    let instances = (!axes.contains(&INSTANCES)).then_some(cell.instances);
    let params = cell.params.0.iter();
    let rest: Vec<_> = params.filter(|it| !axes.contains(&it.0.as_str())).collect();
    format!(
        "{axes:?} {:?} {:?} {:?} {instances:?} {rest:?}",
        cell.workload, cell.metric, cell.path
    )
}

impl<'a> Sweep<'a> {
    fn add(&mut self, arm: &'a str, level: i64, span: Option<Span>) {
        let Some(span) = span else {
            return;
        };
        match self.lines.iter_mut().find(|(known, _)| *known == arm) {
            Some((_, values)) => {
                values.entry(level).or_insert(span);
            }
            None => self.lines.push((arm, BTreeMap::from([(level, span)]))),
        }
    }

    /// Formats the constant parameters that distinguish this sweep from others of its metric over the same axis: `,
    /// size=200`.
    fn distinguishing_suffix(&self, all: &[Sweep<'_>]) -> String {
        let is_twin = |other: &&Sweep<'_>| {
            (other.axis, &other.of.metric) == (self.axis, &self.of.metric)
                && other.of.workload == self.of.workload
        };
        let twins: Vec<&DossierCell> = all.iter().filter(is_twin).map(|twin| twin.of).collect();
        let mut shown = String::new();
        let params: Vec<_> = twins.iter().map(|twin| &twin.params).collect();
        for param in distinguishing_params(&params) {
            if let Some(value) = self.of.params.0.get(param).filter(|_| param != self.axis) {
                let _ = write!(shown, ", {param}={value}");
            }
        }
        if twins.iter().any(|twin| twin.path != self.of.path)
            && let Some(path) = self.of.path
        {
            let _ = write!(shown, ", {path}");
        }
        if self.axis != INSTANCES && twins.iter().any(|it| it.instances != self.of.instances) {
            let _ = write!(shown, ", ×{}", self.of.instances);
        }
        shown
    }

    fn draw(&self, dossier: &Dossier, told_apart: &str) -> String {
        let spans = self.lines.iter().flat_map(|(_, values)| values.values());
        let lines = Plot {
            title: format!(
                "{}: {} by {}{told_apart}",
                self.of.workload, self.of.metric, self.axis
            ),
            axis: self.axis,
            unit: &self.of.unit,
            foot: &format!(
                "Points are typical values over blocks, whiskers: {}; lines join the levels of one arm.",
                interval_text(spans.copied())
            ),
            is_in_proportion: false,
            shown: &shown,
            lines: &self.lines,
            beside: &[],
        };
        lines.draw(&dossier.run)
    }
}

#[cfg(test)]
mod tests {
    use tare_model::Params;

    use super::*;
    use tare_core::testing as composed;

    #[test]
    fn sweeps_of_one_metric_labelled_by_fixed_params() {
        let cell = |size: i64, instances: u32| DossierCell {
            params: [("size", size), ("pairs", 8), ("threads", 1)]
                .into_iter()
                .fold(Params::new(), |all, (name, value)| all.with(name, value)),
            instances,
            base: Some(Span::new(1.0, 2.0, 3.0)),
            ..composed::cell("blas.matrices.time", 1.1)
        };
        let both = [cell(200, 1), cell(1000, 1)];
        let more = (2..=3).flat_map(|n| [cell(200, n), cell(1000, n)]);
        let cells: Vec<DossierCell> = both.into_iter().chain(more).collect();
        let found = sweeps(&cells);
        let shown: Vec<String> = found
            .iter()
            .map(|it| it.distinguishing_suffix(&found))
            .collect();
        assert_eq!(shown, [", size=200", ", size=1000"]);
        // A single sweep needs no distinction.
        let alone: Vec<DossierCell> = (1..=3).map(|n| cell(200, n)).collect();
        let found = sweeps(&alone);
        assert_eq!(found[0].distinguishing_suffix(&found), "");
    }

    #[test]
    fn sizes_are_shown_in_largest_unit() {
        assert_eq!([65_536, 3, 0].map(shown), ["64k", "3", "0"]);
    }
}
