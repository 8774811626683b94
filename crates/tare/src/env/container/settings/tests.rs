//! What the settings become, and which are refused.

use tare_model::Value;

use super::super::super::reader::tests::assert_refused;
use super::*;

fn read(name: &str, value: impl Into<Value>) -> Result<Settings, SettingsError> {
    Settings::read(&Params::new().with(name, value))
}

#[test]
fn the_default_is_what_docker_does() {
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
    let cases = [
        ("memory", "12 apples".into()),
        ("memory", (-1i64).into()),
        ("memory", "99999999999999t".into()),
        ("cpus", "many".into()),
        ("cpus", 0i64.into()),
        ("cpus", f64::NAN.into()),
        ("cpuset", "a-b".into()),
        ("cpuset", "3-1".into()),
        ("cpuset", "".into()),
        ("pids", "ten".into()),
        ("namespaces", "mount,pidd".into()),
        ("rootfs", "btrfs".into()),
        ("caps", "NET_ROW".into()),
        ("seccomp", "strict".into()),
        ("no_new_privs", "yes".into()),
        ("ssbd", "on".into()),
        ("network", "bridge".into()),
        ("stdio", "tty".into()),
        ("colour", "red".into()),
    ];
    assert_refused(Settings::read, cases);
}

#[test]
fn what_is_not_said_follows_from_the_namespaces() {
    let none = read("namespaces", "none").unwrap();
    assert_eq!((none.rootfs, none.network), (Rootfs::Host, Network::Host));
    assert!(!none.masked_paths && !none.private_paths && !none.mounts.proc);
    let host = read("network", "host").unwrap();
    assert!(!host.namespaces.net && host.namespaces.pid);
    let some = read(
        "namespaces",
        Value::List(vec!["mount".into(), "pid".into()]),
    )
    .unwrap();
    assert_eq!(
        (some.rootfs, some.network),
        (Rootfs::Overlay, Network::Host)
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let contradictions = [
        Params::new()
            .with("namespaces", "none")
            .with("rootfs", "overlay"),
        Params::new()
            .with("namespaces", "pid")
            .with("masked_paths", true),
        Params::new()
            .with("namespaces", "net")
            .with("network", "host"),
        Params::new()
            .with("namespaces", "pid")
            .with("network", "veth"),
        Params::new()
            .with("namespaces", "none")
            .with("private_paths", true),
        Params::new()
            .with("cgroup", false)
            .with("device_rules", true),
        Params::new().with("cgroup", false).with("pids", 10i64),
    ];
    for settings in contradictions {
        assert!(Settings::read(&settings).is_err(), "{settings:?}");
    }
}

#[test]
fn capabilities_are_known_with_and_without_their_prefix() {
    let some = read("caps", "net_raw, CAP_SYS_ADMIN").unwrap();
    assert_eq!(some.capabilities.unwrap(), ["CAP_NET_RAW", "CAP_SYS_ADMIN"]);
    assert_eq!(read("caps", "none").unwrap().capabilities, Some(Vec::new()));
    assert_eq!(read("caps", "all").unwrap().capabilities, None);
}
