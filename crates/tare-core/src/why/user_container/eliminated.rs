//! Derives the status of each difference of the user's container: tried alone, tried with others, or not at all.
//!
//! The container's arm notes each difference as a suspect, so that a stored run knows what there was to try. If all
//! but one are refuted and the command fails without that one, it is likely, because nothing else is left.

use std::collections::BTreeSet;

use tare_model::Status;
use tare_model::arm::Suspect;
use tare_model::dossier::{DossierFinding, Span};

use super::sifting::{has_effect, suspect_of};
use super::{ContainerQuestion, SEVERAL};
use crate::driver::user_container::OWN;
use crate::why::counterfactual::MOST;

/// Why an arm without a difference has no values.
pub(crate) const FAILS: &str = "without it the command fails";

/// An arm that was tried without some differences.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TriedWithout {
    pub(crate) arm: String,
    pub(crate) without: Vec<String>,
    pub(crate) status: Status,
    pub(crate) share: Option<Span>,
    /// Why it has no values, if it has none.
    pub(crate) failure: Option<String>,
}

/// Each difference as a suspect that was not tried yet.
pub(crate) fn noted(asks: &ContainerQuestion, metric: &str) -> Vec<Suspect> {
    let differences = asks.differences.iter();
    differences
        .map(|it| suspect_of(asks, std::slice::from_ref(&it.id), metric))
        .collect()
}

/// Sets the status of each noted difference from the trials. `of_container` is the share of the total that a
/// container without any difference has, if measured.
pub(crate) fn settle(
    findings: &mut Vec<DossierFinding>,
    noted: &BTreeSet<String>,
    trials: &[TriedWithout],
    of_container: Option<f64>,
) {
    if noted.is_empty() {
        return;
    }
    let is_noted = |it: &DossierFinding| it.arm.is_none() && noted.contains(&it.cause);
    let tried: BTreeSet<String> = findings
        .iter()
        .filter(|it| !is_noted(it))
        .map(|it| it.cause.clone())
        .collect();
    findings.retain(|it| !(is_noted(it) && tried.contains(&it.cause)));
    // The result of these sets is reported for each member.
    findings.retain(|it| it.cause != SEVERAL || it.status != Status::Refuted);
    // Sets that cause a part and were not separated.
    let several: Vec<(String, Status, &Vec<String>)> = findings
        .iter()
        .filter(|it| it.cause == SEVERAL && has_effect(it))
        .filter_map(|it| Some((it.arm.clone()?, it.status)))
        .filter_map(|(arm, status)| {
            let trial = trials.iter().find(|trial| trial.arm == arm)?;
            Some((arm, status, &trial.without))
        })
        .collect();
    let refuted: Vec<&TriedWithout> = trials
        .iter()
        .filter(|it| it.status == Status::Refuted)
        .collect();
    let is_refuted = |id: &str| {
        refuted
            .iter()
            .any(|it| it.without.iter().any(|own| own == id))
    };
    for finding in findings.iter_mut().filter(|it| is_noted(it)) {
        let Some(id) = finding.cause.strip_prefix(OWN).map(str::to_owned) else {
            continue;
        };
        let in_set = several.iter().find(|(_, _, set)| set.contains(&id));
        // A smaller set without an effect does not clear its members of their part in a proved one.
        let is_in_proved = in_set.is_some_and(|(_, status, _)| *status == Status::Confirmed);
        if let Some(trial) = narrowest(&refuted, &id).filter(|_| !is_in_proved) {
            finding.status = Status::Refuted;
            finding.arm = Some(trial.arm.clone());
            if trial.without.len() == 1 {
                finding.share = trial.share;
            }
            continue;
        }
        if let Some((arm, ..)) = in_set {
            finding.status = Status::Undecided;
            finding.arm = Some(arm.clone());
            continue;
        }
        let mut failed = trials.iter().filter(|it| it.failure.is_some());
        let failed = failed.find(|it| {
            let mut others = it.without.iter().filter(|own| **own != id);
            it.without.contains(&id) && others.all(|own| is_refuted(own))
        });
        if let Some(trial) = failed {
            finding.arm = Some(trial.arm.clone());
            finding.tried.clone_from(&trial.failure);
        }
    }
    let carried: f64 = disjoint(&refuted) + of_container.unwrap_or(0.0).max(0.0);
    if carried < MOST {
        eliminate(findings, noted);
    }
    findings.sort_by_key(|it| it.status);
}

/// The smallest of the sets whose arms lack this difference.
fn narrowest<'a>(trials: &[&'a TriedWithout], id: &str) -> Option<&'a TriedWithout> {
    let having = trials
        .iter()
        .filter(|it| it.without.iter().any(|own| own == id));
    having.min_by_key(|it| it.without.len()).copied()
}

/// The share of the total that goes away with sets that have no member in common, the largest first.
fn disjoint(trials: &[&TriedWithout]) -> f64 {
    let mut sorted = trials.to_vec();
    sorted.sort_by_key(|it| std::cmp::Reverse(it.without.len()));
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let mut sum = 0.0;
    for trial in sorted {
        if trial.without.iter().any(|id| seen.contains(id)) {
            continue;
        }
        seen.extend(&trial.without);
        sum += trial.share.map_or(0.0, |share| share.point.max(0.0));
    }
    sum
}

/// Marks the last remaining difference as likely, if the command fails without it and everything else is refuted.
fn eliminate(findings: &mut [DossierFinding], noted: &BTreeSet<String>) {
    if findings.iter().any(|it| it.arm.is_some() && has_effect(it)) {
        return;
    }
    let is_left =
        |it: &&mut DossierFinding| noted.contains(&it.cause) && it.status != Status::Refuted;
    let n_ruled_out = findings
        .iter()
        .filter(|it| it.status == Status::Refuted)
        .count();
    let mut left = findings.iter_mut().filter(is_left);
    if let (Some(one), None) = (left.next(), left.next())
        && n_ruled_out > 0
        && one.status == Status::Untested
        && one.arm.is_some()
    {
        one.status = Status::Likely;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::conclude::tests::finding;

    fn trial(without: &[&str], status: Status, point: f64) -> TriedWithout {
        TriedWithout {
            arm: format!("try-{}", without.join("-")),
            without: without.iter().map(|id| (*id).to_owned()).collect(),
            status,
            share: (status != Status::Untested).then(|| Span::new(point - 0.1, point, point + 0.1)),
            failure: (status == Status::Untested).then(|| FAILS.to_owned()),
        }
    }

    /// The statuses of `a`, `b`, `c` after these trials.
    fn settled(trials: &[TriedWithout], of_container: f64) -> Vec<(String, Status)> {
        let noted: BTreeSet<String> = ["a", "b", "c"]
            .iter()
            .map(|id| format!("{OWN}{id}"))
            .collect();
        let mut findings: Vec<DossierFinding> = noted
            .iter()
            .map(|cause| DossierFinding {
                arm: None,
                ..finding(cause, Status::Untested, "", 0.0)
            })
            .collect();
        settle(&mut findings, &noted, trials, Some(of_container));
        let mut statuses: Vec<(String, Status)> = findings
            .into_iter()
            .map(|it| (it.cause.replace(OWN, ""), it.status))
            .collect();
        statuses.sort();
        statuses
    }

    fn expected(statuses: [Status; 3]) -> Vec<(String, Status)> {
        let names = ["a", "b", "c"].map(str::to_owned);
        names.into_iter().zip(statuses).collect()
    }

    #[test]
    fn the_last_one_is_likely_where_the_command_fails() {
        use Status::{Likely, Refuted, Untested};
        let others = trial(&["a", "b"], Refuted, 0.02);
        let failed = trial(&["c"], Untested, 0.0);
        assert_eq!(
            settled(&[others.clone(), failed.clone()], 0.0),
            expected([Refuted, Refuted, Likely])
        );
        // It failed together with others that are refuted.
        let with_a = trial(&["a", "c"], Untested, 0.0);
        assert_eq!(
            settled(&[others.clone(), with_a], 0.0),
            expected([Refuted, Refuted, Likely])
        );
        // Never tried, so nothing says that it cannot be removed.
        assert_eq!(
            settled(std::slice::from_ref(&others), 0.0),
            expected([Refuted, Refuted, Untested])
        );
        // Half of the slowdown is in the container itself.
        assert_eq!(
            settled(&[others, failed.clone()], 0.6),
            expected([Refuted, Refuted, Untested])
        );
        // Another one is left.
        assert_eq!(
            settled(&[trial(&["a"], Refuted, 0.0), failed], 0.0),
            expected([Refuted, Untested, Untested])
        );
    }

    #[test]
    fn refuted_sets_totalling_half_do_not_eliminate() {
        use Status::{Refuted, Untested};
        let trials = [
            trial(&["a"], Refuted, 0.3),
            trial(&["b"], Refuted, 0.3),
            trial(&["c"], Untested, 0.0),
        ];
        assert_eq!(
            settled(&trials, 0.0),
            expected([Refuted, Refuted, Untested])
        );
    }
}
