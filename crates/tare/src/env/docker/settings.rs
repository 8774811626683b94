//! The settings of a `docker` arm: what a study file may say, checked before anything is touched.
//!
//! Every text that ends up in a request's path or in the container's configuration is held to the engine's
//! own grammar here, so that no quote, slash or control character gets further. Numbers keep the meaning
//! that `docker run` gives them. What cannot be seen from here is whether this engine grants them: it says
//! so when a container is created.

use tare_model::{Params, Value};

use super::super::{SettingSpec, SettingsError};
use super::grammar::{is_cpu_list, is_image_reference, is_plain_name, is_user, parse_size};

/// What `docker` arms take.
pub(super) static SETTINGS: &[SettingSpec] = &[
    SettingSpec {
        name: "image",
        doc: "a local image to run in; never pulled. Default: one packed from the agent alone",
    },
    SettingSpec {
        name: "network",
        doc: "`bridge` (default), `host` or `none`",
    },
    SettingSpec {
        name: "seccomp",
        doc: "`default` (the engine's own profile) or `unconfined`",
    },
    SettingSpec {
        name: "cpus",
        doc: "CPU time per second of wall time, for example 1.5; default: no limit",
    },
    SettingSpec {
        name: "cpuset",
        doc: "the CPUs it may use, for example `0-1,3`; default: all",
    },
    SettingSpec {
        name: "memory",
        doc: "memory limit in bytes or as `256m`, `2g`; at least 6 MiB; default: none",
    },
    SettingSpec {
        name: "shm",
        doc: "size of /dev/shm in bytes or as `256m`; default: the engine's (64 MiB)",
    },
    SettingSpec {
        name: "cap_add",
        doc: "capabilities to add, a list such as [\"SYS_NICE\"], or \"ALL\"",
    },
    SettingSpec {
        name: "cap_drop",
        doc: "capabilities to drop, a list such as [\"NET_RAW\"], or \"ALL\"",
    },
    SettingSpec {
        name: "privileged",
        doc: "`true`: every capability, no seccomp, all devices; default: false",
    },
    SettingSpec {
        name: "no_new_privileges",
        doc: "`true`: execve can give no privileges; default: false",
    },
    SettingSpec {
        name: "init",
        doc: "`true`: a small init is process 1; default: false",
    },
    SettingSpec {
        name: "runtime",
        doc: "a runtime that the engine knows, for example `runc` or `runsc`; default: the engine's",
    },
    SettingSpec {
        name: "storage",
        doc: "where the probes' files lie: `layer` (default: the writable layer), `volume`, `bind` or `tmpfs`",
    },
    SettingSpec {
        name: "log_driver",
        doc: "the engine's log driver, for example `json-file`, `local` or `none`; default: the engine's",
    },
    SettingSpec {
        name: "user",
        doc: "user of every process, `name` or `uid` or `uid:gid`; default: the image's",
    },
];

/// Linux capabilities by name, as of Linux 6.18 (`include/uapi/linux/capability.h`), in order of number.
pub(super) const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// The engine's smallest memory limit (moby `linuxMinMemory`), bytes.
const LEAST_MEMORY: i64 = 6 << 20;

/// The network of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Bridge,
    Host,
    None,
}

impl Network {
    /// As the engine calls it.
    pub(super) fn mode(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Host => "host",
            Self::None => "none",
        }
    }
}

/// What the working directory lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Layer,
    Volume,
    Bind,
    Tmpfs,
}

/// Checked settings; `None` leaves the choice to the engine.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the engine's own, and they are independent"
)]
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) image: Option<String>,
    pub(super) network: Network,
    pub(super) seccomp_unconfined: bool,
    pub(super) nano_cpus: Option<i64>,
    pub(super) cpuset: Option<String>,
    pub(super) memory: Option<i64>,
    pub(super) shm: Option<i64>,
    pub(super) cap_add: Vec<String>,
    pub(super) cap_drop: Vec<String>,
    pub(super) privileged: bool,
    pub(super) no_new_privileges: bool,
    pub(super) init: bool,
    pub(super) runtime: Option<String>,
    pub(super) storage: Storage,
    pub(super) log_driver: Option<String>,
    pub(super) user: Option<String>,
}

impl Settings {
    /// Reads settings; anything unknown or ill-formed is an error that names it.
    pub(super) fn parse(params: &Params) -> Result<Self, SettingsError> {
        for name in params.0.keys() {
            if !SETTINGS.iter().any(|spec| spec.name == name) {
                return Err(unknown_setting(name));
            }
        }
        let read = Reader(params);
        let settings = Self {
            image: read.word("image", is_image_reference, "`name:tag`, lower case")?,
            network: read
                .choice(
                    "network",
                    &[
                        ("bridge", Network::Bridge),
                        ("host", Network::Host),
                        ("none", Network::None),
                    ],
                )?
                .unwrap_or(Network::Bridge),
            seccomp_unconfined: read
                .choice("seccomp", &[("default", false), ("unconfined", true)])?
                .unwrap_or(false),
            nano_cpus: read.cpus()?,
            cpuset: read.word("cpuset", is_cpu_list, "a list such as `0-1,3`")?,
            memory: read.size("memory", LEAST_MEMORY)?,
            shm: read.size("shm", 4096)?,
            cap_add: read.capabilities("cap_add")?,
            cap_drop: read.capabilities("cap_drop")?,
            privileged: read.flag("privileged")?,
            no_new_privileges: read.flag("no_new_privileges")?,
            init: read.flag("init")?,
            runtime: read.word("runtime", is_plain_name, "a name such as `runc`")?,
            storage: read
                .choice(
                    "storage",
                    &[
                        ("layer", Storage::Layer),
                        ("volume", Storage::Volume),
                        ("bind", Storage::Bind),
                        ("tmpfs", Storage::Tmpfs),
                    ],
                )?
                .unwrap_or(Storage::Layer),
            log_driver: read.word("log_driver", is_plain_name, "a name such as `local`")?,
            user: read.word("user", is_user, "`name`, `uid` or `uid:gid`")?,
        };
        if settings.privileged && (!settings.cap_add.is_empty() || !settings.cap_drop.is_empty()) {
            return Err(SettingsError {
                setting: "privileged".into(),
                problem: "`privileged` gives every capability; `cap_add` and `cap_drop` would have no effect"
                    .into(),
                hint: Some("use either `privileged` or `cap_add`/`cap_drop`".into()),
            });
        }
        Ok(settings)
    }
}

fn unknown_setting(name: &str) -> SettingsError {
    let hint = nearest(name, SETTINGS.iter().map(|spec| spec.name)).map_or_else(
        || {
            let names: Vec<&str> = SETTINGS.iter().map(|spec| spec.name).collect();
            format!("`docker` takes {}", names.join(", "))
        },
        |near| format!("did you mean `{near}`?"),
    );
    SettingsError {
        setting: name.to_owned(),
        problem: format!("`docker` has no setting `{}`", name.escape_debug()),
        hint: Some(hint),
    }
}

/// The candidate that is spelled most alike, if any is alike at all.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

struct Reader<'a>(&'a Params);

impl Reader<'_> {
    fn wrong(name: &str, value: &Value, expected: &str) -> SettingsError {
        SettingsError {
            setting: name.to_owned(),
            problem: format!(
                "`{name}` cannot be `{}`",
                super::errors::printable(&value.to_string())
            ),
            hint: Some(format!("it takes {expected}")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, SettingsError> {
        match self.0.value(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(value) => Err(Self::wrong(name, value, "`true` or `false`")),
        }
    }

    fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(None);
        };
        if let Value::Text(text) = value
            && let Some((_, choice)) = choices.iter().find(|(word, _)| word == text)
        {
            return Ok(Some(*choice));
        }
        let words: Vec<String> = choices
            .iter()
            .map(|(word, _)| format!("`{word}`"))
            .collect();
        Err(Self::wrong(name, value, &words.join(" or ")))
    }

    fn word(
        &self,
        name: &str,
        is_fine: fn(&str) -> bool,
        expected: &str,
    ) -> Result<Option<String>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(None);
        };
        let text = match value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            _ => return Err(Self::wrong(name, value, expected)),
        };
        if is_fine(&text) {
            Ok(Some(text))
        } else {
            Err(Self::wrong(name, value, expected))
        }
    }

    fn cpus(&self) -> Result<Option<i64>, SettingsError> {
        let expected = "a number from 0.01 up, such as 1.5";
        let Some(value) = self.0.value("cpus") else {
            return Ok(None);
        };
        let cpus = match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) => *number,
            _ => return Err(Self::wrong("cpus", value, expected)),
        };
        if (0.01..=4096.0).contains(&cpus) {
            Ok(Some((cpus * 1e9).round() as i64))
        } else {
            Err(Self::wrong("cpus", value, expected))
        }
    }

    fn size(&self, name: &str, least: i64) -> Result<Option<i64>, SettingsError> {
        let Some(value) = self.0.value(name) else {
            return Ok(None);
        };
        let bytes = match value {
            Value::Int(bytes) => Some(*bytes),
            Value::Text(text) => parse_size(text),
            _ => None,
        };
        bytes
            .filter(|bytes| *bytes >= least)
            .map(Some)
            .ok_or_else(|| {
                let expected = format!("bytes or a text such as `256m`, at least {least} bytes");
                Self::wrong(name, value, &expected)
            })
    }

    fn capabilities(&self, name: &str) -> Result<Vec<String>, SettingsError> {
        let expected = "capability names such as [\"SYS_NICE\"], or \"ALL\"";
        let Some(value) = self.0.value(name) else {
            return Ok(Vec::new());
        };
        let words: Vec<&str> = match value {
            Value::Text(text) => text.split(',').map(str::trim).collect(),
            Value::List(values) => values
                .iter()
                .map(|item| match item {
                    Value::Text(text) => Ok(text.as_str()),
                    _ => Err(Self::wrong(name, value, expected)),
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(Self::wrong(name, value, expected)),
        };
        let mut names = Vec::new();
        for word in words {
            let upper = word.to_ascii_uppercase();
            let plain = upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned();
            if plain != "ALL" && !CAPABILITIES.contains(&plain.as_str()) {
                let mut error = Self::wrong(name, &Value::Text(word.to_owned()), expected);
                if let Some(near) = nearest(&plain, CAPABILITIES.into_iter()) {
                    error.hint = Some(format!("did you mean `{near}`?"));
                }
                return Err(error);
            }
            names.push(plain);
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: impl Into<Value>) -> SettingsError {
        Settings::parse(&Params::new().with(name, value)).expect_err(name)
    }

    #[test]
    fn no_settings_mean_what_docker_run_would_do() {
        let settings = Settings::parse(&Params::new()).unwrap();
        assert_eq!(settings.network, Network::Bridge);
        assert_eq!(settings.storage, Storage::Layer);
        assert!(!settings.privileged && !settings.seccomp_unconfined && !settings.init);
        assert_eq!(settings.nano_cpus, None);
        assert_eq!(settings.memory, None);
    }

    #[test]
    fn every_setting_is_read() {
        let params = Params::new()
            .with(
                "image",
                "registry.example:5000/Team/debian:12-slim"
                    .to_lowercase()
                    .as_str(),
            )
            .with("network", "none")
            .with("seccomp", "unconfined")
            .with("cpus", 1.5)
            .with("cpuset", "0-1,3")
            .with("memory", "256m")
            .with("shm", 65_536i64)
            .with("cap_add", "cap_sys_nice, NET_ADMIN")
            .with("cap_drop", Value::List(vec![Value::Text("ALL".into())]))
            .with("no_new_privileges", true)
            .with("init", true)
            .with("runtime", "runc")
            .with("storage", "tmpfs")
            .with("log_driver", "json-file")
            .with("user", "1000:1000");
        let settings = Settings::parse(&params).unwrap();
        assert_eq!(settings.nano_cpus, Some(1_500_000_000));
        assert_eq!(settings.memory, Some(256 << 20));
        assert_eq!(settings.shm, Some(65_536));
        assert_eq!(settings.cap_add, ["SYS_NICE", "NET_ADMIN"]);
        assert_eq!(settings.cap_drop, ["ALL"]);
        assert_eq!(settings.network.mode(), "none");
        assert_eq!(settings.user.as_deref(), Some("1000:1000"));
        assert_eq!(params.0.len() + 1, SETTINGS.len(), "all but `privileged`");
    }

    #[test]
    fn a_misspelled_setting_is_refused_with_the_likely_one() {
        let error = refused("memroy", "1g");
        assert_eq!(error.setting, "memroy");
        assert_eq!(error.hint.as_deref(), Some("did you mean `memory`?"));
        let error = refused("cap_add", "SYS_NIC");
        assert_eq!(error.hint.as_deref(), Some("did you mean `SYS_NICE`?"));
    }

    #[test]
    fn values_outside_the_grammar_are_refused() {
        for (name, value) in [
            ("cpus", Value::Float(f64::NAN)),
            ("cpus", Value::Float(-1.0)),
            ("cpus", Value::Int(0)),
            ("cpuset", Value::Text("3-1".into())),
            ("cpuset", Value::Text("0;1".into())),
            ("cpuset", Value::Text(String::new())),
            ("memory", Value::Text("1m".into())),
            ("memory", Value::Text("-1g".into())),
            ("memory", Value::Text("9999999999999g".into())),
            ("memory", Value::Text("m".into())),
            ("shm", Value::Int(-1)),
            ("network", Value::Text("Bridge".into())),
            ("storage", Value::Text("/etc".into())),
            ("privileged", Value::Text("yes".into())),
            ("init", Value::Int(1)),
        ] {
            assert_eq!(refused(name, value).setting, name);
        }
    }

    #[test]
    fn quotes_paths_and_control_characters_reach_no_request() {
        for text in [
            "x\u{1b}[31m",
            "a\"b",
            "a'b",
            "a b",
            "a\nb",
            "../x",
            "a/../b",
            "a?x=1",
            "a#b",
            "a%2fb",
            "",
            "-x",
            "é",
        ] {
            for name in [
                "image",
                "runtime",
                "log_driver",
                "user",
                "cpuset",
                "cap_add",
            ] {
                let error = refused(name, text);
                assert_eq!(error.setting, name, "{text:?}");
                let shown = format!("{error} {:?}", error.hint);
                assert!(
                    !shown.contains('\u{1b}') && !shown.contains('\n'),
                    "{shown:?}"
                );
            }
        }
    }

    #[test]
    fn privileged_together_with_capabilities_is_refused() {
        let params = Params::new()
            .with("privileged", true)
            .with("cap_drop", "ALL");
        assert_eq!(Settings::parse(&params).unwrap_err().setting, "privileged");
    }
}
