//! Reads reports of real probes, and damaged copies of them.
//!
//! The files in `golden/probe`, and those of disks and networks in `golden/probe-1`, were printed by the agent's
//! example program `probe` with `--json`, in the profile in which the agent is shipped. Every damaged copy must give
//! an error, never partial numbers.

use std::path::PathBuf;

use tare::workload::{self, DecodeError, Workload};
use tare_model::{ProbeReport, RawOutput, Sample};

/// Returns the workloads with a stored report, with the bytes of the report.
fn goldens() -> Vec<(&'static dyn Workload, Vec<u8>)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/probe"));
    let captured = folder.with_file_name("probe-1");
    let goldens: Vec<_> = workload::WORKLOADS
        .iter()
        .filter_map(|workload| {
            let printed = std::fs::read(folder.join(format!("{}.json", workload.id())));
            let printed =
                printed.or_else(|_| std::fs::read(captured.join(workload.id()).join("stdout")));
            Some((*workload, printed.ok()?))
        })
        .collect();
    let files = [&folder, &captured].into_iter().flat_map(|folder| {
        let entries = std::fs::read_dir(folder).expect("the folder is part of the sources");
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
    });
    // A `-blocked` report belongs to a workload that has a whole report too.
    let of_workload = |name: &String| name != "provenance.toml" && !name.ends_with("-blocked");
    let files = files.filter(of_workload).count();
    assert!(files >= 19, "{files} files");
    assert_eq!(files, goldens.len(), "a file belongs to no workload");
    goldens
}

fn decoded(workload: &dyn Workload, stdout: Vec<u8>) -> Result<Vec<Sample>, DecodeError> {
    workload.decode(&RawOutput::of_probe(stdout))
}

#[test]
fn a_real_report_is_read_value_by_value() {
    for (workload, bytes) in goldens() {
        let report: ProbeReport = serde_json::from_slice(&bytes).unwrap();
        let samples =
            decoded(workload, bytes).unwrap_or_else(|error| panic!("{}: {error}", workload.id()));
        assert_eq!(samples.len(), workload.metrics().len());
        for (sample, metric) in samples.iter().zip(workload.metrics()) {
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
fn a_report_that_is_cut_off_is_refused() {
    for (workload, bytes) in goldens() {
        let whole = bytes.trim_ascii_end();
        for length in 0..whole.len() {
            assert!(
                matches!(
                    decoded(workload, whole[..length].to_vec()),
                    Err(DecodeError::Garbled { .. })
                ),
                "{}: {length} bytes",
                workload.id()
            );
        }
    }
}

#[test]
fn the_report_of_another_probe_is_refused() {
    let goldens = goldens();
    for (workload, _) in &goldens {
        for (other, bytes) in &goldens {
            assert_eq!(
                decoded(*workload, bytes.clone()).is_ok(),
                workload.id() == other.id()
            );
        }
    }
}
