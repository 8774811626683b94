//! The adapters around processor tools against what those tools really printed.
//!
//! Each capture in `golden/tools/<workload>` says where it comes from; each stands in the table below with the
//! first value of every metric that is read from it, or as refused. Every one is also cut off and altered in many
//! places, and must then give an error or finite positive numbers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use tare::workload::{self, DecodeError};
use tare_model::outcome::{Bytes, Exit};
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::{CommandReport, ProbeReport, RawOutput, Sample};

mod cases;

use cases::CASES;

/// Workloads whose captures are checked here, with how many versions there are at least.
const WORKLOADS: &[(&str, usize)] = &[
    ("command", 1),
    ("pi-loop", 4),
    ("pi-numpy", 2),
    ("pyperf", 2),
    ("python-mix", 4),
    ("redis-benchmark", 2),
    ("stress-ng", 5),
    ("sysbench-cpu", 4),
    ("sysbench-fileio", 4),
    ("sysbench-memory", 3),
];

fn folder(workload: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/tools")).join(workload)
}

/// The report of a trial that left this capture.
fn report(workload: &str, capture: &str) -> CommandReport {
    let folder = folder(workload).join(capture);
    let provenance = std::fs::read_to_string(folder.join("provenance.toml")).unwrap();
    let provenance: toml::Table = provenance.parse().unwrap();
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !["stdout", "stderr", "provenance.toml"].contains(&name.as_str()) {
            files.insert(name, Bytes(std::fs::read(entry.path()).unwrap()));
        }
    }
    let read = |name: &str| Bytes(std::fs::read(folder.join(name)).unwrap_or_default());
    let texts = provenance["argv"].as_array().unwrap();
    CommandReport {
        argv: texts
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect(),
        program: texts[0].as_str().unwrap().to_owned(),
        exit: Exit::Code(provenance["exit"].as_integer().unwrap() as i32),
        stdout: read("stdout"),
        stderr: read("stderr"),
        is_cut: false,
        files,
        wall_ns: 1_000_000_000,
        usage: BTreeMap::from([("user_ns".to_owned(), 4e8), ("sys_ns".to_owned(), 1e8)]),
        left_running: 0,
        seen: None,
        pick: None,
    }
}

fn decoded(workload: &str, report: CommandReport) -> Result<Vec<Sample>, DecodeError> {
    let report = ProbeReport {
        probe: "command".into(),
        revision: 1,
        series: Vec::new(),
        unavailable: BTreeMap::new(),
        checksum: None,
        canary_ns: [5e6, 5e6],
        elapsed_ns: 1_000_000_000,
        counters: BTreeMap::new(),
        timer: BTreeMap::new(),
        command: Some(report),
        span: None,
    };
    workload::find(workload).unwrap().decode(&RawOutput {
        format: PROBE_FORMAT.into(),
        stdout: Bytes(serde_json::to_vec(&report).unwrap()),
        stderr: Bytes::default(),
        exit: Exit::Code(0),
    })
}

#[test]
fn every_capture_is_read_value_by_value_or_refused() {
    for (workload, capture, expected) in CASES {
        let place = format!("{workload}/{capture}");
        let outcome = decoded(workload, report(workload, capture));
        if expected.is_empty() {
            assert!(outcome.is_err(), "{place}: {outcome:?}");
            continue;
        }
        let samples = outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
        let known: Vec<&str> = workload::find(workload)
            .unwrap()
            .metrics()
            .iter()
            .map(|metric| metric.id)
            .collect();
        assert!(
            samples
                .iter()
                .all(|sample| known.contains(&sample.metric.as_str()))
        );
        let found: Vec<(&str, f64)> = samples
            .iter()
            .map(|sample| (sample.metric.as_str(), sample.observations[0]))
            // Of the many sections of the mix only the first are in the table.
            .take(if *workload == "python-mix" {
                2
            } else {
                usize::MAX
            })
            .collect();
        for ((name, value), (expected_name, expected_value)) in found.iter().zip(*expected) {
            assert_eq!(name, expected_name, "{place}");
            let difference = (value - expected_value).abs() / expected_value;
            assert!(difference < 1e-6, "{place}: {name} is {value}");
        }
        assert_eq!(found.len(), expected.len(), "{place}");
    }
}

#[test]
fn every_capture_stands_in_the_table_and_there_are_several_versions_of_every_tool() {
    for (workload, n_versions) in WORKLOADS {
        let listed: BTreeSet<&str> = CASES
            .iter()
            .filter(|(of, _, _)| of == workload)
            .map(|(_, capture, _)| *capture)
            .collect();
        let mut versions = BTreeSet::new();
        let mut captures = BTreeSet::new();
        for entry in std::fs::read_dir(folder(workload)).unwrap() {
            let entry = entry.unwrap();
            captures.insert(entry.file_name().into_string().unwrap());
            let text = std::fs::read_to_string(entry.path().join("provenance.toml")).unwrap();
            let provenance: toml::Table = text.parse().unwrap();
            assert!(!provenance["origin"].as_str().unwrap().is_empty());
            versions.insert(provenance["program"].as_str().unwrap().to_owned());
        }
        assert_eq!(
            captures.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            listed
        );
        assert!(versions.len() >= *n_versions, "{workload}: {versions:?}");
    }
}

/// What must hold of any output whatever.
fn assert_sound(workload: &str, place: &str, report: CommandReport) {
    if let Ok(samples) = decoded(workload, report) {
        assert!(!samples.is_empty(), "{place}");
        for sample in &samples {
            assert!(!sample.observations.is_empty(), "{place}");
            for value in &sample.observations {
                assert!(value.is_finite() && *value > 0.0, "{place}: {value}");
            }
        }
    }
}

/// The parts of a report that a decoder may read, by number.
fn part(report: &mut CommandReport, number: usize) -> Option<&mut Bytes> {
    match number {
        0 => Some(&mut report.stdout),
        1 => Some(&mut report.stderr),
        _ => report.files.values_mut().nth(number - 2),
    }
}

#[test]
fn output_that_is_cut_off_or_altered_gives_an_error_or_finite_numbers() {
    for (workload, capture, _) in CASES {
        let good = report(workload, capture);
        for number in 0..2 + good.files.len() {
            let length = part(&mut good.clone(), number).unwrap().0.len();
            let step = length / 40 + 1;
            for place in (0..length).step_by(step) {
                let mut cut = good.clone();
                part(&mut cut, number).unwrap().0.truncate(place);
                assert_sound(
                    workload,
                    &format!("{workload}/{capture} cut at {place}"),
                    cut,
                );
                for byte in [b'0', b'-', b'e', b'\n', 0xff] {
                    let mut altered = good.clone();
                    part(&mut altered, number).unwrap().0[place] = byte;
                    let what = format!("{workload}/{capture} byte {place} is {byte}");
                    assert_sound(workload, &what, altered);
                }
            }
        }
    }
}

#[test]
fn output_of_another_tool_is_refused() {
    for (workload, capture, expected) in CASES {
        if expected.is_empty() {
            continue;
        }
        for (other, _) in WORKLOADS {
            // A command's own text is anything, and both estimates of π print the same form.
            let is_alike = other.starts_with("pi-") && workload.starts_with("pi-");
            if other != workload && *other != "command" && !is_alike {
                let outcome = decoded(other, report(workload, capture));
                assert!(outcome.is_err(), "{workload}/{capture} as {other}");
            }
        }
    }
}
