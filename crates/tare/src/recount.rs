//! Derives the dossier of a stored run: every number comes from the raw output again.

use std::collections::BTreeMap;

use tare_model::dossier::{Dossier, DossierDeviation};
use tare_model::study::A_PRIME;
use tare_model::{ArmId, ArmSpec, Deviation, Facts, RunId, StoppedBy, Study};
use tare_stats::Needed;

use crate::analyze::{
    self, Analysis, ArmData, PrecisionRule, RunData, RunHead, Series, TrialData, TrialRef,
};
use crate::cause::Suspected;
use crate::failed::Failed;
use crate::run::Precision;
use crate::session::progress;
use crate::store::{Remark, SessionRecord, Store, StoreError, StoredRun, TrialRecord};
use crate::workload;
use tare_core::compare;
use tare_core::why::{self, proof};

pub(crate) mod lines;

/// The stopping rule of the analysis, as the engine asks for it.
impl Precision for PrecisionRule<'_> {
    fn add(&mut self, record: &TrialRecord) {
        PrecisionRule::add(self, trial_ref(record));
    }

    fn needed(&mut self, _: &Study, inside: &BTreeMap<ArmId, Facts>, _: u32) -> Vec<Needed> {
        PrecisionRule::needed(self, inside)
    }

    fn so_far(&self) -> Option<String> {
        progress::so_far(&PrecisionRule::so_far(self))
    }
}

/// Resolves `text` to a run. `latest` never resolves to a proof, but to the run whose dossier contains it.
pub(crate) fn resolve(store: &Store, text: &str) -> Result<RunId, Failed> {
    let run = store.resolve(text)?;
    if text == "latest" {
        return answering(store, run);
    }
    Ok(run)
}

/// Returns the run whose dossier contains a stored run; usually the run itself.
pub(crate) fn answering(store: &Store, run: RunId) -> Result<RunId, Failed> {
    let study = store.run_without_records(&run)?.study;
    let before = why::before(&study).filter(|_| study.id == proof::STUDY);
    match before.map(|name| store.resolve(name)) {
        Some(Ok(before)) => Ok(before),
        _ => Ok(run),
    }
}

/// Returns the dossier of a stored run, with later proofs. One trial at a time is in memory, except for answers of
/// `tare why` and proofs, whose runs are short.
pub(crate) fn dossier(store: &Store, run: &RunId) -> Result<Dossier, Failed> {
    concluded(store, store.run_without_records(run)?)
}

/// The same, with every pair of arms compared.
pub(crate) fn with_pairs(store: &Store, run: &RunId) -> Result<Dossier, Failed> {
    let mut stored = store.run_without_records(run)?;
    if stored.study.id == why::STUDY {
        return Err(two_sides());
    }
    stored.study.pairs = true;
    concluded(store, stored)
}

fn concluded(store: &Store, stored: StoredRun) -> Result<Dossier, Failed> {
    let run = stored.id.clone();
    if stored.study.id == why::STUDY {
        return Ok(why::conclude(&answered(store, &run)?));
    }
    if stored.study.id == compare::STUDY {
        return Ok(analyze::analyze(&answered(store, &run)?, &workload::find));
    }
    let (mut dossier, _) = measured(store, stored)?;
    for proof in proofs(store, &run)?.into_iter().rev() {
        proof::put_into(&mut dossier, &run_data(store.run(&proof)?));
    }
    Ok(dossier)
}

/// Returns the proofs of a run's suspects, the newest first.
fn proofs(store: &Store, run: &RunId) -> Result<Vec<RunId>, Failed> {
    let mut proofs = Vec::new();
    for proof in store.runs_of(proof::STUDY)? {
        let study = store.run_without_records(&proof)?.study;
        if why::before(&study) == Some(run.as_str()) {
            proofs.push(proof);
        }
    }
    Ok(proofs)
}

/// Returns the runs that a dossier is derived from: the run itself, the earlier ones of its `tare why` answer, and
/// the proofs of its suspects. Deleted runs are omitted.
pub(crate) fn belonging(store: &Store, run: &RunId) -> Result<Vec<RunId>, Failed> {
    let mut runs = with_earlier(store, run)?;
    let proofs = proofs(store, run)?.into_iter();
    let proofs: Vec<RunId> = proofs.filter(|proof| !runs.contains(proof)).collect();
    runs.extend(proofs);
    Ok(runs)
}

/// Returns a run and the earlier ones of its answer, the newest first. Deleted runs are omitted.
fn with_earlier(store: &Store, run: &RunId) -> Result<Vec<RunId>, Failed> {
    let mut runs = Vec::new();
    let mut next = Some(run.clone());
    // In a store from elsewhere, runs may refer to each other in a circle.
    while let Some(run) = next.take().filter(|run| !runs.contains(run)) {
        let study = store.run_without_records(&run)?.study;
        runs.push(run);
        next = match why::before(&study).map(|name| store.resolve(name)) {
            Some(Ok(before)) => Some(before),
            None | Some(Err(StoreError::NoSuchRun { .. } | StoreError::Empty(_))) => None,
            Some(Err(error)) => return Err(error.into()),
        };
    }
    Ok(runs)
}

/// Returns the dossier of a stored run and every reading used in it.
pub(crate) fn readings(store: &Store, run: &RunId) -> Result<(Dossier, Vec<Series>), Failed> {
    let stored = store.run_without_records(run)?;
    if stored.study.id == why::STUDY {
        let data = answered(store, run)?;
        let readings = analyze::readings(&data, &workload::find);
        return Ok((why::conclude(&data), readings));
    }
    let head = head(stored);
    let mut analysis = Analysis::new(&head, &workload::find);
    store.each_record(&head.run, |record| analysis.add(trial_ref(record)))?;
    Ok(analysis.dossier_and_readings())
}

fn is_no_copy(spec: &ArmSpec) -> bool {
    spec.id.as_str() != A_PRIME
}

/// Returns the index of an arm that others can be compared with. A′ is excluded, because it copies another arm.
pub(crate) fn place_of(arms: &[ArmSpec], arm: &str, of: &str) -> Result<usize, Failed> {
    let mut all = arms.iter();
    let place = all.position(|spec| is_no_copy(spec) && spec.id.as_str() == arm);
    place.ok_or_else(|| {
        let names = arms.iter().filter(|spec| is_no_copy(spec));
        let names: Vec<String> = names.map(|spec| format!("`{}`", spec.id)).collect();
        let problem = format!("{of} has no arm `{}` to compare with", arm.escape_debug());
        Failed::usage(problem).hint(format!("its arms are {}", names.join(", ")))
    })
}

fn two_sides() -> Failed {
    Failed::usage("an answer of `tare why` has two sides, and none to choose")
}

/// Returns the dossier of a stored run with another arm as the baseline, from the same blocks. Excludes A′, which
/// copies an arm, and published or proved statements, which are about another pair.
pub(crate) fn against(store: &Store, run: &RunId, arm: &str) -> Result<Dossier, Failed> {
    let mut stored = store.run_without_records(run)?;
    if stored.study.id == why::STUDY {
        return Err(two_sides());
    }
    let arms = &mut stored.study.arms;
    arms.retain(is_no_copy);
    let place = place_of(arms, arm, &format!("run {run}"))?;
    let baseline = arms.remove(place);
    stored.study.baseline = baseline.id.clone();
    arms.insert(0, baseline);
    stored.study.publication = None;
    stored.study.pairs = false;
    let head = head(stored);
    let mut analysis = Analysis::new(&head, &workload::find).without_slices();
    store.each_record(&head.run, |record| {
        if record.trial.cell.arm.as_str() != A_PRIME {
            analysis.add(trial_ref(record));
        }
    })?;
    Ok(analysis.dossier())
}

/// Returns the dossier of a single stored run, and its suspects.
pub(crate) fn measured(
    store: &Store,
    stored: StoredRun,
) -> Result<(Dossier, Vec<Suspected>), Failed> {
    let head = head(stored);
    let mut analysis = Analysis::new(&head, &workload::find).without_slices();
    match store.parts(&head.run)? {
        Some(parts) => analysis.add_parts(
            &parts.all,
            || parts.reader(),
            |reader, part, add| reader.each(part, |record| add(trial_ref(record))),
        )?,
        None => store.each_record(&head.run, |record| analysis.add(trial_ref(record)))?,
    }
    Ok(analysis.dossier_and_suspected())
}

/// Joins a stored run of `tare why` or `tare compare` with the earlier runs of the same answer. Deleted runs are
/// omitted.
pub(crate) fn answered(store: &Store, run: &RunId) -> Result<RunData, Failed> {
    let read = |run: &RunId| Ok::<_, Failed>(run_data(store.run(run)?));
    let earlier = with_earlier(store, run)?.into_iter().skip(1).rev();
    let earlier: Vec<RunData> = earlier.map(|run| read(&run)).collect::<Result<_, _>>()?;
    Ok(why::joined(read(run)?, &earlier))
}

/// Converts a stored run for the analysis.
pub(crate) fn run_data(mut stored: StoredRun) -> RunData {
    let records = std::mem::take(&mut stored.records);
    RunData {
        head: head(stored),
        trials: records.into_iter().map(trial_data).collect(),
    }
}

/// Converts a trial for the analysis.
fn trial_ref(record: &TrialRecord) -> TrialRef<'_> {
    TrialRef {
        trial: &record.trial,
        outcome: &record.outcome,
        host_elapsed_ns: record.host_elapsed_ns,
        charged: &record.charged,
    }
}

fn trial_data(record: TrialRecord) -> TrialData {
    TrialData {
        trial: record.trial,
        outcome: record.outcome,
        host_elapsed_ns: record.host_elapsed_ns,
        charged: record.charged,
    }
}

/// Returns how a run with these sessions deviated from its plan.
fn deviations(sessions: &[SessionRecord]) -> Vec<DossierDeviation> {
    let shown = |pair: &[SessionRecord]| {
        let (before, after) = (pair[0].stopped_by, &pair[1]);
        let block = after.first_block?;
        let (kind, detail) = match before {
            Some(end) if end.is_complete() => (
                Deviation::Extended,
                format!(
                    "the run had ended, and from block {block} on blocks were added to it: who adds them may have seen what the others showed, so that intervals and verdicts look surer than they are"
                ),
            ),
            end => {
                let how = match end {
                    Some(StoppedBy::Interrupted) => "was interrupted",
                    Some(StoppedBy::Failed) => "had ended by a failure",
                    _ => "had been killed",
                };
                (
                    Deviation::Resumed,
                    format!(
                        "the run {how} and was resumed from block {block} on: at another time, with new starts of its arms"
                    ),
                )
            }
        };
        Some(DossierDeviation { kind, detail })
    };
    sessions.windows(2).filter_map(shown).collect()
}

/// Everything of a stored run except its trials.
fn head(stored: StoredRun) -> RunHead {
    let arms = stored
        .study
        .arms
        .iter()
        .map(|spec| {
            let record = stored.arms.iter().find(|record| record.arm == spec.id);
            let inside = stored
                .launches
                .iter()
                .rfind(|launch| launch.arm == spec.id.as_str());
            let mut facts = record
                .map(|record| record.facts.clone())
                .unwrap_or_default();
            facts.extend(
                inside
                    .map(|launch| launch.facts.clone())
                    .unwrap_or_default(),
            );
            ArmData {
                spec: spec.clone(),
                available: record.is_some_and(|record| record.available),
                reason: match record {
                    Some(record) => record.reason.clone(),
                    None => Some("the run ended before it was started".to_owned()),
                },
                fix: record.and_then(|record| record.fix.clone()),
                facts,
                agent_sha256: inside.map(|_| stored.agent_sha256.clone()),
            }
        })
        .collect();
    RunHead {
        deviations: deviations(&stored.sessions),
        run: stored.id,
        started_unix_ns: u64::try_from(stored.started_unix_ns).unwrap_or(0),
        plan_sha256: stored.plan_sha256,
        arms,
        stopped_by: stored.stopped_by.unwrap_or(StoppedBy::Killed),
        complete: stored.stopped_by.is_some_and(StoppedBy::is_complete),
        wall_s: stored.wall_ns as f64 / 1e9,
        whole_trials: stored
            .remarks
            .into_iter()
            .filter(Remark::is_of_whole_trials)
            .map(|remark| remark.text)
            .collect(),
        study: stored.study,
    }
}

#[cfg(test)]
mod tests;
