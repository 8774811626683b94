//! Start and stop times of an environment: reported as added time, not as a ratio to the start of a bare process.

use tare_model::dossier::{DossierCell, Span};

use super::number::{added, glance, range, scale_for};
use tare_core::foreign::NO_BREAK;

/// The prefix of start and removal metrics.
const STARTING: &str = "start-up.";

/// Whether a cell is a start or stop time of an environment. It happens once, and the ratio would be to the start of
/// a bare process, so the added time is reported instead.
pub(crate) fn is_start(cell: &DossierCell) -> bool {
    cell.metric.starts_with(STARTING) && cell.unit == "ns"
}

/// Returns the ratio to print and draw.
pub(crate) fn ratio(cell: &DossierCell) -> Option<&Span> {
    cell.ratio.as_ref().filter(|_| !is_start(cell))
}

/// Formats the effect: the ratio with its interval, or for a start the added time.
pub(crate) fn effect(cell: &DossierCell) -> Option<String> {
    match &cell.difference {
        Some(difference) if is_start(cell) && cell.ratio.is_some() => {
            Some(added(difference, &cell.unit))
        }
        _ => ratio(cell).map(glance),
    }
}

/// Same as `effect`, or a dash if there is none.
pub(crate) fn effect_or_dash(cell: &DossierCell) -> String {
    effect(cell).unwrap_or_else(|| "–".to_owned())
}

/// Formats the range of an added or saved time: `298–330 ms`.
pub(super) fn times(difference: &Span, unit: &str) -> String {
    let ends = [difference.low.abs(), difference.high.abs()];
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let scale = scale_for(high, unit);
    let text = range(low / scale.factor, high / scale.factor);
    format!("{text}{NO_BREAK}{}", scale.symbol)
}
