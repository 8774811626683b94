//! Switches the suspects of a finished run off, in a separate study.
//!
//! A suspicion explains some of the study's cells; the one with the largest overhead represents them. Arms that
//! switch suspects off, likeliest first, run together with the baseline and the slower arms in the same randomised
//! blocks, as many as the time allows. The result is judged by the rule of [`super::counterfactual`] and put into the
//! dossier of the original run whenever that is made.
//! Limits: cells with several instances at once are not tried; they keep the status from the evidence.

use tare_model::dossier::{Dossier, DossierCell};
use tare_model::{ArmId, ArmSpec, RunId, Status, Study, Verdict, WorkloadSpec, whole_part};

use super::counterfactual::{self, SuspectTrial};
use super::readings::Readings;
use super::total::Total;
use super::{FEWEST, SUSPECTS_MOST, arm_id};
use crate::analyze::RunData;
use crate::cause::{Counterfactual, Suspected};
use crate::workload;

/// The id of every proof study.
pub const STUDY: &str = "proof";

/// The longest time to start and remove an arm, nanoseconds: an engine's container, while others run.
const ARM_NS: u64 = 3_000_000_000;
/// The maximum number of blocks: what thirty do not show causes no material overhead.
const BLOCKS_MOST: u32 = 30;

/// The study that tries the suspects of `run`, as far as it fits into `left_ns`. `None` if nothing can be tried or
/// nothing fits.
pub fn study(
    run: &RunId,
    main: &Study,
    dossier: &Dossier,
    suspected: &[Suspected],
    left_ns: u64,
) -> Option<Study> {
    if dossier.cost.trials == 0 {
        return None;
    }
    let baseline = main.arms.iter().find(|arm| arm.id == main.baseline)?;
    let mut draft = Draft {
        // The run's wall time divided by its trials, so that the time between trials is included.
        trial_ns: whole_part(dossier.cost.wall_s * 1e9 / f64::from(dossier.cost.trials)),
        left_ns,
        arms: vec![kept(baseline)],
        workloads: Vec::new(),
        n_off: 0,
    };
    for suspected in suspected {
        if let Some(env) = main
            .arms
            .iter()
            .find(|arm| arm.id.as_str() == suspected.arm)
        {
            draft.try_out(main, &dossier.cells, env, suspected);
        }
    }
    if draft.n_off == 0 {
        return None;
    }
    draft.arms[0].role.before = Some(run.to_string());
    Some(Study {
        publication: None,
        pairs: false,
        id: STUDY.to_owned(),
        title: format!("what is suspected after run {run}, switched off"),
        arms: draft.arms,
        workloads: draft.workloads.into_iter().map(|(_, spec)| spec).collect(),
        blocks_min: FEWEST,
        blocks_max: BLOCKS_MOST,
        precision: None,
        budget_ns: Some(left_ns),
        ..main.clone()
    })
}

/// The number of arms in such a study that switch a suspect off.
pub fn n_suspects(study: &Study) -> usize {
    let arms = study.arms.iter();
    arms.filter(|arm| arm.role.of.is_some()).count()
}

/// Marks an arm as required for the comparison.
fn kept(arm: &ArmSpec) -> ArmSpec {
    ArmSpec {
        required: true,
        ..arm.clone()
    }
}

/// A study under construction.
struct Draft {
    trial_ns: u64,
    left_ns: u64,
    arms: Vec<ArmSpec>,
    /// Each with the metric that it is for: values are identified by their metric.
    workloads: Vec<(String, WorkloadSpec)>,
    n_off: usize,
}

impl Draft {
    /// Adds an arm that switches the suspect off, with what is needed to compare it, if that is possible and fits.
    fn try_out(
        &mut self,
        main: &Study,
        cells: &[DossierCell],
        env: &ArmSpec,
        suspected: &Suspected,
    ) {
        let counterfactual = &suspected.suspicion.counterfactual;
        let places = suspected.suspicion.cells.iter();
        let mut costly: Vec<&DossierCell> = places
            .filter_map(|place| cells.get(*place))
            .filter(|cell| cell.verdict == Verdict::MaterialCost)
            .collect();
        let ratio = |cell: &DossierCell| cell.ratio.map_or(0.0, |ratio| ratio.point);
        costly.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
        // A cell whose metric is already measured needs no further workload.
        let known = |cell: &&DossierCell| self.workloads.iter().any(|(id, _)| *id == cell.metric);
        let (known, new): (Vec<&DossierCell>, Vec<&DossierCell>) =
            costly.into_iter().partition(known);
        let chosen = known.into_iter().chain(new).find_map(|cell| {
            let spec = main.workloads.iter().find(|spec| is_of(spec, cell))?;
            // There is only one instance, so that nothing is synchronised.
            let alone = WorkloadSpec {
                spread: None,
                ..spec.clone()
            };
            reaches(counterfactual, spec).then_some((cell, alone))
        });
        let Some((cell, spec)) = chosen else { return };
        let other = |(id, known): &(String, WorkloadSpec)| *id == cell.metric && *known != spec;
        if self.workloads.iter().any(other) {
            return;
        }
        let trial = SuspectTrial::new(suspected.cause, &suspected.suspicion, &cell.metric, env);
        let Some(arm) = trial.arm else {
            return;
        };
        let has_env = self.arms.iter().any(|arm| arm.id == env.id);
        let has_workload = self.workloads.iter().any(|(_, known)| *known == spec);
        let n_arms = self.arms.len() + 1 + usize::from(!has_env);
        let n_workloads = self.workloads.len() + usize::from(!has_workload);
        if self.n_off == SUSPECTS_MOST || self.takes_ns(n_arms, n_workloads) > self.left_ns {
            return;
        }
        if !has_env {
            self.arms.push(kept(env));
        }
        if !has_workload {
            self.workloads.push((cell.metric.clone(), spec));
        }
        self.n_off += 1;
        let mut spec = arm.named(self.free_name());
        spec.role.of = Some(env.id.to_string());
        spec.role.suspects = vec![trial.suspect];
        self.arms.push(spec);
    }

    /// Time for six blocks and the arms' starts.
    fn takes_ns(&self, n_arms: usize, n_workloads: usize) -> u64 {
        let n_trials = n_arms as u64 * n_workloads as u64 * u64::from(FEWEST);
        (n_arms as u64 * ARM_NS).saturating_add(n_trials.saturating_mul(self.trial_ns))
    }

    /// An unused arm name.
    fn free_name(&self) -> ArmId {
        let is_free = |id: &ArmId| self.arms.iter().all(|arm| arm.id != *id);
        (self.n_off..=self.n_off + self.arms.len())
            .map(|number| arm_id(&format!("off-{number}")))
            .find(is_free)
            .expect("there are more numbers than arms")
    }
}

/// Whether a workload is that of a single-instance cell.
fn is_of(spec: &WorkloadSpec, cell: &DossierCell) -> bool {
    spec.id.as_str() == cell.workload
        && spec.params == cell.params
        && spec.path == cell.path
        && (spec.instances, cell.instances) == (1, 1)
}

/// Whether the switch affects the workload. A change of the command has no effect on a probe, which would look like a
/// refutation.
fn reaches(counterfactual: &Counterfactual, spec: &WorkloadSpec) -> bool {
    match counterfactual {
        Counterfactual::Settings(_) | Counterfactual::BaselineSettings(_) => true,
        Counterfactual::Variables(_)
        | Counterfactual::Prefix(_)
        | Counterfactual::BaselinePrefix(_) => workload::find(spec.id.as_str())
            .is_some_and(|workload| !workload.tools(&spec.params).is_empty()),
        // These need the files of one command of the user's.
        Counterfactual::HostProgram
        | Counterfactual::BaselineCold(_)
        | Counterfactual::NotHere(_) => false,
    }
}

/// Puts the results of a proof into the dossier of the original run.
pub fn put_into(dossier: &mut Dossier, proof: &RunData) {
    let readings = Readings::read(proof);
    let study = &proof.head.study;
    for spec in &study.arms {
        let Some(env) = spec.role.of.as_deref() else {
            continue;
        };
        let data = proof.head.arms.iter().find(|arm| arm.spec.id == spec.id);
        let absent = data
            .filter(|arm| !arm.available)
            .and_then(|arm| arm.reason.as_deref());
        for suspect in &spec.role.suspects {
            let baseline = study.baseline.as_str();
            let judged = counterfactual::judged(
                suspect,
                spec.id.as_str(),
                baseline,
                env,
                &Total::between(&readings, baseline, env, &suspect.metric),
                &readings,
            );
            let cells = &dossier.cells;
            let arm_of = |cell: &u32| cells.get(*cell as usize).map(|cell| cell.arm.as_str());
            let same = dossier.findings.iter_mut().find(|finding| {
                finding.cause == suspect.cause
                    && finding.cells.first().and_then(arm_of) == Some(env)
            });
            let Some(finding) = same else { continue };
            finding.tried = match absent {
                Some(reason) => Some(format!("{}: not available here: {reason}", suspect.tried)),
                None => judged.tried,
            };
            // With too few blocks the evidence keeps its status.
            if judged.status == Status::Untested {
                continue;
            }
            finding.status = judged.status;
            finding.effect = judged.effect;
            finding.share = judged.share;
            finding.arm = judged.arm;
            // The cell that was tried goes first, because the effect has its unit.
            let tried = |cell: &u32| {
                let cell = cells.get(*cell as usize);
                cell.is_some_and(|cell| cell.metric == suspect.metric)
            };
            if let Some(place) = finding.cells.iter().position(tried) {
                finding.cells[..=place].rotate_right(1);
            }
        }
    }
    dossier.findings.sort_by_key(|finding| finding.status);
}
