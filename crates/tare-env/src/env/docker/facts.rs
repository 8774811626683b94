//! Collects what the engine reports about itself as facts of an arm.
//!
//! Only the engine's answers, never what a configuration file suggests; foreign text is escaped. The engine's own
//! capabilities are read from its process if it runs on this machine: the API does not report them, and a daemon
//! cannot grant a capability that it lacks.

use crate::env::prelude::*;

use bollard::models::{ContainerCreateBody, HostConfig, ImageInspect, SystemInfo, SystemVersion};

use super::api::Api;
use super::profile::Profile;
use super::request;
use super::settings::Settings;

/// The fields of a configuration that become facts. All others stay out of the store: volume driver options,
/// annotations and fields of newer engines may contain secrets.
const TOLD: [&str; 46] = tare_model::rows! {
    "Binds", "BlkioDeviceReadBps", "BlkioDeviceReadIOps", "BlkioDeviceWriteBps", "BlkioDeviceWriteIOps",
    "BlkioWeight", "BlkioWeightDevice", "CapAdd", "CapDrop", "CgroupParent", "CgroupnsMode", "CpuCount",
    "CpuPercent", "CpuPeriod", "CpuQuota", "CpuRealtimePeriod", "CpuRealtimeRuntime", "CpuShares",
    "CpusetCpus", "CpusetMems", "DeviceCgroupRules", "Devices", "Dns", "GroupAdd", "Init", "IpcMode",
    "Isolation", "LogConfig", "Memory", "MemoryReservation", "MemorySwap", "MemorySwappiness", "Mounts",
    "NanoCpus", "NetworkMode", "OomScoreAdj", "PidMode", "PidsLimit", "PortBindings", "Privileged",
    "ReadonlyRootfs", "Runtime", "SecurityOpt", "ShmSize", "Sysctls", "Ulimits",
};

fn put(facts: &mut Facts, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        let text = printable(&value.to_string());
        if !text.is_empty() {
            facts.insert(name.to_owned(), text);
        }
    }
}

/// Version, drivers, runtimes, security and machine of an engine.
pub(super) fn of_engine(api: &Api, version: &SystemVersion, info: &SystemInfo) -> Facts {
    let text = |text: &Option<String>| text.clone();
    let joined = |texts: &Option<Vec<String>>, between| texts.as_ref().map(|it| it.join(between));
    let mut runtimes: Vec<&str> = info
        .runtimes
        .iter()
        .flatten()
        .map(|it| it.0.as_str())
        .collect();
    runtimes.sort_unstable();
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let mut facts = Facts::new();
    for (name, value) in [
        (fact::ENGINE_ENDPOINT, Some(api.endpoint.to_string())),
        (fact::ENGINE_VERSION, text(&version.version)),
        (fact::ENGINE_API, text(&version.api_version)),
        (fact::ENGINE_STORAGE_DRIVER, text(&info.driver)),
        (
            fact::ENGINE_CGROUP_DRIVER,
            info.cgroup_driver.map(|it| it.to_string()),
        ),
        (
            fact::ENGINE_CGROUP_VERSION,
            info.cgroup_version.map(|it| it.to_string()),
        ),
        (fact::ENGINE_LOG_DRIVER, text(&info.logging_driver)),
        (fact::ENGINE_RUNTIME, text(&info.default_runtime)),
        (fact::ENGINE_RUNTIMES, Some(runtimes.join(" "))),
        (fact::ENGINE_SECURITY, joined(&info.security_options, " ")),
        (fact::ENGINE_KERNEL, text(&info.kernel_version)),
        (fact::ENGINE_SYSTEM, text(&info.operating_system)),
        (fact::ENGINE_OS_TYPE, text(&info.os_type)),
        (fact::ENGINE_ARCHITECTURE, text(&info.architecture)),
        (fact::ENGINE_CPUS, number(info.ncpu)),
        (fact::ENGINE_MEMORY, number(info.mem_total)),
        (fact::ENGINE_WARNINGS, joined(&info.warnings, "; ")),
        (
            fact::ENGINE_REMOTE,
            info.name.as_deref().and_then(is_other_host),
        ),
    ] {
        put(&mut facts, name, value);
    }
    for component in version.components.iter().flatten() {
        let name = component.name.to_lowercase();
        if name != "engine" {
            let name = fact::name_for(fact::ENGINE_PART_VERSION, &printable(&name));
            put(&mut facts, &name, Some(&component.version));
        }
    }
    for pair in info.driver_status.iter().flatten() {
        if let [name, value] = pair.as_slice()
            && name == "Backing Filesystem"
        {
            put(&mut facts, fact::ENGINE_STORAGE_FILESYSTEM, Some(value));
        }
    }
    if let Some((set, missing)) = bounding_set(api) {
        put(&mut facts, fact::ENGINE_CAP_BND, Some(set));
        let missing = Some(missing.join(" "));
        put(&mut facts, fact::ENGINE_CAPABILITIES_MISSING, missing);
    }
    facts
}

/// Whether a host name differs from this machine's, as text.
fn is_other_host(name: &str) -> Option<String> {
    let own = files::read_text(Path::new("/proc/sys/kernel/hostname")).ok()?;
    Some((own.trim() != name).to_string())
}

/// Name, id, digests and size of the image.
pub(super) fn of_image(facts: &mut Facts, name: &str, image: &ImageInspect) {
    put(facts, fact::IMAGE_NAME, Some(name));
    put(facts, fact::IMAGE_ID, image.id.as_ref());
    put(
        facts,
        fact::IMAGE_DIGESTS,
        image.repo_digests.as_ref().map(|digests| digests.join(" ")),
    );
    put(facts, fact::IMAGE_SIZE, image.size);
    put(facts, fact::IMAGE_ARCHITECTURE, image.architecture.as_ref());
}

/// Whether the engine's machine has AppArmor. Without it all profiles are the same, and no overhead proves nothing.
pub(super) fn has_apparmor(facts: &Facts) -> bool {
    let options = facts.get(fact::ENGINE_SECURITY);
    options.is_some_and(|options| options.contains("name=apparmor"))
}

/// The requested settings, with a profile as its hash, and the state of AppArmor.
pub(super) fn of_settings(facts: &mut Facts, settings: &Settings, profile: Option<&Profile>) {
    let named = profile.map(|profile| Profile {
        json: format!("sha256:{}", profile.sha256),
        sha256: profile.sha256.clone(),
    });
    of_host_config(facts, &request::host_config(settings, named.as_ref()));
    put(
        facts,
        fact::SECCOMP_PROFILE_SHA256,
        profile.map(|profile| &profile.sha256),
    );
    put(facts, fact::ASKED_TTY, settings.tty.then_some(true));
    put(facts, fact::ASKED_PLATFORM, settings.platform.as_ref());
    put(facts, fact::ASKED_CONTEXT, settings.context.as_ref());
    let state = match (has_apparmor(facts), &settings.apparmor) {
        (false, _) => "absent on the engine's machine; the setting changes nothing",
        (true, Some(name)) => name,
        (true, None) if settings.common.privileged => "unconfined",
        (true, None) => "docker-default",
    };
    put(facts, fact::SECURITY_APPARMOR, Some(state));
}

/// The configuration of an arm like a user's container. Log options may contain secrets and are removed.
pub(super) fn of_own(facts: &mut Facts, body: &ContainerCreateBody) {
    let mut config = body.host_config.clone().unwrap_or_default();
    if let Some(log) = &mut config.log_config {
        log.config = None;
    }
    for mount in config.mounts.iter_mut().flatten() {
        mount.volume_options = None;
    }
    config.security_opt = config.security_opt.map(|options| {
        let is_short = |option: &String| option.len() < 80;
        options.into_iter().filter(is_short).collect()
    });
    of_host_config(facts, &config);
    put(facts, fact::ASKED_USER, body.user.as_ref());
}

/// Facts under the names of the API's `HostConfig`.
fn of_host_config(facts: &mut Facts, config: &HostConfig) {
    if let Ok(Value::Object(fields)) = serde_json::to_value(config) {
        for (name, value) in fields {
            if !TOLD.contains(&name.as_str()) {
                continue;
            }
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text,
                other => other.to_string(),
            };
            put(facts, &fact::name_for(fact::ASKED, &name), Some(text));
        }
    }
}

/// The capability bounding set of the engine's process in hexadecimal, and the names missing from it.
#[cfg(target_os = "linux")]
pub(super) fn bounding_set(api: &Api) -> Option<(String, Vec<&'static str>)> {
    use super::endpoint::Endpoint;
    use crate::cx::files;
    use crate::env::grammar::CAPABILITIES;
    use std::path::Path;

    let Endpoint::Socket(path) = &api.endpoint else {
        return None;
    };
    // The kernel reports the listening process. Under socket activation that is the init system, and the set is
    // unknown.
    let peer = api.runtime.block_on(async {
        let stream = tokio::net::UnixStream::connect(path).await.ok()?;
        stream.peer_cred().ok()?.pid()
    })?;
    let read = |name: &str| files::read_text(Path::new(&format!("/proc/{peer}/{name}"))).ok();
    if read("comm")?.trim() != "dockerd" {
        return None;
    }
    let status = read("status")?;
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))?
        .trim()
        .to_owned();
    let bits = u64::from_str_radix(&set, 16).ok()?;
    let last = files::read_text(Path::new("/proc/sys/kernel/cap_last_cap")).ok()?;
    let known: usize = last.trim().parse::<usize>().ok()? + 1;
    let missing = CAPABILITIES
        .into_iter()
        .take(known)
        .enumerate()
        .filter(|(bit, _)| bits & (1 << bit) == 0)
        .map(|(_, name)| name)
        .collect();
    Some((set, missing))
}

/// Not available on this system: the engine's process cannot be inspected.
#[cfg(not(target_os = "linux"))]
pub(super) fn bounding_set(_api: &Api) -> Option<(String, Vec<&'static str>)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_configuration_do_not_become_facts() {
        let options = json!({"Labels": {"owner": "hush"},
                             "DriverConfig": {"Name": "local", "Options": {"o": "username=me,password=hush"}}});
        let body: ContainerCreateBody = serde_json::from_value(json!({
            "User": "app",
            "HostConfig": {
                "Annotations": {"run.oci.token": "hush"}, "StorageOpt": {"key": "hush"}, "NanoCpus": 5,
                "LogConfig": {"Type": "splunk", "Config": {"splunk-token": "hush"}},
                "SecurityOpt": [format!("seccomp={}", "hush".repeat(40)), "no-new-privileges"],
                "Mounts": [{"Type": "volume", "Source": "db", "Target": "/db", "VolumeOptions": options}],
                "Binds": ["/srv:/srv"]
            }
        }))
        .unwrap();
        let mut facts = Facts::new();
        of_own(&mut facts, &body);
        let message = format!("{facts:?}");
        assert!(!message.contains("hush"), "{message}");
        for (name, text) in [
            ("NanoCpus", "5"),
            ("User", "app"),
            ("Binds", "[\"/srv:/srv\"]"),
            ("SecurityOpt", "[\"no-new-privileges\"]"),
        ] {
            assert_eq!(facts[&fact::name_for(fact::ASKED, name)], text, "{name}");
        }
        assert!(
            message.contains("/db") && message.contains("splunk"),
            "{message}"
        );
    }
}
