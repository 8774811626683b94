//! Tests `oci`: the driver contract with each available runtime, and the driver's special features.
//!
//! Every start is followed by a check of the host's mounts: a runtime without a separate mount namespace leaves a
//! copy there, and nothing else would show it. gVisor's runsc is found on PATH or by TARE_RUNSC.

use crate::prelude::*;

mod faults;
mod specs;

use std::net::IpAddr;

use tare::env::oci::Oci;

use crate::contract::contract;
use crate::talk::{LIMIT, assert_reached};
use crate::world::system_mounts;

/// Whether a runtime works here; reports a skip if not. The machine is queried once for all tests.
pub(crate) fn is_available(world: &World, runtime: &str) -> bool {
    static DETECTED: OnceLock<Availability> = OnceLock::new();
    let why = match DETECTED.get_or_init(|| Oci.detect(&world.cx())) {
        Availability::Ready(facts) => facts[&format!("oci.{runtime}")].strip_prefix("absent: "),
        Availability::Absent { why, .. } => Some(why.as_str()),
    };
    if let Some(why) = why {
        skip(runtime, &format!("{runtime} is not available: {why}"));
    }
    why.is_none()
}

/// Returns the tested runtimes that are available, each with a separate world.
fn each_runtime(name: &str) -> impl Iterator<Item = (&'static str, World)> {
    ["runc", "crun"].into_iter().filter_map(move |runtime| {
        let world = World::new(name);
        is_available(&world, runtime).then_some((runtime, world))
    })
}

/// Returns gVisor's program: what TARE_RUNSC names, else the one on PATH.
fn runsc(world: &World) -> Option<String> {
    match std::env::var_os("TARE_RUNSC").map(PathBuf::from) {
        Some(path) if path.is_file() => Some(path.display().to_string()),
        Some(path) => panic!("TARE_RUNSC names `{}`, which is no file", path.display()),
        None => is_available(world, "runsc").then(|| "runsc".to_owned()),
    }
}

fn with(runtime: &str) -> Params {
    Params::new().with("runtime", runtime)
}

fn configure(settings: &Params) -> Box<dyn Environment> {
    Oci.configure(arm_id("arm"), settings).unwrap()
}

fn facts(instance: &mut dyn Instance) -> Facts {
    hello(instance);
    inner_facts(instance)
}

/// Starts a container, hands over the inner agent's facts, stops and removes the container, and returns the host
/// side's facts. The host's mounts must not change.
fn look(world: &World, settings: &Params, look: impl FnOnce(&mut dyn Instance, &Facts)) -> Facts {
    let before = system_mounts();
    let mut environment = configure(settings);
    environment.prepare(&world.cx()).unwrap();
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    assert_eq!(
        system_mounts(),
        before,
        "the start reached the host's mounts"
    );
    let facts = facts(instance.as_mut());
    look(instance.as_mut(), &facts);
    instance.stop(&world.cx()).unwrap();
    assert_eq!(system_mounts(), before, "the end reached the host's mounts");
    let described = environment.describe(&world.cx());
    environment.remove(&world.cx()).unwrap();
    let left = tare::cx::files::names(world.folder.path()).unwrap();
    assert_eq!(left, [""; 0], "files are left");
    described
}

/// Runs the contract with this runtime, if it is available.
fn keeps_the_contract(runtime: &str, settings: &Params) {
    let is_here = {
        let _turn = turn();
        is_available(&World::new("here"), runtime)
    };
    if is_here {
        let before = system_mounts();
        contract(&Oci, settings);
        assert_eq!(system_mounts(), before, "the host's mounts");
    } else {
        note_skipped_contract(runtime);
    }
}

#[test]
fn runc_keeps_the_contract_of_drivers() {
    keeps_the_contract("runc", &Params::new());
}

#[test]
fn crun_keeps_the_contract_of_drivers() {
    keeps_the_contract("crun", &with("crun"));
}

#[test]
fn youki_keeps_the_contract_of_drivers() {
    keeps_the_contract("youki", &with("youki"));
}

#[test]
fn runsc_keeps_the_contract_of_drivers() {
    let runtime = {
        let _turn = turn();
        runsc(&World::new("here"))
    };
    if let Some(runtime) = runtime {
        let before = system_mounts();
        contract(&Oci, &with(&runtime));
        let flags = "--TESTONLY-unsafe-nonroot --network=none --ignore-cgroups";
        contract(&Oci, &with(&runtime).with("runtime_args", flags));
        assert_eq!(system_mounts(), before, "the host's mounts");
        let _turn = turn();
        faults::assert_limits_of_runsc_are_refused(&World::new("nolimits"), &runtime);
    } else {
        note_skipped_contract("runsc");
    }
}

#[test]
fn oci_contract_holds_on_host_overlay_with_limits() {
    for runtime in ["runc", "crun"] {
        let settings = with(runtime)
            .with("rootfs", "overlay-host")
            .with("network", "veth")
            .with("cpus", 1i64)
            .with("memory", "512m")
            .with("pids", 200i64);
        keeps_the_contract(runtime, &settings);
    }
}

#[test]
fn oci_defaults_match_dockers_inside() {
    let _turn = turn();
    for (runtime, world) in each_runtime("defaults") {
        let host = own_namespaces();
        let described = look(&world, &with(runtime), |instance, facts| {
            assert_eq!(facts["status.CapEff"], "00000000a80425fb");
            assert_eq!(facts["status.Seccomp"], "2");
            assert_eq!(facts["status.NoNewPrivs"], "0");
            assert_eq!(facts["kernel.hostname"], "tare");
            for (name, inode) in &host {
                let inside = &facts[&format!("ns.{name}")];
                let is_own = name != "user";
                assert_eq!(inside != inode, is_own, "{name}: {inside} and {inode}");
            }
            let no_path = Err(Reason::NoPath(String::new()));
            let kind = |address: Result<IpAddr, Reason>| {
                address.map_err(|reason| match reason {
                    Reason::NoPath(_) => Reason::NoPath(String::new()),
                    other => other,
                })
            };
            assert_eq!(kind(instance.address_from_host()), no_path);
            assert_eq!(kind(instance.host_address()), no_path);
        });
        assert!(
            described["oci.version"].starts_with(runtime),
            "{described:?}"
        );
        assert!(!described.keys().any(|key| key.starts_with("oci.changed")));
    }
}

/// Returns the namespaces of this process, as the agent's facts name them.
fn own_namespaces() -> Vec<(String, String)> {
    ["mnt", "pid", "uts", "ipc", "net", "user"]
        .into_iter()
        .map(|name| {
            let link = fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
            (name.to_owned(), link.display().to_string())
        })
        .collect()
}

#[test]
fn every_oci_switch_is_visible_to_the_agent() {
    let _turn = turn();
    for (runtime, world) in each_runtime("switches") {
        let settings = with(runtime)
            .with("seccomp", "unconfined")
            .with("caps", "NET_RAW,CHOWN")
            .with("no_new_privileges", true)
            .with("masked_paths", false)
            .with("namespaces", "ipc")
            .with("cpus", 0.5)
            .with("cpuset", "0")
            .with("memory", "300m")
            .with("pids", 77i64);
        let host = own_namespaces();
        look(&world, &settings, |instance, facts| {
            assert_eq!(facts["status.CapEff"], "0000000000002001");
            assert_eq!(facts["status.Seccomp"], "0");
            assert_eq!(facts["status.NoNewPrivs"], "1");
            assert_eq!(facts["status.Cpus_allowed_list"], "0");
            for (name, inode) in &host {
                let inside = &facts[&format!("ns.{name}")];
                let is_own = ["mnt", "pid", "ipc"].contains(&name.as_str());
                assert_eq!(inside != inode, is_own, "{name}");
            }
            assert_eq!(instance.address_from_host(), Ok([127, 0, 0, 1].into()));
            let limits: Vec<&String> = facts
                .iter()
                .filter(|(name, _)| name.starts_with("cgroup."))
                .map(|(_, value)| value)
                .collect();
            for limit in ["77", &(300 << 20).to_string()] {
                assert!(
                    limits.iter().any(|value| *value == limit),
                    "{limit}: {facts:?}"
                );
            }
        });
    }
}

#[test]
fn veth_pair_connects_host_and_container() {
    let _turn = turn();
    for (runtime, world) in each_runtime("pair") {
        look(
            &world,
            &with(runtime).with("network", "veth"),
            |instance, _| {
                let arm = instance.address_from_host().unwrap();
                let host = instance.host_address().unwrap();
                assert_ne!(arm, host);
                assert_reached(arm);
            },
        );
    }
}

#[test]
fn overlay_root_over_host_files_leaves_host_unchanged() {
    let (_turn, world) = needed!(turn_where("overlay", |world| is_available(world, "runc")));
    look(
        &world,
        &params("rootfs = 'overlay-host'"),
        |instance, facts| {
            assert_eq!(facts["mount./tare-work.fstype"], "overlay");
            assert!(!facts["os.name"].is_empty());
            assert_eq!(instance.workdir(), "/tare-work");
        },
    );
    for path in ["/tare-work", "/tare-agent"] {
        assert!(!Path::new(path).exists(), "{path} is on the host");
    }
}

#[test]
fn detect_lists_runtimes_and_cgroups_hidden_from_crun() {
    let _turn = turn();
    let world = World::new("detect");
    let before = system_mounts();
    let Availability::Ready(facts) = Oci.detect(&world.cx()) else {
        return skip("runc", "no runtime works here");
    };
    assert_eq!(system_mounts(), before);
    for name in ["runc", "crun", "youki", "runsc", "kata-runtime"] {
        let fact = &facts[&format!("oci.{name}")];
        assert!(!fact.is_empty() && !fact.contains('\n'), "{name}: {fact}");
    }
    if facts["oci.cgroups"] == "hybrid" && !facts["oci.crun"].starts_with("absent") {
        assert!(
            facts["oci.crun"].contains("hidden"),
            "{}",
            facts["oci.crun"]
        );
    }
}
