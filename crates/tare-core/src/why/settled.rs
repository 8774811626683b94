//! Decides whether two sides were compared precisely enough, or need more blocks.
//!
//! Testing again and again until there is a difference finds one where none exists. The first criterion is therefore
//! the width of the interval, which is independent of the effect (METHODOLOGY 5). An effect ends the comparison only
//! if it exceeds what one look would show by chance once in a thousand times: with a bound that strict the last look
//! keeps its level (Haybittle 1971; Peto and others 1976).
//! Limits: misses an effect that appears later; a clear one at the beginning is followed by more blocks anyway.

use tare_model::dossier::{Dossier, DossierCell, Span};
use tare_model::{Verdict, WhyOutcome, whole_count};
use tare_stats::blocks_needed;
use tare_stats::special::t_quantile;

/// The two-sided confidence at which an effect ends the comparison.
const SURE: f64 = 0.999;

/// An interval entirely beyond this ratio is not due to chance.
const PLAIN: f64 = 1.5;
/// The confidence at which excluding a relevant slowdown ends the comparison.
const EXCLUDED: f64 = 0.99;
/// The two-sided confidence of an effect in the answer. A user who reads that it is slower looks for the reason; at
/// 95 % one in twenty whose container is as fast as the host would.
const ANSWERED: f64 = 0.99;

/// Whether the answer's two sides need no more blocks.
pub(super) fn is_settled(dossier: &Dossier) -> bool {
    let Some(why) = &dossier.why else {
        return false;
    };
    // The answer is then not about the command itself.
    if why.outcome == WhyOutcome::StartUp {
        return true;
    }
    let mut cells = dossier.cells.iter();
    cells
        .find(|cell| cell.arm == why.arm && cell.metric == why.metric)
        .is_some_and(is_narrow_or_clear)
}

/// Whether an effect is sure enough for the answer.
pub(super) fn is_sure(cell: &DossierCell) -> bool {
    let Some(ratio) = cell.ratio.filter(|ratio| ratio.low > 0.0) else {
        return false;
    };
    is_plain(&ratio) || ratio.point.ln().abs() >= half_towards_one(cell, &ratio)
}

/// The number of further blocks that should make the effect sure.
pub(super) fn blocks_until_sure(cell: &DossierCell) -> Option<u32> {
    let ratio = cell.ratio.filter(|ratio| ratio.low > 0.0)?;
    let half = half_towards_one(cell, &ratio);
    let blocks = blocks_needed(cell.n_blocks as usize, half, ratio.point.ln().abs())?;
    Some(whole_count(blocks).saturating_sub(cell.n_blocks))
}

/// The log distance from the estimate to the interval's end nearer to no effect, at the answer's confidence.
fn half_towards_one(cell: &DossierCell, ratio: &Span) -> f64 {
    let towards_one = if ratio.point > 1.0 {
        ratio.point / ratio.low
    } else {
        ratio.high / ratio.point
    };
    towards_one.ln() * wider(cell, ANSWERED)
}

/// How many times as wide the interval is at this level.
fn wider(cell: &DossierCell, level: f64) -> f64 {
    let freedom = f64::from(cell.n_blocks.saturating_sub(1)).max(1.0);
    let t = |level: f64| t_quantile(f64::midpoint(1.0, level), freedom);
    t(level) / t(crate::analyze::LEVEL)
}

/// Whether the effect is obvious, however wide the interval.
fn is_plain(ratio: &Span) -> bool {
    ratio.low >= PLAIN || ratio.high <= 1.0 / PLAIN
}

fn is_narrow_or_clear(cell: &DossierCell) -> bool {
    let Some(ratio) = cell.ratio.filter(|ratio| ratio.low > 0.0) else {
        return false;
    };
    let half = f64::max(
        (ratio.high / ratio.point).ln(),
        (ratio.point / ratio.low).ln(),
    );
    let is_cost = matches!(cell.verdict, Verdict::Cost | Verdict::MaterialCost);
    if half <= cell.margin.ln_1p() / 2.0 {
        return !is_cost || is_sure(cell);
    }
    let is_within = matches!(
        cell.verdict,
        Verdict::Equivalent | Verdict::NegligibleCost | Verdict::NegligibleGain
    );
    // No relevant slowdown, which was the question, and no speed-up to explain.
    let room = cell.margin.ln_1p() - ratio.point.ln();
    if ratio.high >= 1.0 && room >= half * wider(cell, EXCLUDED) {
        return true;
    }
    // Obvious; the following studies have both sides in their blocks too.
    if is_plain(&ratio) {
        return true;
    }
    !is_within && ratio.point.ln().abs() >= half * wider(cell, SURE)
}

#[cfg(test)]
mod tests {
    use tare_stats::{Stream, hodges_lehmann_paired};

    use super::*;
    use crate::testing as composed;

    /// A comparison with a margin of 2 % and a symmetric interval.
    fn cell_with(n_blocks: u32, low: f64, point: f64) -> DossierCell {
        let is_within = low > 1.0 / 1.02 && point * point / low < 1.02;
        DossierCell {
            n_blocks,
            margin: 0.02,
            ratio: Some(Span::new(low, point, point * point / low)),
            verdict: if is_within {
                Verdict::Equivalent
            } else {
                Verdict::Inconclusive
            },
            ..composed::cell("command.wall.time", point)
        }
    }

    #[test]
    fn narrow_interval_settles_for_any_ratio() {
        // The margin is 2 %.
        for point in [0.99, 1.0, 1.004, 1.02, 1.5] {
            assert!(
                is_narrow_or_clear(&cell_with(12, point * 0.992, point)),
                "{point}"
            );
        }
        assert!(!is_narrow_or_clear(&cell_with(12, 0.98, 1.0)));
    }

    #[test]
    fn looking_ends_where_a_slowdown_is_surely_excluded() {
        // [0.965, 1.005] with a margin of 2 %; one that reaches beyond the margin; a speed-up that is not sure.
        assert!(is_narrow_or_clear(&cell_with(20, 0.965, 0.985)));
        assert!(!is_narrow_or_clear(&cell_with(20, 0.93, 0.99)));
        assert!(!is_narrow_or_clear(&cell_with(20, 0.95, 0.97)));
    }

    #[test]
    fn effect_settles_only_far_outside_its_interval() {
        // Shown by the interval, but by chance once in twenty looks.
        assert!(!is_narrow_or_clear(&cell_with(12, 1.01, 1.06)));
        assert!(!is_narrow_or_clear(&cell_with(6, 1.10, 1.20)));
        assert!(is_narrow_or_clear(&cell_with(12, 1.10, 1.20)));
        assert!(is_narrow_or_clear(&cell_with(6, 1.7, 2.0)));
        assert!(is_narrow_or_clear(&cell_with(6, 1.6, 9.0)));
        assert!(is_narrow_or_clear(&cell_with(12, 0.5, 0.55)));
    }

    #[test]
    fn effect_at_five_percent_level_is_not_sure() {
        let cost = |n_blocks, low, point| DossierCell {
            verdict: Verdict::MaterialCost,
            ..cell_with(n_blocks, low, point)
        };
        // 1.22 [1.04, 1.43] and 1.01 [1.003, 1.017] in twelve blocks, and the latter in more.
        assert!(!is_sure(&cost(12, 1.04, 1.22)));
        assert!(
            blocks_until_sure(&cost(12, 1.04, 1.22)).is_some_and(|more| (1..12).contains(&more))
        );
        assert!(is_sure(&cost(12, 1.10, 1.22)));
        assert_eq!(blocks_until_sure(&cost(12, 1.10, 1.22)), Some(0));
        assert!(is_sure(&cost(4, 1.6, 4.0)));
        assert!(is_sure(&cost(12, 0.80, 0.70)) && is_sure(&cell_with(30, 1.02, 1.03)));
        // Narrow enough, but not sure.
        assert!(!is_narrow_or_clear(&cost(12, 1.0005, 1.006)));
        assert!(is_narrow_or_clear(&cost(12, 1.012, 1.02)));
    }

    /// Commands without a slowdown, looked at up to three times, give no more false differences than the stated
    /// level.
    #[test]
    fn repeated_looks_keep_the_false_positive_level() {
        let mut random = Stream::new(7, 1, 0);
        let (mut false_alarms, n_runs) = (0, 2_000);
        for _ in 0..n_runs {
            let mut d: Vec<f64> = Vec::new();
            for n_blocks in [12, 30, 60] {
                while whole_count(d.len()) < n_blocks {
                    d.push(0.05 * random.normal());
                }
                let found = hodges_lehmann_paired(&d, 0.95).unwrap().interval;
                let mut cell = cell_with(n_blocks, found.low.exp(), found.point.exp());
                let is_last = n_blocks == 60;
                if let Some(ratio) = &mut cell.ratio {
                    ratio.high = found.high.exp();
                }
                if is_last || is_narrow_or_clear(&cell) {
                    false_alarms += u32::from(found.low > 0.0 || found.high < 0.0);
                    break;
                }
            }
        }
        let rate = f64::from(false_alarms) / f64::from(n_runs);
        assert!(rate < 0.062, "{rate}");
    }
}
