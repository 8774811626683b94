//! Tests the engine with scripted environments: the order of events, faults, stopping rules, resuming, and what a
//! store keeps when its writer is killed or its disk is full.

use crate::prelude::*;

use tare::cx::Event;
use tare::run::{Precision, RunError, RunSummary, resume};
use tare::store::{StoredRun, TrialRecord};
use tare_model::study::A_PRIME;
use tare_model::{LIFECYCLE_FORMAT, Lifecycle, LifecycleReport, Spread, Trial, Value};

mod cancel;
mod durability;
mod ends;
mod fake;
mod faults;
mod instances;
mod order;
mod real;
mod stopping;

use fake::{Act, Script, Stage, workload};

/// The arms `host` (baseline), A′ and `box`; the workloads `w0` and `w1`; 3 blocks, a launch every 2.
fn study() -> Study {
    let arm = |id: &str| ArmSpec::new(arm_id(id), "fake", Params::new());
    let arms = vec![arm("host"), arm(A_PRIME), arm("box")];
    let workloads = vec![spec("w0", None), spec("w1", None)];
    Study {
        seed: 11,
        blocks_max: 3,
        blocks_per_launch: 2,
        trial_ns: 1_000_000,
        limit_ns: 500_000_000,
        ..Study::new("test", arms[0].id.clone(), arms, workloads)
    }
}

fn spec(id: &str, path: Option<tare_model::Path>) -> WorkloadSpec {
    WorkloadSpec {
        path,
        ..WorkloadSpec::new(WorkloadId::new(id).unwrap(), Params::new())
    }
}

/// A workload that runs this many instances at once.
fn several(id: &str, instances: u32, spread: Spread) -> WorkloadSpec {
    WorkloadSpec {
        instances,
        spread: Some(spread),
        ..spec(id, None)
    }
}

/// The same act in every arm.
fn everywhere(act: &Act) -> BTreeMap<&'static str, Act> {
    ["host", A_PRIME, "box"]
        .map(|arm| (arm, act.clone()))
        .into()
}

struct Scene {
    stage: &'static Stage,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new(script: Script) -> Self {
        Self {
            stage: Stage::new(script),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn plain() -> Self {
        Self::new(Script::default())
    }

    /// A scene in which run requests have these acts, by arm and number.
    fn acting<const N: usize>(acts: [((&'static str, u32), Act); N]) -> Self {
        Self::with(|script| script.acts = acts.into())
    }

    /// A scene whose script is the default with this change.
    fn with(change: impl FnOnce(&mut Script)) -> Self {
        let mut script = Script::default();
        change(&mut script);
        Self::new(script)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    fn execute(&self, study: &Study) -> Result<RunSummary, RunError> {
        self.execute_until(study, &mut AllBlocks)
    }

    /// Carries out a study, which must end like this.
    #[track_caller]
    fn ends(&self, study: &Study, stopped_by: StoppedBy) -> RunSummary {
        let summary = self.execute(study).unwrap();
        assert_eq!(summary.stopped_by, stopped_by);
        summary
    }

    fn execute_until(
        &self,
        study: &Study,
        precision: &mut dyn Precision,
    ) -> Result<RunSummary, RunError> {
        let mut store = Store::open(&self.path()).unwrap();
        execute_in(self.stage, study, &mut store, precision)
    }

    fn resume(&self) -> Result<RunSummary, RunError> {
        resume_on(self.stage, &self.path(), &mut AllBlocks, None)
    }

    fn stored(&self) -> StoredRun {
        let store = Store::open(&self.path()).unwrap();
        store.run(&self.stage.run).unwrap()
    }

    /// Returns the outcomes of an arm, in order.
    fn outcomes(&self, arm: &str) -> Vec<Outcome> {
        let mut records = self.stored().records;
        records.retain(|record| record.trial.cell.arm.as_str() == arm);
        records.into_iter().map(|record| record.outcome).collect()
    }

    /// Returns the printed remarks.
    fn remarks(&self) -> Vec<String> {
        let events = self.stage.events.lock().unwrap();
        let remarks = events.iter().filter_map(|event| match event {
            Event::Remark(text) => Some(text.clone()),
            _ => None,
        });
        remarks.collect()
    }

    /// Asserts that one of the remarks contains all of these.
    #[track_caller]
    fn assert_remarks(&self, parts: &[&str]) {
        let shown = self.remarks();
        let holds = |text: &String| parts.iter().all(|part| text.contains(part));
        assert!(shown.iter().any(holds), "{parts:?}: {shown:?}");
    }

    /// Counts this line in the log.
    fn n_logged(&self, line: &str) -> usize {
        let log = self.stage.log();
        log.iter().filter(|logged| *logged == line).count()
    }

    /// Counts the lines of the log that match.
    fn n_lines(&self, is_such: impl Fn(&str) -> bool) -> usize {
        let log = self.stage.log();
        log.iter().filter(|line| is_such(line)).count()
    }

    /// Whether a remark of the run contains this.
    fn is_remarked(&self, words: &str) -> bool {
        let remarks = self.stored().remarks;
        remarks.iter().any(|remark| remark.text.contains(words))
    }

    /// Returns which workloads ended, and after how many blocks.
    fn workload_ends(&self) -> Vec<(u32, u32)> {
        let ends = self.stored().workload_ends.into_iter();
        ends.map(|end| (end.workload_index, end.after_blocks))
            .collect()
    }

    /// Asserts that all started instances were stopped, and everything prepared was removed.
    fn assert_all_removed(&self) {
        let log = self.stage.log();
        let count = |verb: &str, arm: &str| self.n_logged(&format!("{verb} {arm}"));
        for arm in ["host", A_PRIME, "box", "host-peer"] {
            assert_eq!(count("hello", arm), count("stop", arm), "{arm}: {log:#?}");
            assert!(
                count("prepare", arm) <= count("remove", arm),
                "{arm}: {log:#?}"
            );
        }
    }
}

fn execute_in(
    stage: &'static Stage,
    study: &Study,
    store: &mut Store,
    precision: &mut dyn Precision,
) -> Result<RunSummary, RunError> {
    let driver = |id: &str| stage.driver(id);
    let registry = Registry {
        driver: &driver,
        workload: &workload,
    };
    let host = Facts::from([("kernel.release".into(), "6.18".into())]);
    execute(
        &stage.cx(),
        &Plan::new(study),
        &host,
        &registry,
        store,
        precision,
    )
}

fn resume_on(
    stage: &'static Stage,
    path: &Path,
    precision: &mut dyn Precision,
    more_ns: Option<u64>,
) -> Result<RunSummary, RunError> {
    let driver = |id: &str| stage.driver(id);
    let registry = Registry {
        driver: &driver,
        workload: &workload,
    };
    let (cx, mut store) = (stage.cx(), Store::open(path).unwrap());
    resume(&cx, cx.run, &registry, &mut store, precision, more_ns)
}

fn is_completed(record: &TrialRecord) -> bool {
    matches!(record.outcome, Outcome::Completed(_))
}
