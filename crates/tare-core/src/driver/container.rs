//! What the built-in container does to a program, and the settings that take it away.

use super::mechanism::{Kind, Mechanism, Mechanisms, NETWORK, SYSTEM_CALL_FILTER, Set, always};
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
            title: "control groups",
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

/// What is known of it.
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
