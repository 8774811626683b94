//! Tests what a store keeps: resuming, a writer that is killed, a full disk, two runs at once.

use tare_model::whole_count;
use tare_stats::Needed;

use super::*;

#[test]
fn resumed_run_does_only_missing_trials_of_plan() {
    let study = study();
    let plan = Plan::new(&study);
    let planned: Vec<_> = (0..3).flat_map(|block| plan.block(block)).collect();
    for stop_after in [1, 4, 6, 11, 17] {
        let scene = Scene::plain();
        scene.stage.cancel_after(stop_after);
        scene.execute(&study).unwrap();
        let before = scene.stored();
        assert_eq!(whole_count(before.records.len()), stop_after);
        scene.assert_all_removed();
        let again = Scene {
            stage: Stage::plain(),
            folder: scene.folder,
        };
        let summary = again.resume().unwrap();
        assert_eq!(summary.n_trials, 18);
        let runs = again.n_lines(|line| line.starts_with("run "));
        assert_eq!(whole_count(runs), 18 - stop_after);
        let after = again.stored();
        assert_eq!(after.plan_sha256, before.plan_sha256);
        assert_eq!(after.records[..before.records.len()], before.records);
        let (before, since) = after.records.split_at(before.records.len());
        let launches = |records: &[TrialRecord]| -> Vec<u32> {
            records.iter().map(|record| record.trial.launch).collect()
        };
        // Restarted arms are another launch, even within a block.
        let last = launches(before).into_iter().max().unwrap();
        let since = launches(since);
        assert!(since.iter().all(|launch| *launch > last), "{since:?}");
        let is_rising = since.is_sorted();
        assert!(is_rising, "{since:?}");
        let done = after.records.iter().map(|record| Trial {
            launch: planned[record.trial.sequence as usize].launch,
            ..record.trial.clone()
        });
        assert_eq!(done.collect::<Vec<_>>(), planned);
        let ends: Vec<_> = after.sessions.iter().map(|it| it.stopped_by).collect();
        assert_eq!(
            ends,
            [Some(StoppedBy::Interrupted), Some(StoppedBy::Blocks)]
        );
        assert_eq!(after.sessions[0].first_block, Some(0));
        let resumed_in = after.records[stop_after as usize].trial.block;
        assert_eq!(after.sessions[1].first_block, Some(resumed_in));
        assert!(matches!(again.resume(), Err(RunError::Complete { .. })));
    }
}

#[test]
fn finished_run_given_more_time_extends_same_plan() {
    let scene = Scene::plain();
    let study = study();
    scene.execute(&study).unwrap();
    let before = scene.stored();
    assert_eq!(before.stopped_by, Some(StoppedBy::Blocks));
    let again = Scene {
        stage: Stage::plain(),
        folder: scene.folder,
    };
    let Err(RunError::Complete { has_more: true, .. }) = again.resume() else {
        panic!("gone on with without more time");
    };
    let more_ns = 1_000_000_000;
    let summary = resume_on(again.stage, &again.path(), &mut AllBlocks, Some(more_ns)).unwrap();
    assert_eq!(summary.stopped_by, StoppedBy::Budget);
    let after = again.stored();
    assert_eq!(after.plan_sha256, before.plan_sha256);
    assert_eq!(after.records[..before.records.len()], before.records);
    let plan = Plan::new(&study);
    let planned = (0..).flat_map(|block| plan.block(block));
    let done: Vec<_> = after.records.iter().map(|record| &record.trial).collect();
    assert!(done.len() >= before.records.len() + 6, "{}", done.len());
    let is_planned = |(planned, done): (Trial, &&Trial)| {
        let launch = done.launch;
        Trial { launch, ..planned } == **done
    };
    assert!(planned.zip(&done).all(is_planned));
    let launch_of = |place: usize| done[place].launch;
    assert!(launch_of(before.records.len()) > launch_of(before.records.len() - 1));
    let ends: Vec<_> = after.sessions.iter().map(|it| it.stopped_by).collect();
    assert_eq!(ends, [Some(StoppedBy::Blocks), Some(StoppedBy::Budget)]);
    let is_told = |remark: &tare::store::Remark| remark.text.contains("had ended and is extended");
    assert!(after.remarks.iter().any(is_told), "{:?}", after.remarks);
    // The total is at most the time of the run plus the added time.
    assert!(
        after.wall_ns <= before.wall_ns + more_ns,
        "{}",
        after.wall_ns
    );
}

#[test]
fn a_run_is_not_resumed_with_another_agent() {
    let scene = Scene::plain();
    scene.stage.cancel_after(3);
    scene.execute(&study()).unwrap();
    let stage = Stage::plain();
    let driver = |id: &str| stage.driver(id);
    let registry = Registry {
        driver: &driver,
        workload: &workload,
    };
    let mut agent = stage.cx().agent.clone();
    agent.sha256 = "b6".into();
    let mut cx = stage.cx();
    cx.agent = &agent;
    let mut store = Store::open(&scene.path()).unwrap();
    let refused = resume(&cx, cx.run, &registry, &mut store, &mut AllBlocks, None).unwrap_err();
    assert!(matches!(refused, RunError::OtherAgent { .. }), "{refused}");
    assert_eq!(stage.log(), [""; 0]);
}

fn given_folder() -> PathBuf {
    PathBuf::from(
        std::env::var_os("TARE_TEST_FOLDER").expect("set by the test that starts this one"),
    )
}

#[test]
fn killed_writer_keeps_finished_trials_and_can_resume() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = child("engine::durability::writes_until_it_is_killed")
        .env("TARE_TEST_FOLDER", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = 0;
    for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
        let Ok(line) = line else { break };
        shown += u32::from(line == "stored");
        if shown == 40 {
            writer.kill().unwrap();
        }
    }
    writer.wait().unwrap();
    assert!(shown >= 40);
    let path = folder.path().join("store.db");
    let stage = Stage::plain();
    let stored = Store::open(&path).unwrap().run(&stage.run).unwrap();
    assert!(
        whole_count(stored.records.len()) >= shown,
        "{} < {shown}",
        stored.records.len()
    );
    let sequences: BTreeSet<u32> = stored
        .records
        .iter()
        .map(|record| record.trial.sequence)
        .collect();
    let n_kept = whole_count(stored.records.len());
    assert_eq!(sequences, (0..n_kept).collect());
    assert_eq!(stored.stopped_by, None);
    stage.cancel_after(n_kept + 5);
    let summary = resume_on(stage, &path, &mut AllBlocks, None).unwrap();
    assert_eq!(summary.n_trials as usize, stored.records.len() + 5);
}

/// Prints after each trial that it is stored.
struct Telling;

impl Precision for Telling {
    fn add(&mut self, _: &TrialRecord) {
        println!("stored");
    }

    fn needed(&mut self, study: &Study, _: &BTreeMap<ArmId, Facts>, _: u32) -> Vec<Needed> {
        vec![Needed::UNKNOWN; study.workloads.len()]
    }
}

#[test]
#[ignore = "started and killed by `killed_writer_keeps_finished_trials_and_can_resume`"]
fn writes_until_it_is_killed() {
    let mut study = study();
    study.blocks_max = 2_000;
    let mut store = Store::open(&given_folder().join("store.db")).unwrap();
    let _ = execute_in(Stage::plain(), &study, &mut store, &mut Telling);
}

#[test]
fn wall_clock_set_during_run_leaves_durations_alone() {
    const YEAR_NS: i64 = 365 * 86_400 * 1_000_000_000;
    let of = |by_ns: i64| {
        let scene = Scene::with(|script| script.wall_set = [(4, by_ns), (9, by_ns)].into());
        let summary = scene.execute(&study()).unwrap();
        let stored = scene.stored();
        let elapsed: Vec<u64> = stored.records.iter().map(|it| it.host_elapsed_ns).collect();
        let began = stored.records.last().unwrap().started_unix_ns;
        let listed = Store::open_to_read(&scene.path()).unwrap().runs().unwrap();
        assert_eq!(listed[0].wall_ns, stored.wall_ns);
        ((summary.n_trials, stored.wall_ns, elapsed), began)
    };
    let (plain, began) = of(0);
    for by_ns in [YEAR_NS, -YEAR_NS, -60 * YEAR_NS] {
        let (changed, then) = of(by_ns);
        assert_eq!(changed, plain, "{by_ns}");
        assert_eq!(then - began, 2 * by_ns);
    }
}
