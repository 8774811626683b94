//! Tests several instances of one environment on one network: the traffic between them, programs on all of them, and
//! leftovers.
//!
//! Whole runs through the engine with real environments, so start, dispatch, storing and removal are those of the
//! product. The measured values are not checked.

use crate::prelude::*;

use std::path::Path as FilePath;

use tare::env;
use tare::store::StoredRun;
use tare_model::cluster::{ADDRESSES, HOSTFILE, NODE, NODES, SHARED, SUBNET};
use tare_model::command::{ADDRESS, FOLDER, PORT, Transport};
use tare_model::{CommandReport, Path};

use crate::unread::nameless;

mod faults;
mod hpcc;
mod paths;

/// Starts a service on every node and lets node 1 read what all of them left in the shared folder.
struct RollCall;

/// A service that writes its node's name into the shared folder and then listens, with a program that every machine
/// with the tests' requirements has.
fn service(script: &str) -> CommandCall {
    CommandCall {
        listens: Some(Transport::Tcp),
        ..CommandCall::new(
            "bash",
            [&format!("{FOLDER}/node.sh"), SHARED, NODE, ADDRESS, PORT],
        )
    }
    .with_file("node.sh", script)
}

const LISTEN: &str = "shared=$1 node=$2 address=$3 port=$4\n\
     echo \"$address\" > \"$shared/node-$node\"\n\
     exec nc -l -k \"$address\" \"$port\" > \"$shared/heard-$node\"\n";

/// Talks to each node's service and prints the shared files.
const CLIENT: &str = "set -e\nfor address in $(echo \"$1\" | tr , ' '); do\n\
     echo \"for $address\" | nc -N \"$address\" \"$2\"\ndone\n\
     cat \"$3\"\necho \"$4 nodes in $5\"\ncd \"$6\" && cat node-*\n\
     for heard in heard-*; do until [ -s \"$heard\" ]; do sleep 0.01; done; done\ncat heard-*\n";

impl Workload for RollCall {
    fn declared(&self) -> &Declared {
        const { &nameless("roll-call") }
    }

    fn paths(&self) -> &'static [Path] {
        &[Path::ArmToArm]
    }

    fn recipe(&self, params: &Params, _: Option<Path>) -> Result<Recipe, ParamError> {
        let script = params.text("service").unwrap_or(LISTEN);
        let client = params.text("client").unwrap_or(CLIENT);
        let arguments = [ADDRESSES, PORT, HOSTFILE, NODES, SUBNET, SHARED];
        let script_file = format!("{FOLDER}/client.sh");
        let arguments = std::iter::once(script_file.as_str()).chain(arguments);
        Ok(Recipe::Cluster {
            nodes: params
                .int("nodes")
                .map_or(3, |nodes| u32::try_from(nodes).unwrap()),
            slots: 2,
            service: service(script).to_probe(),
            client: CommandCall::new("bash", arguments)
                .with_file("client.sh", client)
                .to_probe(),
        })
    }

    fn tools(&self, _: &Params) -> Vec<tare::workload::Tool> {
        ["bash", "nc", "cat", "sleep", "tr"]
            .map(|program| tare::workload::Tool {
                program: program.into(),
                ..Default::default()
            })
            .to_vec()
    }

    fn decode(&self, _: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        panic!("the engine does not read what a trial left");
    }
}

fn workload(id: &str) -> Option<&'static dyn Workload> {
    match id {
        "roll-call" => Some(&RollCall),
        "ranks" => Some(&hpcc::Ranks),
        other => tare::workload::find(other),
    }
}

/// A study of one arm.
fn study(driver: &str, settings: Params, workload: &str, params: Params, path: Path) -> Study {
    let id = arm_id(driver);
    let arms = vec![ArmSpec::new(id.clone(), driver, settings).required()];
    let workload = WorkloadSpec {
        path: Some(path),
        ..WorkloadSpec::new(WorkloadId::new(workload).unwrap(), params)
    };
    Study {
        blocks_min: 1,
        blocks_max: 2,
        blocks_per_launch: 5,
        limit_ns: 60_000_000_000,
        ..Study::new("cluster", id, arms, vec![workload])
    }
}

/// Whether the driver can be used here; reports a skip if not.
fn is_available(world: &World, driver: &str) -> bool {
    let needs = match driver {
        "docker" => "docker",
        "vm" => "vm",
        _ => "root",
    };
    is_ready(world, env::find(driver).unwrap(), needs)
}

/// Whether a program is installed; reports a skip if not.
fn has(needs: &str, program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there = path
        .split(':')
        .chain(["/usr/sbin"])
        .any(|folder| FilePath::new(folder).join(program).is_file());
    if !is_there {
        skip(needs, &format!("`{program}` is not installed"));
    }
    is_there
}

/// Runs a study and checks that the machine is unchanged afterwards; `None` if it cannot run.
fn run(name: &str, study: &Study) -> Option<StoredRun> {
    let world = World::new(name);
    if !is_available(&world, &study.arms[0].driver) {
        return None;
    }
    let _turn = turn();
    let before = Snapshot::take(&world);
    let (summary, stored) = carry_out(&world.cx(), study, &workload);
    let summary = summary.unwrap();
    assert_eq!(summary.left_behind, [""; 0]);
    assert_eq!(summary.absent, []);
    before.assert_restored(&world, "a run on several nodes");
    // An engine's objects, such as volumes, are not visible on the machine; an empty sweep shows that there are none.
    let driver = env::find(&study.arms[0].driver).unwrap();
    let left = driver.sweep(&world.cx(), world.run.as_str()).unwrap();
    assert_eq!(left, [""; 0]);
    Some(stored)
}

fn command(outcome: &Outcome) -> CommandReport {
    let Outcome::Completed(raw) = outcome else {
        panic!("{outcome:?}");
    };
    let report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
    report.command.unwrap()
}

/// Runs a roll call of three nodes; returns the client's output and the stored facts about the nodes.
fn roll_call(driver: &str, settings: Params) -> Option<(Vec<String>, Facts)> {
    if !has("root", "nc") {
        return None;
    }
    let mut study = study(driver, settings, "roll-call", Params::new(), Path::ArmToArm);
    study.blocks_max = 2;
    study.limit_ns = 120_000_000_000;
    let stored = run(&format!("roll-{driver}"), &study)?;
    assert_eq!(stored.records.len(), 2);
    let mut last = String::new();
    for record in &stored.records {
        let report = command(&record.outcome);
        let errors = lossy(&report.stderr.0);
        assert_eq!(report.exit, tare_model::outcome::Exit::Code(0), "{errors}");
        last = String::from_utf8(report.stdout.0).unwrap();
    }
    let facts = stored.launches[0].facts.clone();
    Some((last.lines().map(str::to_owned).collect(), facts))
}

/// Returns the addresses of three nodes that all answered the roll call, their place, and the stored facts.
fn answered(driver: &str, settings: Params) -> Option<(Vec<String>, String, Facts)> {
    let (lines, facts) = roll_call(driver, settings)?;
    let addresses = assert_all_answered(&lines, &facts);
    Some((addresses, lines[3].clone(), facts))
}

/// Asserts that every node is there, under the address in the facts, and was reached by the client at its own.
fn assert_all_answered(lines: &[String], facts: &Facts) -> Vec<String> {
    let fact = |name: &str| facts[&format!("cluster.{name}")].clone();
    assert_eq!(fact("nodes"), "3");
    let addresses: Vec<String> = (1..=3).map(|node| fact(&format!("node-{node}"))).collect();
    let mut expected: Vec<String> = addresses
        .iter()
        .map(|address| format!("{address} slots=2"))
        .collect();
    assert!(lines[3].starts_with("3 nodes in "), "{lines:?}");
    expected.push(lines[3].clone());
    expected.extend(addresses.iter().cloned());
    expected.extend(addresses.iter().map(|address| format!("for {address}")));
    assert_eq!(lines, expected);
    addresses
}

#[test]
fn three_host_processes_are_loopback_nodes() {
    let (addresses, place, facts) = needed!(answered("host", Params::new()));
    assert_eq!(addresses, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    assert_eq!(place, "3 nodes in 127.0.0.0/30");
    assert!(
        facts["cluster.shared"].ends_with("/host/shared"),
        "{facts:?}"
    );
}

#[test]
fn three_containers_are_nodes_on_private_network() {
    let (addresses, _, facts) = needed!(answered("container", Params::new()));
    assert_eq!(addresses, ["198.51.100.1", "198.51.100.2", "198.51.100.3"]);
    assert_eq!(facts["cluster.shared"], "/tare-shared");
}

#[test]
fn host_network_containers_use_loopback_addresses() {
    let settings = params("network = 'host', rootfs = 'host'");
    let (addresses, ..) = needed!(answered("container", settings));
    assert_eq!(addresses, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
}

#[test]
fn three_engine_containers_are_nodes_on_bridge() {
    let (addresses, ..) = needed!(answered("docker", Params::new()));
    assert!(!addresses[0].starts_with("127."), "{addresses:?}");
}

/// Whether guests can share a folder here; reports a skip if not.
fn guests_share() -> bool {
    let folders = ["/usr/libexec", "/usr/lib/qemu", "/usr/lib", "/usr/bin"];
    let mut programs = folders
        .map(|folder| FilePath::new(folder).join("virtiofsd"))
        .into_iter();
    let is_there = programs.any(|program| program.is_file());
    if !is_there {
        skip("virtiofsd", "it is not installed");
    }
    is_there
}

#[test]
fn three_machines_are_nodes_with_shared_folder() {
    if !guests_share() {
        return;
    }
    let (addresses, _, facts) = needed!(answered("vm", crate::vm::tcg()));
    assert_eq!(addresses, ["198.51.100.1", "198.51.100.2", "198.51.100.3"]);
    assert_eq!(facts["cluster.shared"], "/tare-shared");
}

#[test]
fn containers_without_network_have_no_path() {
    let settings = params("network = 'none'");
    let study = study(
        "container",
        settings,
        "roll-call",
        Params::new(),
        Path::ArmToArm,
    );
    let stored = needed!(run("alone", &study));
    let reasons: BTreeMap<u32, &Outcome> = stored
        .records
        .iter()
        .map(|record| (record.trial.block, &record.outcome))
        .collect();
    for outcome in reasons.values() {
        assert!(
            matches!(outcome, Outcome::Unavailable(Reason::NoPath(why)) if why.contains("none")),
            "{outcome:?}"
        );
    }
}
