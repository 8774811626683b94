//! Adds blocks for what is still undecided, as long as the budget allows: both sides, or suspects that were tried.

use tare_model::arm::Suspect;
use tare_model::dossier::{Dossier, DossierFinding};
use tare_model::{ArmSpec, Status, Study};

use super::counterfactual::MOST;
use super::pace::{PROOF_MOST, Pace};
use super::studies::{SAFE, base_arms, start_up};
use super::{Ask, FEWEST, First};
use crate::analyze::RunData;

/// The arms of undecided findings, the likeliest first.
pub fn undecided(run: &RunData, dossier: &Dossier) -> Vec<ArmSpec> {
    /// The maximum number of arms that get more blocks in one study.
    const AT_ONCE: usize = 4;
    let mut arms: Vec<ArmSpec> = open(&dossier.findings)
        .filter_map(|it| {
            let mut arms = run.head.study.arms.iter();
            let is_its = |arm: &&ArmSpec| {
                let mut suspects = arm.role.suspects.iter();
                Some(arm.id.as_str()) == it.arm.as_deref()
                    && suspects.any(|suspect| suspect.cause == it.cause)
            };
            arms.find(is_its).cloned()
        })
        .filter(|arm| !arm.required)
        .collect();
    arms.dedup_by(|a, b| a.id == b.id);
    arms.truncate(AT_ONCE);
    arms
}

/// Findings that were tried and are still undecided; none if a cause is confirmed. If a suspect removed most of the
/// slowdown but chance is not ruled out yet, only such suspects.
fn open(findings: &[DossierFinding]) -> impl Iterator<Item = &DossierFinding> {
    let is_unproved = |it: &DossierFinding| is_most(it) && it.status == Status::Supported;
    let has_cause = findings.iter().any(|it| it.status == Status::Confirmed);
    let has_unproved = findings.iter().any(is_unproved);
    findings
        .iter()
        .filter(move |it| match (has_cause, has_unproved) {
            (true, _) => false,
            (false, true) => is_unproved(it),
            (false, false) => it.status == Status::Undecided,
        })
}

/// Whether switching the suspect off removed most of the slowdown.
pub(super) fn is_most(finding: &DossierFinding) -> bool {
    finding.share.is_some_and(|share| share.point >= MOST)
}

/// A study with more blocks for undecided arms. `None` if there are no arms, or the budget does not hold six blocks.
pub fn study(
    ask: &Ask,
    first: &First,
    pace: Pace,
    arms: Vec<ArmSpec>,
    (left_ns, blocks): (u64, u32),
) -> Option<Study> {
    let n_arms = arms.len() as u64;
    let slower_ns = pace.env_ns.max(pace.host_ns);
    let with_start_up = arms.iter().any(has_start_up);
    let lives_ns = if with_start_up {
        (n_arms + 1) * pace.life_ns
    } else {
        0
    };
    let block_ns = pace.host_ns + pace.env_ns + n_arms * slower_ns + lives_ns;
    let needed_ns = (n_arms + 1) * pace.life_ns + u64::from(FEWEST) * block_ns;
    if n_arms == 0 || needed_ns as f64 > left_ns as f64 * SAFE {
        return None;
    }
    let mut specs = base_arms(ask, first, false);
    // The two sides keep what they note about their steps.
    let known = |arm: &ArmSpec| specs.iter().any(|it| it.id == arm.id);
    let more: Vec<ArmSpec> = arms.into_iter().filter(|arm| !known(arm)).collect();
    specs.extend(more);
    let mut study = ask.study("what is not decided, once more", specs, first);
    if with_start_up {
        study.workloads.push(start_up());
    }
    study.blocks_max = blocks;
    pace.plan_launches(ask, &mut study, left_ns);
    study.budget_ns = Some(left_ns);
    Some(study)
}

/// More blocks of host and environment after an inconclusive comparison of `n_blocks`, with the A/A control if there is
/// time for it. `None` if too few would fit to be worth a restart of the arms. The last look, with all of the time,
/// may be shorter, but adds a part of the blocks so far, so that the number of looks stays small.
pub fn closer(
    ask: &Ask,
    first: &First,
    pace: Pace,
    (time_ns, n_blocks): (u64, u32),
    is_last: bool,
) -> Option<Study> {
    /// The part (1/N) of the blocks so far that a last look adds.
    const LAST_PART: u32 = 4;
    let both_ns = pace.host_ns + pace.env_ns;
    let fits = |least: u32, block_ns: u64| {
        let needed_ns = u64::from(least).saturating_mul(block_ns);
        needed_ns.saturating_add(pace.life_ns) <= time_ns
    };
    let (usual, last) = (FEWEST / 2, n_blocks.div_ceil(LAST_PART).max(1));
    let with_a_prime = fits(usual, both_ns + pace.host_ns);
    if !(with_a_prime || fits(usual, both_ns) || is_last && fits(last, both_ns)) {
        return None;
    }
    let arms = base_arms(ask, first, with_a_prime);
    let mut study = ask.study("a closer look at host and environment", arms, first);
    // Doubling the number of blocks each time keeps the number of looks small.
    study.blocks_max = PROOF_MOST.max(n_blocks);
    pace.plan_launches(ask, &mut study, time_ns);
    study.budget_ns = Some(time_ns);
    Some(study)
}

/// Whether the arm has a suspect for the start-up.
fn has_start_up(arm: &ArmSpec) -> bool {
    let mut suspects = arm.role.suspects.iter();
    suspects.any(Suspect::is_of_start_up)
}

#[cfg(test)]
mod tests {
    use super::super::studies::tests::{SECOND, ask, first};
    use super::*;
    use tare_model::{ArmId, Params};

    #[test]
    fn open_findings_prove_the_largest_share_first() {
        use super::super::conclude::tests::finding;
        use Status::{Confirmed, Refuted, Supported, Undecided};
        let all = |status| {
            [
                finding("a", status, "off-1", 0.9),
                finding("b", Undecided, "off-2", 0.4),
                finding("c", Refuted, "off-3", 0.0),
                finding("d", Supported, "off-4", 0.3),
            ]
        };
        for (status, expected) in [
            (Supported, vec!["a"]),
            (Undecided, vec!["a", "b"]),
            (Refuted, vec!["b"]),
            (Confirmed, vec![]),
        ] {
            let all = all(status);
            let causes: Vec<&str> = open(&all).map(|it| it.cause.as_str()).collect();
            assert_eq!(causes, expected, "{status:?}");
        }
    }

    #[test]
    fn open_arms_get_more_blocks_only_where_six_fit() {
        let ask = ask("docker", Params::new());
        let first = first(SECOND);
        let pace = Pace {
            host_ns: SECOND,
            env_ns: SECOND,
            life_ns: SECOND,
        };
        let arm = ArmSpec::new(ArmId::new("off-3").unwrap(), "docker", Params::new());
        let of =
            |arms: &[ArmSpec], left_ns| study(&ask, &first, pace, arms.to_vec(), (left_ns, 24));
        let found = of(std::slice::from_ref(&arm), 60 * SECOND).unwrap();
        assert!(found.arms.iter().any(|it| it.id == arm.id));
        assert_eq!(found.blocks_max, 24);
        // Two starts and six blocks of three trials take twenty seconds, and some time is kept in reserve.
        assert_eq!(of(&[arm], 20 * SECOND), None);
        assert_eq!(of(&[], 60 * SECOND), None);
    }
}
