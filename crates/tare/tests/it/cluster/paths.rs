//! Tests round trips between two instances, and the cells of different paths.

use tare_model::CellKey;

use super::*;

fn round_trips(driver: &str, settings: Params) -> Option<StoredRun> {
    let mut study = study(
        driver,
        settings,
        "tcp-round-trip",
        Params::new(),
        Path::ArmToArm,
    );
    study.blocks_max = 1;
    run(&format!("pair-{driver}"), &study)
}

/// Asserts that the workload can read the raw output of the only trial.
fn assert_measured(stored: &StoredRun) {
    assert_eq!(stored.records.len(), 1);
    let Outcome::Completed(raw) = &stored.records[0].outcome else {
        panic!("{:?}", stored.records[0]);
    };
    let samples = tare::workload::find("tcp-round-trip")
        .unwrap()
        .decode(raw)
        .unwrap();
    assert!(samples[0].observations.iter().all(|time| *time > 0.0));
    let facts = &stored.launches[0].facts;
    assert_eq!(facts["cluster.nodes"], "2", "{facts:?}");
}

#[test]
fn two_instances_exchange_a_round_trip() {
    let namespaces = ["user", "mount", "pid", "uts", "ipc", "net", "cgroup"];
    let namespaces = namespaces.map(tare_model::Value::from).to_vec();
    let apart = Params::new().with("namespaces", tare_model::Value::List(namespaces));
    for (driver, settings) in [
        ("host", Params::new()),
        ("container", Params::new()),
        ("container", apart),
        ("docker", Params::new()),
    ] {
        if let Some(stored) = round_trips(driver, settings) {
            assert_measured(&stored);
            let second = &stored.launches[0].facts["cluster.node-2"];
            assert!(
                driver != "container" || second == "198.51.100.2",
                "{second}"
            );
        }
    }
}

/// Runs one trial for each direction between three nodes, and checks the server's addresses.
#[test]
fn three_nodes_exchange_trips_in_every_direction() {
    let directions = [Path::FirstToSecond, Path::ArmToArm, Path::SecondToThird];
    for (driver, alternate) in [("host", false), ("container", false), ("container", true)] {
        let mut study = study(
            driver,
            Params::new(),
            "tcp-round-trip",
            Params::new(),
            Path::ArmToArm,
        );
        study.blocks_max = 1;
        study.alternate = alternate;
        let one = study.workloads[0].clone();
        study.workloads = directions
            .into_iter()
            .map(|path| WorkloadSpec {
                path: Some(path),
                ..one.clone()
            })
            .collect();
        let Some(stored) = run(&format!("ways-{driver}-{alternate}"), &study) else {
            continue;
        };
        assert_eq!(stored.launches[0].facts["cluster.nodes"], "3");
        let mut seen: Vec<Path> = Vec::new();
        for record in &stored.records {
            assert!(
                matches!(record.outcome, Outcome::Completed(_)),
                "{record:?}"
            );
            seen.extend(record.trial.cell.path);
        }
        seen.sort();
        let mut expected = directions.to_vec();
        expected.sort();
        assert_eq!(seen, expected);
    }
}

#[test]
fn two_machines_round_trip_is_labelled_emulated() {
    let stored = needed!(round_trips("vm", crate::vm::tcg()));
    assert_measured(&stored);
    let facts = &stored.launches[0].facts;
    assert_eq!(facts["cluster.node-2"], "198.51.100.2");
    // Whatever they share is reported.
    assert!(!facts["cluster.shared"].is_empty());
    let arm = &stored.arms[0];
    assert!(
        tare_model::facts::emulation(&arm.facts).is_some(),
        "{arm:?}"
    );
}

#[test]
fn each_engine_container_path_is_a_separate_cell() {
    let settings = params("network = 'published'");
    let mut study = study(
        "docker",
        settings,
        "tcp-round-trip",
        Params::new(),
        Path::HostToArm,
    );
    study.blocks_max = 1;
    let one = study.workloads[0].clone();
    study.workloads = Path::ALL
        .into_iter()
        .map(|path| WorkloadSpec {
            path: Some(path),
            ..one.clone()
        })
        .collect();
    let stored = needed!(run("ways", &study));
    let mut cells: Vec<&CellKey> = Vec::new();
    for record in &stored.records {
        assert!(
            matches!(record.outcome, Outcome::Completed(_)),
            "{record:?}"
        );
        assert!(!cells.contains(&&record.trial.cell));
        cells.push(&record.trial.cell);
    }
    let mut paths: Vec<Path> = cells.iter().filter_map(|cell| cell.path).collect();
    paths.sort();
    assert_eq!(paths, Path::ALL);
}
