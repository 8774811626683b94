//! Translates settings into a request of the engine's API.
//!
//! Pure: settings in, request out. Unset settings are omitted, so that the engine's defaults apply, because users
//! have the defaults.

use std::collections::HashMap;
use std::net::IpAddr;

use bollard::models::{HostConfig, HostConfigLogConfig, PortBinding, ResourcesUlimits};

use super::profile::Profile;
use super::settings::{Network, Seccomp, Settings};

/// The port inside that `network = "published"` publishes. Every instance has its own network, so one number
/// suffices.
pub(super) const PUBLISHED_PORT: u16 = 7411;

/// The published port as a key of the API.
pub(super) fn published_key() -> String {
    format!("{PUBLISHED_PORT}/tcp")
}

/// The settings that differ from the engine's defaults.
pub(super) fn host_config(settings: &Settings, profile: Option<&Profile>) -> HostConfig {
    let list = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
    let limits: Vec<ResourcesUlimits> = settings
        .common
        .ulimits
        .iter()
        .map(|limit| ResourcesUlimits {
            name: Some(limit.name.clone()),
            soft: Some(limit.soft),
            hard: Some(limit.hard),
        })
        .collect();
    HostConfig {
        network_mode: Some(settings.network.mode()),
        security_opt: list(&security(settings, profile)),
        nano_cpus: settings.common.nano_cpus,
        cpuset_cpus: settings.common.cpuset.clone(),
        memory: settings.common.memory,
        shm_size: settings.common.shm,
        ulimits: (!limits.is_empty()).then_some(limits),
        cap_add: list(&settings.common.cap_add),
        cap_drop: list(&settings.common.cap_drop),
        privileged: settings.common.privileged.then_some(true),
        init: settings.common.init.then_some(true),
        runtime: settings.runtime.clone(),
        isolation: settings.isolation,
        log_config: settings
            .log_driver
            .clone()
            .map(|driver| HostConfigLogConfig {
                typ: Some(driver),
                config: None,
            }),
        ..Default::default()
    }
}

fn security(settings: &Settings, profile: Option<&Profile>) -> Vec<String> {
    let mut options = Vec::new();
    match (&settings.seccomp, profile) {
        (Seccomp::Default, _) => {}
        (Seccomp::Unconfined, _) => options.push("seccomp=unconfined".to_owned()),
        (Seccomp::File(_), profile) => {
            let profile =
                profile.expect("`prepare` reads the profile before anything is asked for");
            options.push(format!("seccomp={}", profile.json));
        }
    }
    if let Some(name) = &settings.apparmor {
        options.push(format!("apparmor={name}"));
    }
    if settings.common.no_new_privileges {
        options.push("no-new-privileges".to_owned());
    }
    options
}

/// The bindings of the published port: on the loopback, and on the bridge's gateway if that is this machine. Not on
/// all addresses, so that a server that lives for a trial is unreachable from outside.
pub(super) fn port_bindings(
    network: &Network,
    gateway: Option<IpAddr>,
) -> Option<HashMap<String, Option<Vec<PortBinding>>>> {
    let Network::Published(port) = network else {
        return None;
    };
    let addresses = [Some(IpAddr::from([127, 0, 0, 1])), gateway];
    let bindings = addresses
        .into_iter()
        .flatten()
        .map(|address| PortBinding {
            host_ip: Some(address.to_string()),
            host_port: Some(port.map_or_else(String::new, |port| port.to_string())),
        })
        .collect();
    Some(HashMap::from([(published_key(), Some(bindings))]))
}

#[cfg(test)]
mod tests {
    use tare_model::{Params, Value};

    use super::super::settings::Storage;
    use super::*;

    fn asked(settings: &Params, profile: Option<&Profile>) -> serde_json::Value {
        let settings = Settings::read(settings).unwrap();
        serde_json::to_value(host_config(&settings, profile)).unwrap()
    }

    #[test]
    fn without_settings_only_the_network_is_named() {
        let settings = Settings::read(&Params::new()).unwrap();
        assert!(settings.storage == Storage::Layer && !settings.tty);
        assert_eq!(
            asked(&Params::new(), None),
            serde_json::json!({"NetworkMode": "bridge"})
        );
    }

    #[test]
    fn every_setting_maps_to_its_engine_field() {
        let profile = Profile {
            json: r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#.into(),
            sha256: String::new(),
        };
        let settings = Params::new()
            .with("network", "container:other")
            .with("seccomp", "./mine.json")
            .with("apparmor", "unconfined")
            .with("no_new_privileges", true)
            .with("cap_add", "cap_sys_nice, NET_ADMIN")
            .with("cap_drop", Value::List(vec![Value::Text("ALL".into())]))
            .with("ulimits", "nofile=1024:2048,core=-1")
            .with("cpus", 0.5)
            .with("cpuset", "0")
            .with("memory", "64m")
            .with("shm", "1g")
            .with("runtime", "runc")
            .with("log_driver", "none")
            .with("init", true);
        assert_eq!(
            asked(&settings, Some(&profile)),
            serde_json::json!({
                "NetworkMode": "container:other",
                "SecurityOpt": [
                    "seccomp={\"defaultAction\":\"SCMP_ACT_ALLOW\"}",
                    "apparmor=unconfined",
                    "no-new-privileges"
                ],
                "CapAdd": ["SYS_NICE", "NET_ADMIN"],
                "CapDrop": ["ALL"],
                "Ulimits": [
                    {"Name": "nofile", "Soft": 1024, "Hard": 2048},
                    {"Name": "core", "Soft": -1, "Hard": -1}
                ],
                "NanoCpus": 500_000_000,
                "CpusetCpus": "0",
                "Memory": 64 << 20,
                "ShmSize": 1 << 30,
                "Runtime": "runc",
                "LogConfig": {"Type": "none"},
                "Init": true,
            })
        );
    }

    #[test]
    fn port_is_published_on_loopback_and_gateway_only() {
        let gateway = Some(IpAddr::from([172, 17, 0, 1]));
        let bindings = port_bindings(&Network::Published(Some(80)), gateway).unwrap();
        let bound = bindings["7411/tcp"].clone().unwrap();
        let addresses: Vec<_> = bound.iter().filter_map(|one| one.host_ip.clone()).collect();
        assert_eq!(addresses, ["127.0.0.1", "172.17.0.1"]);
        assert!(
            bound
                .iter()
                .all(|one| one.host_port.as_deref() == Some("80"))
        );
        assert!(port_bindings(&Network::Bridge, gateway).is_none());
        let alone = port_bindings(&Network::Published(None), None).unwrap();
        assert_eq!(alone["7411/tcp"].as_ref().unwrap().len(), 1);
    }
}
