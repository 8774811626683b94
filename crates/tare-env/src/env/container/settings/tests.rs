//! Tests of accepted and rejected settings.

use tare_model::Value;

use super::super::super::reader::tests::{assert_refused, assert_refuses, with};
use super::*;

#[test]
fn container_defaults_match_docker() {
    let settings = Settings::read(&Params::new()).unwrap();
    assert_eq!(settings.namespaces.user, UserNamespace::IfNeeded);
    assert!(settings.namespaces.net && settings.namespaces.cgroup);
    assert_eq!(settings.capabilities.as_ref().unwrap().len(), 14);
    assert_eq!(settings.seccomp, Seccomp::DockerDefault);
    assert_eq!(settings.network, Network::Veth);
    assert!(settings.private_paths && settings.device_rules);
    assert!(settings.masked_paths && !settings.no_new_privs && !settings.is_network_asked);
    assert!(settings.limits.is_empty());
}

#[test]
fn nonsense_is_refused_under_its_own_name_with_a_hint() {
    let values = json!({
        "memory": ["12 apples", -1, "99999999999999t"],
        "cpus": ["many", 0],
        "cpuset": ["a-b", "3-1", ""],
        "pids": ["ten"],
        "namespaces": ["mount,pidd"],
        "rootfs": ["btrfs"],
        "caps": ["NET_ROW"],
        "seccomp": ["strict"],
        "no_new_privs": ["yes"],
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
    assert_eq!((none.rootfs, none.network), (Rootfs::Host, Network::Host));
    assert!(!none.masked_paths && !none.private_paths && !none.mounts.proc);
    let host = Settings::read(&with("network", "host")).unwrap();
    assert!(!host.namespaces.net && host.namespaces.pid);
    let listed = Value::List(vec!["mount".into(), "pid".into()]);
    let some = Settings::read(&with("namespaces", listed)).unwrap();
    assert_eq!(
        (some.rootfs, some.network),
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
    assert_eq!(some.capabilities.unwrap(), ["CAP_NET_RAW", "CAP_SYS_ADMIN"]);
    assert_eq!(
        Settings::read(&with("caps", "none")).unwrap().capabilities,
        Some(Vec::new())
    );
    assert_eq!(
        Settings::read(&with("caps", "all")).unwrap().capabilities,
        None
    );
}
