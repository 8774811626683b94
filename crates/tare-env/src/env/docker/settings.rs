//! Reads and checks the settings of a `docker` arm before anything is touched.
//!
//! Every text that ends up in a request's path or in the container's configuration must match the engine's own
//! grammar, so that no quote, slash or control character gets further. Numbers mean the same as for `docker run`.
//! Limits: whether this engine grants them is unknown; it reports that when a container is created.

use std::path::PathBuf;

use bollard::models::HostConfigIsolationEnum;
use tare_model::Params;

use super::super::common_settings::CommonSettings;
use super::super::image::host_files::FileRequest;
use super::super::reader::Reader;
use super::super::user_container::like::{self, Like};
use super::super::{SettingsError, common};
pub(super) use super::catalogue::Storage;
use super::catalogue::{
    APPARMOR, BIND_FOLDER, COMPOSE, CONTEXT, ENTRY, IMAGE, INSIDE, ISOLATION, ISOLATIONS,
    JOIN_NETWORKS, LIKE, LOG_DRIVER, LOWER_FILE, NETWORK, PLATFORM, PORT, RUN, RUNTIME, SECCOMP,
    SETTINGS, STOP_AFTER, STORAGE, STORAGES, TMPFS, TTY, USER, WITHOUT,
};

/// The largest file that a tar header can describe without an extension, bytes.
const LARGEST_LOWER: u64 = 8 << 30;

/// The network of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Network {
    Bridge,
    Host,
    None,
    /// The network of another container.
    Container(String),
    /// The bridge, with one published port on the host: this one, or one that the engine chooses.
    Published(Option<u16>),
}

impl Network {
    /// The engine's name for it.
    pub(super) fn mode(&self) -> String {
        match self {
            Self::Bridge | Self::Published(_) => "bridge".into(),
            Self::Host => "host".into(),
            Self::None => "none".into(),
            Self::Container(name) => format!("container:{name}"),
        }
    }
}

/// The seccomp profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seccomp {
    /// The engine's default.
    Default,
    Unconfined,
    /// A profile in a file on this machine.
    File(PathBuf),
}

impl Storage {
    /// Whether it is a folder on this machine.
    pub(super) fn is_folder(self) -> bool {
        matches!(self, Self::Bind | Self::Served)
    }
}

/// Checked settings; `None` leaves the choice to the engine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// A user's container to copy, or the file with its configuration, if any.
    pub(super) like: Option<Like>,
    /// A user's running container that is the arm itself, if any.
    pub(super) inside: Option<String>,
    /// Differences to remove from a copied container.
    pub(super) without: Vec<String>,
    /// Whether such an arm joins the original's networks.
    pub(super) join_networks: bool,
    pub(super) image: Option<String>,
    /// What to pack in addition to the agent.
    pub(super) wanted: FileRequest,
    /// Length of the file for `copy-up` in the image, bytes.
    pub(super) lower_file: Option<i64>,
    pub(super) network: Network,
    pub(super) seccomp: Seccomp,
    pub(super) apparmor: Option<String>,
    pub(super) common: CommonSettings,
    /// The container's first program; empty for the agent.
    pub(super) entry: Vec<String>,
    /// How long that program may take to stop, seconds.
    pub(super) stop_after: Option<u16>,
    pub(super) tty: bool,
    pub(super) runtime: Option<String>,
    pub(super) platform: Option<String>,
    /// How a Windows container is isolated.
    pub(super) isolation: Option<HostConfigIsolationEnum>,
    pub(super) context: Option<String>,
    pub(super) storage: Storage,
    pub(super) bind_folder: Option<PathBuf>,
    /// Folders inside with a tmpfs.
    pub(super) tmpfs: Vec<String>,
    pub(super) log_driver: Option<String>,
    pub(super) user: Option<String>,
    /// The names of all settings that were given.
    pub(super) said: Vec<&'static str>,
}

impl Settings {
    /// Reads settings; an unknown or malformed one is an error that names it.
    pub(super) fn read(params: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("docker", SETTINGS, params)?;
        let settings = Self {
            like: Like::read(&read, &LIKE, &RUN, Some(&COMPOSE)),
            inside: read.owned(&INSIDE),
            without: read.list(&WITHOUT).to_vec(),
            join_networks: read.is_on(&JOIN_NETWORKS),
            image: read.owned(&IMAGE),
            wanted: read.wanted(),
            lower_file: read.size(&LOWER_FILE).map(u64::cast_signed),
            network: network(&read),
            seccomp: match read.text(&SECCOMP) {
                None | Some("default") => Seccomp::Default,
                Some("unconfined") => Seccomp::Unconfined,
                Some(path) => Seccomp::File(PathBuf::from(path)),
            },
            apparmor: read.owned(&APPARMOR).filter(|name| name != "default"),
            common: CommonSettings::read(&read),
            entry: read.list(&ENTRY).to_vec(),
            stop_after: read.whole(&STOP_AFTER),
            tty: read.is_on(&TTY),
            runtime: read.owned(&RUNTIME),
            platform: read.owned(&PLATFORM),
            isolation: read.word(&ISOLATION, &ISOLATIONS),
            context: read.owned(&CONTEXT),
            storage: read.word(&STORAGE, &STORAGES).unwrap_or(Storage::Layer),
            bind_folder: read.text(&BIND_FOLDER).map(PathBuf::from),
            tmpfs: read.list(&TMPFS).to_vec(),
            log_driver: read.owned(&LOG_DRIVER),
            user: read.owned(&USER),
            said: SETTINGS
                .iter()
                .filter(|row| read.is_given(row))
                .map(|row| row.name)
                .collect(),
        };
        settings.check(&read)?;
        Ok(settings)
    }

    /// Rejects settings of which one would silently undo or miss another.
    fn check(&self, read: &Reader<'_>) -> Result<(), SettingsError> {
        read.alone(
            &INSIDE,
            &[INSIDE, CONTEXT],
            "the container runs as it is",
            "`like` makes a new one like it, and `without` leaves parts of that away",
        )?;
        for source in [LIKE, RUN, COMPOSE] {
            read.alone(
                &source,
                &[
                    source,
                    WITHOUT,
                    JOIN_NETWORKS,
                    PLATFORM,
                    CONTEXT,
                    common::BINDS,
                ],
                "the container's own configuration holds",
                "`without` leaves parts of it away",
            )?;
        }
        let of_like = [WITHOUT, JOIN_NETWORKS, RUN];
        read.consistent(&like::contradictions(read, self.like.as_ref(), of_like))?;
        let is_packed = self.lower_file.is_some() || !self.wanted.is_empty();
        let is_published = matches!(self.network, Network::Published(_));
        read.consistent(&[
            self.common.contradiction(),
            (self.image.is_some() && is_packed, IMAGE, common::NOT_PACKED),
            (
                read.size(&LOWER_FILE)
                    .is_some_and(|size| size > LARGEST_LOWER),
                LOWER_FILE,
                (
                    "`lower_file` is larger than 8 GiB",
                    "`100m` shows a copy-up well",
                ),
            ),
            (
                self.bind_folder.is_some() && !self.storage.is_folder(),
                BIND_FOLDER,
                (
                    "`bind_folder` has no effect without `storage = \"bind\"`",
                    "add `storage = \"bind\"` or leave it out",
                ),
            ),
            (
                read.is_given(&ENTRY) && self.entry.first().is_none_or(String::is_empty),
                ENTRY,
                (
                    "`entry` names no program",
                    "a program and its arguments, for example `sleep infinity`",
                ),
            ),
            (
                self.stop_after.is_some() && self.entry.is_empty(),
                STOP_AFTER,
                (
                    "`stop_after` has no effect without `entry`: the agent ends on request",
                    "add `entry`, for example `sleep infinity`, or leave it out",
                ),
            ),
            (
                read.is_given(&PORT) && !is_published,
                PORT,
                (
                    "`port` has no effect without `network = \"published\"`",
                    "add `network = \"published\"` or leave it out",
                ),
            ),
        ])
    }
}

fn network(read: &Reader<'_>) -> Network {
    match read.text(&NETWORK) {
        None | Some("bridge") => Network::Bridge,
        Some("host") => Network::Host,
        Some("none") => Network::None,
        Some("published") => Network::Published(read.whole(&PORT)),
        Some(others) => Network::Container(others.trim_start_matches("container:").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tare_model::Value;

    use super::super::super::reader::tests::{assert_refused, assert_refuses, with};
    use super::*;

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
            .with("isolation", "hyperv")
            .with("user", "1000:1000");
        let settings = Settings::read(&params).unwrap();
        assert_eq!(settings.isolation, Some(HostConfigIsolationEnum::HYPERV));
        assert_eq!(settings.network, Network::Published(Some(8080)));
        assert_eq!(settings.network.mode(), "bridge");
        assert_eq!(settings.seccomp, Seccomp::File("profiles/mine.json".into()));
        assert_eq!(settings.user.as_deref(), Some("1000:1000"));
        assert_eq!(settings.wanted.programs, ["python3", "/usr/bin/env"]);
        assert_eq!(settings.wanted.packages, ["libpython3.11-minimal"]);
        assert_eq!(settings.wanted.files, ["/etc/os-release"]);
        assert_eq!(settings.lower_file, Some(100 << 20));
        let all_but = [
            "privileged",
            "image",
            "like",
            "run",
            "compose",
            "inside",
            "without",
            "join_networks",
        ];
        assert_eq!(params.0.len() + all_but.len(), SETTINGS.len());
        let params = Params::new().with("image", "registry.example:5000/team/debian:12-slim");
        let settings = Settings::read(&params).unwrap();
        assert_eq!(
            settings.image.as_deref(),
            Some("registry.example:5000/team/debian:12-slim")
        );
        let like = Params::new()
            .with("like", "web")
            .with("without", "cpus?,env.LD_PRELOAD,tmpfs./a")
            .with("platform", "linux/amd64");
        let settings = Settings::read(&like).unwrap();
        assert_eq!(settings.like, Some(Like::Container("web".into())));
        assert_eq!(settings.without, ["cpus?", "env.LD_PRELOAD", "tmpfs./a"]);
        assert!(Settings::read(&like.with("cpus", 0.5)).is_err());
        assert!(Settings::read(&Params::new().with("without", "cpus")).is_err());
        assert!(Settings::read(&Params::new().with("join_networks", true)).is_err());
        let line = Params::new().with("run", "docker run -e MODE=1 web");
        let settings = Settings::read(&line).unwrap();
        assert!(matches!(settings.like, Some(Like::Line(words)) if words.len() == 5));
        let joined = Settings::read(&line.clone().with("join_networks", true)).unwrap();
        assert!(joined.join_networks && !Settings::read(&line).unwrap().join_networks);
        assert!(Settings::read(&line.with("like", "web")).is_err());
        let service = Params::new().with("compose", "compose.yml web");
        assert!(matches!(
            Settings::read(&service).unwrap().like,
            Some(Like::Services { .. })
        ));
        let hush = Params::new().with("run", "docker run -e PASSWORD=hush web");
        let error = Settings::read(&hush).unwrap_err();
        assert!(error.setting == "run" && !error.to_string().contains("hush"));
        let inside = Params::new().with("inside", "web").with("context", "other");
        let settings = Settings::read(&inside).unwrap();
        assert_eq!(settings.inside.as_deref(), Some("web"));
        assert!(Settings::read(&inside.with("without", "cpus")).is_err());
        let both = params.with("programs", "python3");
        assert_eq!(Settings::read(&both).unwrap_err().setting, "image");
    }

    #[test]
    fn misspelled_docker_setting_suggests_likely_name() {
        let error = Settings::read(&with("memroy", "1g")).unwrap_err();
        assert_eq!(error.setting, "memroy");
        assert_eq!(error.hint.as_deref(), Some("did you mean `memory`?"));
        let error = Settings::read(&with("cap_add", "SYS_NIC")).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `SYS_NICE`?"));
    }

    #[test]
    fn values_outside_the_grammar_are_refused() {
        let values = json!({
            "cpus": [-1.0, 0],
            "cpuset": ["3-1", "0;1", ""],
            "memory": ["1m", "-1g", "9999999999999g", "m"],
            "shm": [-1],
            "network": ["Bridge", "container:", "container:NAME/.."],
            "storage": ["/etc"],
            "privileged": ["yes"],
            "init": [1],
            "entry": [true, "a\0b"],
            "stop_after": ["soon", 0],
            "port": [0, 80],
            "seccomp": ["unconfine", "a\u{1b}.json"],
            "ulimits": ["nofile", "nofile=9:1", "nofile=-1:5", "nofiles=5"],
            "platform": ["linux"],
            "bind_folder": ["relative", "/a/../etc", "/tmp"],
            "lower_file": ["0", "9g"],
            "packages": ["-rf"],
            "programs": ["bin/x"],
        });
        assert_refused(Settings::read, &values);
        assert_refuses(Settings::read, "cpus", f64::NAN);
    }
}
