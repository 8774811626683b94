//! Tests of accepted and rejected settings.

use tare_model::Value;

use super::super::super::reader::tests::{assert_refused, assert_refuses, with};
use super::*;

#[test]
fn container_defaults_match_docker() {
    let settings = Settings::read(&Params::new()).unwrap();
    assert_eq!(settings.launch.namespaces.user, UserNamespace::IfNeeded);
    assert!(settings.launch.namespaces.net && settings.launch.namespaces.cgroup);
    assert_eq!(settings.launch.capabilities.as_ref().unwrap().len(), 14);
    assert_eq!(settings.launch.seccomp, Seccomp::DockerDefault);
    assert_eq!(settings.launch.network, Network::Veth);
    assert!(settings.private_paths && settings.launch.device_rules);
    assert!(
        settings.launch.masked_paths && !settings.launch.no_new_privs && !settings.is_network_asked
    );
    assert!(settings.launch.limits.is_empty());
}

#[test]
fn nonsense_is_refused_under_its_own_name_with_a_hint() {
    let values = json!({
        "memory": ["12 apples", -1, "99999999999999t"],
        "cpus": ["many", 0],
        "cpuset": ["a-b", "3-1", ""],
        "pids": ["ten", 0],
        "namespaces": ["mount,pidd"],
        "rootfs": ["btrfs"],
        "caps": ["NET_ROW"],
        "seccomp": ["strict"],
        "no_new_privs": ["yes"],
        "masked_paths": [1],
        "ssbd": ["on"],
        "network": ["bridge"],
        "stdio": ["tty"],
        "colour": ["red"],
    });
    assert_refused(Settings::read, &values);
    assert_refuses(Settings::read, "cpus", f64::NAN);
}

#[test]
fn unset_settings_follow_from_namespaces() {
    let none = Settings::read(&with("namespaces", "none")).unwrap();
    assert_eq!(
        (none.launch.rootfs, none.launch.network),
        (Rootfs::Host, Network::Host)
    );
    assert!(!none.launch.masked_paths && !none.private_paths && !none.launch.mounts.proc);
    let host = Settings::read(&with("network", "host")).unwrap();
    assert!(!host.launch.namespaces.net && host.launch.namespaces.pid);
    let listed = Value::List(vec!["mount".into(), "pid".into()]);
    let some = Settings::read(&with("namespaces", listed)).unwrap();
    assert_eq!(
        (some.launch.rootfs, some.launch.network),
        (Rootfs::Overlay, Network::Host)
    );
}

#[test]
fn contradictory_settings_are_refused() {
    let contradictions = json!([
        {"namespaces": "none", "rootfs": "overlay"},
        {"namespaces": "pid", "masked_paths": true},
        {"namespaces": "net", "network": "host"},
        {"namespaces": "pid", "network": "veth"},
        {"bridge": "br-0 192.0.2.1/24", "network": "none"},
        {"namespaces": "none", "private_paths": true},
        {"cgroup": false, "device_rules": true},
        {"cgroup": false, "pids": 10},
    ]);
    let contradictions: Vec<Params> = serde_json::from_value(contradictions).unwrap();
    for settings in contradictions {
        assert!(Settings::read(&settings).is_err(), "{settings:?}");
    }
}

#[test]
fn capabilities_parse_with_or_without_prefix() {
    let some = Settings::read(&with("caps", "net_raw, CAP_SYS_ADMIN")).unwrap();
    assert_eq!(
        some.launch.capabilities.unwrap(),
        ["CAP_NET_RAW", "CAP_SYS_ADMIN"]
    );
    assert_eq!(
        Settings::read(&with("caps", "none"))
            .unwrap()
            .launch
            .capabilities,
        Some(Vec::new())
    );
    assert_eq!(
        Settings::read(&with("caps", "all"))
            .unwrap()
            .launch
            .capabilities,
        None
    );
}
