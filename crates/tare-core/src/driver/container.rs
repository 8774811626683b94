//! Mechanisms of the built-in container, and the settings that switch them off.

use tare_model::{Params, Value};

use super::mechanism::{Kind, Mechanism, Mechanisms, NETWORK, SYSTEM_CALL_FILTER, Set, always};
use super::user_container::Bare;
use super::{Declared, Files};

const MECHANISMS: Mechanisms = Mechanisms {
    base: |settings| match settings.value("namespaces") {
        Some(_) => "the container with its defaults".to_owned(),
        None => "namespaces, own /proc, /sys, /dev".to_owned(),
    },
    weight: 2,
    keeps: &[],
    whole_with: Some("namespaces"),
    all: &[
        Mechanism {
            kind: Kind::Root,
            title: "overlay root",
            off: &[("rootfs", Set::Text("host"))],
            price: "what is written stays on the host",
            weight: 6,
            is_here: always,
        },
        Mechanism {
            kind: Kind::ControlGroups,
            title: "cgroups",
            off: &[("cgroup", Set::Flag(false))],
            price: "no limit holds it, and devices are open to its root",
            weight: 3,
            is_here: always,
        },
        Mechanism {
            kind: Kind::Capabilities,
            title: "fewer capabilities, masked paths",
            off: &[
                ("caps", Set::Text("all")),
                ("masked_paths", Set::Flag(false)),
            ],
            price: "its root may do what the host's may",
            weight: 1,
            is_here: always,
        },
        SYSTEM_CALL_FILTER,
        NETWORK,
    ],
    together: &["namespaces of mounts, processes, names and IPC with the change of root: one step"],
    sparing_filter: Some(("seccomp_spec_allow", Set::Flag(true))),
};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    mechanisms: &MECHANISMS,
    files: Files::Hosts,
    links: &["tare"],
    choice: Some(3),
    switches: &["binds", "cpuset", "stdio"],
    ..Declared::new(
        "container",
        "the built-in container: the kernel's own mechanisms over the host's files, no daemon and no image",
    )
};

/// The host's files, with writes going to a copy, without these differences; `kept` are settings that protect the
/// user ([`UserContainer::bare`](super::user_container::UserContainer::bare)).
pub fn host_files(without: Vec<String>, kept: &Params) -> Bare {
    Bare {
        driver: DECLARED.id.to_owned(),
        settings: bare(kept),
        without,
    }
}

/// Settings that switch off every mechanism that has an overhead and does not protect anything from changes. A
/// network namespace with a loopback device stays unless `kept` says otherwise: the command cannot reach services of
/// this machine.
fn bare(kept: &Params) -> Params {
    let mechanisms = DECLARED.mechanisms.all.iter();
    let off = mechanisms
        .filter(|mechanism| !matches!(mechanism.kind, Kind::Root | Kind::Capabilities))
        .flat_map(|mechanism| mechanism.off);
    let off = off.fold(Params::new(), |settings, (name, set)| {
        settings.with(name, *set)
    });
    let kept = kept
        .0
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()));
    std::iter::once(("network", Value::Text("none".to_owned())))
        .chain(kept)
        .fold(off, |settings, (name, value)| settings.with(name, value))
}
