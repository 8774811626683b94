//! Every capture is read as its `expected.toml` says.

use std::collections::{BTreeMap, BTreeSet};

use tare::workload;

use crate::cases::CASES;
use crate::golden::captures;

#[test]
fn every_capture_gives_the_values_remarks_or_refusal_that_are_expected_of_it() {
    let mut wrong = Vec::new();
    for capture in captures() {
        let of = format!("{}/{}", capture.workload, capture.name);
        let Some(workload) = workload::find(&capture.workload) else {
            panic!("{of}: there is no such workload");
        };
        let raw = capture.raw();
        let decoded = workload.decode(&raw);
        let Some(expected) = capture.expected() else {
            let is_told = CASES
                .iter()
                .any(|(workload, name, _)| capture.workload == *workload && capture.name == *name);
            if !is_told {
                wrong.push(format!("{of}: nobody says what has to be read from it"));
            }
            continue;
        };
        let samples = match (&expected.refused, decoded) {
            (None, Ok(samples)) => samples,
            (Some(words), Err(error)) => {
                if !error.to_string().contains(words) {
                    wrong.push(format!("{of}: refused with `{error}`"));
                }
                continue;
            }
            (Some(words), Ok(_)) => {
                wrong.push(format!("{of}: read, and should be refused with `{words}`"));
                continue;
            }
            (None, Err(error)) => {
                wrong.push(format!("{of}: {error}"));
                continue;
            }
        };
        let values: BTreeMap<String, f64> = samples
            .iter()
            .map(|sample| {
                let n = sample.observations.len() as f64;
                let mean = sample.observations.iter().sum::<f64>() / n;
                (sample.metric.to_string(), mean)
            })
            .collect();
        let is_same = values.len() == expected.values.len()
            && expected.values.iter().all(|(metric, value)| {
                values
                    .get(metric)
                    .is_some_and(|read| (read - value).abs() <= 1e-9 * value.abs())
            });
        if !is_same {
            let lines: Vec<String> = values
                .iter()
                .map(|(metric, value)| format!("\"{metric}\" = {value:?}"))
                .collect();
            wrong.push(format!("{of}: read were\n[values]\n{}", lines.join("\n")));
        }
        let remarks = workload.remarks(&raw);
        let kinds: BTreeSet<&str> = remarks.iter().map(|remark| remark.id).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        if kinds != expected.remarks {
            wrong.push(format!("{of}: remarks = {kinds:?}\n{remarks:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_tool_is_read_in_at_least_two_versions() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for capture in captures() {
        let workload = workload::find(&capture.workload).unwrap();
        if workload.decode(&capture.raw()).is_ok() {
            let text = std::fs::read_to_string(capture.folder.join("provenance.toml")).unwrap();
            let table: toml::Table = toml::from_str(&text).unwrap();
            let program = table.get("program").map(ToString::to_string);
            versions
                .entry(capture.workload)
                .or_default()
                .insert(program.expect("every provenance names its program"));
        }
    }
    for tool in ["fio", "iozone", "iperf3", "netcat", "ping"] {
        assert!(versions[tool].len() >= 2, "{tool}: {:?}", versions[tool]);
    }
}
