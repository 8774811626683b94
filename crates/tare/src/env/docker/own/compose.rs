//! A service of a compose file as a line for Docker's client: the plugin says what the file means, the client what the
//! line means, and neither is parsed here.
//!
//! `docker compose config` resolves profiles, `extends`, variables and further files; of the service that it prints,
//! every part becomes the flag of the same meaning. A part without a flag is told as not carried. Values of variables
//! go to the client in a file that only the user can read, and never in its arguments.
//! What it cannot see: what the service gets from others at run time; those that it depends on are not started.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::cx::{CommandError, CommandLine, Context, files};
use crate::env::EnvError;
use crate::env::text::printable;

/// How long the plugin may take: it reads a few files.
const CONFIG_LIMIT: Duration = Duration::from_secs(20);
const INSTALL: &str = "`sudo apt-get install docker-compose-v2` (Docker's own packages call it docker-compose-plugin); or start the service and take its container: `--like CONTAINER`";

/// A service as a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Service {
    /// The line.
    pub(super) words: Vec<String>,
    /// What is not in it, a line each.
    pub(super) told: Vec<String>,
    /// Whether its image is built here.
    pub(super) is_built: bool,
}

/// The service of this name in a compose file.
///
/// # Errors
/// There is no plugin, file or service; what the plugin says of a file that it cannot use.
pub(super) fn service(cx: &Context<'_>, file: &str, service: &str) -> Result<Service, EnvError> {
    let config = config(cx, file)?;
    let (mut found, variables) = line(&config, service).map_err(|problem| EnvError::Absent {
        why: problem.why,
        fix: problem.fix,
    })?;
    // A variable with a line's end in it cannot stand in the file.
    let (long, short): (Vec<&String>, Vec<&String>) =
        variables.iter().partition(|text| text.contains('\n'));
    for text in long {
        let name = text.split('=').next().unwrap_or_default();
        found.told.push(format!(
            "NOT carried: the variable `{}`, whose text has several lines",
            printable(name)
        ));
    }
    if !short.is_empty() {
        let path = cx.scratch.join("own-service.env");
        let text: Vec<&str> = short.into_iter().map(String::as_str).collect();
        files::write_working(&path, text.join("\n").as_bytes())?;
        let flag = ["--env-file".to_owned(), path.display().to_string()];
        found.words.splice(2..2, flag);
    }
    Ok(found)
}

/// What the plugin makes of a file.
fn config(cx: &Context<'_>, file: &str) -> Result<Value, EnvError> {
    let arguments = [
        "compose",
        "-f",
        file,
        "--profile",
        "*",
        "config",
        "--format",
        "json",
    ];
    let command = CommandLine::new("docker", arguments).at_home();
    let finished = cx
        .exec
        .run(&command, b"", CONFIG_LIMIT)
        .map_err(|error| match error {
            CommandError::Timeout { limit, .. } => EnvError::Timeout {
                phase: "asking Docker's compose plugin what the file means".into(),
                limit,
            },
            CommandError::Missing { .. } => EnvError::Absent {
                why: "`docker` is not installed, and a compose file is read by its plugin".into(),
                fix: Some(INSTALL.into()),
            },
            other => other.into(),
        })?;
    let said = String::from_utf8_lossy(&finished.stderr).into_owned();
    if finished.status != Some(0) {
        return Err(refused(file, &said));
    }
    serde_json::from_slice(&finished.stdout).map_err(|error| EnvError::Refused {
        what: "reading what Docker's compose plugin says".into(),
        answer: printable(&error.to_string()),
    })
}

/// Why the plugin says nothing; a client without it takes `compose` for nothing, or its flags for its own.
fn refused(file: &str, said: &str) -> EnvError {
    let is_missing = [
        "is not a docker command",
        "unknown shorthand flag: 'f'",
        "unknown flag: --profile",
        "unknown command: docker compose",
    ]
    .iter()
    .any(|words| said.contains(words));
    if is_missing {
        return EnvError::Absent {
            why: "Docker's client here has no compose plugin, which is asked what the file means"
                .into(),
            fix: Some(INSTALL.into()),
        };
    }
    let first: Vec<&str> = said
        .lines()
        .filter(|line| !line.contains("level=warning"))
        .collect();
    EnvError::Refused {
        what: format!("`docker compose -f {} config`", printable(file)),
        answer: printable(
            first
                .into_iter()
                .take(3)
                .collect::<Vec<_>>()
                .join("; ")
                .trim(),
        ),
    }
}

/// Why there is no line.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    why: String,
    fix: Option<String>,
}

/// How a part of a service becomes flags.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// One flag with the text.
    Text,
    /// A flag without a text, if it is true.
    Switch,
    /// A flag for every entry: of a map, `name=text`.
    Each,
    /// The seconds of a length of time.
    Seconds,
}

/// The parts that are flags, as compose and as the client calls them.
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

/// Parts that are read below, or that say nothing of how the program runs: names, labels, order, restarts, building.
const OTHERS: &[&str] = &[
    "annotations",
    "attach",
    "build",
    "command",
    "container_name",
    "depends_on",
    "deploy",
    "devices",
    "entrypoint",
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

/// The line of a service, and its variables as `NAME=text`, of what the plugin printed.
fn line(config: &Value, name: &str) -> Result<(Service, Vec<String>), Problem> {
    let services = config["services"].as_object();
    let Some(service) = services
        .and_then(|all| all.get(name))
        .and_then(Value::as_object)
    else {
        let known: Vec<String> = services
            .into_iter()
            .flat_map(Map::keys)
            .map(|name| printable(name))
            .collect();
        return Err(Problem {
            why: format!("there is no service `{}` in the file", printable(name)),
            fix: Some(format!("it has: {}", known.join(", "))),
        });
    };
    let mut flags = Flags::default();
    for &(part, flag, form) in FLAGS {
        flags.put(flag, form, service.get(part));
    }
    flags.limits(service);
    flags.ulimits(service);
    flags.logging(&service.get("logging").cloned().unwrap_or_default());
    flags.hosts(service);
    flags.devices(service);
    flags.ports(service);
    flags.networks(config, service);
    flags.volumes(config, service);
    flags.secrets(config, service);
    for part in service.keys() {
        let is_known =
            FLAGS.iter().any(|(known, ..)| known == part) || OTHERS.contains(&part.as_str());
        let is_nothing = super::difference::is_nothing(&service[part]);
        if !is_known && !is_nothing {
            flags
                .told
                .push(format!("NOT carried: `{}` of the service", printable(part)));
        }
    }
    let image = image(config, service, name)?;
    let (entry, command) = (
        strings(service.get("entrypoint")),
        strings(service.get("command")),
    );
    if let Some((program, _)) = entry.split_first() {
        flags.word("--entrypoint", program);
    }
    if let Some(folder) = service.get("working_dir").and_then(Value::as_str) {
        flags.word("--workdir", &plain(folder));
    }
    let begin = ["docker", "create"].map(str::to_owned).into_iter();
    let rest = entry.into_iter().skip(1).chain(command);
    let found = Service {
        words: begin
            .chain(flags.words)
            .chain(std::iter::once(image))
            .chain(rest)
            .collect(),
        told: flags.told,
        is_built: service.contains_key("build"),
    };
    Ok((found, variables(service)))
}

/// The image, or the name that the plugin gives to one that it builds.
fn image(config: &Value, service: &Map<String, Value>, name: &str) -> Result<String, Problem> {
    if let Some(image) = service.get("image").and_then(Value::as_str) {
        return Ok(plain(image));
    }
    let project = config["name"].as_str();
    match (service.contains_key("build"), project) {
        (true, Some(project)) => Ok(format!("{project}-{name}")),
        _ => Err(Problem {
            why: format!("the service `{}` has no image", printable(name)),
            fix: Some("give it an `image:`, or build it: `docker compose build`".into()),
        }),
    }
}

/// A text as it was meant: the plugin doubles dollars, so that its answer can be a compose file again.
fn plain(text: &str) -> String {
    text.replace("$$", "$")
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(plain(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(scalar).collect(),
        Some(other) => scalar(other).into_iter().collect(),
        None => Vec::new(),
    }
}

fn variables(service: &Map<String, Value>) -> Vec<String> {
    let map = service.get("environment").and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(name, value)| Some(format!("{name}={}", scalar(value)?)))
        .collect()
}

/// Seconds of a length such as `1m30s`.
fn seconds(text: &str) -> Option<u64> {
    let (mut all, mut number) = (0, String::new());
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        all += number.parse::<u64>().ok()? * unit;
        number.clear();
    }
    number.is_empty().then_some(all)
}

/// Flags under construction.
#[derive(Debug, Default)]
struct Flags {
    words: Vec<String>,
    told: Vec<String>,
}

impl Flags {
    fn word(&mut self, flag: &str, text: &str) {
        self.words.extend([flag.to_owned(), text.to_owned()]);
    }

    fn put(&mut self, flag: &str, form: Form, value: Option<&Value>) {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return;
        };
        match (form, value) {
            (Form::Switch, Value::Bool(true)) => self.words.push(flag.to_owned()),
            (Form::Switch, _) => {}
            (Form::Each, Value::Object(map)) => {
                for (name, value) in map {
                    if let Some(text) = scalar(value) {
                        self.word(flag, &format!("{name}={text}"));
                    }
                }
            }
            (Form::Each | Form::Text, _) => {
                for text in strings(Some(value)) {
                    self.word(flag, &text);
                }
            }
            (Form::Seconds, _) => {
                if let Some(seconds) = value.as_str().and_then(seconds) {
                    self.word(flag, &seconds.to_string());
                }
            }
        }
    }

    /// Limits that stand below `deploy`, unless the service has them itself.
    fn limits(&mut self, service: &Map<String, Value>) {
        let resources = &service.get("deploy").cloned().unwrap_or_default()["resources"];
        for (group, name, flag, own) in [
            ("limits", "cpus", "--cpus", "cpus"),
            ("limits", "memory", "--memory", "mem_limit"),
            ("limits", "pids", "--pids-limit", "pids_limit"),
            (
                "reservations",
                "memory",
                "--memory-reservation",
                "mem_reservation",
            ),
        ] {
            if !service.contains_key(own) {
                self.put(flag, Form::Text, resources[group].get(name));
            }
        }
    }

    fn ulimits(&mut self, service: &Map<String, Value>) {
        let map = service.get("ulimits").and_then(Value::as_object);
        for (name, value) in map.into_iter().flatten() {
            let text = match value {
                Value::Object(limits) => format!(
                    "{}:{}",
                    limits.get("soft").cloned().unwrap_or_default(),
                    limits.get("hard").cloned().unwrap_or_default()
                ),
                other => other.to_string(),
            };
            self.word("--ulimit", &format!("{name}={text}"));
        }
    }

    fn logging(&mut self, logging: &Value) {
        self.put("--log-driver", Form::Text, logging.get("driver"));
        self.put("--log-opt", Form::Each, logging.get("options"));
    }

    /// Newer plugins write `name=address`, which older clients do not take.
    fn hosts(&mut self, service: &Map<String, Value>) {
        for text in strings(service.get("extra_hosts")) {
            self.word("--add-host", &text.replacen('=', ":", 1));
        }
    }

    fn devices(&mut self, service: &Map<String, Value>) {
        let list = service.get("devices").and_then(Value::as_array);
        for device in list.into_iter().flatten() {
            let text = match device {
                Value::String(text) => plain(text),
                other => ["source", "target", "permissions"]
                    .iter()
                    .filter_map(|part| other[*part].as_str())
                    .collect::<Vec<_>>()
                    .join(":"),
            };
            self.word("--device", &text);
        }
    }

    fn ports(&mut self, service: &Map<String, Value>) {
        let list = service.get("ports").and_then(Value::as_array);
        for port in list.into_iter().flatten() {
            let of = |name: &str| port.get(name).and_then(scalar).unwrap_or_default();
            let host = of("host_ip");
            let begin = if host.is_empty() {
                host
            } else {
                format!("{host}:")
            };
            let protocol = of("protocol");
            let protocol = if protocol.is_empty() {
                "tcp"
            } else {
                &protocol
            };
            let text = format!("{begin}{}:{}/{protocol}", of("published"), of("target"));
            self.word("--publish", &text);
        }
    }

    fn networks(&mut self, config: &Value, service: &Map<String, Value>) {
        if let Some(mode) = service.get("network_mode").and_then(Value::as_str) {
            if mode.starts_with("service:") {
                self.told.push(
                    "NOT carried: the network of another service; it has one of its own".to_owned(),
                );
            } else {
                self.word("--network", mode);
            }
            return;
        }
        let named = service.get("networks").and_then(Value::as_object);
        for name in named.into_iter().flat_map(Map::keys) {
            let known = &config["networks"][name.as_str()];
            // A network of the project's own is there while the project is up, and never made here.
            if known["external"] == true {
                self.word("--network", known["name"].as_str().unwrap_or(name));
            } else {
                self.told.push(format!(
                    "NOT carried: the project's network `{}`: other services cannot be reached by their names, and the usual bridge stands in for it",
                    printable(known["name"].as_str().unwrap_or(name))
                ));
            }
        }
    }

    fn volumes(&mut self, config: &Value, service: &Map<String, Value>) {
        let list = service.get("volumes").and_then(Value::as_array);
        for volume in list.into_iter().flatten() {
            let text = |name: &str| volume[name].as_str().map(plain).unwrap_or_default();
            let (source, target) = (text("source"), text("target"));
            let known = config["volumes"][source.as_str()]["name"].as_str();
            let source = known.map_or(source, str::to_owned);
            let mode = if volume["read_only"] == true {
                ":ro"
            } else {
                ""
            };
            match volume["type"].as_str() {
                Some("bind" | "volume") if source.contains(':') || target.contains(':') => {
                    self.told.push(format!(
                        "NOT carried: what is mounted at `{}`, whose path has a colon",
                        printable(&target)
                    ));
                }
                Some("volume") if source.is_empty() => self.word("--volume", &target),
                Some("bind" | "volume") => {
                    self.word("--volume", &format!("{source}:{target}{mode}"));
                }
                Some("tmpfs") => {
                    let size = volume["tmpfs"].get("size").and_then(scalar);
                    let size = size.map_or_else(String::new, |size| format!(":size={size}"));
                    self.word("--tmpfs", &format!("{target}{size}"));
                }
                _ => self.told.push(format!(
                    "NOT carried: what is mounted at `{}`",
                    printable(&target)
                )),
            }
        }
    }

    /// Secrets that are files are shown, read-only; others are nobody's here.
    fn secrets(&mut self, config: &Value, service: &Map<String, Value>) {
        let list = service.get("secrets").and_then(Value::as_array);
        for secret in list.into_iter().flatten() {
            let name = secret["source"].as_str().unwrap_or_default();
            let target = secret["target"].as_str().unwrap_or(name);
            let target = if target.starts_with('/') {
                target.to_owned()
            } else {
                format!("/run/secrets/{target}")
            };
            match config["secrets"][name]["file"].as_str() {
                Some(file) if !file.contains(':') => {
                    self.word("--volume", &format!("{}:{target}:ro", plain(file)));
                }
                _ => self.told.push(format!(
                    "NOT carried: the secret `{}`, which is no file",
                    printable(name)
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests;
