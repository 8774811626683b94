//! The adapters around processor tools against what those tools really printed.
//!
//! Each capture in `golden/tools/<workload>` says where it comes from; each stands in the table below with the
//! first value of every metric that is read from it, or as refused. Every one is also cut off and altered in many
//! places, and must then give an error or finite positive numbers.
use std::collections::BTreeSet;

use tare::workload::{self, DecodeError};
use tare_model::Sample;

use crate::cases::CASES;
use crate::golden::{Capture, captures};

/// Workloads whose captures are checked here, with how many versions there are at least.
const WORKLOADS: &[(&str, usize)] = &[
    ("benchmark-dotnet", 1),
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

/// The captures of the table, each with what is expected of it.
fn told() -> Vec<(Capture, &'static [(&'static str, f64)])> {
    let all = captures();
    CASES
        .iter()
        .map(|(workload, name, expected)| {
            let capture = all
                .iter()
                .find(|capture| capture.workload == *workload && capture.name == *name)
                .unwrap_or_else(|| panic!("there is no capture {workload}/{name}"));
            (capture.clone(), *expected)
        })
        .collect()
}

fn decoded(workload: &str, capture: &Capture) -> Result<Vec<Sample>, DecodeError> {
    workload::find(workload).unwrap().decode(&capture.raw())
}

#[test]
fn every_capture_is_read_value_by_value_or_refused() {
    for (capture, expected) in told() {
        let workload = capture.workload.as_str();
        let place = format!("{workload}/{}", capture.name);
        let outcome = decoded(workload, &capture);
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
            .take(if workload == "python-mix" {
                2
            } else {
                usize::MAX
            })
            .collect();
        for ((name, value), (expected_name, expected_value)) in found.iter().zip(expected) {
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
        let mut found = BTreeSet::new();
        for capture in captures() {
            if capture.workload != *workload {
                continue;
            }
            let text = std::fs::read_to_string(capture.folder.join("provenance.toml")).unwrap();
            let provenance: toml::Table = text.parse().unwrap();
            assert!(!provenance["origin"].as_str().unwrap().is_empty());
            versions.insert(provenance["program"].as_str().unwrap().to_owned());
            found.insert(capture.name);
        }
        assert_eq!(
            found.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            listed
        );
        assert!(versions.len() >= *n_versions, "{workload}: {versions:?}");
    }
}

/// What must hold of any output whatever.
fn assert_sound(place: &str, capture: &Capture) {
    if let Ok(samples) = decoded(&capture.workload, capture) {
        assert!(!samples.is_empty(), "{place}");
        for sample in &samples {
            assert!(!sample.observations.is_empty(), "{place}");
            for value in &sample.observations {
                assert!(value.is_finite() && *value > 0.0, "{place}: {value}");
            }
        }
    }
}

/// The parts of a capture that a decoder may read, by number.
fn part(capture: &mut Capture, number: usize) -> Option<&mut Vec<u8>> {
    match number {
        0 => Some(&mut capture.stdout),
        1 => Some(&mut capture.stderr),
        _ => capture.files.values_mut().nth(number - 2),
    }
}

#[test]
fn output_that_is_cut_off_or_altered_gives_an_error_or_finite_numbers() {
    for (good, _) in told() {
        let name = format!("{}/{}", good.workload, good.name);
        for number in 0..2 + good.files.len() {
            let length = part(&mut good.clone(), number).unwrap().len();
            let step = length / 40 + 1;
            for place in (0..length).step_by(step) {
                let mut cut = good.clone();
                part(&mut cut, number).unwrap().truncate(place);
                assert_sound(&format!("{name} cut at {place}"), &cut);
                for byte in [b'0', b'-', b'e', b'\n', 0xff] {
                    let mut altered = good.clone();
                    part(&mut altered, number).unwrap()[place] = byte;
                    assert_sound(&format!("{name} byte {place} is {byte}"), &altered);
                }
            }
        }
    }
}

#[test]
fn output_of_another_tool_is_refused() {
    for (capture, expected) in told() {
        if expected.is_empty() {
            continue;
        }
        let workload = capture.workload.as_str();
        for (other, _) in WORKLOADS {
            // A command's own text is anything, and both estimates of π print the same form.
            let is_alike = other.starts_with("pi-") && workload.starts_with("pi-");
            if *other != workload && *other != "command" && !is_alike {
                let outcome = decoded(other, &capture);
                assert!(outcome.is_err(), "{workload}/{} as {other}", capture.name);
            }
        }
    }
}
