//! The settings of a `podman` arm, and the options of the command that they become.
//!
//! Every text must match a grammar before it becomes an argument; numbers mean the same as for `podman run`. An
//! option is passed only if requested, so an arm without settings equals a plain `podman run`.
//! Limits: podman may refuse an option; it reports that when a container is created.

use std::path::PathBuf;

use tare_model::Params;

use super::super::common::{
    BINDS, CAP_ADD, CAP_DROP, CPUS, CPUSET, FILES, INIT, MEMORY, NO_NEW_PRIVILEGES, NOT_PACKED,
    PACKAGES, PRIVILEGED, PROGRAMS, SHM, ULIMIT,
};
use super::super::common_settings::CommonSettings;
use super::super::grammar::{Ulimit, is_image_reference, is_plain_name, is_safe_path, is_user};
use super::super::reader::Reader;
use super::super::setting::{Between, Form, meanings, settings, word_for, words};
use super::super::user_container;
use super::super::user_container::like::{self, Like};
use super::super::{FileRequest, SettingsError};

settings! {
    pub(super) SETTINGS;

    LIKE(user_container::LIKE, Text(Form::new("a container's name or id", user_container::is_source)), "none",
        "a container: arms are new ones of the line that made it; what of the user's it can write to is shown read-only");
    RUN(like::RUN, Text(Form::new("a `podman run` line", |text| like::is_line("podman", text))), "none",
        "a line that would make a container: arms are new ones like it, as with `like`; its own command is not run");
    WITHOUT(user_container::WITHOUT, List(Form::new("names of differences", user_container::is_difference), Between::Commas), "none",
        "with `like` or `run`: differences to remove, such as [\"cpu-shares\", \"env.LD_PRELOAD\", \"engine.seccomp\"]; a name that ends in `?` may be missing");
    AS("as", Text(Form::new("the name or number of a user", is_account)), "Tare's own user",
        "the ordinary user whose rootless podman it is, where Tare runs as root");
    JOIN_NETWORKS(like::JOIN, Flag, "`false`",
        "with `like` or `run`: every arm joins that container's networks and shows the sockets and named pipes in its folders; without it arms are on a network of the run's own");
    IMAGE("image", Text(Form::new("`name:tag`, lower case", is_image_reference)),
        "one packed from the agent and what the next settings name", "a local image to run in; never pulled");
    PROGRAMS;
    PACKAGES;
    FILES;
    NETWORK("network", Text(Form::words(&words(&NETWORKS))), "`default`", "the network; `default` is podman's own choice");
    SECCOMP("seccomp",
        Text(Form::new("`default`, `unconfined` or an absolute path", is_safe_path).or(&["default", "unconfined"])),
        "`default`", "the filter on system calls: podman's own profile, none, or a file's", "off" is "unconfined");
    CPUS;
    CPUSET;
    MEMORY;
    SHM;
    ULIMIT;
    CAP_ADD;
    CAP_DROP;
    PRIVILEGED;
    NO_NEW_PRIVILEGES;
    INIT;
    RUNTIME("runtime", Text(Form::new("a name such as `runc` or an absolute path", is_runtime)),
        "podman's, or `runc` where crun refuses this machine's cgroups", "an OCI runtime");
    STORAGE("storage", Text(Form::words(&words(&STORAGES))), "`layer`",
        "where the probes' files lie: the writable layer, a volume, a folder of this machine, or memory");
    BINDS;
    LOG_DRIVER("log_driver", Text(Form::words(LOG_DRIVERS)), "podman's", "podman's log driver");
    USER("user", Text(Form::new("`name`, `uid` or `uid:gid`", is_user)), "the image's", "user of every process inside");
}

meanings! {
    /// The network of a container.
    #[derive(Default)]
    pub(super) enum Network, NETWORKS {
        #[default]
        Default: "default",
        Bridge: "bridge",
        Host: "host",
        None: "none",
        Slirp4netns: "slirp4netns",
        Pasta: "pasta",
    }
}

impl Network {
    /// Returns podman's word for it; `None` leaves the choice to podman.
    pub(super) fn mode(self) -> Option<&'static str> {
        (self != Self::Default).then(|| word_for(&NETWORKS, self))
    }
}

/// The seccomp filter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Seccomp {
    #[default]
    Default,
    Unconfined,
    Profile(PathBuf),
}

meanings! {
    /// The storage of the working directory.
    #[derive(Default)]
    pub(super) enum Storage, STORAGES {
        #[default]
        Layer: "layer",
        Volume: "volume",
        Bind: "bind",
        Tmpfs: "tmpfs",
    }
}

/// Checked settings; `None` and an empty list leave the choice to podman.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Settings {
    /// The user's container that the arm is like, or the file with its description.
    pub(super) like: Option<Like>,
    /// The differences that such an arm removes.
    pub(super) without: Vec<String>,
    /// Whether such an arm joins the networks of that container.
    pub(super) join_networks: bool,
    pub(super) account: Option<String>,
    pub(super) image: Option<String>,
    /// The files to pack in addition to the agent.
    pub(super) wanted: FileRequest,
    pub(super) network: Network,
    pub(super) seccomp: Seccomp,
    pub(super) common: CommonSettings,
    pub(super) runtime: Option<String>,
    pub(super) storage: Storage,
    pub(super) log_driver: Option<String>,
    pub(super) user: Option<String>,
}

impl Settings {
    /// Reads the settings; anything unknown or ill-formed is an error that names it.
    pub(super) fn read(params: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("podman", SETTINGS, params)?;
        let settings = Self {
            like: Like::read(&read, &LIKE, &RUN, None),
            without: read.list(&WITHOUT).to_vec(),
            join_networks: read.is_on(&JOIN_NETWORKS),
            account: read.owned(&AS),
            image: read.owned(&IMAGE),
            wanted: read.wanted(),
            network: read.word(&NETWORK, &NETWORKS).unwrap_or_default(),
            seccomp: match read.text(&SECCOMP) {
                None | Some("default") => Seccomp::Default,
                Some("unconfined") => Seccomp::Unconfined,
                Some(path) => Seccomp::Profile(PathBuf::from(path)),
            },
            common: CommonSettings::read(&read),
            runtime: read.owned(&RUNTIME),
            storage: read.word(&STORAGE, &STORAGES).unwrap_or_default(),
            log_driver: read.owned(&LOG_DRIVER),
            user: read.owned(&USER),
        };
        for source in [LIKE, RUN] {
            read.alone(
                &source,
                &[source, WITHOUT, JOIN_NETWORKS, AS, RUNTIME],
                "the container's own configuration holds",
                "`without` leaves parts of it away",
            )?;
        }
        let of_like = [WITHOUT, JOIN_NETWORKS, RUN];
        let like = settings.like.as_ref();
        read.consistent(&like::contradictions(&read, like, of_like))?;
        let is_packed = settings.image.is_some() && !settings.wanted.is_empty();
        read.consistent(&[
            settings.common.contradiction(),
            (is_packed, IMAGE, NOT_PACKED),
        ])?;
        Ok(settings)
    }

    /// Returns the settings that decide whether podman can be used at all; the others only change a container.
    pub(super) fn essentials(&self) -> Self {
        Self {
            account: self.account.clone(),
            runtime: self.runtime.clone(),
            common: CommonSettings {
                ulimits: self.common.ulimits.clone(),
                ..CommonSettings::default()
            },
            ..Self::default()
        }
    }

    /// Returns the requested cgroup limits: each setting's name with the controller that it needs.
    pub(super) fn limits(&self) -> Vec<(&'static str, &'static str)> {
        [
            ("cpus", "cpu", self.common.nano_cpus.is_some()),
            ("cpuset", "cpuset", self.common.cpuset.is_some()),
            ("memory", "memory", self.common.memory.is_some()),
        ]
        .into_iter()
        .filter(|(_, _, is_asked)| *is_asked)
        .map(|(setting, controller, _)| (setting, controller))
        .collect()
    }

    /// Returns the options of `podman create` and `podman run`, each `--name=value` or a switch.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let mut put = |name: &str, value: Option<String>| {
            options.extend(value.map(|value| format!("--{name}={value}")));
        };
        put("network", self.network.mode().map(str::to_owned));
        let security = match &self.seccomp {
            Seccomp::Default => None,
            Seccomp::Unconfined => Some("seccomp=unconfined".to_owned()),
            Seccomp::Profile(path) => Some(format!("seccomp={}", path.display())),
        };
        put("security-opt", security);
        let is_set = |is_set: bool, value: &str| is_set.then(|| value.to_owned());
        put(
            "security-opt",
            is_set(self.common.no_new_privileges, "no-new-privileges"),
        );
        let cpus = self
            .common
            .nano_cpus
            .map(|nano| (nano as f64 / 1e9).to_string());
        put("cpus", cpus);
        put("cpuset-cpus", self.common.cpuset.clone());
        put(
            "memory",
            self.common.memory.map(|bytes| format!("{bytes}b")),
        );
        put("shm-size", self.common.shm.map(|bytes| format!("{bytes}b")));
        for Ulimit { name, soft, hard } in &self.common.ulimits {
            put("ulimit", Some(format!("{name}={soft}:{hard}")));
        }
        for name in &self.common.cap_add {
            put("cap-add", Some(name.clone()));
        }
        for name in &self.common.cap_drop {
            put("cap-drop", Some(name.clone()));
        }
        put("privileged", is_set(self.common.privileged, "true"));
        put("init", is_set(self.common.init, "true"));
        put("user", self.user.clone());
        put("log-driver", self.log_driver.clone());
        for bind in &self.common.binds {
            let rights = if bind.read_only { ":ro" } else { "" };
            let (source, target) = (&bind.source, &bind.target);
            put("volume", Some(format!("{source}:{target}{rights}")));
        }
        options
    }
}

/// Log drivers that keep an attached stream; `passthrough` would take it away.
const LOG_DRIVERS: &[&str] = &["k8s-file", "json-file", "journald", "none"];

fn is_account(text: &str) -> bool {
    is_user(text) && !text.contains(':')
}

/// Whether a text is a name from podman's configuration, or the absolute path of a program.
fn is_runtime(text: &str) -> bool {
    is_plain_name(text.strip_prefix('/').unwrap_or(text)) && !text.contains(':')
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tare_model::Value;

    use super::super::super::reader::tests::{assert_refused, assert_refuses, with};
    use super::*;

    #[test]
    fn default_settings_match_podman_run() {
        let settings = Settings::read(&Params::new()).unwrap();
        assert_eq!(settings, Settings::default());
        assert_eq!(settings.options(), Vec::<String>::new());
    }

    #[test]
    fn like_arm_accepts_only_like_settings() {
        let own = Params::new().with("like", "web").with("runtime", "runc");
        let less = own.clone().with("without", "cpus?,env.LD_PRELOAD");
        let settings = Settings::read(&less).unwrap();
        assert_eq!(settings.like, Some(Like::Container("web".into())));
        assert_eq!(settings.without, ["cpus?", "env.LD_PRELOAD"]);
        let error = Settings::read(&own.with("cpus", 1.0)).unwrap_err();
        assert_eq!(error.setting, "cpus");
        assert!(Settings::read(&Params::new().with("without", "cpus")).is_err());
    }

    #[test]
    fn every_setting_becomes_the_option_of_its_name() {
        let params = Params::new()
            .with("as", "someone")
            .with("image", "localhost/debian:12-slim")
            .with("network", "slirp4netns")
            .with("seccomp", "/etc/my profile.json")
            .with("cpus", 1.5)
            .with("cpuset", "0-1,3")
            .with("memory", "256m")
            .with("shm", 65_536i64)
            .with("ulimits", "nofile=1024:4096, nproc=-1")
            .with("cap_add", "cap_sys_nice")
            .with("cap_drop", Value::List(vec![Value::Text("ALL".into())]))
            .with("no_new_privileges", true)
            .with("init", true)
            .with("runtime", "/usr/sbin/runc")
            .with("storage", "tmpfs")
            .with("binds", "/srv/x:/data:ro")
            .with("log_driver", "none")
            .with("user", "1000:1000");
        // `privileged` contradicts the capabilities, packed files contradict an image, and a container contradicts
        // all of them.
        assert_eq!(params.0.len() + 8, SETTINGS.len());
        let settings = Settings::read(&params).unwrap();
        assert_eq!(settings.account.as_deref(), Some("someone"));
        assert_eq!(settings.runtime.as_deref(), Some("/usr/sbin/runc"));
        assert_eq!(settings.storage, Storage::Tmpfs);
        assert_eq!(
            settings.options(),
            [
                "--network=slirp4netns",
                "--security-opt=seccomp=/etc/my profile.json",
                "--security-opt=no-new-privileges",
                "--cpus=1.5",
                "--cpuset-cpus=0-1,3",
                "--memory=268435456b",
                "--shm-size=65536b",
                "--ulimit=nofile=1024:4096",
                "--ulimit=nproc=-1:-1",
                "--cap-add=SYS_NICE",
                "--cap-drop=ALL",
                "--init=true",
                "--user=1000:1000",
                "--log-driver=none",
                "--volume=/srv/x:/data:ro",
            ]
        );
        let limits: Vec<&str> = settings.limits().iter().map(|limit| limit.0).collect();
        assert_eq!(limits, ["cpus", "cpuset", "memory"]);
    }

    #[test]
    fn packed_programs_are_read_and_conflict_with_image() {
        let packed = Params::new()
            .with("programs", "python3,/usr/bin/env")
            .with("packages", "libpython3.11-minimal")
            .with("files", "/etc/os-release");
        let settings = Settings::read(&packed).unwrap();
        assert_eq!(settings.wanted.programs, ["python3", "/usr/bin/env"]);
        assert_eq!(settings.wanted.packages, ["libpython3.11-minimal"]);
        assert_eq!(settings.wanted.files, ["/etc/os-release"]);
        assert_eq!(settings.options(), Vec::<String>::new());
        let error = Settings::read(&packed.with("image", "debian")).unwrap_err();
        assert_eq!(error.setting, "image");
    }

    #[test]
    fn malformed_podman_value_is_refused_by_name() {
        let values = json!({
            "cpuset": ["3-1"],
            "memory": ["1m"],
            "shm": [-1],
            "network": ["container:x", "slirp4netns:port_handler=x"],
            "seccomp": ["relative/path", "/a/../b", 1],
            "log_driver": ["passthrough"],
            "runtime": ["//x"],
            "ulimits": ["nofile", "nofile=5:4", "nofile=x", 5],
            "storage": ["/etc"],
            "privileged": ["yes"],
            "as": ["a:b"],
        });
        assert_refused(Settings::read, &values);
        assert_refuses(Settings::read, "cpus", f64::NAN);
        assert_eq!(
            Settings::read(&with("ulimits", "nofil=5"))
                .unwrap_err()
                .hint
                .as_deref(),
            Some("did you mean `nofile`?")
        );
        assert_eq!(
            Settings::read(&with("memroy", "1g"))
                .unwrap_err()
                .hint
                .as_deref(),
            Some("did you mean `memory`?")
        );
    }
}
