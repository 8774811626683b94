//! The disk and network workloads against reports that the agent really made.
//!
//! `golden/probe-1` says how they were captured. Each is also damaged in every way that a worker, a pipe or
//! another build could damage it, and must then be refused whole.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use tare::workload::{self, DecodeError, Workload};
use tare_model::outcome::{Bytes, Exit};
use tare_model::{Params, Path, ProbeReport, RawOutput, Reason, Recipe};

fn golden(capture: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/probe-1");
    std::fs::read(format!("{folder}/{capture}/stdout")).unwrap()
}

fn raw(stdout: &[u8]) -> RawOutput {
    RawOutput {
        format: "probe/1".to_owned(),
        stdout: Bytes(stdout.to_vec()),
        stderr: Bytes::default(),
        exit: Exit::Code(0),
    }
}

fn written(report: &ProbeReport) -> RawOutput {
    raw(&serde_json::to_vec(report).unwrap())
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
fn every_metric_is_read_with_all_its_values_and_in_its_unit() {
    for id in WHOLE {
        let bytes = golden(id);
        let report: ProbeReport = serde_json::from_slice(&bytes).unwrap();
        let samples = workload(id).decode(&raw(&bytes)).unwrap();
        assert_eq!(samples.len(), workload(id).metrics().len(), "{id}");
        for (sample, metric) in samples.iter().zip(workload(id).metrics()) {
            assert_eq!(sample.metric.as_str(), metric.id);
            let series = report
                .series
                .iter()
                .find(|series| series.metric == metric.id)
                .unwrap();
            assert_eq!(sample.observations, series.values);
            assert_eq!(series.unit, metric.unit);
        }
    }
}

#[test]
fn where_io_uring_was_blocked_the_synchronous_metric_is_read_and_the_reason_kept() {
    for (capture, id, present) in [
        (
            "disk-random-blocked",
            "disk-random",
            "disk.random-read-sync.time",
        ),
        (
            "disk-sequential-blocked",
            "disk-sequential",
            "disk.sequential-read-sync.rate",
        ),
    ] {
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
fn a_report_that_was_cut_off_is_refused() {
    for id in WHOLE {
        let bytes = golden(id);
        let length = bytes.trim_ascii_end().len();
        for kept in 0..length {
            assert!(
                matches!(
                    workload(id).decode(&raw(&bytes[..kept])),
                    Err(DecodeError::Garbled { .. })
                ),
                "{id}: {kept} of {length} bytes"
            );
        }
    }
}

#[test]
fn a_report_with_a_value_that_is_none_or_of_another_probe_is_refused() {
    for id in WHOLE {
        let good: ProbeReport = serde_json::from_slice(&golden(id)).unwrap();
        let other = if id == "fsync" { "tcp-stream" } else { "fsync" };
        assert!(workload(other).decode(&written(&good)).is_err(), "{id}");
        for position in 0..good.series.len() {
            for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                let mut bad = good.clone();
                bad.series[position].values[0] = value;
                assert!(workload(id).decode(&written(&bad)).is_err(), "{id} {value}");
            }
            let mut empty = good.clone();
            empty.series[position].values.clear();
            assert!(workload(id).decode(&written(&empty)).is_err(), "{id}");
            let mut less = good.clone();
            let name = less.series.remove(position).metric;
            assert!(workload(id).decode(&written(&less)).is_err(), "{id}");
            less.unavailable
                .insert(name, Reason::BlockedSyscall("x".to_owned()));
            let n_samples = workload(id).decode(&written(&less)).unwrap().len();
            assert_eq!(n_samples, good.series.len() - 1, "{id}");
        }
    }
}

#[test]
fn a_changed_byte_gives_an_error_or_finite_positive_numbers_and_never_a_panic() {
    for id in WHOLE {
        let good = golden(id);
        for position in 0..good.len() {
            for byte in [b'0', b'-', b'e', b'"', b',', b'}', 0x00, 0xff] {
                let mut bad = good.clone();
                bad[position] = byte;
                if let Ok(samples) = workload(id).decode(&raw(&bad)) {
                    for value in samples.iter().flat_map(|sample| &sample.observations) {
                        assert!(value.is_finite() && *value > 0.0, "{id} {position} {byte}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_disk_workload_is_one_call_with_its_defaults_filled_in() {
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
fn over_the_loopback_one_probe_plays_both_ends_and_elsewhere_the_client_measures() {
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
                Recipe::Lifecycle => Vec::new(),
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
