//! The rules that end a run: precision and budget.

use super::*;

/// Finishes each workload at the first look after its number of blocks.
struct After(Vec<u32>, Vec<u32>);

impl Precision for After {
    fn add(&mut self, record: &TrialRecord) {
        assert!(is_completed(record));
    }

    fn finished_workloads(&mut self, study: &Study, n_blocks: u32) -> Vec<bool> {
        assert_eq!(study.workloads.len(), self.0.len());
        self.1.push(n_blocks);
        self.0.iter().map(|after| n_blocks >= *after).collect()
    }
}

#[test]
fn a_workload_that_is_precise_enough_is_left_out_and_the_run_ends_with_the_last() {
    let scene = Scene::new(Script::default());
    let mut study = study();
    study.blocks_max = 60;
    let mut rule = After(vec![10, 16], Vec::new());
    let summary = scene.execute_until(&study, &mut rule).unwrap();
    // Looks at 10, 15 and 20 blocks; `w0` ends at the first, `w1` at the third.
    assert_eq!(rule.1, [10, 15, 20]);
    assert_eq!(summary.stopped_by, StoppedBy::Precision);
    assert_eq!(summary.n_trials, 3 * (10 + 20));
    assert_eq!(summary.n_blocks, 20);
    let stored = scene.stored();
    let ends: Vec<(u32, u32)> = stored
        .workload_ends
        .iter()
        .map(|end| (end.workload_index, end.after_blocks))
        .collect();
    assert_eq!(ends, [(0, 10), (1, 20)]);
    assert!(
        stored
            .records
            .iter()
            .all(|record| { record.trial.workload_index == 1 || record.trial.block < 10 })
    );
}

#[test]
fn a_run_resumed_after_a_look_still_leaves_the_finished_workload_out() {
    let scene = Scene::new(Script::default());
    let mut study = study();
    study.blocks_max = 60;
    *scene.stage.cancel_after_trials.lock().unwrap() = Some(60 + 3 * 2 + 1);
    scene
        .execute_until(&study, &mut After(vec![10, 16], Vec::new()))
        .unwrap();
    let mut rule = After(vec![10, 16], Vec::new());
    let stage = Stage::new(Script::default());
    let summary = resume_on(stage, &scene.path(), &mut rule).unwrap();
    assert_eq!(rule.1, [15, 20]);
    assert_eq!(summary.n_trials, 3 * (10 + 20));
    assert_eq!(summary.stopped_by, StoppedBy::Precision);
}

#[test]
fn a_block_that_would_not_end_within_the_budget_is_not_begun() {
    let scene = Scene::new(Script {
        always: BTreeMap::from([
            ("host", Act::Done(10_000_000)),
            (A_PRIME, Act::Done(10_000_000)),
            ("box", Act::Done(10_000_000)),
        ]),
        ..Script::default()
    });
    let mut study = study();
    study.blocks_max = 1_000;
    study.blocks_per_launch = 4;
    study.budget_ns = Some(1_000_000_000);
    let summary = scene.execute(&study).unwrap();
    assert_eq!(summary.stopped_by, StoppedBy::Budget);
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
    let scene = Scene::new(Script::default());
    let mut study = study();
    study.budget_ns = Some(1);
    let summary = scene.execute(&study).unwrap();
    assert_eq!(summary.stopped_by, StoppedBy::Budget);
    assert_eq!((summary.n_blocks, summary.n_trials), (1, 6));
}
