//! Checks whether the slowdown is gone after the user's configuration is changed as advised.
//!
//! A proof removes differences from Tare's description of the container. Here the user's command line or other source
//! is changed, read again and measured next to both sides. The arm notes the change, so that a stored run gives the
//! same answer.
//! Limits: side effects of the change that the metric does not count are not seen.

use tare_model::arm::Suspect;
use tare_model::dossier::{Dossier, DossierApplied, DossierFinding, Span};
use tare_model::{ArmSpec, Params, Status, Study, Verdict};

use super::super::readings::{Readings, span};
use super::super::studies::{Arms, base_arms};
use super::super::total::Total;
use super::super::{Ask, FEWEST, First};
use crate::driver::user_container::{OWN, WITHOUT};

/// The arm's name, and the pseudo-suspect in it that names the change.
const APPLIED: &str = "applied";
const CHANGE: &str = "own.applied";
/// The maximum number of blocks.
const BLOCKS_MOST: u32 = 12;
/// The slowdown is gone if surely less than this share of it is left, and not gone if surely more.
const LEFT: f64 = 0.25;

/// The differences to apply: those of the first confirmed finding, with that finding.
pub fn found<'a>(
    dossier: &'a Dossier,
    arms: &[ArmSpec],
) -> Option<(&'a DossierFinding, Vec<String>)> {
    let is_found =
        |it: &&DossierFinding| it.status == Status::Confirmed && it.cause.starts_with(OWN);
    dossier
        .findings
        .iter()
        .filter(is_found)
        .find_map(|finding| {
            let arm = finding.arm.as_deref()?;
            let spec = arms.iter().find(|spec| spec.id.as_str() == arm)?;
            let ids = spec.settings.words(WITHOUT);
            (!ids.is_empty()).then_some((finding, ids))
        })
}

/// A study of both sides and the changed container, in as many blocks as fit.
pub fn study(
    ask: &Ask,
    first: &First,
    n_arms: usize,
    left_ns: u64,
    settings: &Params,
    what: (&str, &str),
) -> Study {
    let (change, price) = what;
    let mut arms = Arms::new(base_arms(ask, first, false), n_arms);
    let tried = ask.tried(settings.clone());
    arms.put(APPLIED, &tried, |role| {
        role.suspects.push(Suspect {
            cause: CHANGE.to_owned(),
            claim: change.to_owned(),
            likelihood: 1.0,
            advice: change.to_owned(),
            price: price.to_owned(),
            metric: ask.metric.clone(),
            tried: change.to_owned(),
            ..Suspect::default()
        });
    });
    let mut study = ask.study("the change applied", arms.into_specs(), first);
    study.blocks_min = FEWEST;
    study.blocks_max = BLOCKS_MOST;
    study.budget_ns = Some(left_ns);
    study
}

/// Whether this is the pseudo-suspect that names the change.
pub(crate) fn is_change(suspect: &Suspect) -> bool {
    suspect.cause == CHANGE
}

/// The result of the change, if it was measured; `env` is the arm in question.
pub(crate) fn judged(
    specs: &[ArmSpec],
    dossier: &Dossier,
    readings: &Readings,
    (baseline, env): (&str, &str),
) -> Option<DossierApplied> {
    let (arm, change) = specs.iter().find_map(|spec| {
        let mut suspects = spec.role.suspects.iter();
        Some((spec.id.as_str(), suspects.find(|it| is_change(it))?))
    })?;
    let total = Total::between(readings, baseline, env, &change.metric);
    let left = total.without(&readings.differences(baseline, arm, &change.metric));
    let cell = dossier
        .cells
        .iter()
        .find(|cell| cell.arm == arm && cell.metric == change.metric);
    let left = left.and_then(|left| left.share).map(span);
    Some(DossierApplied {
        change: change.claim.clone(),
        price: change.price.clone(),
        arm: arm.to_owned(),
        ratio: cell.and_then(|cell| cell.ratio),
        is_gone: is_gone(left.as_ref(), cell.map(|cell| cell.verdict)),
        left,
    })
}

/// Whether the slowdown is gone; `None` if undecided.
fn is_gone(left: Option<&Span>, verdict: Option<Verdict>) -> Option<bool> {
    let is_equal = matches!(
        verdict,
        Some(Verdict::Equivalent | Verdict::NegligibleCost | Verdict::NegligibleGain)
    );
    match left {
        Some(left) if left.low >= LEFT => Some(false),
        Some(left) if left.high < LEFT => Some(true),
        _ if is_equal => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_removal_is_judged_by_remaining_interval() {
        let left = |low: f64, high: f64| Some(Span::new(low, f64::midpoint(low, high), high));
        assert_eq!(is_gone(left(-0.1, 0.2).as_ref(), None), Some(true));
        assert_eq!(is_gone(left(0.3, 0.6).as_ref(), None), Some(false));
        assert_eq!(is_gone(left(0.1, 0.6).as_ref(), None), None);
        assert_eq!(
            is_gone(left(-0.4, 0.4).as_ref(), Some(Verdict::Equivalent)),
            Some(true)
        );
        assert_eq!(is_gone(None, Some(Verdict::Inconclusive)), None);
        assert_eq!(is_gone(None, None), None);
    }
}
