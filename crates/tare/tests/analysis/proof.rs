//! Tests how suspected causes are switched off after a run: the arms that this needs, and what their trials prove.

use tare::analyze::{RunData, TrialData};
use tare::cause::{Counterfactual, Suspected, Suspicion};
use tare::why::proof;
use tare_model::dossier::Dossier;
use tare_model::{Params, RunId, Spread, Status, Study, Verdict};

use crate::generator::{Effect, Plan};

const INTEGER: &str = "cpu.integer.time";
const MINUTE: u64 = 60_000_000_000;

/// A run in which the box is 2× slower.
fn main_run() -> (Plan, Dossier) {
    let plan = Plan::default().with("box", INTEGER, Effect::Times(2.0));
    let dossier = plan.dossier();
    assert_eq!(dossier.cells[0].verdict, Verdict::MaterialCost);
    (plan, dossier)
}

fn suspected(cause: &'static str, counterfactual: Counterfactual) -> Suspected {
    Suspected {
        arm: "box".into(),
        cause,
        suspicion: Suspicion {
            claim: "it is the quota".into(),
            size: String::new(),
            evidence: vec!["there is one".into()],
            cells: vec![0],
            likelihood: 0.9,
            counterfactual,
            advice: "raise it".into(),
            price: "none".into(),
        },
    }
}

fn without_quota(cause: &'static str) -> Suspected {
    let settings = Params::new().with("cpus", "");
    suspected(cause, Counterfactual::Settings(settings))
}

fn study(plan: &Plan, dossier: &Dossier, suspected: &[Suspected], left_ns: u64) -> Option<Study> {
    let run = RunId::new("r-test").unwrap();
    proof::study(&run, &plan.study(), dossier, suspected, left_ns)
}

fn arms(study: &Study) -> Vec<&str> {
    study.arms.iter().map(|arm| arm.id.as_str()).collect()
}

#[test]
fn proof_study_has_baseline_costly_and_suspect_arm() {
    let (plan, dossier) = main_run();
    let suspects = [without_quota("cpu.cfs-quota-throttle")];
    let study = study(&plan, &dossier, &suspects, MINUTE).unwrap();
    assert_eq!(arms(&study), ["host", "box", "off-1"]);
    assert_eq!(study.workloads.len(), 1);
    assert_eq!(study.budget_ns, Some(MINUTE));
    assert!(study.blocks_min >= 6 && study.publication.is_none());
    assert_eq!(tare::why::before(&study), Some("r-test"));
    assert_eq!(proof::n_suspects(&study), 1);
}

#[test]
fn proof_tries_single_instance_but_not_several() {
    let (plan, mut dossier) = main_run();
    let suspects = [without_quota("cpu.cfs-quota-throttle")];
    let of = |dossier: &Dossier, instances: u32| {
        let mut main = plan.study();
        main.workloads[0].instances = instances;
        main.workloads[0].spread = Some(Spread::Processes);
        proof::study(
            &RunId::new("r-test").unwrap(),
            &main,
            dossier,
            &suspects,
            MINUTE,
        )
    };
    let study = of(&dossier, 1).unwrap();
    assert_eq!(study.workloads[0].spread, None);
    dossier.cells[0].instances = 2;
    assert!(of(&dossier, 2).is_none());
}

#[test]
fn unfit_or_unreachable_suspect_is_not_tried() {
    let (plan, dossier) = main_run();
    let one = [without_quota("cpu.cfs-quota-throttle")];
    assert!(study(&plan, &dossier, &one, 0).is_none());
    assert!(study(&plan, &dossier, &[], MINUTE).is_none());
    // A command's variable does not affect a probe, which would look like a refutation.
    let variable = [("OMP_NUM_THREADS".to_owned(), "1".to_owned())].into();
    let lost = [
        suspected(
            "cpu.thread-oversubscription",
            Counterfactual::Variables(variable),
        ),
        suspected(
            "cpu.mitigations-differ",
            Counterfactual::NotHere("no switch".into()),
        ),
    ];
    assert!(study(&plan, &dossier, &lost, MINUTE).is_none());
    // Of twenty suspects the likeliest get an arm.
    let many: Vec<Suspected> = (0..20)
        .map(|_| without_quota("cpu.cpuset-numa-smt"))
        .collect();
    let few = study(&plan, &dossier, &many, MINUTE).unwrap();
    assert!(proof::n_suspects(&few) < 20, "{:?}", arms(&few));
    // A cell without a material overhead needs no proof.
    let quiet = Plan::default();
    let dossier = quiet.dossier();
    assert!(study(&quiet, &dossier, &one, MINUTE).is_none());
}

/// Returns the run's dossier with the proof; without its quota the box takes `times` as long as the host.
fn proved(times: f64, blocks: u32) -> Dossier {
    proved_after(times, blocks, |_| {})
}

/// Like `proved`, with a change to the trials.
fn proved_after(times: f64, blocks: u32, happens: impl Fn(&mut TrialData)) -> Dossier {
    let (plan, mut dossier) = main_run();
    let suspects = [without_quota("cpu.cfs-quota-throttle")];
    dossier.findings = suspects.iter().map(Suspected::finding).collect();
    let study = study(&plan, &dossier, &suspects, MINUTE).unwrap();
    let generated = plan
        .arms(["box", "off-1"])
        .blocks(blocks)
        .seed(2)
        .with("off-1", INTEGER, Effect::Times(times))
        .run();
    let mut proof = RunData {
        trials: generated.trials,
        head: generated.head,
    };
    proof.head.study = study;
    proof.trials.iter_mut().for_each(happens);
    proof::put_into(&mut dossier, &proof);
    dossier
}

#[test]
fn suspect_that_removes_cost_is_confirmed_with_share() {
    let dossier = proved(1.0, 12);
    let finding = &dossier.findings[0];
    assert_eq!(finding.status, Status::Confirmed, "{finding:#?}");
    let share = finding.share.unwrap();
    assert!(share.low > 0.9 && share.high < 1.1, "{share:?}");
    // In the metric's unit: what the box adds.
    let effect = finding.effect.unwrap();
    assert!(effect.low > 2.5 && effect.high < 4.0, "{effect:?}");
    assert_eq!(finding.arm.as_deref(), Some("off-1"));
    assert_eq!(
        finding.tried.as_deref(),
        Some("the same environment with no `cpus`")
    );
}

#[test]
fn useless_suspect_is_refuted_partial_is_supported() {
    assert_eq!(proved(2.0, 12).findings[0].status, Status::Refuted);
    let part = proved(1.75, 12);
    assert_eq!(part.findings[0].status, Status::Supported);
    let share = part.findings[0].share.unwrap();
    assert!(share.low > 0.15 && share.high < 0.35, "{share:?}");
}

#[test]
fn too_few_blocks_leave_the_evidence_as_it_was() {
    let dossier = proved(1.0, 4);
    let finding = &dossier.findings[0];
    assert_eq!(finding.status, Status::Supported);
    assert!(finding.share.is_none() && finding.effect.is_none());
    assert!(finding.tried.as_ref().unwrap().contains("too few blocks"));
}

#[test]
fn excluded_trials_do_not_confirm_suspect() {
    // The clock in the tried arm runs ahead of the host's.
    let dossier = proved_after(1.0, 12, |data| {
        if data.trial.cell.arm.as_str() == "off-1" {
            data.host_elapsed_ns /= 2;
        }
    });
    let finding = &dossier.findings[0];
    assert_eq!(finding.status, Status::Supported);
    assert!(finding.tried.as_ref().unwrap().contains("too few blocks"));
}
