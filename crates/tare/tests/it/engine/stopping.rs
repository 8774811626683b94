//! Tests the rules that end a run: precision and budget.

use tare::analyze::{PrecisionRule, TrialRef};
use tare::workload::Workload;

use tare_stats::Needed;

use super::*;

/// Finishes each workload at the first check after its number of blocks.
struct After(Vec<u32>, Vec<u32>);

impl Precision for After {
    fn add(&mut self, record: &TrialRecord) {
        assert!(is_completed(record));
    }

    fn needed(&mut self, study: &Study, _: &BTreeMap<ArmId, Facts>, n_blocks: u32) -> Vec<Needed> {
        assert_eq!(study.workloads.len(), self.0.len());
        self.1.push(n_blocks);
        let left = |after: &u32| {
            let blocks = f64::from(after.saturating_sub(n_blocks));
            Needed {
                enough: blocks,
                most: blocks,
            }
        };
        self.0.iter().map(left).collect()
    }
}

#[test]
fn precise_workload_is_dropped_and_run_ends_with_last() {
    let scene = Scene::plain();
    let mut study = study();
    study.blocks_max = 60;
    let mut rule = After(vec![10, 16], Vec::new());
    let summary = scene.execute_until(&study, &mut rule).unwrap();
    // Checks at 10, 15 and 20 blocks; `w0` ends at the first, `w1` at the third.
    assert_eq!(rule.1, [10, 15, 20]);
    assert_eq!(summary.stopped_by, StoppedBy::Precision);
    assert_eq!(summary.n_trials, 3 * (10 + 20));
    assert_eq!(summary.n_blocks, 20);
    let stored = scene.stored();
    assert_eq!(scene.workload_ends(), [(0, 10), (1, 20)]);
    assert!(
        stored
            .records
            .iter()
            .all(|record| { record.trial.workload_index == 1 || record.trial.block < 10 })
    );
}

#[test]
fn resume_after_look_still_skips_finished_workload() {
    let scene = Scene::plain();
    let mut study = study();
    study.blocks_max = 60;
    scene.stage.cancel_after(60 + 3 * 2 + 1);
    scene
        .execute_until(&study, &mut After(vec![10, 16], Vec::new()))
        .unwrap();
    let mut rule = After(vec![10, 16], Vec::new());
    let stage = Stage::plain();
    let summary = resume_on(stage, &scene.path(), &mut rule, None).unwrap();
    assert_eq!(rule.1, [15, 20]);
    assert_eq!(summary.n_trials, 3 * (10 + 20));
    assert_eq!(summary.stopped_by, StoppedBy::Precision);
}

/// The rule of `tare run`.
struct Rule(PrecisionRule<'static>);

impl Precision for Rule {
    fn add(&mut self, record: &TrialRecord) {
        self.0.add(TrialRef {
            trial: &record.trial,
            outcome: &record.outcome,
            host_elapsed_ns: record.host_elapsed_ns,
            charged: &record.charged,
        });
    }

    fn needed(&mut self, _: &Study, inside: &BTreeMap<ArmId, Facts>, _: u32) -> Vec<Needed> {
        self.0.needed(inside)
    }
}

#[test]
fn void_trials_do_not_count_toward_precision() {
    fn getppid(_: &str) -> Option<&'static dyn Workload> {
        tare::workload::find("getppid")
    }
    let mut study = study();
    study.workloads.truncate(1);
    study.blocks_max = 60;
    let blocks_with = |void: u32| {
        let report = |elapsed_ns| Act::Report {
            ns: 1_000_000,
            elapsed_ns,
        };
        let arms = ["host", A_PRIME, "box"];
        let mut script = Script {
            always: arms.map(|arm| (arm, report(900_000))).into(),
            ..Script::default()
        };
        // By its own clock the worker took twice as long as the host waited for it.
        let void = (0..void).map(|trial| (("box", trial), report(2_000_000)));
        script.acts.extend(void);
        let mut rule = Rule(PrecisionRule::new(&study, &getppid));
        let summary = Scene::new(script).execute_until(&study, &mut rule).unwrap();
        assert_eq!(summary.stopped_by, StoppedBy::Precision);
        summary.n_blocks
    };
    // Checks at 10 and 15 blocks, and six valid ones are needed.
    assert_eq!([0, 4, 5, 9].map(blocks_with), [10, 10, 15, 15]);
}

#[test]
fn block_exceeding_the_budget_is_not_started() {
    let scene = Scene::with(|script| script.always = everywhere(&Act::Done(10_000_000)));
    let mut study = study();
    study.blocks_max = 1_000;
    study.blocks_per_launch = 4;
    study.budget_ns = Some(1_000_000_000);
    let summary = scene.ends(&study, StoppedBy::Budget);
    assert!(summary.wall_ns <= 1_000_000_000, "{}", summary.wall_ns);
    // A block takes 60 ms: at least 600 of the 1 000 ms are used.
    assert!(summary.n_blocks >= 10, "{summary:?}");
    let events = scene.stage.events.lock().unwrap();
    let left: Vec<(u32, u64)> = events
        .iter()
        .filter_map(|event| match event {
            Event::TrialDone { left, left_ns, .. } => Some((*left, *left_ns)),
            _ => None,
        })
        .collect();
    assert!(left.iter().all(|(_, ns)| *ns <= 1_000_000_000));
    assert!(left[0].0 > left[50].0);
    scene.assert_all_removed();
}

#[test]
fn the_smallest_budget_still_gives_one_block() {
    let scene = Scene::plain();
    let mut study = study();
    study.budget_ns = Some(1);
    let summary = scene.ends(&study, StoppedBy::Budget);
    assert_eq!((summary.n_blocks, summary.n_trials), (1, 6));
}

/// Needs these numbers of blocks for each workload: until it is precise enough, and until more are not worthwhile.
struct Needing([(f64, f64); 2]);

impl Precision for Needing {
    fn add(&mut self, _: &TrialRecord) {}

    fn needed(&mut self, _: &Study, _: &BTreeMap<ArmId, Facts>, n_blocks: u32) -> Vec<Needed> {
        let left = |all: f64| (all - f64::from(n_blocks)).max(0.0);
        let of = |(enough, most): &(f64, f64)| Needed {
            enough: left(*enough),
            most: left(*most),
        };
        self.0.iter().map(of).collect()
    }
}

/// Returns the blocks of each workload that were measured with an hour's budget, sixteen at most.
fn blocks_of_needing(needs: [(f64, f64); 2]) -> [Vec<u32>; 2] {
    let scene = Scene::plain();
    let mut study = study();
    (study.blocks_min, study.blocks_max) = (8, 16);
    study.budget_ns = Some(3_600_000_000_000);
    scene.execute_until(&study, &mut Needing(needs)).unwrap();
    let stored = scene.stored();
    scene.assert_all_removed();
    [0, 1].map(|workload| {
        let own = stored.records.iter().map(|record| &record.trial);
        let own = own.filter(|trial| trial.workload_index == workload);
        let mut blocks: Vec<u32> = own.map(|trial| trial.block).collect();
        blocks.dedup();
        blocks
    })
}

#[test]
fn workload_undecidable_in_budget_waits_for_others() {
    let never = (f64::INFINITY, f64::INFINITY);
    let [one, other] = blocks_of_needing([(12.0, 12.0), never]);
    assert_eq!(one, (0..12).collect::<Vec<_>>());
    assert_eq!(other, (0..8).chain(12..16).collect::<Vec<_>>());
}

#[test]
fn spare_budget_refines_precise_workloads() {
    let never = (f64::INFINITY, f64::INFINITY);
    let [one, other] = blocks_of_needing([(10.0, 15.0), never]);
    assert_eq!(one, (0..15).collect::<Vec<_>>());
    assert_eq!(other, (0..8).chain(10..16).collect::<Vec<_>>());
    // The same with a budget that is more than sufficient.
    let [one, other] = blocks_of_needing([(8.0, 12.0), (9.0, 9.0)]);
    assert_eq!(one, (0..8).chain(9..12).collect::<Vec<_>>());
    assert_eq!(other, (0..9).collect::<Vec<_>>());
}

/// Scripts every arm's requests: `act` gives the time for a block and a workload.
fn acts(study: &Study, act: impl Fn(u32, u32) -> u64) -> Script {
    let plan = Plan::new(study);
    let mut script = Script::default();
    for arm in ["host", A_PRIME, "box"] {
        let trials = (0..study.blocks_max).flat_map(|block| plan.block(block));
        let own = trials.filter(|trial| trial.cell.arm.as_str() == arm);
        for (number, trial) in (0..).zip(own) {
            let ns = act(trial.block, trial.workload_index);
            script.acts.insert((arm, number), Act::Done(ns));
        }
    }
    script
}

fn eight_blocks_within(budget_ns: u64) -> Study {
    Study {
        blocks_max: 8,
        blocks_per_launch: 8,
        budget_ns: Some(budget_ns),
        ..study()
    }
}

#[test]
fn workload_starving_others_is_dropped_with_remark() {
    let study = eight_blocks_within(3_000_000_000);
    // Six blocks with it take 5.4 s, and without it almost nothing.
    let long = acts(&study, |_, workload| match workload {
        0 => 300_000_000,
        _ => 1_000_000,
    });
    let scene = Scene::new(long);
    // After the first block it is not asked again, and every request is for the other workload.
    let mut script = scene.stage.script.lock().unwrap();
    script.acts.retain(|(_, number), _| *number < 2);
    drop(script);
    let summary = scene.ends(&study, StoppedBy::Blocks);
    assert_eq!(summary.n_trials, 3 * (1 + 8));
    assert_eq!(scene.workload_ends(), [(0, 1)]);
    scene.assert_remarks(&["`w0` is left out after 1 block: it takes 0.9 s"]);
}

#[test]
fn equally_slow_workloads_are_all_retained() {
    let study = eight_blocks_within(3_000_000_000);
    let slow = acts(&study, |_, workload| 150_000_000 + u64::from(workload));
    let scene = Scene::new(slow);
    scene.ends(&study, StoppedBy::Budget);
    assert!(scene.stored().workload_ends.is_empty());
    scene.assert_remarks(&["the time budget of 3.0 s ended the run after 3 blocks"]);
}

#[test]
fn budget_cuts_slow_block_and_names_missing_workloads() {
    let study = eight_blocks_within(500_000_000);
    let scene = Scene::new(acts(&study, |block, _| match block {
        0 | 1 => 1_000_000,
        _ => 200_000_000,
    }));
    let summary = scene.ends(&study, StoppedBy::Budget);
    // The workload in progress was completed in every arm.
    assert_eq!((summary.n_blocks, summary.n_trials), (2, 6 + 6 + 3));
    scene.assert_remarks(&["after 2 blocks", "and of block 3 without `w"]);
    scene.assert_all_removed();
}

#[test]
fn first_block_outlasting_the_budget_is_cut_short() {
    let mut study = study();
    study.budget_ns = Some(500_000_000);
    let scene = Scene::new(acts(&study, |_, _| 200_000_000));
    let summary = scene.ends(&study, StoppedBy::Budget);
    assert_eq!((summary.n_blocks, summary.n_trials), (0, 3));
    scene.assert_remarks(&["after 0 blocks", "and of block 1 without `w"]);
    scene.assert_all_removed();
}
