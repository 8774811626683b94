//! Turns stored trials into the dossier: decode, summarise, pair, judge.
//!
//! One direction, one file per step: [`input`] is what the store provides, `collect` decodes each trial into
//! readings, `void` removes what must not be compared, `pairs` compares the readings of an arm with the baseline's
//! block by block, `cell` judges them, `diagnostics` reports what may be wrong with a cell, `together` makes one
//! reading of several instances and `concurrency` measures what they did to each other, [`run_comparison`] compares two
//! dossiers, `courses` summarises trials over time, `failures` and `checklist` describe the rest; `evidence` is the
//! input of the catalogue of causes. During a run, [`precision`] uses the same code to decide whether a workload has
//! been measured well enough.
//! Everything here is a pure function of its arguments, so a stored run always gives the same dossier.
//! Limits: uses only what was recorded, and trusts the order and the blocks that the plan gave to the trials.

use tare_model::dossier::{
    CheckItem, DOSSIER_VERSION, Dossier, DossierArm, DossierCell, DossierStudy, RunCost,
};
use tare_model::study::A_PRIME;
use tare_model::{ResourceClass, Study, whole_count, whole_place};

use crate::cause::{self, ArmEvidence, Suspected};
use crate::parity;
use crate::workload::Workload;

mod authors_numbers;
mod blocks;
mod bounds;
mod cell;
pub mod checklist;
mod claims;
pub(crate) mod collect;
mod concurrency;
mod counters;
mod courses;
mod decode;
mod diagnostics;
pub(crate) mod effect;
mod evidence;
mod failures;
mod flag;
pub mod input;
pub(crate) mod kept_trial;
mod machine;
pub(crate) mod pairs;
mod parallel;
mod parts;
mod placing;
pub mod precision;
mod publication;
mod quantity;
mod reading;
mod remarked;
mod report;
mod rule;
pub mod run_comparison;
mod series;
mod together;
pub mod truth;
mod turns;
mod void;

pub use cell::counted;
pub use diagnostics::{EFFECT_MOVES, NOT_AFTER_CORRECTION};
pub use input::{ArmData, RunData, RunHead, TrialData, TrialRef};
pub use precision::{PrecisionRule, SoFar};
pub use publication::other_scale;
pub use series::{Point, Series};

use collect::Collector;

/// Level of every interval of a report unless stated otherwise.
pub const LEVEL: f64 = 0.95;
/// Fewest blocks from which a 95 % interval exists: n blocks reach at best 1 − 2^(1−n).
pub const FEWEST_BLOCKS: usize = 6;

/// Looks up a workload by name; `&crate::workload::find` outside of tests.
pub type Find<'a> = &'a (dyn Fn(&str) -> Option<&'static dyn Workload> + Sync);

/// Returns the dossier of a run with all its trials.
pub fn analyze(run: &RunData, find: Find<'_>) -> Dossier {
    let mut analysis = Analysis::new(&run.head, find);
    for trial in &run.trials {
        analysis.add(trial);
    }
    analysis.dossier()
}

/// Returns every reading of a run with all its trials.
pub fn readings(run: &RunData, find: Find<'_>) -> Vec<Series> {
    series::all(&run.head.study, &collected(run, find))
}

/// Collects the readings of a run, without void trials.
pub(crate) fn collected<'a>(run: &RunData, find: Find<'a>) -> Collector<'a> {
    let mut collected = Collector::new(&run.head.study, find);
    for trial in &run.trials {
        collected.add(trial.into());
    }
    void::strike_out(&run.head, &mut collected);
    collected
}

/// An analysis whose trials arrive one by one, as a store yields them. Each trial is decoded and dropped; a few
/// hundred bytes per trial are kept.
pub struct Analysis<'a> {
    head: &'a RunHead,
    collected: Collector<'a>,
}

impl<'a> Analysis<'a> {
    /// Creates an analysis without trials.
    pub fn new(head: &'a RunHead, find: Find<'a>) -> Self {
        Self {
            head,
            collected: Collector::new(&head.study, find),
        }
    }

    /// Drops the slices of interleaved arms: they are most of the data, and only [`readings`] and
    /// [`Analysis::dossier_and_readings`] return them. Call before the first trial.
    #[must_use]
    pub fn without_slices(mut self) -> Self {
        self.collected.drop_slices();
        self
    }

    /// Adds a trial: each once, in any order.
    pub fn add<'t>(&mut self, data: impl Into<TrialRef<'t>>) {
        self.collected.add(data.into());
    }

    /// Adds the trials of all parts, in the order of the parts. They are read and decoded on every CPU by readers
    /// that `open` opens.
    ///
    /// # Errors
    /// Errors of a reader.
    pub fn add_parts<P: Sync, R, E: Send>(
        &mut self,
        parts: &[P],
        open: impl Fn() -> Result<R, E> + Sync,
        read: impl Fn(&mut R, &P, &mut dyn FnMut(TrialRef<'_>)) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        parts::add_parts(&mut self.collected, parts, open, read)
    }

    /// Returns the dossier of the added trials.
    pub fn dossier(self) -> Dossier {
        self.dossier_and_suspected().0
    }

    /// Returns the dossier and the suspected causes, in the order of its findings.
    pub fn dossier_and_suspected(mut self) -> (Dossier, Vec<Suspected>) {
        void::strike_out(self.head, &mut self.collected);
        let concluded = conclude(self.head, &self.collected);
        self.collected.release();
        concluded
    }

    /// Returns the dossier and every reading that it is based on.
    pub fn dossier_and_readings(mut self) -> (Dossier, Vec<Series>) {
        void::strike_out(self.head, &mut self.collected);
        let (dossier, _) = conclude(self.head, &self.collected);
        let readings = series::all(&self.head.study, &self.collected);
        self.collected.release();
        (dossier, readings)
    }
}

/// Concludes from what remains after void trials were removed.
fn conclude(head: &RunHead, collected: &Collector<'_>) -> (Dossier, Vec<Suspected>) {
    let mut cells = Vec::new();
    let mut aa = Vec::new();
    for arm in &head.arms {
        if arm.spec.id == head.study.baseline || !arm.available {
            continue;
        }
        let mut of_arm = cell::cells_of(
            &head.study,
            arm,
            &head.study.baseline,
            &head.arms,
            collected,
        );
        if arm.spec.id.as_str() == A_PRIME {
            aa.extend(of_arm);
        } else {
            adjust_for_many_cells(&mut of_arm);
            cells.extend(of_arm);
        }
    }
    let pairs = if head.study.pairs {
        each_two(head, collected)
    } else {
        Vec::new()
    };
    let of_causes = |arm: &&ArmData| arm.available && arm.spec.id.as_str() != A_PRIME;
    let of_causes: Vec<&ArmData> = head.arms.iter().filter(of_causes).collect();
    let evidence: Vec<ArmEvidence> =
        parallel::map(&of_causes, |arm| evidence::evidence_of(arm, collected));
    let suspected = cause::suspected(&evidence, head.study.baseline.as_str(), &cells);
    let concurrency = concurrency::series(head, collected);
    let failures = failures::listed(head, &collected.tally, &collected.groups);
    let parity = parities(head, collected.placing.find);
    let mut dossier = Dossier {
        dossier: DOSSIER_VERSION,
        tare: env!("CARGO_PKG_VERSION").to_owned(),
        run: head.run.to_string(),
        started: rfc3339(head.started_unix_ns),
        complete: head.complete,
        stopped_by: head.stopped_by,
        study: study(&head.study, &head.plan_sha256),
        arms: head
            .arms
            .iter()
            .map(|arm| described(arm, &head.study))
            .collect(),
        cells,
        aa,
        pairs,
        concurrency,
        courses: courses::all(head, collected),
        findings: suspected.iter().map(Suspected::finding).collect(),
        why: None,
        ladder: None,
        claims: Vec::new(),
        publication: None,
        failures,
        parity,
        whole_trials: head.whole_trials.clone(),
        deviations: head.deviations.clone(),
        checklist: Vec::new(),
        cost: RunCost {
            wall_s: head.wall_s,
            timed_s: collected.timed_ns.map(|ns| ns as f64 / 1e9),
            trials: collected.trials,
        },
    };
    if let Some(published) = &head.study.publication {
        dossier.claims = claims::judged(published, &dossier);
        dossier.publication = Some(publication::filled_in(published, &dossier));
        for course in &mut dossier.courses {
            course.published = publication::published_course(published, course);
        }
    }
    dossier.checklist = checklist::filled_in(&dossier, collected);
    (dossier, suspected)
}

/// Compares every two arms other than the baseline and A′ with each other; the one that the study names first serves
/// as the baseline. Each pair is a separate question, and a separate family in the correction for many cells.
fn each_two(head: &RunHead, collected: &Collector<'_>) -> Vec<DossierCell> {
    let is_compared = |arm: &&ArmData| {
        let id = &arm.spec.id;
        arm.available && *id != head.study.baseline && id.as_str() != A_PRIME
    };
    let arms: Vec<&ArmData> = head.arms.iter().filter(is_compared).collect();
    let mut cells = Vec::new();
    for (place, arm) in arms.iter().enumerate() {
        for first in &arms[..place] {
            let base = &first.spec.id;
            let mut of_pair = cell::cells_of(&head.study, arm, base, &head.arms, collected);
            adjust_for_many_cells(&mut of_pair);
            for cell in &mut of_pair {
                cell.blocks.clear();
            }
            cells.extend(of_pair);
        }
    }
    cells
}

/// Compares every available arm with the baseline.
fn parities(head: &RunHead, find: Find<'_>) -> Vec<CheckItem> {
    let is_baseline = |arm: &&ArmData| arm.spec.id == head.study.baseline;
    let mut available = head.arms.iter().filter(|arm| arm.available);
    let Some(base) = available.clone().find(is_baseline) else {
        return Vec::new();
    };
    let programs = programs(&head.study, find);
    available
        .by_ref()
        .filter(|arm| !is_baseline(arm))
        .flat_map(|arm| parity::compared(base.side(), arm.side(), &programs))
        .map(parity::Finding::into_item)
        .collect()
}

/// Returns the tools that the study's workloads run, each once.
fn programs(study: &Study, find: Find<'_>) -> Vec<String> {
    let mut programs = Vec::new();
    for spec in &study.workloads {
        let tools = find(spec.id.as_str()).map(|workload| workload.tools(&spec.params));
        for tool in tools.into_iter().flatten() {
            if !programs.contains(&tool.program) {
                programs.push(tool.program);
            }
        }
    }
    programs
}

/// Benjamini–Hochberg over those cells of an arm that have a p: each arm is a separate question. The A′ cells are
/// outside the family: they are there to be counted, not discovered.
fn adjust_for_many_cells(of_arm: &mut [DossierCell]) {
    let p: Vec<f64> = of_arm.iter().filter_map(|cell| cell.p).collect();
    let Some(q) = tare_stats::benjamini_hochberg(&p) else {
        return;
    };
    let with_p = of_arm.iter_mut().filter(|cell| cell.p.is_some());
    for (cell, q) in with_p.zip(q) {
        cell.q = Some(q);
        // A limit that no cell with so few blocks could pass is reported once for the arm, not for each cell.
        let could_pass = blocks_to_pass(p.len()) <= cell.n_blocks;
        if claims_difference(cell) && q > 1.0 - LEVEL && could_pass {
            cell.flags.push(flag::flag(
                diagnostics::NOT_AFTER_CORRECTION,
                format!(
                    "p = {:.4} by itself, q = {q:.4} among the {} cells of the arm",
                    cell.p.unwrap_or(1.0),
                    p.len()
                ),
            ));
        }
    }
}

/// Returns the number of blocks from which on a single difference can pass the correction among so many cells: n
/// blocks give at best p = 2^(1−n).
pub fn blocks_to_pass(cells: usize) -> u32 {
    let doublings = (cells as f64 / (1.0 - LEVEL)).log2().ceil();
    1 + whole_count(whole_place(doublings))
}

/// Whether the cell's verdict is a difference.
pub fn claims_difference(cell: &DossierCell) -> bool {
    cell.verdict.is_difference()
}

/// Whether the cell's difference passes the correction for many cells.
pub fn is_held_up(cell: &DossierCell) -> bool {
    cell.q.is_none_or(|q| q <= 1.0 - LEVEL)
}

fn study(study: &Study, plan_sha256: &str) -> DossierStudy {
    DossierStudy {
        id: study.id.clone(),
        title: study.title.clone(),
        seed: study.seed,
        margin: ResourceClass::ALL
            .into_iter()
            .map(|class| (class.name().to_owned(), study.margins.for_class(class)))
            .collect(),
        plan_sha256: plan_sha256.to_owned(),
    }
}

fn described(arm: &ArmData, study: &Study) -> DossierArm {
    DossierArm {
        id: arm.spec.id.to_string(),
        driver: arm.spec.driver.clone(),
        baseline: arm.spec.id == study.baseline,
        available: arm.available,
        reason: arm.reason.clone(),
        fix: arm.fix.clone(),
        settings: arm.spec.stored_settings(),
        facts: arm.facts.clone(),
        agent_sha256: arm.agent_sha256.clone(),
    }
}

/// Formats UTC in whole seconds. Moments after the year 9999 become the last one before.
fn rfc3339(unix_ns: u64) -> String {
    let second = i64::try_from(unix_ns / 1_000_000_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(second)
        .unwrap_or(jiff::Timestamp::MAX)
        .to_string()
}
