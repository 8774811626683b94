//! After the run of a study: what is suspected is switched off, in a study of its own.
//!
//! A study has many cells, and a suspicion explains some of them; the one that costs most stands for them. Arms
//! that switch suspects off, the likeliest first, run beside the baseline and the arms that cost more, in the same
//! randomised blocks, as many as the time allows. What that shows is judged by the rule of
//! [`super::counterfactual`] and put into the dossier of the run that gave rise to it, whenever that is drawn.
//! What it cannot see: cells with several instances at once; they stay as the evidence left them.

use tare_model::dossier::{Dossier, DossierCell};
use tare_model::{ArmId, ArmSpec, RunId, Status, Study, Verdict, WorkloadSpec, whole_part};

use super::counterfactual::{self, Trial};
use super::readings::Readings;
use super::total::Total;
use super::{FEWEST, SUSPECTS_MOST, arm_id};
use crate::analyze::RunData;
use crate::cause::{Counterfactual, Suspected};
use crate::workload;

/// The id of every study made here.
pub const STUDY: &str = "proof";

/// What starting and removing an arm takes at most, nanoseconds: an engine's container, while others run.
const ARM_NS: u64 = 3_000_000_000;
/// Blocks at most: what thirty do not show is no cause of a material cost.
const BLOCKS_MOST: u32 = 30;

/// The study that tries what is suspected after `run`, as far as it fits into `left_ns`. `None` where nothing can
/// be tried, or nothing fits.
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
        // The whole time of the run by its trials: what stands between them has its part.
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

/// How many arms of such a study switch something off.
pub fn n_suspects(study: &Study) -> usize {
    let arms = study.arms.iter();
    arms.filter(|arm| arm.role.of.is_some()).count()
}

/// An arm without which there is nothing to compare.
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
    /// With the metric for which each is there: values are told apart by their metric.
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
        // What is measured already costs no further workload.
        let known = |cell: &&DossierCell| self.workloads.iter().any(|(id, _)| *id == cell.metric);
        let (known, new): (Vec<&DossierCell>, Vec<&DossierCell>) =
            costly.into_iter().partition(known);
        let chosen = known.into_iter().chain(new).find_map(|cell| {
            let spec = main.workloads.iter().find(|spec| is_of(spec, cell))?;
            reaches(counterfactual, spec).then(|| (cell, alone(spec)))
        });
        let Some((cell, spec)) = chosen else { return };
        let other = |(id, known): &(String, WorkloadSpec)| *id == cell.metric && *known != spec;
        if self.workloads.iter().any(other) {
            return;
        }
        let trial = Trial::of(suspected.cause, &suspected.suspicion, &cell.metric, env);
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
        let mut spec = ArmSpec::new(self.free_name(), arm.driver, arm.settings);
        spec.change = arm.change;
        spec.role.of = Some(env.id.to_string());
        spec.role.suspects = vec![trial.suspect];
        self.arms.push(spec);
    }

    /// What six blocks take, and the arms' starts.
    fn takes_ns(&self, n_arms: usize, n_workloads: usize) -> u64 {
        let n_trials = n_arms as u64 * n_workloads as u64 * u64::from(FEWEST);
        (n_arms as u64 * ARM_NS).saturating_add(n_trials.saturating_mul(self.trial_ns))
    }

    /// A name that no arm has.
    fn free_name(&self) -> ArmId {
        let is_free = |id: &ArmId| self.arms.iter().all(|arm| arm.id != *id);
        (self.n_off..=self.n_off + self.arms.len())
            .map(|number| arm_id(&format!("off-{number}")))
            .find(is_free)
            .expect("there are more numbers than arms")
    }
}

/// Whether a workload is the one of a cell that had one instance.
fn is_of(spec: &WorkloadSpec, cell: &DossierCell) -> bool {
    spec.id.as_str() == cell.workload
        && spec.params == cell.params
        && spec.path == cell.path
        && (spec.instances, cell.instances) == (1, 1)
}

/// A workload that runs as it is: nobody waits for one instance.
fn alone(spec: &WorkloadSpec) -> WorkloadSpec {
    WorkloadSpec {
        spread: None,
        ..spec.clone()
    }
}

/// Whether what is changed reaches the workload: a change of the command is lost on a probe, which is none, and
/// would look like a refutation.
fn reaches(counterfactual: &Counterfactual, spec: &WorkloadSpec) -> bool {
    match counterfactual {
        Counterfactual::Settings(_) | Counterfactual::BaselineSettings(_) => true,
        Counterfactual::Variables(_)
        | Counterfactual::Prefix(_)
        | Counterfactual::BaselinePrefix(_) => workload::find(spec.id.as_str())
            .is_some_and(|workload| !workload.tools(&spec.params).is_empty()),
        // Their files are those of one command of a user's.
        Counterfactual::HostProgram
        | Counterfactual::BaselineCold(_)
        | Counterfactual::NotHere(_) => false,
    }
}

/// Puts what a proof showed into the dossier of the run that gave rise to it.
pub fn put_into(dossier: &mut Dossier, proof: &RunData) {
    let readings = Readings::of(proof);
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
            let (status, judged) = counterfactual::judged(
                suspect,
                spec.id.as_str(),
                baseline,
                env,
                &Total::of(&readings, baseline, env, &suspect.metric),
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
            // Without enough blocks the evidence stands as it did.
            if status == Status::Untested {
                continue;
            }
            finding.status = judged.status;
            finding.effect = judged.effect;
            finding.share = judged.share;
            finding.arm = judged.arm;
            // The cell that was tried comes first: the effect has its unit.
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
