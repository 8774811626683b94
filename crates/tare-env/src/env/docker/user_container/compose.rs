//! Turns a service of a compose file into a line for Docker's client: the plugin interprets the file, the client the
//! line, and neither is parsed here.
//!
//! `docker compose config` resolves profiles, `extends`, variables and further files; every part of the printed
//! service becomes the equivalent flag. A part without a flag is reported as not carried. Variables, the command, the
//! health check and the log driver's options may be secret: they are never in the client's arguments, which every
//! user of the machine can read, but are merged into the request that the client makes of the rest.
//! Limits: what the service gets from other services at run time is unknown.

use crate::env::prelude::*;

use super::StartedDependencies;

mod flags;
mod needed;

use flags::{Form, scalar, words};
pub(super) use flags::{nanoseconds, plain, strings};
pub(super) use needed::{Needed, needed};

/// Time limit of the plugin, which reads a few files.
const CONFIG_LIMIT: Duration = Duration::from_secs(20);
const INSTALL: &str = "`sudo apt-get install docker-compose-v2` (Docker's own packages call it docker-compose-plugin); or start the service and take its container: `--like CONTAINER`";

/// A service as a `docker create` line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Service {
    /// The line.
    pub(super) words: Vec<String>,
    /// Parts that may be secret and are not in the line, as parts of the request that the client makes of it.
    pub(super) unsaid: Map<String, Value>,
    /// Parts that are not carried, one line each.
    pub(super) notes: Vec<String>,
    /// The service as the plugin printed it; it may contain secrets.
    pub(super) section: Value,
}

/// Reads a service from compose files, later ones overriding earlier ones; `dependencies` are its dependencies, if they
/// were started.
///
/// # Errors
/// There is no plugin, file or service, or the plugin rejects a file.
pub(super) fn service(
    cx: &Context<'_>,
    files: &[&str],
    service: &str,
    dependencies: Option<&StartedDependencies>,
) -> Result<Service, EnvError> {
    let config = config(cx, files)?;
    let network = dependencies.and_then(|dependencies| dependencies.network.as_deref());
    let mut found = line(&config, service, network)?;
    if dependencies.is_none() {
        found.notes.extend(alone(&config, service));
    }
    Ok(found)
}

/// The programs that can print a configuration, the usual one first. Version 1 of the second prints only YAML, and is
/// not supported.
const CLIENTS: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];

/// Resolves compose files by the plugin, later ones overriding earlier ones.
///
/// # Errors
/// There is no plugin or file, or the plugin rejects a file.
pub(super) fn config(cx: &Context<'_>, files: &[&str]) -> Result<Value, EnvError> {
    if !cfg!(unix) {
        return Err(EnvError::absent(
            "a compose file can be taken only where there are Unix sockets",
            "start the service and take its container: `--like CONTAINER`",
        ));
    }
    for client in CLIENTS {
        if let Some(config) = asked(cx, client, files)? {
            return Ok(config);
        }
    }
    Err(EnvError::absent(
        "a compose file is read by Docker's compose plugin, and neither that nor a `docker-compose` of version 2 is here",
        INSTALL,
    ))
}

/// Resolves files by one program; `None` if it is not installed, or too old.
fn asked(cx: &Context<'_>, client: &[&str], files: &[&str]) -> Result<Option<Value>, EnvError> {
    let named = files.iter().flat_map(|file| ["-f", *file]);
    let arguments: Vec<&str> = client[1..]
        .iter()
        .copied()
        .chain(named)
        .chain(["--profile", "*", "config", "--format", "json"])
        .collect();
    let command = CommandLine::new(client[0], arguments).at_home();
    let finished = match cx.exec.run(&command, b"", CONFIG_LIMIT) {
        Ok(finished) => finished,
        Err(CommandError::Missing { .. }) => return Ok(None),
        Err(CommandError::Timeout { limit, .. }) => {
            return Err(EnvError::Timeout {
                phase: "asking Docker's compose plugin what the file means".into(),
                limit,
            });
        }
        Err(other) => return Err(other.into()),
    };
    if !finished.succeeded() {
        let stderr_text = finished.stderr_text().into_owned();
        let file = files.first().unwrap_or(&"");
        return refused(client, file, &stderr_text).map_or(Ok(None), Err);
    }
    let config = serde_json::from_slice(&finished.stdout);
    config
        .map(Some)
        .map_err(|error| EnvError::failed("reading what Docker's compose plugin says", &error))
}

/// Why a program rejects a file. `None` if it is no plugin: a client without it does not know `compose`, or takes its
/// flags for its own, and version 1 does not know this form.
fn refused(client: &[&str], file: &str, said: &str) -> Option<EnvError> {
    let is_missing = [
        "is not a docker command",
        "unknown shorthand flag: 'f'",
        "unknown flag: --profile",
        "unknown command: docker compose",
        "Usage: config [options]",
    ]
    .iter()
    .any(|words| said.contains(words));
    let lines = said.lines().filter(|line| !line.contains("level=warning"));
    (!is_missing).then(|| {
        EnvError::refused(
            format!("`{} -f {} config`", client.join(" "), printable(file)),
            printable(lines.take(3).collect::<Vec<_>>().join("; ").trim()),
        )
    })
}

/// The parts that have a flag: compose's name and the client's.
const FLAGS: &[(&str, &str, Form)] = &[
    ("cap_add", "--cap-add", Form::Each),
    ("cap_drop", "--cap-drop", Form::Each),
    ("cgroup", "--cgroupns", Form::Text),
    ("cgroup_parent", "--cgroup-parent", Form::Text),
    ("cpu_period", "--cpu-period", Form::Text),
    ("cpu_quota", "--cpu-quota", Form::Text),
    ("cpu_rt_period", "--cpu-rt-period", Form::Text),
    ("cpu_rt_runtime", "--cpu-rt-runtime", Form::Text),
    ("cpu_shares", "--cpu-shares", Form::Text),
    ("cpus", "--cpus", Form::Text),
    ("cpuset", "--cpuset-cpus", Form::Text),
    ("device_cgroup_rules", "--device-cgroup-rule", Form::Each),
    ("dns", "--dns", Form::Each),
    ("dns_opt", "--dns-option", Form::Each),
    ("dns_search", "--dns-search", Form::Each),
    ("domainname", "--domainname", Form::Text),
    ("expose", "--expose", Form::Each),
    ("group_add", "--group-add", Form::Each),
    ("hostname", "--hostname", Form::Text),
    ("init", "--init", Form::Switch),
    ("ipc", "--ipc", Form::Text),
    ("mem_limit", "--memory", Form::Text),
    ("mem_reservation", "--memory-reservation", Form::Text),
    ("mem_swappiness", "--memory-swappiness", Form::Text),
    ("memswap_limit", "--memory-swap", Form::Text),
    ("oom_kill_disable", "--oom-kill-disable", Form::Switch),
    ("oom_score_adj", "--oom-score-adj", Form::Text),
    ("pid", "--pid", Form::Text),
    ("pids_limit", "--pids-limit", Form::Text),
    ("platform", "--platform", Form::Text),
    ("privileged", "--privileged", Form::Switch),
    ("read_only", "--read-only", Form::Switch),
    ("runtime", "--runtime", Form::Text),
    ("security_opt", "--security-opt", Form::Each),
    ("shm_size", "--shm-size", Form::Text),
    ("stop_grace_period", "--stop-timeout", Form::Seconds),
    ("stop_signal", "--stop-signal", Form::Text),
    ("storage_opt", "--storage-opt", Form::Each),
    ("sysctls", "--sysctl", Form::Each),
    ("tmpfs", "--tmpfs", Form::Each),
    ("user", "--user", Form::Text),
    ("userns_mode", "--userns", Form::Text),
];

/// Parts that are handled below, or that do not affect how the program runs: names, labels, order, restarts,
/// building.
const OTHERS: &[&str] = &[
    "annotations",
    "attach",
    "blkio_config",
    "build",
    "command",
    "configs",
    "container_name",
    "depends_on",
    "deploy",
    "devices",
    "entrypoint",
    // The plugin has merged it into `environment`.
    "env_file",
    "environment",
    "extra_hosts",
    "healthcheck",
    "image",
    "labels",
    "logging",
    "network_mode",
    "networks",
    "ports",
    "profiles",
    "pull_policy",
    "restart",
    "secrets",
    "stdin_open",
    "tty",
    "ulimits",
    "volumes",
    "working_dir",
];

/// Merges parts of a request into `body`: maps are merged, lists are appended.
fn lay(over: &Value, body: &mut Value) {
    match (over, body) {
        (Value::Object(over), Value::Object(body)) => {
            for (name, value) in over {
                lay(value, body.entry(name).or_insert(Value::Null));
            }
        }
        (Value::Array(over), Value::Array(body)) => body.extend(over.iter().cloned()),
        (over, body) => *body = over.clone(),
    }
}

impl Service {
    /// Merges the parts that are not in the line into the client's request.
    pub(super) fn complete(&self, body: &mut Value) {
        lay(&Value::Object(self.unsaid.clone()), body);
    }

    /// The error of creating it, with a hint to build an image that cannot be pulled.
    pub(super) fn unbuilt(&self, error: EnvError, file: &str, service: &str) -> EnvError {
        match error {
            EnvError::Absent { why, fix: Some(_) } if is_built(&self.section) => EnvError::absent(
                why,
                format!(
                    "`docker compose -f {} build {}`",
                    printable(file),
                    printable(service)
                ),
            ),
            other => other,
        }
    }
}

/// The note about dependencies that are not started.
fn alone(config: &Value, name: &str) -> Option<String> {
    let names: Vec<String> = needed(config, name)
        .iter()
        .map(|needed| format!("`{}`", printable(&needed.name)))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "NOT started: {}, which `{}` depends on; `--with-dependencies` starts {} for the time of the question",
            names.join(", "),
            printable(name),
            if names.len() == 1 { "it" } else { "them" }
        )
    })
}

/// Builds a service's line, and its variables as `NAME=text`, from the plugin's output.
pub(super) fn line(config: &Value, name: &str, network: Option<&str>) -> Result<Service, EnvError> {
    let service = &config["services"][name];
    if !service.is_object() {
        let known: Vec<String> = members_of(&config["services"])
            .map(|(name, _)| printable(name))
            .collect();
        return Err(EnvError::absent(
            format!("there is no service `{}` in the file", printable(name)),
            format!("it has: {}", known.join(", ")),
        ));
    }
    let mut found = Service {
        words: ["docker", "create"].map(str::to_owned).to_vec(),
        section: service.clone(),
        ..Service::default()
    };
    for name in unset(service) {
        // A name without a value: removes the image's value too.
        found.word("--env", &name);
    }
    for &(part, flag, form) in FLAGS {
        found.put(flag, form, &service[part]);
    }
    found.limits(service);
    found.ulimits(service);
    found.logging(&service["logging"]);
    found.health(&service["healthcheck"]);
    found.hosts(&service["extra_hosts"]);
    found.devices(&service["devices"]);
    found.ports(&service["ports"]);
    found.networks(config, service, network);
    found.volumes(config, service);
    found.block_devices(&service["blkio_config"]);
    for kind in [
        ("secrets", "secret", "/run/secrets/"),
        ("configs", "configuration", "/"),
    ] {
        found.files(config, service, kind);
    }
    for (part, value) in members_of(service) {
        let is_known =
            FLAGS.iter().any(|(known, ..)| known == part) || OTHERS.contains(&part.as_str());
        if !is_known && !super::difference::is_nothing(value) {
            let notes = &mut found.notes;
            notes.push(format!("NOT carried: `{}` of the service", printable(part)));
        }
    }
    let image = image(config, service, name)?;
    let (entry, command) = (words(&service["entrypoint"]), words(&service["command"]));
    if let Some((program, _)) = entry.split_first() {
        found.word("--entrypoint", program);
    }
    if let Some(folder) = service["working_dir"].as_str() {
        found.word("--workdir", &plain(folder));
    }
    let command: Vec<String> = entry.into_iter().skip(1).chain(command).collect();
    for (part, list) in [("Cmd", command), ("Env", variables(service))] {
        if !list.is_empty() {
            found.unsaid.insert(part.to_owned(), list.into());
        }
    }
    found.words.push(image);
    Ok(found)
}

/// Whether the image of a service is built here.
fn is_built(service: &Value) -> bool {
    !service["build"].is_null()
}

/// The image, or the name that the plugin gives to one that it builds.
fn image(config: &Value, service: &Value, name: &str) -> Result<String, EnvError> {
    if let Some(image) = service["image"].as_str() {
        return Ok(plain(image));
    }
    match config["name"].as_str() {
        Some(project) if is_built(service) => Ok(format!("{project}-{name}")),
        _ => Err(EnvError::absent(
            format!("the service `{}` has no image", printable(name)),
            "give it an `image:`, or build it: `docker compose build`",
        )),
    }
}

fn variables(service: &Value) -> Vec<String> {
    members_of(&service["environment"])
        .filter_map(|(name, value)| Some(format!("{name}={}", scalar(value)?)))
        .collect()
}

/// Variables without a value that are not in the user's shell either.
fn unset(service: &Value) -> Vec<String> {
    members_of(&service["environment"])
        .filter(|(_, value)| value.is_null())
        .map(|(name, _)| name.clone())
        .collect()
}

#[cfg(test)]
mod tests;
