//! Selects what is reported of the differences that were tried: a suspect for each set, and of the findings those
//! that count.
//!
//! Pure: findings in, findings out. Each slowdown is given to one cause; a proof in separate blocks counts before
//! what the search saw; and a set counts only if each member causes a part of its effect.
//! Limits: misses two differences of which each is slow only together with the other.

use tare_model::Status;
use tare_model::arm::Suspect;
use tare_model::dossier::DossierFinding;

use super::super::counterfactual::MOST;
use super::super::search::{MANY, RemovedShare};
use super::members::{Remainder, SetVerdict, can_be_taken_apart, fate, sorted, without_one};
use super::sides::FIRST;
use super::{CLAIM, ContainerQuestion, ONE_OF, PROOF, RUNNING, SEVERAL, TOGETHER, TRY};
use crate::driver::user_container::{Difference, OWN};

/// The switch that removes others too: a container on the host's network has no network, published ports or sysctls
/// of its own.
const WIDE: &str = "engine.network";

/// The maximum number of differences in a set with advice for each.
const ADVISED_MOST: usize = 4;

/// Whether a difference goes away with the wide switch.
fn is_within_wide(id: &str) -> bool {
    id.starts_with("sysctl.net.") || matches!(id, "network" | "publish" | "publish-all" | "link")
}

/// The sets to prove, without the wide switch if a difference within it was found too. Otherwise the differences
/// within it are added, so that their effect is not attributed to the wide switch. `all` are the container's
/// differences. Sets with what the engine does to every container come last.
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

/// A suspect made of one or several differences.
pub(super) fn suspect_of(asks: &ContainerQuestion, ids: &[String], metric: &str) -> Suspect {
    let of = |id: &String| asks.differences.iter().find(|it| it.id == *id);
    let all: Vec<&Difference> = ids.iter().filter_map(of).collect();
    let join = |part: fn(&Difference) -> &str, between: &str| {
        let mut parts: Vec<&str> = all.iter().map(|it| part(it)).collect();
        parts.dedup();
        parts.join(between)
    };
    let variables = set_of_variables(asks, ids);
    let is_set = variables.is_some();
    let what = variables
        .unwrap_or_else(|| join(|it| &it.what, if all.len() == 2 { " and " } else { ", " }));
    let cause = match all.as_slice() {
        [one] => format!("{OWN}{}", one.id),
        [one, two] => format!("{OWN}{}+{}", one.id, two.id),
        _ => SEVERAL.to_owned(),
    };
    let (advice, price) = if is_set {
        (
            "pass fewer variables (`-e`, `--env-file`; in a compose file: `environment:`, `env_file:`), or give it more time, so that they are tried in smaller sets".to_owned(),
            "whatever they were set for".to_owned(),
        )
    } else if all.len() > ADVISED_MOST {
        (
            "give it more time, so that they are tried one by one".to_owned(),
            "none is known of a set".to_owned(),
        )
    } else {
        (join(|it| &it.advice, "; "), join(|it| &it.price, "; "))
    };
    Suspect {
        cause,
        claim: match all.as_slice() {
            [_, _, _, ..] if !is_set => format!("{ONE_OF}{what}"),
            _ => format!("{what}{CLAIM}"),
        },
        likelihood: all.iter().map(|it| it.likelihood).fold(0.0, f64::max),
        advice,
        price,
        metric: metric.to_owned(),
        tried: if asks.undo.is_empty() {
            format!("a container like it without {what}")
        } else {
            format!("b with what {FIRST} has in place of {what}")
        },
        ..Suspect::default()
    }
}

/// The beginning of the words for a set of variables.
const SET: &str = "the set of ";

/// A large set that is only variables, in words: what its members do is not known of each, but of all together.
fn set_of_variables(asks: &ContainerQuestion, ids: &[String]) -> Option<String> {
    let is_variable = |id: &str| id.starts_with("env.");
    if ids.len() < MANY || !ids.iter().all(|id| is_variable(id)) {
        return None;
    }
    let all = asks.differences.iter().filter(|it| is_variable(&it.id));
    let (count, all) = (ids.len(), all.count());
    Some(if count == all {
        format!("{SET}its {all} variables")
    } else {
        format!("{SET}{count} of its {all} variables")
    })
}

/// Selects the findings about differences. A proof in separate blocks replaces what the search tried and what the
/// catalogue calls the same switch; a finding of the search alone is only supported; and a set is kept only if no
/// single difference was found, or if it has no effect. `without` returns the differences that an arm lacks, `back`
/// the share of the slowdown that comes back between two arms.
pub(crate) fn sifted(
    findings: &mut Vec<DossierFinding>,
    without: impl Fn(&str) -> Option<Vec<String>>,
    back: impl Fn(&str, &str) -> Option<RemovedShare>,
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
    let is_set = |it: &DossierFinding| it.cause == SEVERAL || is_pair(&it.cause);
    take_sets_apart(findings, &without, &back);
    let has_better = findings
        .iter()
        .any(|it| has_effect(it) && it.arm.is_some() && (in_arm(it, PROOF) || !is_set(it)));
    let is_proved = |it: &DossierFinding| in_arm(it, PROOF) && it.status == Status::Confirmed;
    let has_proof = findings.iter().any(is_proved);
    for finding in findings.iter_mut() {
        // What only the running container has is not a difference of its copy; it was measured next to all of them.
        let is_own = finding.cause.starts_with(OWN) && finding.cause != RUNNING;
        let is_other = !in_arm(finding, PROOF)
            && finding.cause != RUNNING
            && without_of(finding, &without).is_some();
        // A slowdown is not attributed twice: another switch that also removes it is no second cause.
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
    // The few blocks of a search give no interval.
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

/// Whether a part of the slowdown surely went away.
pub(super) fn has_effect(finding: &DossierFinding) -> bool {
    matches!(finding.status, Status::Confirmed | Status::Supported)
}

/// Whether a finding's arm is of this kind.
fn in_arm(finding: &DossierFinding, prefix: &str) -> bool {
    let arm = finding.arm.as_deref().unwrap_or_default();
    arm.strip_prefix(prefix)
        .is_some_and(|rest| rest.starts_with('-'))
}

/// Judges sets that were proved: a set whose members are all needed stays, one that can be reduced is removed, and
/// one whose members could not be separated is at most supported and says so.
fn take_sets_apart(
    findings: &mut Vec<DossierFinding>,
    without: &impl Fn(&str) -> Option<Vec<String>>,
    back: &impl Fn(&str, &str) -> Option<RemovedShare>,
) {
    let all = findings.clone();
    let proof_of = |set: &[String]| {
        let mut proofs = all.iter().filter(|it| in_arm(it, PROOF));
        proofs.find(|it| without_of(it, without).is_some_and(|its| sorted(&its) == set))
    };
    findings.retain_mut(|finding| {
        let set = without_of(finding, without).map(|set| sorted(&set));
        let is_effective = has_effect(finding) && in_arm(finding, PROOF);
        let Some(set) = set.filter(|set| set.len() > 1 && is_effective) else {
            return true;
        };
        if !can_be_taken_apart(&set) {
            as_open(finding, &set);
            return true;
        }
        let rest = |member: &str| {
            let rest = proof_of(&without_one(&set, member))?;
            Some(Remainder {
                back: back(finding.arm.as_deref()?, rest.arm.as_deref()?),
                carries: rest.share.map(|it| it.point).filter(|_| has_effect(rest)),
                is_proved: rest.status <= finding.status,
            })
        };
        match fate(&set, rest) {
            SetVerdict::Whole => as_one(finding),
            SetVerdict::Superseded => return false,
            SetVerdict::Open(members) => as_open(finding, &members),
        }
        true
    });
}

/// The wording for a set of which every member is needed.
fn as_one(finding: &mut DossierFinding) {
    if let Some(what) = finding.claim.strip_prefix(ONE_OF) {
        finding.claim = format!("{what}{TOGETHER}{CLAIM}");
    }
    finding
        .evidence
        .push("each of them carries a part: put back alone, it brings the cost back".to_owned());
}

/// The wording for a set whose members could not be separated.
fn as_open(finding: &mut DossierFinding, members: &[String]) {
    if finding.claim.starts_with(SET) {
        finding
            .evidence
            .push("they were removed together, and none of them alone".to_owned());
        return;
    }
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

/// Downgrades the wide switch if the differences within it alone remove as much, or all but a smaller part.
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

/// The differences that a finding's arm lacks.
fn without_of(
    finding: &DossierFinding,
    without: &impl Fn(&str) -> Option<Vec<String>>,
) -> Option<Vec<String>> {
    finding.arm.as_deref().and_then(without)
}

/// Merges sets without an effect into one finding.
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
