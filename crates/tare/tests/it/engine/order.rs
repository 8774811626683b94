//! Tests the order of events in an ordinary run.

use super::*;

#[test]
fn arm_lifecycle_steps_run_in_order() {
    let scene = Scene::plain();
    let mut study = study();
    study.blocks_max = 1;
    study.workloads.truncate(1);
    let summary = scene.execute(&study).unwrap();
    let order: Vec<String> = Plan::new(&study)
        .block(0)
        .into_iter()
        .flat_map(|trial| [format!("run {} w0", trial.cell.arm), "told".to_owned()])
        .collect();
    let mut expected = vec![String::from("detect fake")];
    for arm in ["host", A_PRIME, "box"] {
        expected.push(format!("prepare {arm}"));
    }
    for place in Plan::new(&study).start_order(0, 3) {
        let arm = ["host", A_PRIME, "box"][place];
        expected.extend(["start", "hello", "facts"].map(|verb| format!("{verb} {arm}")));
    }
    expected.extend(order);
    for arm in ["box", A_PRIME, "host"] {
        expected.extend(["stop", "remove"].map(|verb| format!("{verb} {arm}")));
    }
    assert_eq!(scene.stage.log(), expected);
    assert_eq!(summary.stopped_by, StoppedBy::Blocks);
    assert_eq!((summary.n_trials, summary.n_blocks), (3, 1));
    assert_eq!(summary.n_without_value, 0);
}

#[test]
fn every_planned_trial_is_stored_including_a_prime() {
    let scene = Scene::plain();
    let study = study();
    scene.execute(&study).unwrap();
    let stored = scene.stored();
    let plan = Plan::new(&study);
    let planned: Vec<_> = (0..3).flat_map(|block| plan.block(block)).collect();
    let done: Vec<_> = stored
        .records
        .iter()
        .map(|record| record.trial.clone())
        .collect();
    assert_eq!(done, planned);
    assert_eq!(done.len(), 18);
    assert!(stored.records.iter().all(is_completed));
    assert!(
        stored
            .records
            .iter()
            .all(|record| record.host_elapsed_ns == 1_000_000)
    );
    let names: Vec<&str> = stored.arms.iter().map(|arm| arm.arm.as_str()).collect();
    assert_eq!(names, ["host", A_PRIME, "box"]);
    assert!(
        stored
            .arms
            .iter()
            .all(|arm| arm.available && arm.facts["engine"] == "script")
    );
    assert_eq!(stored.plan_sha256, plan.sha256());
    assert_eq!(stored.stopped_by, Some(StoppedBy::Blocks));
    // Blocks 0 and 1 are one launch, block 2 the next: every arm was started twice.
    assert_eq!(stored.launches.len(), 6);
    let mut launches = stored.launches.iter();
    let of_host = launches.find(|launch| launch.arm.as_str() == "host");
    assert_eq!(of_host.unwrap().facts["paths"], "/,/work/host");
    assert_eq!(stored.launches[5].launch, 1);
    scene.assert_all_removed();
}

#[test]
fn no_progress_event_between_trial_dispatch_and_end() {
    let scene = Scene::plain();
    scene.execute(&study()).unwrap();
    let log = scene.stage.log();
    let runs = log.iter().filter(|line| line.starts_with("run ")).count();
    assert_eq!(runs, 18);
    for pair in log.windows(2) {
        if pair[0].starts_with("run ") {
            assert_eq!(pair[1], "told", "{log:#?}");
        }
    }
}

#[test]
fn late_stop_overlaps_starts_ends_before_next_trial() {
    let scene = Scene::new(Script {
        late: vec!["box"],
        ..Script::default()
    });
    scene.execute(&study()).unwrap();
    let log = scene.stage.log();
    let places = |line: &str| -> Vec<usize> {
        let shown = log.iter().enumerate().filter(|(_, said)| *said == line);
        shown.map(|(place, _)| place).collect()
    };
    let (started, stopped) = (places("start box"), places("stop box"));
    assert_eq!((started.len(), stopped.len()), (2, 2), "{log:#?}");
    assert!(started[1] < stopped[0], "{log:#?}");
    // The other arms have been stopped and restarted by then.
    assert!(places("start host")[1] < started[1], "{log:#?}");
    let next_trial = log[started[1]..]
        .iter()
        .position(|said| said.starts_with("run "));
    assert!(stopped[0] < started[1] + next_trial.unwrap(), "{log:#?}");
    scene.assert_all_removed();
}

type Change = fn(&mut Study);

#[test]
fn study_with_unknown_names_is_refused_before_storing() {
    let change: [(&str, Change); 4] = [
        ("UnknownDriver", |study| {
            study.arms[2].driver = "none".into();
        }),
        ("Settings", |study| {
            study.arms[2].settings = params("wrong = 1");
        }),
        ("UnknownWorkload", |study| {
            study.workloads[0] = spec("none", None);
        }),
        ("Param", |study| {
            study.workloads[0].params = params("wrong = 1");
        }),
    ];
    for (variant, change) in change {
        let scene = Scene::plain();
        let mut study = study();
        change(&mut study);
        let error = scene.execute(&study).unwrap_err();
        assert!(format!("{error:?}").starts_with(variant), "{error:?}");
        let store = Store::open(&scene.path()).unwrap();
        assert_eq!(store.runs().unwrap(), []);
        assert_eq!(scene.stage.log(), [""; 0]);
    }
}
