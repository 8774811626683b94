//! A flag on a cell, and the evidence that a cell is examined by.

use tare_model::MetricSpec;
use tare_model::dossier::Flag;
use tare_stats::Differences;

use super::effect::Effect;
use super::input::ArmData;
use super::pairs::Pairs;

/// A CPU quota that was not requested throttled the arm or its baseline.
pub(crate) const THROTTLED: &str = "throttled";

/// The evidence that a cell is examined by.
pub(crate) struct Evidence<'a> {
    /// ln cost ratios in block order, against either copy of the baseline.
    pub(crate) blocks: &'a [Differences],
    /// The mean of both, one per block.
    pub(crate) d: &'a [f64],
    pub(crate) effect: &'a Effect,
    pub(crate) margin: f64,
    pub(crate) pairs: &'a Pairs<'a>,
    pub(crate) metric: &'static MetricSpec,
    pub(crate) arm: &'a ArmData,
    pub(crate) base_arm: Option<&'a ArmData>,
    pub(crate) seed: u64,
}

/// Builds a flag.
pub(crate) fn flag(id: &str, detail: String) -> Flag {
    Flag {
        id: id.to_owned(),
        detail,
    }
}
