//! Builds test cases for this crate and the crate `tare`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tare_model::dossier::{Dossier, DossierCell, Span};
use tare_model::outcome::{Bytes, Exit};
use tare_model::study::A_PRIME;
use tare_model::{
    ArmId, ArmSpec, Better, CommandReport, Params, ProbeReport, RawOutput, Study, Summary, Verdict,
    WorkloadId, WorkloadSpec,
};

use crate::why::readings::Block;

/// A study of `n_arms` arms (`host`, A/A control, `arm-2`, …) and `n_workloads` workloads (`w0`, …).
pub fn study(n_arms: usize, n_workloads: usize, seed: u64) -> Study {
    let name = |index: usize| match index {
        0 => "host".to_owned(),
        1 => A_PRIME.to_owned(),
        _ => format!("arm-{index}"),
    };
    let arms = (0..n_arms).map(|index| ArmSpec {
        required: index == 0,
        ..ArmSpec::new(ArmId::new(name(index)).unwrap(), "fake", Params::new())
    });
    let workload = |index| {
        let id = WorkloadId::new(format!("w{index}")).unwrap();
        WorkloadSpec::new(id, Params::new().with("n", 3i64))
    };
    let workloads = (0..n_workloads).map(workload).collect();
    Study {
        title: "A study for tests".into(),
        seed,
        blocks_max: 12,
        blocks_per_launch: 4,
        trial_ns: 1_000_000,
        limit_ns: 1_000_000_000,
        ..Study::new(
            "test",
            ArmId::new("host").unwrap(),
            arms.collect(),
            workloads,
        )
    }
}

/// The raw output of a trial whose program printed `stdout` and `stderr` and exited with `code`.
pub fn raw(code: i32, stdout: &[u8], stderr: &[u8]) -> RawOutput {
    let report = ProbeReport {
        canary_ns: [5e6, 5e6],
        elapsed_ns: 1_000_000,
        command: Some(CommandReport {
            program: "/usr/bin/tool".into(),
            exit: Exit::Code(code),
            stdout: Bytes(stdout.to_vec()),
            stderr: Bytes(stderr.to_vec()),
            ..CommandReport::silent(vec!["tool".into()], 1_000_000)
        }),
        ..ProbeReport::empty("command", 1)
    };
    RawOutput::of_probe(serde_json::to_vec(&report).unwrap())
}

/// The dossier of a real run of an earlier version, from which the tests of reports start.
pub fn stored() -> Dossier {
    const STORED: &str = include_str!("../../../fixtures/before/20261122-210539-1f5a.json");
    serde_json::from_str(STORED).unwrap()
}

/// A cell of `metric` with the given ratio, material from 5 % on. Its workload is the metric's first word.
///
/// Panics if no workload has the metric: a rule that looks for it would never apply.
#[track_caller]
pub fn cell(metric: &str, ratio: f64) -> DossierCell {
    assert_is_measured(metric);
    let span = |point: f64| Some(Span::new(point * 0.99, point, point * 1.01));
    let verdict = if ratio >= 1.05 {
        Verdict::MaterialCost
    } else if ratio <= 0.95 {
        Verdict::MaterialGain
    } else {
        Verdict::Equivalent
    };
    DossierCell {
        spread: None,
        arm: "arm".into(),
        baseline: "host".into(),
        workload: metric.split('.').next().unwrap_or_default().into(),
        params: Params::new(),
        instances: 1,
        path: None,
        metric: metric.into(),
        revision: 1,
        unit: "ns".into(),
        better: Better::Lower,
        summary: Summary::Typical,
        n_blocks: 20,
        in_turn: false,
        base: span(100.0),
        env: span(100.0 * ratio),
        ratio: span(ratio),
        difference: span(100.0 * (ratio - 1.0)),
        ratio90: None,
        floor: None,
        p: None,
        q: None,
        margin: 0.02,
        verdict,
        mde: None,
        further_blocks: None,
        flags: Vec::new(),
        blocks: Vec::new(),
    }
}

/// Only tests use the registry here: causes are pure functions of their arguments.
#[track_caller]
fn assert_is_measured(metric: &str) {
    assert!(
        crate::workload::metric(metric).is_some(),
        "no workload has the metric `{metric}`"
    );
}

/// A block of the first launch.
pub fn in_one_launch(number: u32) -> Block {
    Block { number, launch: 0 }
}
