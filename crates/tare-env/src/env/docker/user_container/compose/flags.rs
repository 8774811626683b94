//! Turns the parts of a service into flags; a part without a flag is reported as not carried.
//!
//! Pure: the input is the plugin's output.
//! Limits: flags that a client is too old for are not detected here; the client rejects them.

use crate::env::prelude::*;

use tare_model::whole_part;

use super::Service;

/// How a part of a service becomes flags.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// One flag with the value.
    Text,
    /// A flag without a value, if it is true.
    Switch,
    /// A flag for every entry; for a map, `name=value`.
    Each,
    /// The seconds of a duration.
    Seconds,
}

/// A text with the plugin's doubled dollars undone; it doubles them so that its output is a valid compose file.
pub(crate) fn plain(text: &str) -> String {
    text.replace("$$", "$")
}

pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(plain(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}

pub(crate) fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().filter_map(scalar).collect(),
        other => scalar(other).into_iter().collect(),
    }
}

/// The words of a command; a string is split as a shell would: some versions of the plugin print it unchanged from
/// the file.
pub(super) fn words(value: &Value) -> Vec<String> {
    let text = value.as_str().map(plain);
    let split = text.as_deref().and_then(shlex::split);
    split.unwrap_or_else(|| strings(value))
}

/// Nanoseconds of a duration such as `1m30s` or `1.5s`.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let (mut all, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|letter: char| letter.is_ascii_digit());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let unit_ns = match unit {
            "h" => 3.6e12,
            "m" => 6e10,
            "s" => 1e9,
            "ms" => 1e6,
            "us" | "µs" => 1e3,
            "ns" => 1.0,
            _ => return None,
        };
        all += number.parse::<f64>().ok()? * unit_ns;
        rest = behind;
    }
    (!text.is_empty()).then(|| i64::try_from(whole_part(all)).unwrap_or(i64::MAX))
}

impl Service {
    pub(super) fn word(&mut self, flag: &str, text: &str) {
        self.words.extend([flag.to_owned(), text.to_owned()]);
    }

    pub(super) fn put(&mut self, flag: &str, form: Form, value: &Value) {
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
                for text in strings(value) {
                    self.word(flag, &text);
                }
            }
            (Form::Seconds, _) => {
                if let Some(length) = value.as_str().and_then(nanoseconds) {
                    self.word(flag, &(length / 1_000_000_000).to_string());
                }
            }
        }
    }

    /// Limits below `deploy`, unless the service sets them itself.
    pub(super) fn limits(&mut self, service: &Value) {
        let resources = &service["deploy"]["resources"];
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
            if service[own].is_null() {
                self.put(flag, Form::Text, &resources[group][name]);
            }
        }
    }

    pub(super) fn ulimits(&mut self, service: &Value) {
        for (name, value) in members_of(&service["ulimits"]) {
            let text = match value {
                // The plugin omits zeros, also for a limit that is one number.
                limits @ Value::Object(_) => {
                    let of = |name: &str| limits[name].as_i64().unwrap_or(0);
                    format!("{}:{}", of("soft"), of("hard"))
                }
                other => other.to_string(),
            };
            self.word("--ulimit", &format!("{name}={text}"));
        }
    }

    pub(super) fn logging(&mut self, logging: &Value) {
        self.put("--log-driver", Form::Text, &logging["driver"]);
        let options: Map<String, Value> = members_of(&logging["options"])
            .filter_map(|(name, value)| Some((name.clone(), scalar(value)?.into())))
            .collect();
        if !options.is_empty() {
            let host = json!({"LogConfig": {"Config": options}});
            self.unsaid.insert("HostConfig".to_owned(), host);
        }
    }

    /// The health check: the client's flag is always a shell line.
    pub(super) fn health(&mut self, check: &Value) {
        let words = strings(&check["test"]);
        let line = match words.split_first() {
            _ if check["disable"] == true => None,
            Some((first, _)) if first == "NONE" => None,
            Some((first, words)) if first == "CMD" => {
                let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
                Some(words.iter().map(quoted).collect::<Vec<_>>().join(" "))
            }
            Some((first, words)) if first == "CMD-SHELL" => Some(words.join(" ")),
            _ => match check["test"].as_str() {
                Some(line) => Some(plain(line)),
                // The image's check, at other intervals.
                None => Some(String::new()),
            },
        };
        match line {
            None => return self.words.push("--no-healthcheck".to_owned()),
            Some(line) if line.is_empty() => {}
            Some(line) => {
                let check = json!({"Test": ["CMD-SHELL", line]});
                self.unsaid.insert("Healthcheck".to_owned(), check);
            }
        }
        for (part, flag) in [
            ("interval", "--health-interval"),
            ("timeout", "--health-timeout"),
            ("start_period", "--health-start-period"),
        ] {
            self.put(flag, Form::Text, &check[part]);
        }
    }

    /// The weight and the rates of block devices, whose keys the plugin writes with capital letters.
    pub(super) fn block_devices(&mut self, config: &Value) {
        self.put("--blkio-weight", Form::Text, &config["weight"]);
        for (part, flag) in [
            ("weight_device", "--blkio-weight-device"),
            ("device_read_bps", "--device-read-bps"),
            ("device_write_bps", "--device-write-bps"),
            ("device_read_iops", "--device-read-iops"),
            ("device_write_iops", "--device-write-iops"),
        ] {
            for entry in entries_of(&config[part]) {
                let of = |names: [&str; 2]| names.iter().find_map(|name| scalar(&entry[name]));
                let rate = of(["Rate", "rate"]).or_else(|| of(["Weight", "weight"]));
                if let (Some(path), Some(rate)) = (of(["Path", "path"]), rate) {
                    self.word(flag, &format!("{path}:{rate}"));
                }
            }
        }
    }

    /// Newer plugins write `name=address`, which older clients do not accept.
    pub(super) fn hosts(&mut self, hosts: &Value) {
        for text in strings(hosts) {
            self.word("--add-host", &text.replacen('=', ":", 1));
        }
    }

    pub(super) fn devices(&mut self, devices: &Value) {
        for device in entries_of(devices) {
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

    pub(super) fn ports(&mut self, ports: &Value) {
        for port in entries_of(ports) {
            let of = |name: &str| scalar(&port[name]).unwrap_or_default();
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
            let (published, target) = (of("published"), of("target"));
            let text = if begin.is_empty() && published.is_empty() {
                format!("{target}/{protocol}")
            } else {
                format!("{begin}{published}:{target}/{protocol}")
            };
            self.word("--publish", &text);
        }
    }

    /// The network of the service's dependencies replaces all of its networks.
    pub(super) fn networks(&mut self, config: &Value, service: &Value, beside: Option<&str>) {
        if let Some(network) = beside {
            self.word("--network", network);
        } else if let Some(mode) = service["network_mode"].as_str() {
            if mode.starts_with("service:") {
                self.notes.push(
                    "NOT carried: the network of another service; it has one of its own".to_owned(),
                );
            } else {
                self.word("--network", mode);
            }
        }
        for (name, _) in members_of(&service["networks"]) {
            let known = &config["networks"][name];
            // The project's network exists only while the project is up, and is never created here.
            let shown = printable(known["name"].as_str().unwrap_or(name));
            if known["external"] == true && beside.is_none() {
                self.word("--network", known["name"].as_str().unwrap_or(name));
            } else if known["external"] == true {
                self.notes.push(format!(
                    "NOT carried: the network `{shown}`: what it depends on is on a network of its own"
                ));
            } else if beside.is_none() {
                self.notes.push(format!(
                    "NOT carried: the project's network `{shown}`: other services cannot be reached by their names, and the usual bridge stands in for it"
                ));
            }
        }
    }

    pub(super) fn volumes(&mut self, config: &Value, service: &Value) {
        for volume in entries_of(&service["volumes"]) {
            let text = |name: &str| volume[name].as_str().map(plain).unwrap_or_default();
            let (source, target) = (text("source"), text("target"));
            let known = config["volumes"][&source]["name"].as_str();
            let source = known.map_or(source, str::to_owned);
            let mode = if volume["read_only"] == true {
                ":ro"
            } else {
                ""
            };
            match volume["type"].as_str() {
                Some("bind" | "volume") if source.contains(':') || target.contains(':') => {
                    self.notes.push(format!(
                        "NOT carried: what is mounted at `{}`, whose path has a colon",
                        printable(&target)
                    ));
                }
                Some("volume") if source.is_empty() => self.word("--volume", &target),
                Some("bind" | "volume") => {
                    self.word("--volume", &format!("{source}:{target}{mode}"));
                }
                Some("tmpfs") => {
                    let size = scalar(&volume["tmpfs"]["size"]);
                    let size = size.map_or_else(String::new, |size| format!(":size={size}"));
                    self.word("--tmpfs", &format!("{target}{size}"));
                }
                _ => self.notes.push(format!(
                    "NOT carried: what is mounted at `{}`",
                    printable(&target)
                )),
            }
        }
    }

    /// Mounts secrets and configurations that are files, read-only; others are not carried. They are named by the part
    /// of the compose file that has them, and by a word for one of them; `folder` is for those that name no path.
    pub(super) fn files(
        &mut self,
        config: &Value,
        service: &Value,
        (part, word, folder): (&str, &str, &str),
    ) {
        for entry in entries_of(&service[part]) {
            let name = entry["source"].as_str().unwrap_or_default();
            let target = entry["target"].as_str().unwrap_or(name);
            let target = if target.starts_with('/') {
                target.to_owned()
            } else {
                format!("{folder}{target}")
            };
            match config[part][name]["file"].as_str() {
                Some(file) if !file.contains(':') => {
                    self.word("--volume", &format!("{}:{target}:ro", plain(file)));
                }
                _ => self.notes.push(format!(
                    "NOT carried: the {word} `{}`, which is no file",
                    printable(name)
                )),
            }
        }
    }
}
