//! Summarises failures in few lines: equal failures are reported once, with all arms and workloads affected.
//!
//! Limits: a trial that gave a value but should have failed is not listed.

use tare_model::dossier::{Dossier, DossierFailure};

use super::words::called;
use tare_core::foreign::harmless;

/// A line about failures, with a hint if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailureLine<'a> {
    pub(crate) text: String,
    pub(crate) hint: Option<&'a str>,
}

/// Failures of the same kind with the same reason.
struct Alike<'a> {
    first: &'a DossierFailure,
    /// Each arm with its workloads.
    arms: Vec<(&'a str, Vec<&'a str>)>,
}

/// Returns the failures of a `tare why` result, without those that the ladder reports; arms are named by their step
/// or trial.
pub(crate) fn of_answer(dossier: &Dossier) -> Vec<DossierFailure> {
    let rungs = dossier.ladder.iter().flat_map(|ladder| &ladder.rungs);
    let mut failures = dossier.failures.clone();
    failures.retain(|failure| {
        let mut notes = rungs.clone().filter(|rung| rung.arm == failure.arm);
        !notes.any(|rung| {
            rung.note
                .as_ref()
                .is_some_and(|it| it.contains(&failure.reason))
        })
    });
    for failure in &mut failures {
        let rung = rungs.clone().find(|rung| rung.arm == failure.arm);
        let tried = |arm: &Option<String>| arm.as_deref() == Some(&*failure.arm);
        let finding = dossier.findings.iter().find(|it| tried(&it.arm));
        if let Some(rung) = rung {
            failure.arm = format!("the step “{}”", rung.title);
        } else if let Some(finding) = finding {
            failure.arm = format!("the trial of {}", finding.cause);
        }
    }
    failures
}

/// Summarises the failures in order of first occurrence.
pub(crate) fn summarized(failures: &[DossierFailure]) -> Vec<FailureLine<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for failure in failures {
        let is_alike = |other: &DossierFailure| {
            other.workload.is_some() == failure.workload.is_some()
                && other.kind == failure.kind
                && other.trials == failure.trials
                && other.reason == failure.reason
                && other.hint == failure.hint
        };
        let place = all.iter().position(|alike| is_alike(alike.first));
        let place = place.unwrap_or_else(|| {
            all.push(Alike {
                first: failure,
                arms: Vec::new(),
            });
            all.len() - 1
        });
        let arms = &mut all[place].arms;
        if !arms.iter().any(|(arm, _)| *arm == failure.arm) {
            arms.push((&failure.arm, Vec::new()));
        }
        for (arm, workloads) in arms.iter_mut() {
            if *arm == failure.arm {
                workloads.extend(failure.workload.as_deref());
            }
        }
    }
    all.iter().flat_map(lines).collect()
}

/// Returns one line per group of arms with the same failed workloads.
fn lines<'a>(alike: &Alike<'a>) -> Vec<FailureLine<'a>> {
    let mut sets: Vec<(Vec<&str>, &Vec<&str>)> = Vec::new();
    for (arm, workloads) in &alike.arms {
        match sets.iter_mut().find(|(_, known)| *known == workloads) {
            Some((arms, _)) => arms.push(called(arm)),
            None => sets.push((vec![called(arm)], workloads)),
        }
    }
    let first = alike.first;
    let reason = harmless(&first.reason);
    let trials = match first.trials {
        0 => String::new(),
        1 => "1 trial ".to_owned(),
        many => format!("{many} trials "),
    };
    let line = |(arms, workloads): (Vec<&str>, &Vec<&str>)| {
        let names = harmless(&arms.join(", "));
        let text = if workloads.is_empty() {
            let are = if arms.len() == 1 { "is" } else { "are" };
            format!("{names} {are} not available: {reason}")
        } else {
            let is_one = arms.len() * workloads.len() == 1;
            let of_each = if trials.is_empty() || is_one {
                ""
            } else {
                "each "
            };
            let workloads = harmless(&workloads.join(", "));
            format!(
                "{workloads} in {names}: {of_each}{trials}{}: {reason}",
                first.kind
            )
        };
        FailureLine {
            text,
            hint: first.hint.as_deref(),
        }
    };
    sets.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Absence;

    fn failure(arm: &str, workload: Option<&str>, reason: &str) -> DossierFailure {
        DossierFailure {
            arm: arm.into(),
            workload: workload.map(str::to_owned),
            kind: Absence::Failed,
            trials: 0,
            reason: reason.into(),
            hint: None,
        }
    }

    #[test]
    fn equal_failures_are_merged_without_loss() {
        let late = |arm, workload| failure(arm, Some(workload), "too late");
        let all = [
            late("host", "pipe"),
            late("host", "stat"),
            late("a-prime", "pipe"),
            late("a-prime", "stat"),
            late("box", "pipe"),
            failure("box", Some("stat"), "broken"),
            failure("far", None, "not there"),
            DossierFailure {
                trials: 3,
                ..late("box", "fork")
            },
        ];
        let lines: Vec<String> = summarized(&all).into_iter().map(|it| it.text).collect();
        assert_eq!(
            lines,
            [
                "pipe, stat in host, A′: failed: too late",
                "pipe in box: failed: too late",
                "stat in box: failed: broken",
                "far is not available: not there",
                "fork in box: 3 trials failed: too late",
            ]
        );
    }

    #[test]
    fn answer_failures_name_trial_and_skip_ladder_notes() {
        let kept = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/before/20261122-210603-620a.json"
        );
        let mut dossier: Dossier =
            serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
        let ladder = dossier.ladder.as_mut().unwrap();
        let (step, other) = (&mut ladder.rungs[0], "another");
        step.note = Some("not available here: no such switch".to_owned());
        let (step_arm, title) = (step.arm.clone(), step.title.clone());
        let tried = dossier.findings.iter().find(|it| it.arm.is_some()).unwrap();
        let (trial_arm, cause) = (tried.arm.clone().unwrap(), tried.cause.clone());
        dossier.failures = vec![
            failure(&step_arm, None, "no such switch"),
            failure(&step_arm, Some("command"), "it ended too soon"),
            failure(&trial_arm, None, "no room"),
            failure(other, None, "no room"),
        ];
        let failures = of_answer(&dossier);
        let lines: Vec<String> = summarized(&failures)
            .into_iter()
            .map(|it| it.text)
            .collect();
        assert_eq!(
            lines,
            [
                format!("command in the step “{title}”: failed: it ended too soon"),
                format!("the trial of {cause}, {other} are not available: no room"),
            ]
        );
    }
}
