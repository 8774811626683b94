//! Tests arms that do not start, die, hang or fail.

use super::*;

#[test]
fn agent_death_fails_trial_and_restarts_agent() {
    let scene = Scene::acting([(("box", 1), Act::Die)]);
    let summary = scene.ends(&study(), StoppedBy::Blocks);
    assert_eq!((summary.n_trials, summary.n_without_value), (18, 1));
    let outcomes = scene.outcomes("box");
    assert_eq!(outcomes.len(), 6);
    assert!(
        matches!(&outcomes[1], Outcome::Failed(Failure::Lost(_))),
        "{outcomes:?}"
    );
    assert!(matches!(outcomes[2], Outcome::Completed(_)));
    let remarks = scene.stored().remarks;
    assert!(
        remarks
            .iter()
            .any(|remark| remark.text.contains("`box` was lost in block 0")),
        "{remarks:?}"
    );
    scene.assert_all_removed();
}

#[test]
fn arm_lost_twice_in_launch_is_dropped_others_go_on() {
    let scene = Scene::with(|script| script.always = [("box", Act::Die)].into());
    let summary = scene.ends(&study(), StoppedBy::Blocks);
    assert_eq!(summary.n_trials, 2 + 12);
    assert_eq!(summary.absent.len(), 1);
    assert_says(&summary.absent[0].1, "lost again");
    let arms = scene.stored().arms;
    // The arm was available: its trials count as far as they go.
    assert!(arms[2].available);
    assert!(arms[2].reason.as_ref().unwrap().contains("block 0"));
    scene.assert_all_removed();
}

#[test]
fn hanging_worker_is_ended_and_reported_as_timed_out() {
    let scene = Scene::acting([(("box", 0), Act::Hang)]);
    let summary = scene.execute(&study()).unwrap();
    assert_eq!(summary.n_trials, 18);
    let outcomes = scene.outcomes("box");
    let timed_out = Outcome::Failed(Failure::TimedOut {
        limit_ns: 500_000_000,
    });
    assert_eq!(outcomes[0], timed_out);
    assert!(matches!(outcomes[1], Outcome::Completed(_)));
    let record = scene
        .stored()
        .records
        .into_iter()
        .find(|record| record.outcome == timed_out)
        .unwrap();
    // The limit, two seconds for the agent to report it, and its answer to the query.
    assert_eq!(record.host_elapsed_ns, 2_500_001_000);
    // The agent was healthy: no restart, so one start per launch.
    assert_eq!(scene.n_logged("start box"), 2);
}

#[test]
fn agent_ignoring_cancel_is_lost_and_restarted() {
    let scene = Scene::acting([(("box", 0), Act::Deaf)]);
    scene.execute(&study()).unwrap();
    let outcomes = scene.outcomes("box");
    assert!(
        matches!(&outcomes[0], Outcome::Failed(Failure::Lost(_))),
        "{outcomes:?}"
    );
    assert!(matches!(outcomes[1], Outcome::Completed(_)));
    assert_eq!(scene.n_logged("start box"), 3);
    scene.assert_all_removed();
}

#[test]
fn unavailable_or_failed_trial_is_stored_not_retried() {
    let scene = Scene::acting([(("box", 0), Act::Unavailable), (("box", 1), Act::Failed)]);
    let summary = scene.execute(&study()).unwrap();
    assert_eq!((summary.n_trials, summary.n_without_value), (18, 2));
    let outcomes = scene.outcomes("box");
    assert_eq!(
        outcomes[0],
        Outcome::Unavailable(Reason::MissingTool("hammer".into()))
    );
    assert_eq!(outcomes[1], Outcome::Failed(Failure::Killed { signal: 11 }));
}

#[test]
fn optional_arm_failing_start_is_absent_with_reason() {
    let scene = Scene::with(|script| script.no_start = [("box", vec![0])].into());
    let summary = scene.execute(&study()).unwrap();
    assert_eq!(summary.n_trials, 12);
    let arms = scene.stored().arms;
    assert!(!arms[2].available);
    assert_eq!(
        arms[2].reason.as_deref(),
        Some("permission denied: starting")
    );
    assert_eq!(arms[2].fix.as_deref(), Some("ask for it"));
    assert!(
        scene
            .stored()
            .records
            .iter()
            .all(|record| record.trial.cell.arm.as_str() != "box")
    );
    let events = scene.stage.events.lock().unwrap();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Absent { arm, .. } if arm == "box")),
        "{events:?}"
    );
}

#[test]
fn arm_failing_to_restart_is_dropped_from_that_launch() {
    let scene = Scene::with(|script| script.no_start = [("box", vec![1])].into());
    let summary = scene.execute(&study()).unwrap();
    assert_eq!(summary.n_trials, 18 - 2);
    let stored = scene.stored();
    assert!(stored.arms[2].available && stored.arms[2].reason.is_some());
    assert!(scene.is_remarked("given up in block 2"));
}

#[test]
fn unusable_required_arm_ends_run_before_preparation() {
    let scene = Scene::with(|script| script.absent = vec!["other"]);
    let mut study = study();
    study.arms[2].driver = "other".into();
    study.arms[2].required = true;
    let error = scene.execute(&study).unwrap_err();
    let RunError::RequiredArm { arm, why, fix } = &error else {
        panic!("{error}")
    };
    assert_eq!((arm.as_str(), why.as_str()), ("box", "other is not here"));
    assert_eq!(fix.as_deref(), Some("fetch it"));
    assert!(error.with_hint().ends_with("hint: fetch it"), "{error}");
    assert!(
        !scene
            .stage
            .log()
            .iter()
            .any(|line| line.starts_with("prepare"))
    );
    let stored = scene.stored();
    assert_eq!(stored.stopped_by, Some(StoppedBy::Failed));
    assert_eq!(stored.failure, Some(error.with_hint()));
}

#[test]
fn required_arm_failing_to_start_ends_run_and_cleans() {
    for (arm, index) in [("box", 2), ("host", 0)] {
        let scene = Scene::with(|script| script.no_start = [(arm, vec![0])].into());
        let mut study = study();
        study.arms[index].required = arm == "box";
        let error = scene.execute(&study).unwrap_err();
        assert!(matches!(&error, RunError::RequiredArm { arm: out, .. } if out.as_str() == arm));
        scene.assert_all_removed();
    }
}

#[test]
fn lost_baseline_ends_run_and_keeps_trials() {
    let scene = Scene::acting([(("host", 2), Act::Die), (("host", 3), Act::Die)]);
    let error = scene.execute(&study()).unwrap_err();
    assert!(
        matches!(&error, RunError::BaselineLost { block: 1, .. }),
        "{error}"
    );
    let stored = scene.stored();
    assert_eq!(stored.stopped_by, Some(StoppedBy::Failed));
    assert!(stored.records.len() >= 6);
    scene.assert_all_removed();
}

#[test]
fn an_agent_of_another_build_is_refused() {
    let scene = Scene::with(|script| script.other_build = vec!["box"]);
    let summary = scene.execute(&study()).unwrap();
    assert_says(&summary.absent[0].1, "`build-0`");
    scene.assert_all_removed();
}

#[test]
fn suspend_during_trial_voids_it_and_run_continues() {
    let scene = Scene::acting([
        (("box", 1), Act::Suspend(7_200_000_000_000)),
        // A step of the clock that is too short to count as a suspend.
        (("box", 2), Act::Suspend(10_000_000)),
    ]);
    let summary = scene.ends(&study(), StoppedBy::Blocks);
    assert_eq!((summary.n_trials, summary.n_without_value), (18, 1));
    let outcomes = scene.outcomes("box");
    let Outcome::Failed(Failure::Void(why)) = &outcomes[1] else {
        panic!("{outcomes:?}");
    };
    assert_says(why, "suspended for 7200 s");
    assert!(matches!(outcomes[2], Outcome::Completed(_)), "{outcomes:?}");
    scene.assert_all_removed();
}
