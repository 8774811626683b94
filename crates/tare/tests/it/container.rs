//! Tests the driver `container`: the driver contract, and its special features.

use crate::prelude::*;

use std::net::IpAddr;

use tare::env::container::Container;

use crate::contract::{a_dropped_instance_is_removed, contract};
use crate::talk::{once, report};

/// Whether containers can be created here; reports a skip if not.
fn is_available(world: &World) -> bool {
    is_ready(world, &Container, "container")
}

fn configure(settings: &Params) -> Box<dyn Environment> {
    Container.configure(arm_id("arm"), settings).unwrap()
}

#[test]
fn container_keeps_the_contract_of_drivers() {
    contract(&Container, &Params::new());
}

#[test]
fn container_contract_holds_with_cgroup_only() {
    let bare = params("namespaces = 'none', caps = 'all', seccomp = 'unconfined'");
    contract(&Container, &bare);
}

#[test]
fn container_contract_holds_with_relay_and_limits() {
    let limited = params("stdio = 'relay', cpus = 1, memory = '512m', pids = 200");
    contract(&Container, &limited);
}

#[test]
fn agent_inside_sees_requested_settings() {
    let (_turn, world) = needed!(turn_where("facts", is_available));
    let settings = params("no_new_privileges = true, network = 'none'");
    let mut environment = configure(&settings);
    let mut instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    let facts = inner_facts(instance.as_mut());
    assert_eq!(facts["status.CapEff"], "00000000a80425fb");
    assert_eq!(facts["status.Seccomp"], "2");
    assert_eq!(facts["status.NoNewPrivs"], "1");
    assert_eq!(facts["kernel.hostname"], "tare");
    assert!(matches!(
        instance.address_from_host(),
        Err(Reason::NoPath(_))
    ));
    assert_eq!(instance.workdir(), "/tare-work");
    instance.stop(&world.cx()).unwrap();
    let described = environment.describe(&world.cx());
    assert_eq!(described["container.network"], "none");
    assert!(described.contains_key("container.cgroup_version"));
    environment.remove(&world.cx()).unwrap();
}

#[test]
fn container_without_cgroup_is_charged_as_process() {
    let (_turn, world) = needed!(turn_where("groups", is_available));
    let settings = params("cgroup = false, network = 'none'");
    let mut environment = configure(&settings);
    let instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    let charged = instance.charged();
    assert!(matches!(charged, Charged::Process(_)), "{charged:?}");
    assert!(!charged.processes().is_empty());
    environment.end(instance, &world.cx());
}

#[test]
fn veth_reports_addresses_and_host_network_loopback() {
    let (_turn, world) = needed!(turn_where("addresses", is_available));
    let before = fs::read("/etc/hosts").unwrap();
    let mut environment = configure(&params("network = 'veth'"));
    match environment.start(&world.cx(), StartMode::Once) {
        Ok(mut instance) => {
            let (arm, host) = (
                instance.address_from_host().unwrap(),
                instance.host_address().unwrap(),
            );
            assert_ne!(arm, host);
            assert!(arm.to_string().starts_with("198.1"), "{arm}");
            assert_own_name_leads_to(instance.as_mut(), arm);
            environment.end(instance, &world.cx());
            assert_eq!(fs::read("/etc/hosts").unwrap(), before);
        }
        Err(EnvError::Absent { why, fix }) => {
            assert!(fix.is_some());
            skip("root", &why);
        }
        Err(error) => panic!("{error}"),
    }
    let mut environment = configure(&params("network = 'host'"));
    let instance = environment.start(&world.cx(), StartMode::Once).unwrap();
    assert_eq!(
        instance.address_from_host(),
        Ok(IpAddr::from([127, 0, 0, 1]))
    );
    instance.stop(&world.cx()).unwrap();
}

/// As in an engine's container: otherwise a program that resolves its own host name waits for a name server.
fn assert_own_name_leads_to(instance: &mut dyn Instance, address: IpAddr) {
    let call = CommandCall::new("sh", ["-c", "grep \"$(uname -n)\" /etc/hosts"]);
    let report = report(once(instance, 1, call.to_probe()));
    let stdout_text = String::from_utf8(report.command.unwrap().stdout.0).unwrap();
    assert_eq!(stdout_text.trim_end(), format!("{address}\ttare"));
}

#[test]
fn impossible_limit_gives_hint_and_leaves_no_trace() {
    let (_turn, world) = needed!(turn_where("impossible", is_available));
    let before = Snapshot::take(&world);
    let mut environment = configure(&params("cpuset = '99'"));
    let error = environment
        .start(&world.cx(), StartMode::Once)
        .err()
        .unwrap();
    let fix = match &error {
        EnvError::Absent { fix, .. } | EnvError::Denied { fix, .. } => fix,
        other => panic!("{other}"),
    };
    assert!(fix.is_some() && error.to_string().contains("99"), "{error}");
    before.assert_restored(&world, "a refused start");
}

#[test]
fn dropped_instance_is_removed_with_environment() {
    let (_turn, world) = needed!(turn_where("dropped", is_available));
    a_dropped_instance_is_removed(&world, || configure(&Params::new()));
}

#[test]
fn environment_inside_is_minimal_unless_inherited() {
    let (_turn, world) = needed!(turn_where("environment", is_available));
    let bytes = |settings: &Params| -> usize {
        let mut environment = configure(settings);
        environment.prepare(&world.cx()).unwrap();
        let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
        let found = inner_facts(instance.as_mut())["environment.bytes"]
            .parse()
            .unwrap();
        environment.end(instance, &world.cx());
        found
    };
    let own: usize = std::env::vars_os()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    let path = std::env::var_os("PATH").map_or(0, |path| path.len());
    let clean = bytes(&Params::new());
    assert!(clean < path + 150, "{clean} bytes, of them {path} of PATH");
    assert!(bytes(&params("environment = 'inherit'")) >= own);
    assert!(
        Container
            .configure(arm_id("arm"), &params("environment = 'none'"))
            .is_err()
    );
}
