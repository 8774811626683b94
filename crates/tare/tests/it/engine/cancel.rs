//! Tests Ctrl-C, panics and cleanup: whatever happens, everything is removed.

use super::*;

#[test]
fn ctrl_c_in_trial_kills_worker_and_discards_trial() {
    let scene = Scene::acting([(("box", 2), Act::CtrlC)]);
    let mut study = study();
    study.limit_ns = 60_000_000_000;
    let summary = scene.ends(&study, StoppedBy::Interrupted);
    assert!(scene.stored().records.iter().all(is_completed));
    assert!(scene.stage.log().contains(&"cancel box".to_owned()));
    assert!(summary.wall_ns < 1_000_000_000, "{}", summary.wall_ns);
    scene.assert_all_removed();
}

#[test]
fn ctrl_c_killing_agent_is_no_arm_failure() {
    let scene = Scene::acting([(("box", 1), Act::DieOfCtrlC)]);
    let summary = scene.ends(&study(), StoppedBy::Interrupted);
    assert!(scene.stored().records.iter().all(is_completed));
    assert_eq!(scene.outcomes("box").len(), 1);
    assert_eq!(summary.absent, []);
    scene.assert_all_removed();
}

#[test]
fn a_panic_in_a_driver_still_removes_everything() {
    let scene = Scene::acting([(("box", 1), Act::Panic)]);
    let unwound =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scene.execute(&study())));
    assert!(unwound.is_err());
    scene.assert_all_removed();
    // Data stored before is kept, and the run can be resumed.
    let stored = scene.stored();
    assert!(!stored.records.is_empty());
    assert_eq!(stored.stopped_by, None);
}

#[test]
fn failed_removal_is_reported_and_rest_is_removed() {
    let scene = Scene::new(Script {
        stuck: vec!["box"],
        panics_at_removal: vec![A_PRIME],
        ..Script::default()
    });
    let summary = scene.execute(&study()).unwrap();
    assert_eq!(
        summary.left_behind,
        ["box: removing: device busy", "a-prime: its driver panicked"]
    );
    assert!(scene.stage.log().contains(&"remove host".to_owned()));
    assert!(scene.is_remarked("device busy"));
}

#[test]
fn removal_failure_does_not_replace_first_failure() {
    let scene = Scene::new(Script {
        no_start: BTreeMap::from([("host", vec![0])]),
        stuck: vec!["box"],
        ..Script::default()
    });
    let error = scene.execute(&study()).unwrap_err();
    assert!(
        matches!(error.first(), RunError::RequiredArm { .. }),
        "{error}"
    );
    let text = error.to_string();
    assert_says(&text, "permission denied");
    assert_says(&text, "device busy");
}
