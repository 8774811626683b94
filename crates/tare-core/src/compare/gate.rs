//! The gate: decides which rows are proven slower, over all rows and both halves of the budget.
//!
//! A row is red only if all of this holds: its whole interval is beyond margin and floor; the base does not differ
//! from itself; the one-sided probability of such an effect at the margin passes Holm's correction over all gated
//! rows at 1 %; and the second half of the budget, in fresh processes, shows the same alone. All of it is fixed
//! before the first trial.
//! Limits: the rate is that of this machine at this time. Two builds of the same source may really differ.

use serde::{Deserialize, Serialize};
use tare_model::dossier::Dossier;

use super::limits::Limits;
use super::row::{self, Row, Word};

/// How often a comparison without a gate may be evaluated. The looks share the rate of false alarms: the last one has
/// nearly all of it, so that looking early costs it little (Haybittle 1971; Peto and others 1976).
pub const LOOKS: usize = 5;
/// The share of the rate that each look before the last one has.
const EARLY_PART: f64 = 0.05;

/// The decision of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Something is slower; for a gate: proven and confirmed.
    Slower,
    /// Nothing is slower, and something is faster.
    Faster,
    /// Everything is within its margin.
    Same,
    /// Nothing is proven slower, and something is inconclusive.
    #[default]
    Inconclusive,
}

impl Decision {
    /// Decides from the gated rows.
    pub fn from_rows(rows: &[Row]) -> Self {
        let gated = || rows.iter().filter(|row| row.gated);
        let any = |word: Word| gated().any(|row| row.word == word);
        if any(Word::Slower) {
            Self::Slower
        } else if any(Word::Inconclusive) || gated().next().is_none() {
            Self::Inconclusive
        } else if any(Word::Faster) {
            Self::Faster
        } else {
            Self::Same
        }
    }
}

/// Returns the rows of a comparison without a gate, and the decision. A difference counts if it passes Holm's
/// correction over all gated rows and looks.
pub fn compared(all: &Dossier, limits: &Limits, is_last: bool) -> (Vec<Row>, Decision) {
    let mut rows = row::rows(all, limits);
    let part = if is_last {
        1.0 - EARLY_PART * (LOOKS - 1) as f64
    } else {
        EARLY_PART
    };
    let rate = limits.alarm_rate() * part;
    let rejected = holm(&rows, rate, |row| row.p_no_change);
    for (row, is_rejected) in rows.iter_mut().zip(rejected) {
        let differs = matches!(row.word, Word::Slower | Word::Faster);
        if row.gated && differs && !is_rejected {
            row.open(format!("perhaps {}", row.word.name()));
        }
    }
    let decision = Decision::from_rows(&rows);
    (rows, decision)
}

/// Returns the rows of a gate and its decision: `all` covers every block, `halves` those of the first and of the
/// second half.
pub fn judged(all: &Dossier, halves: &[Dossier], limits: &Limits) -> (Vec<Row>, Decision) {
    let mut rows = row::rows(all, limits);
    let halves: Vec<Vec<Row>> = halves.iter().map(|half| row::rows(half, limits)).collect();
    let rejected = holm(&rows, limits.alarm_rate(), |row| row.p_beyond_margin);
    for (row, is_rejected) in rows.iter_mut().zip(rejected) {
        if !row.gated || row.word != Word::Slower {
            continue;
        }
        let is_beyond = is_rejected && lies_beyond(row);
        let again = |half: &Vec<Row>| {
            let same = half
                .iter()
                .find(|it| it.arm == row.arm && it.metric == row.metric);
            same.is_some_and(|it| it.word == Word::Slower && lies_beyond(it))
        };
        let is_confirmed = halves.len() > 1 && halves.iter().all(again);
        row.confirmed = is_beyond.then_some(is_confirmed);
        if is_beyond && is_confirmed {
            continue;
        }
        row.open(if is_beyond {
            "slower at first, not shown again by fresh processes".to_owned()
        } else {
            "perhaps slower: not proven beyond margin and floor".to_owned()
        });
    }
    let decision = Decision::from_rows(&rows);
    (rows, decision)
}

/// Whether the gate is green whatever a second half shows: every gated row is within its margin, or faster.
pub fn is_green(first: &[Row]) -> bool {
    let mut gated = first.iter().filter(|row| row.gated).peekable();
    gated.peek().is_some() && gated.all(|row| matches!(row.word, Word::Same | Word::Faster))
}

/// Whether the whole interval is beyond margin and floor.
fn lies_beyond(row: &Row) -> bool {
    let Some((change, base)) = row.change.zip(row.base) else {
        return false;
    };
    change.low > row.margin && change.low * base > row.floor
}

/// Which rows Holm's procedure rejects at the total rate, over one side and all sides together.
fn holm(rows: &[Row], rate: f64, p: fn(&Row) -> Option<f64>) -> Vec<bool> {
    let gated = rows.iter().filter(|row| row.gated);
    let p: Vec<f64> = gated.map(|row| p(row).unwrap_or(1.0)).collect();
    let mut adjusted = tare_stats::holm(&p).unwrap_or_default().into_iter();
    rows.iter()
        .map(|row| row.gated && adjusted.next().is_some_and(|p| p <= rate))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::limits::ALARM_RATE;
    use crate::compare::row::tests::{cell, limits};
    use crate::testing as composed;
    use tare_model::dossier::DossierCell;

    fn dossier(cells: &[DossierCell]) -> Dossier {
        Dossier {
            cells: cells.to_vec(),
            aa: Vec::new(),
            ..composed::stored()
        }
    }

    fn decided(all: f64, halves: [f64; 2]) -> (Word, Option<bool>, Decision) {
        let of = |point: f64| dossier(&[cell("head", point, 0.008)]);
        let halves = halves.map(of);
        let (rows, decision) = judged(&of(all), &halves, &limits());
        (rows[0].word, rows[0].confirmed, decision)
    }

    #[test]
    fn gate_is_red_only_if_both_halves_show_it() {
        assert_eq!(
            decided(1.06, [1.06, 1.06]),
            (Word::Slower, Some(true), Decision::Slower)
        );
        assert_eq!(
            decided(1.06, [1.11, 1.01]),
            (Word::Inconclusive, Some(false), Decision::Inconclusive)
        );
        // Slower, but perhaps within the margin.
        let (word, confirmed, _) = decided(1.025, [1.025, 1.025]);
        assert_eq!((word, confirmed), (Word::Inconclusive, None));
        assert_eq!(decided(1.0, [1.0, 1.0]).2, Decision::Same);
    }

    #[test]
    fn one_round_alone_is_never_red() {
        let all = dossier(&[cell("head", 1.3, 0.01)]);
        let (rows, decision) = judged(&all, std::slice::from_ref(&all), &limits());
        assert_eq!(
            (rows[0].word, decision),
            (Word::Inconclusive, Decision::Inconclusive)
        );
    }

    #[test]
    fn a_lucky_row_among_many_is_not_red() {
        // p = 0.6 % passes alone, but not among forty.
        let mut cells = vec![cell("head", 1.033, 0.0105)];
        let one = dossier(&cells);
        let red = |all: &Dossier| judged(all, &[all.clone(), all.clone()], &limits()).1;
        assert_eq!(red(&one), Decision::Slower);
        for place in 0..40 {
            cells.push(DossierCell {
                arm: format!("x{place}"),
                ..cell("head", 1.0, 0.01)
            });
        }
        let many = dossier(&cells);
        assert_ne!(red(&many), Decision::Slower);
    }

    #[test]
    fn gate_verdict_accounts_for_multiple_looks() {
        let shown = |point: f64, half: f64, is_last: bool| {
            let all = dossier(&[cell("b", point, half)]);
            compared(&all, &limits(), is_last).1
        };
        for is_last in [false, true] {
            assert_eq!(shown(1.06, 0.01, is_last), Decision::Slower);
            assert_eq!(shown(0.94, 0.01, is_last), Decision::Faster);
            // Beyond its 95 % interval, as happens to one of twenty rows by chance.
            assert_eq!(shown(1.045, 0.04, is_last), Decision::Inconclusive);
        }
        // What the last look proves is not enough for a look that others may follow.
        assert_eq!(shown(1.045, 0.03, true), Decision::Slower);
        assert_eq!(shown(1.045, 0.03, false), Decision::Inconclusive);
    }

    #[test]
    fn several_entries_share_the_rate_of_false_alarms() {
        let rows = row::rows(&dossier(&[cell("head", 1.0345, 0.0105)]), &limits());
        let p = rows[0].p_beyond_margin.unwrap();
        let of = |shares: usize| {
            let limits = Limits { shares, ..limits() };
            holm(&rows, limits.alarm_rate(), |row| row.p_beyond_margin)[0]
        };
        assert!(p < ALARM_RATE && of(1) && !of(40), "{p}");
    }

    #[test]
    fn a_row_that_is_skipped_is_not_red() {
        let all = dossier(&[cell("head", 1.3, 0.01)]);
        let limits = Limits {
            skip: vec!["wall".into()],
            ..limits()
        };
        let (_, decision) = judged(&all, &[all.clone(), all.clone()], &limits);
        assert_eq!(decision, Decision::Inconclusive);
    }
}
