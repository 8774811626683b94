//! Reads and checks the settings of `oci`: the runtime, and changes to its specification.
//!
//! Without a setting, the specification stays as it is: Tare's, which equals Docker's default, or the user's. So
//! `spec = "docker:NAME"` with one more setting is that container without one mechanism.

use crate::env::prelude::*;

use tare_model::launch::{Limits, Network};

use crate::env::common::{
    BINDS, CAPS, CPUS, CPUSET, GROUP_AND_NAMES, MASKED_PATHS, MEMORY, NETWORK_AND_NAMESPACES,
    NO_NEW_PRIVILEGES, PIDS, PRIVATE_PATHS, SECCOMP,
};
use crate::env::container::settings::{capabilities, limit_facts, limits};
use crate::env::grammar::has_only;
use crate::env::reader::Reader;
use crate::env::setting::{Between, Form, meanings, settings, words};

meanings! {
    /// The root file system.
    pub(super) enum Rootfs, ROOTS {
        /// A folder with only the agent.
        Minimal: "minimal",
        /// An overlay over the host's root file system.
        OverlayHost: "overlay-host",
    }
}

const NETWORKS: [(&str, Network); 3] = [
    ("none", Network::None),
    ("veth", Network::Veth),
    ("host", Network::Host),
];

settings! {
    pub(super) SETTINGS;

    RUNTIME("runtime", Text(Form::new("a name such as `crun`, or a path", is_program)), "`runc`",
        "the runtime: runc, crun, youki, runsc, kata-runtime, another name on PATH, or a path");
    ARGUMENTS("runtime_args",
        List(Form::new("arguments such as [\"--network=none\"]", |text| !text.contains('\0')), Between::Spaces),
        "none", "arguments of the runtime that stand before its command");
    SPEC("spec", Text(Form::new("the path of a config.json, or `docker:CONTAINER` as `docker ps` names it", is_spec)),
        "Tare's own, which is like Docker's",
        "the specification: that of a file, or the one that Docker used for a running container; root, program, cgroup and namespaces of mounts and processes become Tare's, hooks are dropped");
    ROOT("rootfs", Text(Form::words(&words(&ROOTS))), "`minimal`, unless a workload runs programs",
        "a folder with nothing but the agent, or an overlay over the host's own files");
    NAMESPACES("namespaces",
        List(Form::new("`all`, or a list of uts, ipc, net, cgroup (mount and pid are always there)", |_| false)
            .or(&["all", "mount", "pid", "net", "network", "uts", "ipc", "cgroup"]), Between::Commas),
        "`all`",
        "the namespaces to make; those of mounts and processes are always there, because a runtime without them reaches the host");
    CAPS;
    SECCOMP;
    NO_NEW_PRIVILEGES;
    MASKED_PATHS;
    PRIVATE_PATHS;
    BINDS;
    CPUS;
    CPUSET;
    MEMORY;
    PIDS;
    NETWORK("network", Text(Form::words(&words(&NETWORKS))), "`none`",
        "what the runtime makes itself, loopback only; a pair of devices to the host, prepared by Tare; or the host's own stack (runsc then also needs runtime_args = \"--network=host\")");
}

/// Whether a text can be passed as a program.
fn is_program(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

/// Whether a text is a path, or a container by a name that Docker allows.
fn is_spec(text: &str) -> bool {
    match text.strip_prefix("docker:") {
        None => is_program(text),
        Some(container) => !container.is_empty() && has_only(container, b"._-"),
    }
}

/// The capabilities to grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Capabilities {
    /// All of Tare's capabilities.
    All,
    /// Those of a group, as far as Tare has them.
    Group(Vec<String>),
    /// Listed by name: a missing one is an error.
    Listed(Vec<String>),
}

/// Origin of the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Tare's specification.
    Own,
    /// A file of the user's.
    File(PathBuf),
    /// The specification that Docker used for this running container.
    Docker(String),
}

/// Namespaces that may be omitted, by their names in the specification.
pub(super) const OPTIONAL_NAMESPACES: [&str; 4] = ["uts", "ipc", "network", "cgroup"];

/// The checked settings; `None` leaves the specification unchanged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) runtime: String,
    pub(super) runtime_args: Vec<String>,
    pub(super) source: Source,
    pub(super) rootfs: Rootfs,
    /// Names in the specification, without the mandatory ones.
    pub(super) namespaces: Option<Vec<&'static str>>,
    pub(super) capabilities: Option<Capabilities>,
    pub(super) has_seccomp: Option<bool>,
    pub(super) no_new_privs: Option<bool>,
    pub(super) masked_paths: Option<bool>,
    pub(super) private_paths: bool,
    pub(super) binds: Vec<Bind>,
    pub(super) limits: Limits,
    pub(super) network: Option<Network>,
}

/// Returns the requested namespaces by their names in the specification, without the mandatory ones.
fn namespaces(read: &Reader<'_>) -> Option<Vec<&'static str>> {
    let listed = read.is_given(&NAMESPACES).then(|| read.list(&NAMESPACES))?;
    let is_listed = |name: &&str| {
        let is_it = |word: &String| word == name || (word == "net" && *name == "network");
        listed == ["all"] || listed.iter().any(is_it)
    };
    Some(OPTIONAL_NAMESPACES.into_iter().filter(is_listed).collect())
}

fn read_capabilities(read: &Reader<'_>) -> Option<Capabilities> {
    let listed = read.is_given(&CAPS).then(|| read.list(&CAPS))?;
    Some(match capabilities(read) {
        None => Capabilities::All,
        Some(names) if listed == ["default"] || listed == ["none"] => Capabilities::Group(names),
        Some(names) => Capabilities::Listed(names),
    })
}

impl Settings {
    /// Whether the container gets a network namespace with a veth pair.
    pub(super) fn has_pair(&self) -> bool {
        self.network == Some(Network::Veth)
    }

    /// Reads and checks the settings, without side effects.
    pub(super) fn read(settings: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("oci", SETTINGS, settings)?;
        let is_all = !read.is_given(&NAMESPACES) || read.list(&NAMESPACES) == ["all"];
        let mut namespaces = namespaces(&read);
        let asked = read.word(&NETWORK, &NETWORKS);
        if let (Some(listed), true, Some(Network::Host)) = (&mut namespaces, is_all, asked) {
            listed.retain(|name| *name != "network");
        }
        let has_own = namespaces.as_ref().map(|all| all.contains(&"network"));
        let nothing = (
            "no namespace is named",
            "\"all\", or a list; \"mount,pid\" is the least",
        );
        let is_empty = read.is_given(&NAMESPACES) && read.list(&NAMESPACES).is_empty();
        let is_mixed = read.is_mixed(&CAPS, &["default", "all", "none"]);
        let is_other = |network| has_own == Some(network == Network::Host);
        read.consistent(&[
            (is_empty, NAMESPACES, nothing),
            (
                read.is_mixed(&NAMESPACES, &["all"]),
                NAMESPACES,
                GROUP_AND_NAMES,
            ),
            (is_mixed, CAPS, GROUP_AND_NAMES),
            (asked.is_some_and(is_other), NETWORK, NETWORK_AND_NAMESPACES),
        ])?;
        let by_namespaces = |has_own| {
            if has_own {
                Network::None
            } else {
                Network::Host
            }
        };
        Ok(Self {
            runtime: read.text(&RUNTIME).unwrap_or("runc").to_owned(),
            runtime_args: read.list(&ARGUMENTS).to_vec(),
            source: match read
                .text(&SPEC)
                .map(|text| (text, text.strip_prefix("docker:")))
            {
                None => Source::Own,
                Some((_, Some(container))) => Source::Docker(container.to_owned()),
                Some((path, None)) => Source::File(PathBuf::from(path)),
            },
            rootfs: read.word(&ROOT, &ROOTS).unwrap_or(Rootfs::Minimal),
            namespaces,
            capabilities: read_capabilities(&read),
            has_seccomp: read.text(&SECCOMP).map(|word| word == "default"),
            no_new_privs: read.flag(&NO_NEW_PRIVILEGES),
            masked_paths: read.flag(&MASKED_PATHS),
            private_paths: read.flag(&PRIVATE_PATHS).unwrap_or(true),
            binds: read.binds(),
            limits: limits(&read),
            network: asked.or(has_own.map(by_namespaces)),
        })
    }

    /// Returns the requested settings as facts; unset ones are omitted.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        let mut fact = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                facts.insert(fact::name_for(fact::OCI, name), escaped(value));
            }
        };
        fact("runtime", Some(self.runtime.clone()));
        if !self.runtime_args.is_empty() {
            fact("runtime_args", Some(self.runtime_args.join(" ")));
        }
        let source = match &self.source {
            Source::Own => "Tare's own, like Docker's".to_owned(),
            Source::File(path) => path.display().to_string(),
            Source::Docker(container) => format!("Docker's for the container {container}"),
        };
        fact("spec", Some(source));
        let rootfs = match self.rootfs {
            Rootfs::Minimal => "a folder with the agent only",
            Rootfs::OverlayHost => "overlay over the host's root file system",
        };
        fact("rootfs", Some(rootfs.to_owned()));
        if self.rootfs == Rootfs::OverlayHost {
            fact("private_paths", Some(self.private_paths.to_string()));
        }
        facts.extend(limit_facts(fact::OCI, &self.limits));
        facts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tare_model::Value;

    use super::super::super::reader::tests::{assert_refused, with};
    use super::*;

    #[test]
    fn oci_defaults_are_runc_with_unchanged_spec() {
        let settings = Settings::read(&Params::new()).unwrap();
        assert_eq!(settings.runtime, "runc");
        assert_eq!(settings.source, Source::Own);
        assert_eq!((settings.namespaces, settings.network), (None, None));
        assert!(settings.capabilities.is_none() && settings.has_seccomp.is_none());
    }

    #[test]
    fn nonsense_is_refused_under_its_own_name_with_a_hint() {
        let values = json!({
            "runtime": ["", "a\0b", true],
            "runtime_args": [true, ["a\0"]],
            "spec": ["", "docker:", "docker:a b", "docker:../../etc", "docker:a\u{1b}[31m"],
            "rootfs": ["overlay"],
            "namespaces": ["user", ""],
            "network": ["bridge"],
            "colour": ["red"],
        });
        assert_refused(Settings::read, &values);
    }

    #[test]
    fn the_network_and_the_namespaces_must_agree() {
        let both = |namespaces: &str, network: &str| {
            Settings::read(
                &Params::new()
                    .with("namespaces", namespaces)
                    .with("network", network),
            )
        };
        assert!(both("uts,net", "host").is_err());
        assert!(both("uts", "veth").is_err());
        let host = both("all", "host").unwrap();
        assert_eq!(host.namespaces.unwrap(), ["uts", "ipc", "cgroup"]);
        assert_eq!(
            Settings::read(&with("namespaces", "mount,pid"))
                .unwrap()
                .network,
            Some(Network::Host)
        );
        assert_eq!(
            Settings::read(&with("namespaces", "net")).unwrap().network,
            Some(Network::None)
        );
    }

    #[test]
    fn runtime_args_are_a_list_or_text_split_at_spaces() {
        let list = Value::List(vec!["--a b".into(), "--c".into()]);
        assert_eq!(
            Settings::read(&with("runtime_args", list))
                .unwrap()
                .runtime_args,
            ["--a b", "--c"]
        );
        let text = Settings::read(&with("runtime_args", " --a  --b=1 ")).unwrap();
        assert_eq!(text.runtime_args, ["--a", "--b=1"]);
    }

    #[test]
    fn only_capabilities_named_one_by_one_are_a_list() {
        let of = |text: &str| {
            Settings::read(&with("caps", text))
                .unwrap()
                .capabilities
                .unwrap()
        };
        assert_eq!(
            of("NET_RAW"),
            Capabilities::Listed(vec!["CAP_NET_RAW".into()])
        );
        assert_eq!(of("all"), Capabilities::All);
        assert_eq!(of("none"), Capabilities::Group(Vec::new()));
        assert!(matches!(of("default"), Capabilities::Group(names) if names.len() == 14));
    }
}
