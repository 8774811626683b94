//! What Podman does to a program, and the flags that take it away.

use crate::env::mechanism::{Kind, Mechanism, Mechanisms, Set, always};

pub(super) const MECHANISMS: Mechanisms = Mechanisms {
    base: |_| "Podman with all off: namespaces, root, control groups, capabilities".to_owned(),
    weight: 7,
    keeps: &[],
    whole_with: None,
    all: &[
        Mechanism {
            kind: Kind::SystemCallFilter,
            title: "system-call filter",
            off: &[("seccomp", Set::Text("unconfined"))],
            price: "the blocked system calls are open again",
            weight: 5,
            is_here: always,
        },
        Mechanism {
            kind: Kind::Network,
            title: "network of its own",
            off: &[("network", Set::Text("host"))],
            price: "the host's network and all of its ports are open inside",
            weight: 4,
            is_here: always,
        },
        Mechanism {
            kind: Kind::Output,
            title: "output through the engine's log",
            off: &[("log_driver", Set::Text("none"))],
            price: "nothing of what it prints is kept",
            weight: 3,
            is_here: always,
        },
    ],
    together: &[
        "namespaces, the root, control groups and fewer capabilities: one step; `--env oci` takes them apart",
        "bridge, address translation and name server: they come as one",
    ],
};
