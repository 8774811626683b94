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
    let needed = ["mpirun", "hpcc", "sshd", "ssh"];
    if !needed.into_iter().all(|program| has("hpcc", program)) {
        return;
    }
    let mut study = study(driver, settings, "hpcc", small(3), Path::ArmToArm);
    study.blocks_max = 1;
    study.limit_ns = 600_000_000_000;
    let Some(stored) = run(&format!("hpcc-{driver}"), &study) else {
        return;
    };
    let outcome = &stored.records[0].outcome;
    let report = command(outcome);
    let stderr_text = lossy(&report.stderr.0);
    let Outcome::Completed(raw) = outcome else {
        unreachable!("it has a report");
    };
    let found = tare::workload::find("hpcc").unwrap();
    let samples = found
        .decode(raw)
        .unwrap_or_else(|error| panic!("{error}: {stderr_text}"));
    assert_eq!(samples.len(), found.metrics().len());
    let output = lossy(&report.files["hpccoutf.txt"].0);
    assert!(output.contains("\nSuccess=1\n"));
    assert!(output.contains("\nCommWorldProcs=3\n"));
    let solved = tare::workload::hpcc::solved(raw).unwrap();
    assert_eq!((solved.p, solved.q, solved.nb), (1, 3, 32));
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

/// Launched as HPC Challenge is, but every rank only reports itself: HPC Challenge's own messages between two emulated
/// guests take most of a minute, whatever its size.
pub(super) struct Ranks;

impl Workload for Ranks {
    fn declared(&self) -> &Declared {
        const { &nameless("ranks") }
    }

    fn paths(&self) -> &'static [Path] {
        &[Path::ArmToArm]
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let mut recipe = tare::workload::find("hpcc").unwrap().recipe(params, path)?;
        let Recipe::Cluster { client, .. } = &mut recipe else {
            panic!("{recipe:?}");
        };
        let mut call = CommandCall::from_args(&client.args).unwrap();
        assert_eq!(call.argv.pop().as_deref(), Some("hpcc"));
        let script = r#"echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE""#;
        call.argv.extend(["sh", "-c", script].map(str::to_owned));
        call.collect.clear();
        *client = call.to_probe();
        Ok(recipe)
    }

    fn tools(&self, params: &Params) -> Vec<tare::workload::Tool> {
        let mut tools = tare::workload::find("hpcc").unwrap().tools(params);
        tools.retain(|tool| tool.program != "hpcc");
        tools
    }

    fn decode(&self, _: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        panic!("the engine does not read what a trial left");
    }
}

#[test]
fn two_machines_run_mpi_over_nfs() {
    let needed = ["mpirun", "sshd", "ssh"];
    if !needed.into_iter().all(|program| has("hpcc", program)) {
        return;
    }
    // MPI and its dependencies are in a guest's memory; so is the folder that the first one serves.
    let settings = crate::vm::tcg()
        .with("memory", "768m")
        .with("shared", "nfs");
    let mut study = study("vm", settings, "ranks", small(2), Path::ArmToArm);
    study.blocks_max = 1;
    study.limit_ns = 600_000_000_000;
    let stored = needed!(run("ranks-vm", &study));
    let report = command(&stored.records[0].outcome);
    let errors = lossy(&report.stderr.0);
    assert_eq!(report.exit, tare_model::outcome::Exit::Code(0), "{errors}");
    let text = String::from_utf8(report.stdout.0).unwrap();
    let mut ranks: Vec<&str> = text.lines().collect();
    ranks.sort_unstable();
    assert_eq!(ranks, ["rank 0 of 2", "rank 1 of 2"], "{errors}");
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
