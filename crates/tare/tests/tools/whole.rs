//! Tests that every capture is read as its `expected.toml` says, by its own decoder only.

use std::collections::{BTreeMap, BTreeSet};

use tare::workload::{self, DecodeError};

use crate::golden::{Expected, captures};

/// Tools, each with the fewest versions that must be readable.
const VERSIONS: &[(&str, usize)] = &tare_model::rows! {
    ("benchmark-dotnet", 1), ("command", 1), ("fio", 2), ("iozone", 2), ("iperf3", 2), ("netcat", 2), ("pi-loop", 4),
    ("pi-numpy", 2), ("ping", 2), ("pyperf", 2), ("python-des", 1), ("python-mix", 4), ("redis-benchmark", 2), ("stress-ng", 3),
    ("sysbench-cpu", 4), ("sysbench-fileio", 4), ("sysbench-memory", 3),
};

fn kind(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::Garbled { .. } => "garbled",
        DecodeError::Unsuccessful { .. } => "unsuccessful",
        DecodeError::Unavailable(_) => "unavailable",
        DecodeError::NoValue { .. } => "no value",
    }
}

#[test]
fn every_capture_gives_its_expected_result() {
    let mut wrong = Vec::new();
    for capture in captures() {
        let workload = workload::find(&capture.workload).unwrap();
        let raw = capture.raw();
        let mut read = Expected::default();
        match workload.decode(&raw) {
            Ok(samples) => {
                for sample in samples {
                    let id = sample.metric.as_str();
                    assert!(workload.metrics().iter().any(|metric| metric.id == id));
                    let n = sample.observations.len() as f64;
                    let mean = sample.observations.iter().sum::<f64>() / n;
                    read.values.insert(id.to_owned(), mean);
                }
                let remarks = workload.remarks(&raw).into_iter();
                let remarks: BTreeSet<_> = remarks.map(|remark| remark.id.to_owned()).collect();
                read.remarks = remarks.into_iter().collect();
            }
            Err(error) => read.refused = Some(format!("{}: {error}", kind(&error))),
        }
        if !read.fits(&capture.expected()) {
            wrong.push(format!("{}/{}: {read:?}", capture.workload, capture.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tools_that_succeeded_are_read_in_several_versions() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for capture in captures() {
        let raw = capture.raw();
        if workload::find(&capture.workload)
            .unwrap()
            .decode(&raw)
            .is_err()
        {
            continue;
        }
        let workload = capture.workload.as_str();
        if !["command", "ping"].contains(&workload) {
            let mut ended = capture.clone();
            ended.provenance.exit = 1;
            let mut killed = capture.clone();
            killed.stdout = b"Killed".to_vec();
            killed.stderr.clear();
            killed.files.clear();
            for bad in [ended, killed] {
                let outcome = workload::find(workload).unwrap().decode(&bad.raw());
                assert!(outcome.is_err(), "{workload}/{}: {bad:?}", capture.name);
            }
        }
        for (other, _) in VERSIONS {
            // A command's own text can be anything, and both estimates of π print the same form.
            let is_alike = other.starts_with("pi-") && workload.starts_with("pi-");
            if *other != workload && *other != "command" && !is_alike {
                let outcome = workload::find(other).unwrap().decode(&raw);
                assert!(outcome.is_err(), "{workload}/{} as {other}", capture.name);
            }
        }
        let of_tool = versions.entry(capture.workload).or_default();
        of_tool.insert(capture.provenance.program);
    }
    for (tool, at_least) in VERSIONS {
        assert!(
            versions[*tool].len() >= *at_least,
            "{tool}: {:?}",
            versions[*tool]
        );
    }
}
