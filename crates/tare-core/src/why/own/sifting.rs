//! What is told of the differences that were tried: a suspect for each set, and of what was found what counts.
//!
//! Pure: findings in, findings out. One cost is given to one cause; what was proved in blocks of its own counts before
//! what was seen on the way there; and a set counts only with members of which each carries a part of what it does.
//! What it cannot see: two differences of which each would cost something beside the other.

use tare_model::Status;
use tare_model::arm::Suspect;
use tare_model::dossier::DossierFinding;

use super::super::counterfactual::MOST;
use super::super::search::Shown;
use super::members::{Fate, Rest, fate, sorted, without_one};
use super::sides::FIRST;
use super::{Asks, CLAIM, ONE_OF, PROOF, RUNNING, SEVERAL, TOGETHER, TRY};
use crate::driver::own::{Difference, OWN};

/// The switch that takes others with it: a container on the host's network has neither a network, nor published
/// ports, nor sysctls of its own.
const WIDE: &str = "engine.network";

/// Of so many differences at most what to change is told one by one.
const ADVISED_MOST: usize = 4;

/// Whether a difference goes with the wide switch.
fn is_within_wide(id: &str) -> bool {
    id.starts_with("sysctl.net.") || matches!(id, "network" | "publish" | "publish-all" | "link")
}

/// What was found without the switch that takes others with it, where one of those was found too; where none was,
/// those others are tried beside it, so that what is theirs is not taken for its own. `all` are the container's
/// differences. What the engine does to every container comes last.
pub(super) fn narrowest(found: &[Vec<String>], all: &[&str]) -> Vec<Vec<String>> {
    let is_wide = |set: &[String]| set == [WIDE];
    let has_narrower = found.iter().flatten().any(|id| is_within_wide(id));
    let mut sets: Vec<Vec<String>> = found
        .iter()
        .filter(|set| !(has_narrower && is_wide(set)))
        .cloned()
        .collect();
    let within: Vec<String> = all
        .iter()
        .filter(|id| is_within_wide(id))
        .map(|id| (*id).to_owned())
        .collect();
    if sets.iter().any(|set| is_wide(set)) && !within.is_empty() {
        sets.push(within);
    }
    sets.sort_by_key(|set| set.iter().any(|id| id.starts_with("engine.")));
    sets
}

/// A difference, or several, as a suspect.
pub(super) fn suspect_of(asks: &Asks, ids: &[String], metric: &str) -> Suspect {
    let of = |id: &String| asks.differences.iter().find(|it| it.id == *id);
    let all: Vec<&Difference> = ids.iter().filter_map(of).collect();
    let join = |part: fn(&Difference) -> &str, between: &str| {
        let mut parts: Vec<&str> = all.iter().map(|it| part(it)).collect();
        parts.dedup();
        parts.join(between)
    };
    let what = join(|it| &it.what, if all.len() == 2 { " and " } else { ", " });
    let cause = match all.as_slice() {
        [one] => format!("{OWN}{}", one.id),
        [one, two] => format!("{OWN}{}+{}", one.id, two.id),
        _ => SEVERAL.to_owned(),
    };
    Suspect {
        cause,
        size: String::new(),
        claim: match all.as_slice() {
            [_, _, _, ..] => format!("{ONE_OF}{what}"),
            _ => format!("{what}{CLAIM}"),
        },
        evidence: Vec::new(),
        likelihood: all.iter().map(|it| it.likelihood).fold(0.0, f64::max),
        advice: if all.len() > ADVISED_MOST {
            "give it more time, so that they are tried one by one".to_owned()
        } else {
            join(|it| &it.advice, "; ")
        },
        price: if all.len() > ADVISED_MOST {
            "none is known of a set".to_owned()
        } else {
            join(|it| &it.price, "; ")
        },
        metric: metric.to_owned(),
        tried: if asks.undo.is_empty() {
            format!("a container like it without {what}")
        } else {
            format!("b with what {FIRST} has in place of {what}")
        },
        is_outside: false,
    }
}

/// What is told of the differences: what was proved in blocks of its own counts before what was tried on the way
/// there and before what the catalogue calls the same switch; what was found on the way only supports; and a set is
/// told only where nothing alone was found, or where it has no effect. `without` says what an arm does without, `back`
/// what comes back of the cost between two arms.
pub(in crate::why) fn sifted(
    findings: &mut Vec<DossierFinding>,
    without: impl Fn(&str) -> Option<Vec<String>>,
    back: impl Fn(&str, &str) -> Option<Shown>,
) {
    let away = |finding: &DossierFinding| without_of(finding, &without);
    let proved: Vec<Option<Vec<String>>> = findings
        .iter()
        .filter(|finding| in_arm(finding, PROOF))
        .map(away)
        .collect();
    findings.retain(|finding| {
        let same = away(finding);
        in_arm(finding, PROOF) || same.is_none() || !proved.contains(&same)
    });
    let has_effect =
        |it: &DossierFinding| matches!(it.status, Status::Confirmed | Status::Supported);
    let is_set = |it: &DossierFinding| it.cause == SEVERAL || is_pair(&it.cause);
    take_sets_apart(findings, &without, &back);
    let has_better = findings
        .iter()
        .any(|it| has_effect(it) && it.arm.is_some() && (in_arm(it, PROOF) || !is_set(it)));
    let is_proved = |it: &DossierFinding| in_arm(it, PROOF) && it.status == Status::Confirmed;
    let has_proof = findings.iter().any(is_proved);
    for finding in findings.iter_mut() {
        // What only the running container has is no difference of a copy, and was measured beside all of them.
        let is_own = finding.cause.starts_with(OWN) && finding.cause != RUNNING;
        let is_other = !in_arm(finding, PROOF)
            && finding.cause != RUNNING
            && without_of(finding, &without).is_some();
        // One cost is not given twice: another switch that takes it too is no second cause.
        if (is_own || has_proof) && is_other && finding.status == Status::Confirmed {
            finding.status = Status::Supported;
            if !is_own {
                finding.evidence.push(
                    "what was proved above takes the same cost away: this is another way to the same end"
                        .to_owned(),
                );
            }
        }
    }
    let is_shown = |it: &DossierFinding| in_arm(it, PROOF) && has_effect(it);
    yield_to_narrower(findings, is_shown, |finding| {
        let away = without_of(finding, &without);
        away.is_some_and(|ids| !ids.is_empty() && ids.iter().all(|id| is_within_wide(id)))
    });
    // In the few blocks of a search there is no interval.
    findings.retain(|it| !(in_arm(it, TRY) && it.status == Status::Untested));
    findings.retain(|finding| {
        !is_set(finding)
            || in_arm(finding, PROOF)
            || finding.status == Status::Refuted
            || (has_effect(finding) && !has_better)
    });
    merge_refuted(findings);
    findings.sort_by_key(|finding| finding.status);
}

/// Whether what a finding is about was tried in an arm of this kind.
fn in_arm(finding: &DossierFinding, prefix: &str) -> bool {
    let arm = finding.arm.as_deref().unwrap_or_default();
    arm.strip_prefix(prefix)
        .is_some_and(|rest| rest.starts_with('-'))
}

/// Of sets that were proved: one whose members are all needed stays; one is left out that comes down to less; and
/// one whose members could not be told apart is no more than supported, and says so.
fn take_sets_apart(
    findings: &mut Vec<DossierFinding>,
    without: &impl Fn(&str) -> Option<Vec<String>>,
    back: &impl Fn(&str, &str) -> Option<Shown>,
) {
    let all = findings.clone();
    let proof_of = |set: &[String]| {
        let mut proofs = all.iter().filter(|it| in_arm(it, PROOF));
        proofs.find(|it| without_of(it, without).is_some_and(|its| sorted(&its) == set))
    };
    findings.retain_mut(|finding| {
        let set = without_of(finding, without).map(|set| sorted(&set));
        let has_effect = matches!(finding.status, Status::Confirmed | Status::Supported);
        let Some(set) = set.filter(|set| set.len() > 1 && has_effect && in_arm(finding, PROOF))
        else {
            return true;
        };
        let rest = |member: &str| {
            let rest = proof_of(&without_one(&set, member))?;
            let has_effect = matches!(rest.status, Status::Confirmed | Status::Supported);
            Some(Rest {
                back: back(finding.arm.as_deref()?, rest.arm.as_deref()?),
                carries: rest.share.map(|it| it.point).filter(|_| has_effect),
                is_proved: rest.status <= finding.status,
            })
        };
        match fate(&set, rest) {
            Fate::Whole => as_one(finding),
            Fate::Told => return false,
            Fate::Open(members) => as_open(finding, &members),
        }
        true
    });
}

/// Words for a set of which every member is needed.
fn as_one(finding: &mut DossierFinding) {
    if let Some(what) = finding.claim.strip_prefix(ONE_OF) {
        finding.claim = format!("{what}{TOGETHER}{CLAIM}");
    }
    finding
        .evidence
        .push("each of them carries a part: put back alone, it brings the cost back".to_owned());
}

/// Words for a set whose members could not be told apart.
fn as_open(finding: &mut DossierFinding, members: &[String]) {
    finding.status = finding.status.max(Status::Supported);
    if let Some(what) = finding.claim.strip_suffix(CLAIM) {
        finding.claim = format!("{ONE_OF}{what}");
        finding.advice = format!("one of these, or all: {}", finding.advice);
    }
    finding.evidence.push(format!(
        "not separated from the others: `{}`; a longer `--budget` tries each of them",
        members.join("`, `")
    ));
}

/// A switch that takes others with it is no cause where those alone take as much, or all but a lesser part.
fn yield_to_narrower(
    findings: &mut [DossierFinding],
    is_shown: impl Fn(&DossierFinding) -> bool,
    is_within: impl Fn(&DossierFinding) -> bool,
) {
    let share = |it: &DossierFinding| it.share.map_or(0.0, |share| share.point);
    let narrower = findings
        .iter()
        .filter(|it| is_shown(it) && is_within(it))
        .map(share)
        .reduce(f64::max);
    let Some(narrower) = narrower else {
        return;
    };
    let wide = format!("{OWN}{WIDE}");
    for finding in findings.iter_mut().filter(|it| it.cause == wide) {
        if finding.status == Status::Confirmed && share(finding) - narrower < MOST {
            finding.status = Status::Supported;
            finding.evidence.push(
                "this switch takes with it what was proved above, and little beyond that"
                    .to_owned(),
            );
        }
    }
}

/// What the arm of a finding does without.
fn without_of(
    finding: &DossierFinding,
    without: &impl Fn(&str) -> Option<Vec<String>>,
) -> Option<Vec<String>> {
    finding.arm.as_deref().and_then(without)
}

/// Sets that had no effect are told as one.
fn merge_refuted(findings: &mut Vec<DossierFinding>) {
    let is_one = |it: &DossierFinding| it.cause == SEVERAL && it.status == Status::Refuted;
    let sets: Vec<DossierFinding> = findings.iter().filter(|it| is_one(it)).cloned().collect();
    let Some(mut all) = sets.first().cloned() else {
        return;
    };
    findings.retain(|it| !is_one(it));
    let claims = sets.iter().map(|it| it.claim.trim_start_matches(ONE_OF));
    all.claim = format!(
        "removed in {} set{}, without an effect: {}",
        sets.len(),
        if sets.len() == 1 { "" } else { "s" },
        claims.collect::<Vec<_>>().join(", ")
    );
    (all.share, all.effect, all.tried) = (None, None, None);
    findings.push(all);
}

fn is_pair(cause: &str) -> bool {
    cause.starts_with(OWN) && cause.contains('+')
}
