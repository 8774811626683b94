//! The settings of a `docker` arm: what a study file may say, checked before anything is touched.
//!
//! Every text that ends up in a request's path or in the container's configuration is held to the engine's
//! own grammar here, so that no quote, slash or control character gets further. Numbers keep the meaning
//! that `docker run` gives them. What cannot be seen from here is whether this engine grants them: it says
//! so when a container is created.

use std::path::PathBuf;

use tare_model::launch::Bind;
use tare_model::{Params, Value};

use super::super::SettingsError;
use super::super::grammar::{
    is_container_name, is_cpu_list, is_image_reference, is_plain_name, is_platform, is_profile,
    is_safe_path, is_user,
};
use super::super::image::host_files::Wanted;
use super::super::own;
use super::super::reader::{Reader, Ulimit};
use super::catalogue::SETTINGS;

/// The engine's smallest memory limit (moby `linuxMinMemory`), bytes.
const LEAST_MEMORY: i64 = 6 << 20;

/// The largest file that a tar header tells without an extension, bytes.
const LARGEST_LOWER: i64 = 8 << 30;

/// The network of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Network {
    Bridge,
    Host,
    None,
    /// That of another container.
    Container(String),
    /// The bridge, with one port that the host's own addresses lead to: this one, or one of the engine's
    /// choice.
    Published(Option<u16>),
}

impl Network {
    /// As the engine calls it.
    pub(super) fn mode(&self) -> String {
        match self {
            Self::Bridge | Self::Published(_) => "bridge".into(),
            Self::Host => "host".into(),
            Self::None => "none".into(),
            Self::Container(name) => format!("container:{name}"),
        }
    }
}

/// The filter on system calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seccomp {
    /// The engine's own.
    Default,
    Unconfined,
    /// A profile in a file of this machine.
    File(PathBuf),
}

/// What the working directory lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    Layer,
    Volume,
    Bind,
    /// A bound folder behind a file system in user space.
    Served,
    Tmpfs,
}

impl Storage {
    /// Whether it is a folder of this machine.
    pub(super) fn is_folder(self) -> bool {
        matches!(self, Self::Bind | Self::Served)
    }
}

/// Checked settings; `None` leaves the choice to the engine.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the engine's own, and they are independent"
)]
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// A container of the user's, or the file in which one is kept.
    pub(super) like: Option<String>,
    /// A running container of the user's itself.
    pub(super) inside: Option<String>,
    /// What an arm that is like one does without.
    pub(super) without: Vec<String>,
    pub(super) image: Option<String>,
    /// What to pack besides the agent.
    pub(super) wanted: Wanted,
    /// Length of the file for `copy-up` in the image.
    pub(super) lower_file: Option<i64>,
    pub(super) network: Network,
    pub(super) seccomp: Seccomp,
    pub(super) apparmor: Option<String>,
    pub(super) nano_cpus: Option<i64>,
    pub(super) cpuset: Option<String>,
    pub(super) memory: Option<i64>,
    pub(super) shm: Option<i64>,
    pub(super) ulimits: Vec<Ulimit>,
    pub(super) cap_add: Vec<String>,
    pub(super) cap_drop: Vec<String>,
    pub(super) privileged: bool,
    pub(super) no_new_privileges: bool,
    pub(super) init: bool,
    /// The container's own program; empty for the agent.
    pub(super) entry: Vec<String>,
    /// How long that may take to obey, seconds.
    pub(super) stop_after: Option<u16>,
    pub(super) tty: bool,
    pub(super) runtime: Option<String>,
    pub(super) platform: Option<String>,
    pub(super) context: Option<String>,
    pub(super) storage: Storage,
    pub(super) bind_folder: Option<PathBuf>,
    pub(super) binds: Vec<Bind>,
    /// Folders inside that are in memory.
    pub(super) tmpfs: Vec<String>,
    pub(super) log_driver: Option<String>,
    pub(super) user: Option<String>,
}

impl Settings {
    /// Reads settings; anything unknown or ill-formed is an error that names it.
    pub(super) fn parse(params: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("docker", SETTINGS, params)?;
        let settings = Self {
            like: read.word(
                own::LIKE,
                |text| is_container_name(text) || is_safe_path(text),
                "a container's name or id",
            )?,
            inside: read.word(
                own::INSIDE,
                is_container_name,
                "a running container's name or id",
            )?,
            without: read.words(own::WITHOUT, is_difference, "names of differences")?,
            image: read.word("image", is_image_reference, "`name:tag`, lower case")?,
            wanted: read.wanted()?,
            lower_file: read.size("lower_file", 1)?,
            network: network(&read)?,
            seccomp: seccomp(&read)?,
            apparmor: read
                .word(
                    "apparmor",
                    is_profile,
                    "`default`, `unconfined` or a profile's name",
                )?
                .filter(|name| name != "default"),
            nano_cpus: read.cpus()?,
            cpuset: read.word("cpuset", is_cpu_list, "a list such as `0-1,3`")?,
            memory: read.size("memory", LEAST_MEMORY)?,
            shm: read.size("shm", 4096)?,
            ulimits: read.ulimits("ulimits")?,
            cap_add: read.capabilities("cap_add")?,
            cap_drop: read.capabilities("cap_drop")?,
            privileged: read.flag("privileged")?,
            no_new_privileges: read.flag("no_new_privileges")?,
            init: read.flag("init")?,
            entry: read.entry()?,
            stop_after: read.stop_after()?,
            tty: read.flag("tty")?,
            runtime: read.word("runtime", is_plain_name, "a name such as `runc`")?,
            platform: read.word("platform", is_platform, "a pair such as `linux/arm64`")?,
            context: read.word("context", is_container_name, "a context's name")?,
            storage: read
                .choice(
                    "storage",
                    &[
                        ("layer", Storage::Layer),
                        ("volume", Storage::Volume),
                        ("bind", Storage::Bind),
                        ("served", Storage::Served),
                        ("tmpfs", Storage::Tmpfs),
                    ],
                )?
                .unwrap_or(Storage::Layer),
            bind_folder: read
                .word("bind_folder", is_safe_path, "an absolute path")?
                .map(PathBuf::from),
            binds: read.binds()?,
            tmpfs: read.words("tmpfs", is_safe_path, "absolute paths")?,
            log_driver: read.word("log_driver", is_plain_name, "a name such as `local`")?,
            user: read.word("user", is_user, "`name`, `uid` or `uid:gid`")?,
        };
        settings.conflict(params).map_or(Ok(settings), Err)
    }

    /// Settings of which one would silently undo or miss another.
    fn conflict(&self, params: &Params) -> Option<SettingsError> {
        let conflict = |setting: &str, problem: &str, hint: &str| {
            Some(SettingsError {
                setting: setting.into(),
                problem: problem.into(),
                hint: Some(hint.into()),
            })
        };
        let with_inside = |name: &&String| ![own::INSIDE, "context"].contains(&name.as_str());
        if let (true, Some(name)) = (self.inside.is_some(), params.0.keys().find(with_inside)) {
            return conflict(
                name,
                &format!("`{name}` has no effect beside `inside`: the container runs as it is"),
                "`like` makes a new one like it, and `without` leaves parts of that away",
            );
        }
        let besides = |name: &&String| !WITH_LIKE.contains(&name.as_str());
        if let (true, Some(name)) = (self.like.is_some(), params.0.keys().find(besides)) {
            return conflict(
                name,
                &format!(
                    "`{name}` has no effect beside `like`: the container's own configuration holds"
                ),
                "`without` leaves parts of it away",
            );
        }
        if self.like.is_none() && !self.without.is_empty() {
            return conflict(
                own::WITHOUT,
                "`without` has no effect without `like`",
                "add `like`, or leave it out",
            );
        }
        if self.privileged && (!self.cap_add.is_empty() || !self.cap_drop.is_empty()) {
            return conflict(
                "privileged",
                "`privileged` gives every capability; `cap_add` and `cap_drop` would have no effect",
                "use either `privileged` or `cap_add`/`cap_drop`",
            );
        }
        if self.image.is_some() && (self.lower_file.is_some() || !self.wanted.is_empty()) {
            return conflict(
                "image",
                "`programs`, `packages`, `files` and `lower_file` are packed, and an `image` of your own is not",
                "leave `image` out, or put the files into your image",
            );
        }
        if self.lower_file.is_some_and(|size| size > LARGEST_LOWER) {
            return conflict(
                "lower_file",
                "`lower_file` is larger than 8 GiB",
                "`100m` shows a copy-up well",
            );
        }
        if self.bind_folder.is_some() && !self.storage.is_folder() {
            return conflict(
                "bind_folder",
                "`bind_folder` has no effect without `storage = \"bind\"`",
                "add `storage = \"bind\"` or leave it out",
            );
        }
        if self.stop_after.is_some() && self.entry.is_empty() {
            return conflict(
                "stop_after",
                "`stop_after` has no effect without `entry`: the agent ends when it is told to",
                "add `entry`, for example `sleep infinity`, or leave it out",
            );
        }
        if params.value("port").is_some() && !matches!(self.network, Network::Published(_)) {
            return conflict(
                "port",
                "`port` has no effect without `network = \"published\"`",
                "add `network = \"published\"` or leave it out",
            );
        }
        None
    }
}

/// What may be said beside `like`.
const WITH_LIKE: [&str; 5] = [own::LIKE, own::WITHOUT, "platform", "context", "binds"];

/// Whether a text can be the name of a difference: of a flag, a variable, a sysctl, a path.
fn is_difference(text: &str) -> bool {
    let is_letter =
        |letter: char| letter.is_ascii_graphic() && !matches!(letter, '\'' | '"' | '\\' | '`');
    !text.is_empty() && text.len() <= 256 && text.chars().all(is_letter)
}

fn network(read: &Reader<'_>) -> Result<Network, SettingsError> {
    if let Some(Value::Text(text)) = read.params.value("network")
        && let Some(name) = text.strip_prefix("container:")
    {
        return if is_container_name(name) {
            Ok(Network::Container(name.to_owned()))
        } else {
            let value = Value::Text(text.clone());
            Err(Reader::wrong(
                "network",
                &value,
                "a container's name after `container:`",
            ))
        };
    }
    let port = read.port("port")?;
    let choices = [
        ("bridge", &Network::Bridge),
        ("host", &Network::Host),
        ("none", &Network::None),
        ("published", &Network::Published(port)),
        ("container:NAME", &Network::None),
    ];
    Ok(read
        .choice("network", &choices)?
        .cloned()
        .unwrap_or(Network::Bridge))
}

fn seccomp(read: &Reader<'_>) -> Result<Seccomp, SettingsError> {
    let is_word = |text: &str| matches!(text, "default" | "unconfined");
    match read.params.value("seccomp") {
        Some(Value::Text(text)) if !is_word(text) => {
            let expected = "`default`, `unconfined` or the path of a profile";
            let has_ending = std::path::Path::new(text)
                .extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
            let is_path = has_ending || text.contains('/');
            if !is_path || text.chars().any(char::is_control) {
                let value = Value::Text(text.clone());
                return Err(Reader::wrong("seccomp", &value, expected));
            }
            Ok(Seccomp::File(PathBuf::from(text)))
        }
        _ => {
            let is_unconfined =
                read.choice("seccomp", &[("default", false), ("unconfined", true)])?;
            Ok(match is_unconfined {
                Some(true) => Seccomp::Unconfined,
                _ => Seccomp::Default,
            })
        }
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
        assert_eq!(settings.seccomp, Seccomp::Default);
        assert!(!settings.privileged && !settings.init && !settings.tty);
        assert_eq!(settings.nano_cpus, None);
        assert_eq!(settings.memory, None);
    }

    #[test]
    fn every_setting_is_read() {
        let params = Params::new()
            .with("programs", "python3,/usr/bin/env")
            .with("packages", "libpython3.11-minimal")
            .with("files", "/etc/os-release")
            .with("lower_file", "100m")
            .with("network", "published")
            .with("port", 8080i64)
            .with("seccomp", "profiles/mine.json")
            .with("apparmor", "unconfined")
            .with("ulimits", "nofile=1024:524288,core=-1")
            .with("tty", true)
            .with("platform", "linux/arm64/v8")
            .with("context", "desktop-linux")
            .with("bind_folder", "/srv/a folder")
            .with("binds", "/srv/x:/data,/usr:/usr:ro")
            .with("tmpfs", "/scratch")
            .with("cpus", 1.5)
            .with("cpuset", "0-1,3")
            .with("memory", "256m")
            .with("shm", 65_536i64)
            .with("cap_add", "cap_sys_nice, NET_ADMIN")
            .with("cap_drop", Value::List(vec![Value::Text("ALL".into())]))
            .with("no_new_privileges", true)
            .with("init", true)
            .with("entry", "sleep infinity")
            .with("stop_after", 3i64)
            .with("runtime", "runc")
            .with("storage", "bind")
            .with("log_driver", "json-file")
            .with("user", "1000:1000");
        let settings = Settings::parse(&params).unwrap();
        assert_eq!(settings.nano_cpus, Some(1_500_000_000));
        assert_eq!(settings.memory, Some(256 << 20));
        assert_eq!(settings.shm, Some(65_536));
        assert_eq!(settings.cap_add, ["SYS_NICE", "NET_ADMIN"]);
        assert_eq!(settings.cap_drop, ["ALL"]);
        assert_eq!(settings.network, Network::Published(Some(8080)));
        assert_eq!(settings.network.mode(), "bridge");
        assert_eq!(settings.seccomp, Seccomp::File("profiles/mine.json".into()));
        assert_eq!(
            settings.ulimits,
            [
                Ulimit {
                    name: "nofile".into(),
                    soft: 1024,
                    hard: 524_288
                },
                Ulimit {
                    name: "core".into(),
                    soft: -1,
                    hard: -1
                }
            ]
        );
        assert_eq!(settings.user.as_deref(), Some("1000:1000"));
        assert_eq!(settings.wanted.programs, ["python3", "/usr/bin/env"]);
        assert_eq!(settings.wanted.packages, ["libpython3.11-minimal"]);
        assert_eq!(settings.wanted.files, ["/etc/os-release"]);
        assert_eq!(settings.lower_file, Some(100 << 20));
        let all_but = ["privileged", "image", "like", "inside", "without"];
        assert_eq!(params.0.len() + all_but.len(), SETTINGS.len());
        let params = Params::new().with("image", "registry.example:5000/team/debian:12-slim");
        let settings = Settings::parse(&params).unwrap();
        assert_eq!(
            settings.image.as_deref(),
            Some("registry.example:5000/team/debian:12-slim")
        );
        let like = Params::new()
            .with("like", "web")
            .with("without", "cpus?,env.LD_PRELOAD,tmpfs./a")
            .with("platform", "linux/amd64");
        let settings = Settings::parse(&like).unwrap();
        assert_eq!(settings.like.as_deref(), Some("web"));
        assert_eq!(settings.without, ["cpus?", "env.LD_PRELOAD", "tmpfs./a"]);
        assert!(Settings::parse(&like.with("cpus", 0.5)).is_err());
        assert!(Settings::parse(&Params::new().with("without", "cpus")).is_err());
        let inside = Params::new().with("inside", "web").with("context", "other");
        let settings = Settings::parse(&inside).unwrap();
        assert_eq!(settings.inside.as_deref(), Some("web"));
        assert!(Settings::parse(&inside.with("without", "cpus")).is_err());
        let both = params.with("programs", "python3");
        assert_eq!(Settings::parse(&both).unwrap_err().setting, "image");
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
            ("entry", Value::Int(1)),
            ("entry", Value::Text("a\0b".into())),
            ("stop_after", Value::Text("soon".into())),
            ("stop_after", Value::Int(0)),
            ("network", Value::Text("container:".into())),
            ("network", Value::Text("container:NAME/..".into())),
            ("port", Value::Int(0)),
            ("port", Value::Int(80)),
            ("seccomp", Value::Text("unconfine".into())),
            ("seccomp", Value::Text("a\u{1b}.json".into())),
            ("ulimits", Value::Text("nofile".into())),
            ("ulimits", Value::Text("nofile=9:1".into())),
            ("ulimits", Value::Text("nofile=-1:5".into())),
            ("ulimits", Value::Text("nofiles=5".into())),
            ("platform", Value::Text("linux".into())),
            ("bind_folder", Value::Text("relative".into())),
            ("bind_folder", Value::Text("/a/../etc".into())),
            ("bind_folder", Value::Text("/tmp".into())),
            ("lower_file", Value::Text("0".into())),
            ("lower_file", Value::Text("9g".into())),
            ("packages", Value::Text("-rf".into())),
            ("programs", Value::Text("bin/x".into())),
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
                "apparmor",
                "platform",
                "context",
                "ulimits",
                "bind_folder",
                "network",
                "programs",
                "packages",
                "files",
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
