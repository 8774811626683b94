//! Runs HPC Challenge on three nodes to `Success=1`.

use super::*;

/// As small as possible, so that a busy machine needs at most a minute.
fn small(nodes: u32) -> Params {
    Params::new()
        .with("nodes", i64::from(nodes))
        .with("cores", 1i64)
        .with("memory", 8i64)
        .with("block", 32i64)
        .with("scale", 15i64)
}

fn succeeds(driver: &str, settings: Params) {
    succeeds_with(driver, settings, 3, small(3));
}

fn succeeds_with(driver: &str, settings: Params, nodes: u32, params: Params) {
    let needed = ["mpirun", "hpcc", "sshd", "ssh"];
    if !needed.into_iter().all(|program| has("hpcc", program)) {
        return;
    }
    let mut study = study(driver, settings, "hpcc", params, Path::ArmToArm);
    study.blocks_max = 1;
    study.limit_ns = 600_000_000_000;
    let Some(stored) = run(&format!("hpcc-{driver}"), &study) else {
        return;
    };
    let outcome = &stored.records[0].outcome;
    let report = command(outcome);
    let stderr_text = String::from_utf8_lossy(&report.stderr.0).into_owned();
    let Outcome::Completed(raw) = outcome else {
        unreachable!("it has a report");
    };
    let found = tare::workload::find("hpcc").unwrap();
    let samples = found
        .decode(raw)
        .unwrap_or_else(|error| panic!("{error}: {stderr_text}"));
    assert_eq!(samples.len(), found.metrics().len());
    let output = String::from_utf8_lossy(&report.files["hpccoutf.txt"].0).into_owned();
    assert!(output.contains("\nSuccess=1\n"));
    assert!(output.contains(&format!("\nCommWorldProcs={nodes}\n")));
    let solved = tare::workload::hpcc::solved(raw).unwrap();
    assert_eq!((solved.p, solved.q, solved.nb), (1, u64::from(nodes), 32));
}

#[test]
fn three_processes_of_the_host_run_hpcc_to_success() {
    succeeds("host", Params::new());
}

#[test]
fn three_containers_run_hpcc_to_success() {
    succeeds("container", Params::new());
}

#[test]
fn three_containers_of_an_engine_run_hpcc_to_success() {
    succeeds("docker", Params::new());
}

/// The smallest order that its blocks allow, for a processor that may be emulated; two, because MPI's processes spin
/// while they wait, and a third emulated processor would wait for the other two.
#[test]
fn two_machines_run_hpcc_over_nfs_to_success() {
    // MPI and its dependencies are in a guest's memory; so is the folder that the first one serves.
    let settings = crate::vm::tcg()
        .with("memory", "768m")
        .with("shared", "nfs");
    succeeds_with("vm", settings, 2, small(2).with("scale", 8i64));
}

#[test]
fn hpcc_killed_by_limit_leaves_no_process_or_file() {
    let needed = ["mpirun", "hpcc", "sshd", "ssh"];
    if !needed.into_iter().all(|program| has("hpcc", program)) {
        return;
    }
    let sessions = || {
        let entries = std::fs::read_dir("/tmp").unwrap().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.starts_with("ompi."))
            .collect::<Vec<_>>()
    };
    let before = sessions();
    // Long enough to be started, and far too large to be solved.
    let params = small(3).with("memory", 4096i64).with("scale", 100i64);
    let mut study = study("host", Params::new(), "hpcc", params, Path::ArmToArm);
    study.blocks_max = 1;
    study.limit_ns = 6_000_000_000;
    let stored = needed!(run("hpcc-limit", &study));
    let outcome = &stored.records[0].outcome;
    assert!(
        matches!(
            outcome,
            Outcome::Failed(tare_model::Failure::TimedOut { .. })
        ),
        "{outcome:?}"
    );
    assert_eq!(sessions(), before);
}
