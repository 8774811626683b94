//! Tests the disk and network workloads against reports from a real agent.
//!
//! `golden/probe-1` says how they were captured; `probe_golden.rs` reads and damages all whole reports, including
//! these.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tare::workload::{self, Workload};
use tare_model::{Params, Path, RawOutput, Reason, Recipe};

fn golden(capture: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/probe-1");
    std::fs::read(format!("{folder}/{capture}/stdout")).unwrap()
}

fn raw(stdout: &[u8]) -> RawOutput {
    RawOutput::of_probe(stdout.to_vec())
}

fn workload(id: &str) -> &'static dyn Workload {
    workload::find(id).unwrap()
}

const WHOLE: [&str; 5] = [
    "disk-random",
    "disk-sequential",
    "fsync",
    "tcp-round-trip",
    "tcp-stream",
];

#[test]
fn blocked_io_uring_falls_back_to_sync_with_reason() {
    for (capture, id, present) in tare_model::rows! {
        ("disk-random-blocked", "disk-random", "disk.random-read-sync.time"),
        ("disk-sequential-blocked", "disk-sequential", "disk.sequential-read-sync.rate"),
    } {
        let raw = raw(&golden(capture));
        let samples = workload(id).decode(&raw).unwrap();
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].metric.as_str(), present);
        let report = workload::probe_output::report(&raw).unwrap();
        for metric in workload(id).metrics() {
            let reason = report.unavailable.get(metric.id);
            let expected = Reason::BlockedSyscall("io_uring_setup".to_owned());
            let expected = (metric.id != present).then_some(&expected);
            assert_eq!(reason, expected, "{}", metric.id);
        }
    }
}

#[test]
fn disk_workload_fills_defaults_into_one_call() {
    let Ok(Recipe::Probe(call)) = workload("disk-sequential").recipe(&Params::new(), None) else {
        panic!("no call")
    };
    assert_eq!(call.name, "disk-sequential");
    assert_eq!(call.args.int("depth"), Some(4));
    assert_eq!(call.args.int("block_kib"), Some(1024));
    assert_eq!(call.args.int("file_mib"), Some(64));
    for (id, name, value) in [
        ("disk-sequential", "depth", 65),
        ("disk-sequential", "block_kib", 3),
        ("disk-random", "file_mib", 0),
        ("disk-random", "depth", 4),
        ("fsync", "file_mib", 1),
        ("tcp-stream", "bytes", 1),
        ("tcp-round-trip", "bytes", 0),
    ] {
        let path = (!workload(id).paths().is_empty()).then_some(Path::Loopback);
        let error = workload(id)
            .recipe(&Params::new().with(name, i64::from(value)), path)
            .unwrap_err();
        assert_eq!(error.param, name, "{id}");
        assert!(error.hint.is_some(), "{id}");
    }
}

#[test]
fn loopback_uses_one_probe_else_client_measures() {
    for (id, far) in [("tcp-round-trip", "tcp-echo"), ("tcp-stream", "tcp-sink")] {
        let workload = workload(id);
        for path in workload.paths() {
            let recipe = workload.recipe(&Params::new(), Some(*path)).unwrap();
            match (path, recipe) {
                (Path::Loopback, Recipe::Probe(call)) => assert_eq!(call.name, id),
                (_, Recipe::Pair { server, client }) => {
                    assert_eq!(server.name, far);
                    assert_eq!(client.name, id);
                    assert!(client.args.value("port").is_none());
                }
                other => panic!("{other:?}"),
            }
        }
        let error = workload.recipe(&Params::new(), None).unwrap_err();
        assert_eq!(error.param, "path");
        assert!(error.hint.unwrap().contains("`loopback`"));
    }
}

#[test]
fn every_probe_that_the_recipes_name_is_in_the_agent() {
    for id in WHOLE {
        let workload = workload(id);
        let paths = workload.paths().iter().copied().map(Some);
        let none = workload.paths().is_empty().then_some(None);
        for path in paths.chain(none) {
            let names = match workload.recipe(&Params::new(), path).unwrap() {
                Recipe::Probe(call) => vec![call.name],
                Recipe::Pair { server, client } => vec![server.name, client.name],
                Recipe::Cluster {
                    service, client, ..
                } => vec![service.name, client.name],
                Recipe::Lifecycle { .. } => Vec::new(),
            };
            for name in names {
                let file = format!(
                    "{}/../tare-agent/src/probe/{}.rs",
                    env!("CARGO_MANIFEST_DIR"),
                    name.replace('-', "_")
                );
                assert!(std::path::Path::new(&file).exists(), "{name}");
            }
        }
    }
}
