//! Tests recipes with more than one worker: pairs, lifecycles, cold instances.

use super::*;

/// One block of a pair in `box` alone, so that the script's numbers are those of the ends.
fn pair_of_box(path: tare_model::Path) -> Study {
    let mut study = study();
    study.workloads = vec![spec("pair", Some(path))];
    study.blocks_max = 1;
    study.arms = vec![study.arms[2].clone()];
    study.baseline = study.arms[0].id.clone();
    study
}

#[test]
fn a_cold_study_has_an_instance_for_every_trial() {
    let scene = Scene::plain();
    let mut study = study();
    study.lifecycle = Lifecycle::Cold;
    study.settle_ns = 500_000_000;
    let summary = scene.execute(&study).unwrap();
    assert_eq!((summary.n_trials, summary.n_without_value), (18, 0));
    let log = scene.stage.log();
    let starts = log.iter().filter(|line| line.starts_with("start ")).count();
    assert_eq!(starts, 3 + 18);
    let first = log
        .iter()
        .position(|line| line.starts_with("run "))
        .unwrap();
    let verbs: Vec<&str> = log[first - 2..first + 3]
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(verbs, ["start", "hello", "run", "stop", "told"]);
    // Starting and settling are not part of the measured time.
    assert!(
        scene
            .stored()
            .records
            .iter()
            .all(|record| record.host_elapsed_ns == 1_000_000)
    );
    assert!(summary.wall_ns > 18 * 500_000_000);
    scene.assert_all_removed();
}

#[test]
fn lifecycle_is_timed_from_outside_and_cleaned_up() {
    let scene = Scene::plain();
    let mut study = study();
    study.workloads = vec![spec("life", None)];
    study.blocks_max = 2;
    let summary = scene.execute(&study).unwrap();
    assert_eq!((summary.n_trials, summary.n_without_value), (6, 0));
    for record in scene.stored().records {
        let Outcome::Completed(raw) = record.outcome else {
            panic!("{record:?}")
        };
        assert_eq!(raw.format, LIFECYCLE_FORMAT);
        assert_eq!(
            serde_json::from_slice::<LifecycleReport>(&raw.stdout.0).unwrap(),
            LifecycleReport {
                created_ns: 0,
                started_ns: Some(10_000_000),
                ready_ns: 12_000_000,
                removed_ns: 16_000_000,
                stop_ns: Some(4_000_000),
                memory_bytes: None,
                all_memory_bytes: None,
                disk_bytes: None,
            }
        );
    }
    assert_eq!(scene.n_lines(|line| line.ends_with(" once")), 6);
    scene.assert_all_removed();
}

#[test]
fn lifecycle_is_timed_while_others_are_idle() {
    let scene = Scene::plain();
    let mut study = study();
    study.workloads = vec![spec("held-life", None)];
    study.blocks_max = 2;
    let summary = scene.execute(&study).unwrap();
    assert_eq!((summary.n_trials, summary.n_without_value), (6, 0));
    // Each arm's resident instance, and in each of its two trials two idle ones and the timed one.
    let is_start = |line: &str| line.starts_with("start ");
    assert_eq!(
        scene.n_lines(|line| is_start(line) && line.ends_with(" once")),
        6
    );
    assert_eq!(
        scene.n_lines(|line| is_start(line) && !line.ends_with(" once")),
        3 + 12
    );
    for record in scene.stored().records {
        let Outcome::Completed(raw) = record.outcome else {
            panic!("{record:?}")
        };
        let report: LifecycleReport = serde_json::from_slice(&raw.stdout.0).unwrap();
        assert_eq!(report.ready_ns, 12_000_000, "the idle ones are in no time");
    }
    scene.assert_all_removed();
}

#[test]
fn pair_path_decides_server_and_client_place() {
    for (path, server, client, address) in [
        (tare_model::Path::Loopback, "box", "box", "127.0.0.1"),
        (tare_model::Path::HostToArm, "box", "host-peer", "10.0.0.2"),
        (tare_model::Path::ArmToHost, "host-peer", "box", "10.0.0.1"),
    ] {
        for listen in [Act::Listen(4321), Act::ListenOnce(4321)] {
            // A server that ends by itself is noticed only if its client uses the same channel.
            if listen == Act::ListenOnce(4321) && path != tare_model::Path::Loopback {
                continue;
            }
            let scene = Scene::acting([((server, 0), listen)]);
            let study = pair_of_box(path);
            let summary = scene.execute(&study).unwrap();
            assert_eq!(
                summary.n_without_value,
                0,
                "{path:?}: {:?}",
                scene.stored().records
            );
            let calls = scene.stage.calls.lock().unwrap().clone();
            assert_eq!(calls.len(), 2);
            assert_eq!(
                (calls[0].0.as_str(), calls[0].1.name.as_str()),
                (server, "serve")
            );
            assert_eq!(
                (calls[1].0.as_str(), calls[1].1.name.as_str()),
                (client, "ask")
            );
            assert_eq!(calls[1].1.args.text("address"), Some(address));
            assert_eq!(calls[1].1.args.value("port"), Some(&Value::Int(4321)));
            assert_eq!(scene.stored().records[0].host_elapsed_ns, 1_000_000);
            scene.assert_all_removed();
            let has_peer = scene.stage.log().contains(&"start host-peer".to_owned());
            assert_eq!(has_peer, path != tare_model::Path::Loopback);
        }
    }
}

#[test]
fn arm_to_arm_pair_starts_second_instance_of_each_arm() {
    for lifecycle in [Lifecycle::Warm, Lifecycle::Cold] {
        let scene = Scene::acting([(("box", 0), Act::Listen(4321))]);
        let mut study = pair_of_box(tare_model::Path::ArmToArm);
        study.lifecycle = lifecycle;
        let summary = scene.execute(&study).unwrap();
        assert_eq!(summary.n_without_value, 0, "{:?}", scene.stored().records);
        let calls = scene.stage.calls.lock().unwrap().clone();
        assert_eq!(calls[0].1.name, "serve");
        assert_eq!(calls[0].1.args.text("bind"), Some("10.0.0.3"));
        assert_eq!(calls[1].1.name, "ask");
        assert_eq!(calls[1].1.args.text("address"), Some("10.0.0.3"));
        assert_eq!(calls[1].1.args.value("port"), Some(&Value::Int(4321)));
        let called = scene.stage.called.lock().unwrap().clone();
        assert_eq!(called[0] + 1, called[1], "the server's, then the client's");
        let log = scene.stage.log();
        assert!(!log.contains(&"start host-peer".to_owned()), "{log:?}");
        let count = |verb: &str| log.iter().filter(|line| line.starts_with(verb)).count();
        assert_eq!(count("start box"), count("stop box"));
        scene.assert_all_removed();
    }
}

/// A study with one trial on the three nodes of `box`.
fn on_three_nodes(lifecycle: Lifecycle) -> Study {
    let mut study = study();
    study.workloads = vec![spec("cluster", Some(tare_model::Path::ArmToArm))];
    study.blocks_max = 1;
    study.lifecycle = lifecycle;
    study.arms = vec![study.arms[2].clone()];
    study.baseline = arm_id("box");
    study
}

#[test]
fn cluster_serves_on_every_node_with_client_on_first() {
    for lifecycle in [Lifecycle::Warm, Lifecycle::Cold] {
        let listen = |nth| (("box", nth), Act::Listen(4321));
        let scene = Scene::acting([listen(0), listen(1), listen(2)]);
        let summary = scene.execute(&on_three_nodes(lifecycle)).unwrap();
        assert_eq!(summary.n_without_value, 0, "{:?}", scene.stored().records);
        let calls = scene.stage.calls.lock().unwrap().clone();
        let names: Vec<&str> = calls.iter().map(|(_, call)| call.name.as_str()).collect();
        assert_eq!(names, ["serve", "serve", "serve", "ask"]);
        let called = scene.stage.called.lock().unwrap().clone();
        let first = called[0];
        assert_eq!(called, [first, first + 1, first + 2, first]);
        for (node, (_, call)) in (1..).zip(&calls) {
            let view = tare_model::ClusterView::from_args(&call.args)
                .unwrap()
                .unwrap();
            assert_eq!(view.node, if node == 4 { 1 } else { node });
            assert_eq!((view.addresses.len(), view.slots), (3, 2));
            // The first finds the port, and all others get it.
            let port = (node > 1).then_some(&Value::Int(4321));
            assert_eq!(call.args.value("port"), port);
        }
        let log = scene.stage.log();
        let count = |verb: &str| log.iter().filter(|line| line.starts_with(verb)).count();
        assert_eq!(count("start box"), count("stop box"));
        assert_eq!(count("cancel"), 3, "{log:?}");
        scene.assert_all_removed();
    }
}

#[test]
fn cluster_with_lost_node_fails_and_restarts_whole() {
    let scene = Scene::acting([(("box", 0), Act::Listen(4321)), (("box", 1), Act::Die)]);
    scene.execute(&on_three_nodes(Lifecycle::Warm)).unwrap();
    let outcomes = scene.outcomes("box");
    let Outcome::Failed(Failure::Lost(why)) = &outcomes[0] else {
        panic!("{outcomes:?}");
    };
    assert!(why.starts_with("node-2: "), "{why}");
    let log = scene.stage.log();
    let starts = scene.n_logged("start box");
    assert_eq!(starts, 6, "{log:?}");
    scene.assert_all_removed();
}

#[test]
fn single_instance_arm_skips_only_two_instance_trials() {
    let scene = Scene::new(Script {
        no_start: BTreeMap::from([("box", vec![1])]),
        always: BTreeMap::from([("host", Act::Listen(1)), (A_PRIME, Act::Listen(1))]),
        ..Script::default()
    });
    let mut study = study();
    study.workloads = vec![
        spec("w0", None),
        spec("pair", Some(tare_model::Path::ArmToArm)),
    ];
    study.blocks_max = 1;
    scene.execute(&study).unwrap();
    let outcomes = scene.outcomes("box");
    let why = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Unavailable(reason) => Some(reason.to_string()),
        _ => None,
    });
    assert!(
        why.unwrap().contains("node-2 next to the first instance"),
        "{outcomes:?}"
    );
    assert!(
        outcomes
            .iter()
            .any(|outcome| matches!(outcome, Outcome::Completed(_)))
    );
    scene.assert_all_removed();
}

#[test]
fn published_port_is_served_inside_queried_outside() {
    for (path, bind, inside, address, port) in tare_model::rows! {
        (tare_model::Path::PublishedLoopback, "0.0.0.0", Some(80), "127.0.0.1", 8080),
        // With nothing in between, the server's own port is the published one.
        (tare_model::Path::PublishedBridge, "10.0.0.4", None, "10.0.0.4", 4321),
    } {
        let scene = Scene::acting([(("box", 0), Act::Listen(4321))]);
        let study = pair_of_box(path);
        let summary = scene.execute(&study).unwrap();
        assert_eq!(summary.n_without_value, 0, "{:?}", scene.stored().records);
        let calls = scene.stage.calls.lock().unwrap().clone();
        let server = (calls[0].0.as_str(), &calls[0].1.args);
        let client = (calls[1].0.as_str(), &calls[1].1.args);
        assert_eq!((server.0, client.0), ("box", "host-peer"));
        assert_eq!(server.1.text("bind"), Some(bind));
        assert_eq!(server.1.int("port"), inside);
        assert_eq!(client.1.text("address"), Some(address));
        assert_eq!(client.1.int("port"), Some(port));
        scene.assert_all_removed();
    }
}

#[test]
fn pair_without_route_is_unavailable() {
    let scene = Scene::new(Script {
        unreachable: vec!["box"],
        always: everywhere(&Act::Listen(1)),
        ..Script::default()
    });
    let mut study = study();
    study.workloads = vec![spec("pair", Some(tare_model::Path::HostToArm))];
    scene.execute(&study).unwrap();
    assert!(
        scene.outcomes("box").iter().all(|outcome| {
            *outcome == Outcome::Unavailable(Reason::NoPath("no network".into()))
        })
    );
    assert!(
        scene
            .outcomes("host")
            .iter()
            .all(|outcome| matches!(outcome, Outcome::Completed(_)))
    );
}

#[test]
fn a_pair_is_unavailable_where_the_host_has_no_agent() {
    let scene = Scene::with(|script| script.absent = vec!["host"]);
    let mut study = study();
    study.workloads = vec![spec("pair", Some(tare_model::Path::ArmToHost))];
    let summary = scene.execute(&study).unwrap();
    assert_eq!((summary.n_trials, summary.n_without_value), (9, 9));
    assert!(
        scene
            .outcomes("box")
            .iter()
            .all(|outcome| matches!(outcome, Outcome::Unavailable(Reason::NoPath(_))))
    );
}
