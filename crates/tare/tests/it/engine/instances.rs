//! Tests several instances at once: the order of the barrier, and the fate of a trial if one of them fails, hangs or
//! is lost.

use tare_model::{INSTANCES_FORMAT, Spread, StoppedBy, Together};

use super::*;

/// One arm in addition to the baseline and its copy, one workload, one block.
fn one_block(workload: WorkloadSpec) -> Study {
    Study {
        workloads: vec![workload],
        blocks_max: 1,
        ..study()
    }
}

/// Returns the record of the arm's trial.
fn record_of(scene: &Scene, arm: &str) -> Together {
    match scene.outcomes(arm).as_slice() {
        [Outcome::Completed(raw)] => {
            assert_eq!(raw.format, INSTANCES_FORMAT);
            serde_json::from_slice(&raw.stdout.0).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn lines<'a>(log: &'a [String], arm: &str) -> Vec<&'a str> {
    let wanted = ["run", "ready", "go", "cancel"];
    log.iter()
        .map(String::as_str)
        .filter(|line| {
            let mut words = line.split(' ');
            words.next().is_some_and(|verb| wanted.contains(&verb)) && words.next() == Some(arm)
        })
        .collect()
}

#[test]
fn all_are_prepared_before_the_first_goes_on() {
    for spread in Spread::ALL {
        let scene = Scene::plain();
        let summary = scene.ends(&one_block(several("w0", 3, spread)), StoppedBy::Blocks);
        assert_eq!((summary.n_trials, summary.n_without_value), (3, 0));
        let log = scene.stage.log();
        let mut expected = vec!["run box w0"; 3];
        expected.extend(["ready box"; 3]);
        expected.extend(["go box"; 3]);
        assert_eq!(lines(&log, "box"), expected);
        let together = record_of(&scene, "box");
        assert_eq!(together.spread, spread);
        assert_eq!(together.instances.len(), 3);
        assert_eq!(together.problem(), None);
        scene.assert_all_removed();
    }
}

#[test]
fn processes_share_an_instance_environments_do_not() {
    for (spread, instances, starts) in [
        (Spread::Processes, BTreeSet::from([0]), 1),
        (Spread::Environments, BTreeSet::from([0, 1, 2]), 3),
    ] {
        let scene = Scene::plain();
        scene.execute(&one_block(several("w0", 3, spread))).unwrap();
        let called = scene.stage.called.lock().unwrap().clone();
        assert_eq!(BTreeSet::from_iter(called), instances);
        let count = scene.n_logged("start box");
        assert_eq!(count, starts);
        scene.assert_all_removed();
    }
}

#[test]
fn series_of_one_instance_uses_the_barrier_too() {
    let scene = Scene::plain();
    let mut study = one_block(several("w0", 1, Spread::Processes));
    study.workloads.push(spec("w1", None));
    scene.execute(&study).unwrap();
    let log = scene.stage.log();
    let of_box = lines(&log, "box");
    assert_eq!(of_box.iter().filter(|line| **line == "go box").count(), 1);
    let records = scene.stored().records;
    let formats: BTreeSet<(String, String)> = records
        .iter()
        .filter_map(|record| match &record.outcome {
            Outcome::Completed(raw) => {
                Some((record.trial.cell.workload.to_string(), raw.format.clone()))
            }
            _ => None,
        })
        .collect();
    let expected = [("w0", INSTANCES_FORMAT), ("w1", "probe/1")];
    let expected = expected.map(|(workload, format)| (workload.to_owned(), format.to_owned()));
    assert_eq!(formats, BTreeSet::from(expected));
}

#[test]
fn instance_failing_at_work_keeps_output_of_others() {
    let scene = Scene::acting([(("box", 1), Act::FailAtWork)]);
    let summary = scene
        .execute(&one_block(several("w0", 3, Spread::Processes)))
        .unwrap();
    assert_eq!(summary.n_without_value, 1);
    let together = record_of(&scene, "box");
    let problem = together.problem().unwrap();
    assert!(problem.starts_with("instance 2 of 3: "), "{problem}");
    assert_says(&problem, "signal 11");
    let completed = |index: usize| {
        matches!(
            together.instances[index].outcome,
            Outcome::Completed(ref raw) if !raw.stdout.0.is_empty()
        )
    };
    assert!(completed(0) && completed(2));
    scene.assert_all_removed();
}

#[test]
fn instance_failing_before_ready_cancels_the_others() {
    for spread in Spread::ALL {
        let scene = Scene::acting([(("box", 1), Act::Failed)]);
        scene.execute(&one_block(several("w0", 3, spread))).unwrap();
        let log = scene.stage.log();
        let of_box = lines(&log, "box");
        assert!(!of_box.contains(&"go box"), "{of_box:?}");
        assert_eq!(
            of_box.iter().filter(|line| **line == "cancel box").count(),
            2
        );
        let together = record_of(&scene, "box");
        let problem = together.problem().unwrap();
        assert!(problem.starts_with("instance 2 of 3: "), "{problem}");
        assert!(together.instances.iter().all(|it| it.start_ns.is_none()));
    }
}

#[test]
fn call_unavailable_in_all_instances_is_not_failed() {
    let scene = Scene::with(|script| script.always = [("box", Act::Unavailable)].into());
    scene
        .execute(&one_block(several("w0", 2, Spread::Processes)))
        .unwrap();
    let missing = Reason::MissingTool("hammer".into());
    assert_eq!(scene.outcomes("box"), [Outcome::Unavailable(missing)]);
}

#[test]
fn hanging_instance_ends_at_limit_others_still_report() {
    for spread in Spread::ALL {
        let scene = Scene::acting([(("box", 0), Act::Hang)]);
        let summary = scene.execute(&one_block(several("w0", 3, spread))).unwrap();
        assert_eq!(summary.absent, []);
        let together = record_of(&scene, "box");
        let problem = together.problem().unwrap();
        assert!(
            problem.starts_with("instance 1 of 3: no answer within"),
            "{problem}"
        );
        for other in &together.instances[1..] {
            assert!(matches!(other.outcome, Outcome::Completed(_)), "{other:?}");
        }
        assert!(summary.wall_ns < 10_000_000_000, "{}", summary.wall_ns);
        scene.assert_all_removed();
    }
}

#[test]
fn instance_never_ready_is_ended_at_limit() {
    let scene = Scene::acting([(("box", 2), Act::NeverReady)]);
    scene
        .execute(&one_block(several("w0", 3, Spread::Processes)))
        .unwrap();
    let log = scene.stage.log();
    assert!(!lines(&log, "box").contains(&"go box"));
    let problem = record_of(&scene, "box").problem().unwrap();
    assert_says(&problem, "no answer within");
}

#[test]
fn worker_skipping_the_barrier_does_not_count() {
    let scene = Scene::acting([(("box", 0), Act::Jump)]);
    scene
        .execute(&one_block(several("w0", 2, Spread::Processes)))
        .unwrap();
    let problem = record_of(&scene, "box").problem().unwrap();
    assert_says(&problem, "without having waited");
}

#[test]
fn environment_dying_at_work_restarts_whole_group() {
    let scene = Scene::acting([(("box", 1), Act::DieAtWork)]);
    let mut study = one_block(several("w0", 2, Spread::Environments));
    study.blocks_max = 2;
    let summary = scene.execute(&study).unwrap();
    assert_eq!(summary.absent, []);
    let outcomes = scene.outcomes("box");
    assert_eq!(outcomes.len(), 2);
    let raws: Vec<Together> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Completed(raw) => serde_json::from_slice(&raw.stdout.0).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(raws[0].problem().unwrap().starts_with("instance 2 of 2"));
    assert_eq!(raws[1].problem(), None);
    assert_eq!(scene.n_logged("start box"), 4);
    scene.assert_all_removed();
}

#[test]
fn too_few_environments_disable_only_that_workload() {
    let scene = Scene::with(|script| script.no_start = [("box", vec![2])].into());
    let mut study = one_block(several("w0", 3, Spread::Environments));
    study.workloads.push(several("w1", 2, Spread::Environments));
    scene.execute(&study).unwrap();
    let stored = scene.stored();
    let of_box = |workload: &str| {
        let mut records = stored.records.iter();
        let found = records.find(|record| {
            record.trial.cell.arm.as_str() == "box"
                && record.trial.cell.workload.as_str() == workload
        });
        found.unwrap().outcome.clone()
    };
    assert!(matches!(
        of_box("w0"),
        Outcome::Unavailable(Reason::NoEnvironment(ref why)) if why.contains("instance 3")
    ));
    assert!(matches!(of_box("w1"), Outcome::Completed(_)));
    scene.assert_all_removed();
}

#[test]
fn instance_hanging_at_start_is_waited_for_once() {
    let scene = Scene::with(|script| script.never_up = [("box", vec![1])].into());
    let mut study = one_block(several("w0", 3, Spread::Environments));
    study.workloads.push(spec("w1", None));
    (study.blocks_max, study.blocks_per_launch) = (4, 4);
    let summary = scene.execute(&study).unwrap();
    assert_eq!(summary.absent, []);
    let outcomes = |workload: &str| -> Vec<Outcome> {
        let stored = scene.stored().records.into_iter();
        let of_box = stored.filter(|record| {
            let cell = &record.trial.cell;
            cell.arm.as_str() == "box" && cell.workload.as_str() == workload
        });
        of_box.map(|record| record.outcome).collect()
    };
    assert_eq!(outcomes("w0").len(), 4);
    for outcome in outcomes("w0") {
        let Outcome::Unavailable(Reason::NoEnvironment(why)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_says(&why, "instance 2");
        assert_says(&why, "console");
    }
    let measured = outcomes("w1");
    let is_measured = |outcome: &Outcome| matches!(outcome, Outcome::Completed(_));
    assert!(measured.len() == 4 && measured.iter().all(is_measured));
    assert!(summary.wall_ns < 90_000_000_000, "{}", summary.wall_ns);
    scene.assert_all_removed();
}

#[test]
fn ctrl_c_with_several_instances_ends_all_drops_trial() {
    for spread in Spread::ALL {
        let scene = Scene::acting([(("box", 0), Act::CtrlC), (("box", 1), Act::Hang)]);
        let mut study = one_block(several("w0", 2, spread));
        study.limit_ns = 60_000_000_000;
        let summary = scene.ends(&study, StoppedBy::Interrupted);
        assert!(scene.outcomes("box").is_empty());
        let log = scene.stage.log();
        let cancels = scene.n_logged("cancel box");
        assert_eq!(cancels, 2, "{log:#?}");
        assert!(summary.wall_ns < 1_000_000_000, "{}", summary.wall_ns);
        scene.assert_all_removed();
    }
}

#[test]
fn resumed_run_keeps_number_of_instances() {
    let scene = Scene::plain();
    scene.stage.cancel_after(2);
    let study = one_block(several("w0", 3, Spread::Environments));
    let first = scene.execute(&study).unwrap();
    assert_eq!(
        (first.stopped_by, first.n_trials),
        (StoppedBy::Interrupted, 2)
    );
    let stage = Stage::plain();
    let second = resume_on(stage, &scene.path(), &mut AllBlocks, None).unwrap();
    assert_eq!((second.stopped_by, second.n_trials), (StoppedBy::Blocks, 3));
    for record in scene.stored().records {
        assert_eq!(record.trial.cell.instances, 3);
        let Outcome::Completed(raw) = record.outcome else {
            panic!("a trial failed");
        };
        let together: Together = serde_json::from_slice(&raw.stdout.0).unwrap();
        assert_eq!(together.instances.len(), 3);
    }
}

#[test]
fn cold_study_starts_fresh_instances_for_every_trial() {
    let scene = Scene::plain();
    let mut study = one_block(several("w0", 2, Spread::Environments));
    study.lifecycle = Lifecycle::Cold;
    scene.execute(&study).unwrap();
    assert_eq!(record_of(&scene, "box").problem(), None);
    // Once to check that the arm works, then two for its trial.
    assert_eq!(scene.n_logged("start box"), 3);
    scene.assert_all_removed();
}

#[test]
fn several_instances_of_pair_or_lifecycle_are_refused() {
    for workload in ["pair", "life"] {
        let scene = Scene::plain();
        let spec = WorkloadSpec {
            path: (workload == "pair").then_some(tare_model::Path::HostToArm),
            ..several(workload, 2, Spread::Processes)
        };
        let error = scene.execute(&one_block(spec)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RunError::Param { .. }), "{text}");
        assert_says(&text, workload);
    }
}
