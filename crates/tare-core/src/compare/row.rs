//! Rows: one metric of one side against the base, read from the cells of a dossier.
//!
//! The estimate and its interval are the cell's. A row compares them with its margin and floor, and with the A/A
//! control: if the base differs from itself by more than the margin, the row is inconclusive. Counts that repeat
//! exactly in every block on both sides are exact rows: they have no interval and need none.

use serde::{Deserialize, Serialize};
use tare_model::dossier::{Dossier, DossierArm, DossierCell, Span};
use tare_model::study::A_PRIME;
use tare_stats::special::{t_quantile, t_upper};

use super::limits::{Limits, Unit};
use crate::workload::compared_command as metrics;

/// A row's verdict on a side against the base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// It takes more.
    Slower,
    /// It takes less.
    Faster,
    /// The difference is within the margin, or below the floor.
    Same,
    /// Neither is shown.
    #[default]
    Inconclusive,
}

impl Word {
    /// The word for an exact difference.
    fn from_difference(difference: f64) -> Self {
        match difference {
            difference if difference > 0.0 => Self::Slower,
            difference if difference < 0.0 => Self::Faster,
            _ => Self::Same,
        }
    }

    /// The word as reports print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// A relative change with its 95 % interval: 0.04 is 4 % more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Estimate.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Effect {
    /// Converts a ratio.
    pub fn from_ratio(ratio: &Span) -> Self {
        Self {
            point: ratio.point - 1.0,
            low: ratio.low - 1.0,
            high: ratio.high - 1.0,
        }
    }
}

/// One row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name, which patterns match: `wall`, or `c.wall` if there are several sides.
    pub name: String,
    /// The side.
    pub arm: String,
    /// The metric.
    pub metric: String,
    /// Unit of `base` and `head`.
    pub unit: Unit,
    /// The base's level.
    pub base: Option<f64>,
    /// The other side's level.
    pub head: Option<f64>,
    /// Change of the side against the base.
    pub change: Option<Effect>,
    /// Change of the base against itself.
    pub control: Option<Effect>,
    /// The margin.
    pub margin: f64,
    /// The floor, in `unit`.
    pub floor: f64,
    /// Number of blocks used.
    pub blocks: u32,
    /// Whether it is an exact count, the same in every block of either side.
    pub exact: bool,
    /// Whether the gate judges it.
    pub gated: bool,
    /// The verdict.
    pub word: Word,
    /// Why it is inconclusive, or another remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The smallest change that would have been detected, if it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// One-sided probability of such an effect if the true one were the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_beyond_margin: Option<f64>,
    /// Two-sided probability of such an effect if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_no_change: Option<f64>,
    /// Whether the second half, in fresh processes, confirmed it; absent if not tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
}

impl Row {
    /// Creates a row for an exact count that was taken outside the blocks, and decides nothing.
    pub fn counted(name: String, arm: &str, unit: Unit, (base, head): (f64, f64)) -> Self {
        let mut row = Self {
            metric: format!("counted.{}", name.rsplit('.').next().unwrap_or(&name)),
            name,
            arm: arm.to_owned(),
            unit,
            ..Self::default()
        };
        row.set_exact(base, head);
        row
    }

    /// Sets values that repeat exactly, and returns their relative change.
    fn set_exact(&mut self, base: f64, head: f64) -> f64 {
        let change = head / base - 1.0;
        (self.base, self.head, self.exact) = (Some(base), Some(head), true);
        self.change = change.is_finite().then_some(Effect {
            point: change,
            low: change,
            high: change,
        });
        self.word = Word::from_difference(head - base);
        change
    }

    /// Makes the row inconclusive, for this reason.
    pub(super) fn open(&mut self, why: String) {
        self.word = Word::Inconclusive;
        self.note = Some(why);
        self.detectable = self.change.map(|change| (change.high - change.low) / 2.0);
    }
}

/// Returns the rows of a dossier, in the order of the sides and then of the metrics.
pub fn rows(dossier: &Dossier, limits: &Limits) -> Vec<Row> {
    let is_side = |arm: &&DossierArm| !arm.baseline && arm.id != A_PRIME;
    let has_several = dossier.arms.iter().filter(is_side).count() > 1;
    let cells = dossier.cells.iter();
    cells
        .filter_map(|cell| {
            let control = dossier.aa.iter().find(|aa| aa.metric == cell.metric);
            let short = short(&cell.metric)?;
            let side = if has_several {
                format!("{}.", cell.arm)
            } else {
                String::new()
            };
            let name = format!("{}{side}{short}", limits.entry);
            row(cell, control, name, limits)
        })
        .collect()
}

/// The name of a metric in a row; `None` for one of another workload.
fn short(metric: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 9] = [
        (metrics::WALL.id, "wall"),
        (metrics::CPU.id, "cpu"),
        (metrics::MEMORY.id, "memory"),
        (metrics::COST.id, "metric"),
        (metrics::RATE.id, "metric"),
        (metrics::FAULTS.id, "page-faults"),
        (metrics::SWITCHES.id, "context-switches"),
        (metrics::READ.id, "bytes-read"),
        (metrics::WRITTEN.id, "bytes-written"),
    ];
    let found = NAMES.iter().find(|(id, _)| *id == metric)?;
    Some(found.1)
}

fn unit(symbol: &str) -> Unit {
    match symbol {
        "ns" => Unit::Nanoseconds,
        "B" => Unit::Bytes,
        _ => Unit::Count,
    }
}

fn row(
    cell: &DossierCell,
    control: Option<&DossierCell>,
    name: String,
    limits: &Limits,
) -> Option<Row> {
    let unit = unit(&cell.unit);
    let exact = exact(cell);
    let is_judged = metrics::is_judged(&cell.metric);
    // A count that varies from run to run adds nothing to the time.
    if !is_judged && exact.is_none() {
        return None;
    }
    let (margin, floor) = (limits.margin_of(&name), limits.floor_of(&name, unit));
    let mut row = Row {
        gated: is_judged && limits.gates(&name),
        name,
        arm: cell.arm.clone(),
        metric: cell.metric.clone(),
        unit,
        base: cell.base.map(|span| span.point),
        head: cell.env.map(|span| span.point),
        change: cell.ratio.as_ref().map(Effect::from_ratio),
        control: control.and_then(|cell| cell.ratio.as_ref().map(Effect::from_ratio)),
        margin,
        floor,
        blocks: cell.n_blocks,
        ..Row::default()
    };
    if let Some((base, head)) = exact {
        let change = row.set_exact(base, head);
        // A judged quantity keeps its margin and floor even if it is exact.
        if is_judged && (change.abs() <= margin || (head - base).abs() <= floor) {
            row.word = Word::Same;
        }
        if is_judged && row.word != Word::Same {
            row.p_beyond_margin = Some(f64::from(u8::from(row.word == Word::Faster)));
            row.p_no_change = Some(0.0);
        }
        return Some(row);
    }
    judge(&mut row, cell, control);
    Some(row)
}

/// Both values of a count that is the same in every block.
fn exact(cell: &DossierCell) -> Option<(f64, f64)> {
    if cell.unit == "ns" || cell.in_turn && metrics::is_judged(&cell.metric) {
        return None;
    }
    let first = cell.blocks.first()?;
    let is_same = cell.blocks.iter().all(|block| {
        let same = |one: f64, other: f64| one.to_bits() == other.to_bits();
        same(block.base, first.base)
            && same(block.env, first.env)
            && block.base_alone.is_none()
            && block.env_alone.is_none()
    });
    (is_same && cell.blocks.len() > 1).then_some((first.base, first.env))
}

fn judge(row: &mut Row, cell: &DossierCell, control: Option<&DossierCell>) {
    let Some(ratio) = &cell.ratio else {
        row.note = Some(format!(
            "an interval needs {} blocks and there are {}; give more time with `--budget`",
            crate::analyze::FEWEST_BLOCKS,
            cell.n_blocks
        ));
        return;
    };
    row.p_beyond_margin = p_beyond(ratio, row.margin, cell.n_blocks);
    row.p_no_change = p_beyond(ratio, 0.0, cell.n_blocks).map(|p| 2.0 * p.min(1.0 - p));
    let lower = |bound: f64| (bound - 1.0) * row.base.unwrap_or(f64::NAN);
    let is_small = |bound: f64| lower(bound).abs() <= row.floor;
    let within = |span: &Span| span.low > 1.0 / (1.0 + row.margin) && span.high < 1.0 + row.margin;
    let is_drifting = cell.flags.iter().any(|flag| flag.id == "drifting-effect");
    let below_floor = is_small(ratio.low) && is_small(ratio.high);
    let is_same = (cell.ratio90.as_ref().is_some_and(within) || below_floor) && !is_drifting;
    row.word = if is_same {
        Word::Same
    } else if ratio.low > 1.0 && !is_small(ratio.low) {
        Word::Slower
    } else if ratio.high < 1.0 && !is_small(ratio.high) {
        Word::Faster
    } else {
        Word::Inconclusive
    };
    if row.word == Word::Inconclusive {
        row.detectable = cell.mde.or(Some((ratio.high / ratio.low).ln() / 2.0));
        if is_drifting {
            row.note = Some("the difference drifted during the run".to_owned());
        } else if ratio.low > 1.0 || ratio.high < 1.0 {
            row.note = Some("it differs, perhaps by less than the floor".to_owned());
        }
    }
    if let Some(span) = control.and_then(|cell| cell.ratio.as_ref())
        && is_off(span, row.margin)
    {
        row.word = Word::Inconclusive;
        row.note = Some("the base differs from itself by more than the margin".to_owned());
        row.detectable = None;
    }
}

/// Whether an A/A control shows a difference where there is none: its estimate is beyond the margin, or its whole
/// interval is.
fn is_off(control: &Span, margin: f64) -> bool {
    let limit = margin.ln_1p();
    control.point.ln().abs() > limit && (control.low > 1.0 || control.high < 1.0)
}

/// The one-sided probability of an estimate as far beyond the margin as this one if the true effect were the margin;
/// from the interval of the cell, whose half-width is that of a t interval of as many blocks.
fn p_beyond(ratio: &Span, margin: f64, n_blocks: u32) -> Option<f64> {
    if ratio.low <= 0.0 || n_blocks < 2 {
        return None;
    }
    let freedom = f64::from(n_blocks - 1);
    let half = (ratio.point / ratio.low).ln();
    let beyond = ratio.point.ln() - margin.ln_1p();
    if half <= 0.0 {
        return Some(if beyond > 0.0 { 0.0 } else { 1.0 });
    }
    let level = ratio.level.unwrap_or(crate::analyze::LEVEL);
    let error = half / t_quantile(f64::midpoint(1.0, level), freedom);
    Some(t_upper(beyond / error, freedom))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing as composed;

    /// A wall-time cell with this ratio and half-width, 100 ms at the base.
    pub(crate) fn cell(arm: &str, point: f64, half: f64) -> DossierCell {
        let span = |half: f64| Span::new(point - half, point, point + half);
        DossierCell {
            arm: arm.to_owned(),
            metric: metrics::WALL.id.to_owned(),
            unit: "ns".to_owned(),
            n_blocks: 30,
            ratio: Some(span(half)),
            ratio90: Some(span(half * 0.83)),
            base: Some(Span::new(99e6, 100e6, 101e6)),
            env: Some(Span::new(99e6 * point, 100e6 * point, 101e6 * point)),
            ..composed::cell(metrics::WALL.id, point)
        }
    }

    pub(crate) fn limits() -> Limits {
        Limits {
            margin: 0.02,
            ..Limits::default()
        }
    }

    fn judged(cell: &DossierCell, control: Option<&DossierCell>) -> Row {
        row(cell, control, "wall".to_owned(), &limits()).unwrap()
    }

    #[test]
    fn row_word_follows_interval_margin_and_floor() {
        for (point, half, word) in [
            (1.06, 0.01, Word::Slower),
            (0.9, 0.01, Word::Faster),
            (1.005, 0.004, Word::Same),
            (1.03, 0.015, Word::Slower),
            (1.02, 0.05, Word::Inconclusive),
        ] {
            let row = judged(&cell("b", point, half), None);
            assert_eq!(row.word, word, "{point} {half}");
            assert_eq!(row.detectable.is_some(), word == Word::Inconclusive);
        }
        // 20 % of 0.1 ms is below the floor of a time.
        let mut short = cell("b", 1.2, 0.01);
        short.base = Some(Span::new(0.99e5, 1e5, 1.01e5));
        assert_eq!(judged(&short, None).word, Word::Same);
        short.base = Some(Span::new(2.5e5, 2.5e5, 2.5e5));
        let row = judged(&short, None);
        assert_eq!(row.word, Word::Inconclusive);
        assert!(row.note.unwrap().contains("floor"));
    }

    #[test]
    fn differing_aa_baseline_makes_row_inconclusive() {
        let slow = cell("b", 1.2, 0.01);
        assert_eq!(
            judged(&slow, Some(&cell("a-prime", 1.0, 0.01))).word,
            Word::Slower
        );
        let row = judged(&slow, Some(&cell("a-prime", 1.06, 0.01)));
        assert_eq!(row.word, Word::Inconclusive);
        assert!(row.note.unwrap().contains("itself"));
    }

    #[test]
    fn drifting_effect_is_not_called_same() {
        let mut drifting = cell("b", 1.0, 0.004);
        drifting.flags = vec![tare_model::dossier::Flag {
            id: "drifting-effect".into(),
            detail: String::new(),
        }];
        assert_eq!(judged(&drifting, None).word, Word::Inconclusive);
    }

    #[test]
    fn p_beyond_margin_falls_with_the_distance_from_it() {
        let of =
            |point: f64| p_beyond(&Span::new(point - 0.01, point, point + 0.01), 0.02, 30).unwrap();
        assert!((of(1.02) - 0.5).abs() < 1e-9);
        assert!(of(1.03) < 0.05 && of(1.05) < 1e-5 && of(1.0) > 0.99);
    }

    #[test]
    fn counts_are_rows_only_where_they_repeat_exactly() {
        let block = |env: f64| tare_model::dossier::DossierBlock {
            block: 0,
            position: 0,
            launch: 0,
            base: 90.0,
            env,
            base_alone: None,
            env_alone: None,
            apart: None,
        };
        let mut faults = DossierCell {
            unit: "count".into(),
            metric: metrics::FAULTS.id.into(),
            blocks: vec![block(92.0), block(92.0)],
            ratio: None,
            ..cell("b", 1.0, 0.1)
        };
        let found = row(&faults, None, "page-faults".into(), &limits()).unwrap();
        assert!(found.exact && !found.gated);
        assert_eq!(
            (found.base, found.head, found.word),
            (Some(90.0), Some(92.0), Word::Slower)
        );
        faults.blocks.push(block(93.0));
        assert!(row(&faults, None, "page-faults".into(), &limits()).is_none());
    }
}
