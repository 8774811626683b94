//! Estimates what more time would give a row that is less precise than requested.
//!
//! A row with a difference gets the precision its size could reach. An inconclusive row has no size: it gets the
//! effect that this run could have detected, and the effect that more time would detect, by the formula of the
//! detectable effect; a smaller difference may still exist.
//!
//! Limits: assumes that the machine stays as noisy as it was.

use tare_model::dossier::DossierCell;
use tare_model::{whole_count, whole_place};
use tare_stats::{Interval, detectable_effect};

use crate::groups::Group;
use tare_core::analyze::{LEVEL, counted};

/// The longest acceptable wait for a better answer, in seconds.
const A_WHILE_S: f64 = 600.0;

/// Describes what would make a cell precise enough, or what is achievable if that would take hours.
pub(super) fn remedy(cell: &DossierCell, blocks: u32, wall_s: f64) -> String {
    let n = cell.n_blocks.max(1);
    let block_s = wall_s / f64::from(n);
    let is_long = f64::from(blocks) * block_s > A_WHILE_S;
    let n_later = if is_long {
        whole_count(whole_place(A_WHILE_S / block_s)).max(n)
    } else {
        n.saturating_add(blocks)
    };
    let half_width = cell
        .ratio
        .filter(|span| span.low > 0.0)
        .map(|span| (span.high / span.low).ln() / 2.0);
    let later = half_width.map(|half| half * (f64::from(n) / f64::from(n_later)).sqrt());
    let needs = format!(
        "would need about {}",
        counted(blocks as usize, "more block")
    );
    // An inconclusive cell has no size to refine, only an effect that would have been detected.
    let seen = |half: Option<f64>, n: u32| {
        let half = half?;
        let ci95 = Interval {
            point: 0.0,
            low: -half,
            high: half,
            level: LEVEL,
        };
        detectable_effect(&ci95, n as usize).map(percent)
    };
    let is_open = Group::for_cell(cell) == Group::Open;
    match (seen(half_width, n), seen(later, n_later)) {
        (Some(now), Some(then)) if is_open && is_long => format!(
            "is inconclusive: this run could have detected about {now} % (80 % power), ten minutes would detect about {then} %"
        ),
        (Some(now), Some(then)) if is_open => format!(
            "is inconclusive: this run could have detected about {now} % (80 % power); to detect {then} % it {needs}, about {:.0} s",
            f64::from(blocks) * block_s
        ),
        _ => match later {
            Some(half) if is_long => format!(
                "would take hours; ten minutes would tell it to within about {} %",
                percent(half.exp_m1())
            ),
            _ => needs,
        },
    }
}

/// Formats a fraction in percent, with one decimal if it is small.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 10.0 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    }
}

#[cfg(test)]
mod tests {
    use tare_model::Verdict;
    use tare_model::dossier::Span;

    use super::*;
    use tare_core::testing as composed;

    /// Creates a row of ten blocks whose interval has this half-width around 1.
    fn row(verdict: Verdict, half: f64) -> DossierCell {
        let mut cell = composed::stored().cells.swap_remove(0);
        cell.ratio = Some(Span::new((-half).exp(), 1.0, half.exp()));
        (cell.verdict, cell.n_blocks) = (verdict, 10);
        cell
    }

    #[test]
    fn inconclusive_row_gets_mde_never_called_small() {
        let open = row(Verdict::Inconclusive, 0.1);
        // Ten blocks in a minute make a hundred in ten.
        let shown = remedy(&open, 1_000, 60.0);
        let effect = |half: f64, n: usize| {
            let ci95 = Interval {
                point: 0.0,
                low: -half,
                high: half,
                level: LEVEL,
            };
            percent(detectable_effect(&ci95, n).unwrap())
        };
        let later = 0.1 * (10.0_f64 / 100.0).sqrt();
        for part in [
            "is inconclusive".to_owned(),
            format!("detected about {} % (80 % power)", effect(0.1, 10)),
            format!("ten minutes would detect about {} %", effect(later, 100)),
        ] {
            assert!(shown.contains(&part), "{part}: {shown}");
        }
        assert!(!shown.contains("smaller"), "{shown}");
        let soon = remedy(&open, 20, 60.0);
        assert!(soon.contains("20 more blocks, about 120 s"), "{soon}");
        // A decided row gets the precision that its size could reach.
        let decided = remedy(&row(Verdict::Equivalent, 0.1), 1_000, 60.0);
        assert!(decided.contains("would tell it to within"), "{decided}");
    }
}
