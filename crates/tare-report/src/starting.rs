//! Times of starting and stopping an environment: what is added, and no ratio to the start of a bare process.

use tare_model::dossier::{DossierCell, Span};

use super::number::{added, glance, range, scale_for};
use tare_core::foreign::NO_BREAK;

/// What the metrics of starting and removing an environment begin with.
const STARTING: &str = "start-up.";

/// Whether a cell is a time of starting or stopping an environment. It is paid once, and its ratio would be one to the
/// start of a bare process: what it adds is reported instead.
pub(crate) fn is_start(cell: &DossierCell) -> bool {
    cell.metric.starts_with(STARTING) && cell.unit == "ns"
}

/// The ratio that is printed and drawn.
pub(crate) fn ratio(cell: &DossierCell) -> Option<&Span> {
    cell.ratio.as_ref().filter(|_| !is_start(cell))
}

/// The effect at a glance: the ratio with its interval, of a start the time that it adds.
pub(crate) fn effect(cell: &DossierCell) -> Option<String> {
    match &cell.difference {
        Some(difference) if is_start(cell) && cell.ratio.is_some() => {
            Some(added(difference, &cell.unit))
        }
        _ => ratio(cell).map(glance),
    }
}

/// The same, and a dash where there is none.
pub(crate) fn effect_or_dash(cell: &DossierCell) -> String {
    effect(cell).unwrap_or_else(|| "–".to_owned())
}

/// The range of an added or saved time: `298–330 ms`.
pub(super) fn times(difference: &Span, unit: &str) -> String {
    let ends = [difference.low.abs(), difference.high.abs()];
    let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let scale = scale_for(high, unit);
    let text = range(low / scale.factor, high / scale.factor);
    format!("{text}{NO_BREAK}{}", scale.symbol)
}
