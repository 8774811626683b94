//! What Docker does to a program, and the flags that take it away.

use crate::env::mechanism::{Kind, Mechanism, Mechanisms, Set, always, is_confined};

pub(super) const MECHANISMS: Mechanisms = Mechanisms {
    base: |_| "Docker with all off: namespaces, root, control groups, capabilities".to_owned(),
    weight: 7,
    keeps: &[],
    whole_with: None,
    all: &[
        Mechanism {
            kind: Kind::AccessControl,
            title: "AppArmor's profile",
            off: &[("apparmor", Set::Text("unconfined"))],
            price: "what the profile forbids is allowed again",
            weight: 2,
            is_here: is_confined,
        },
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
            title: "network: bridge and NAT",
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
        "namespaces, the overlay root, control groups and fewer capabilities: Docker has no flags for each, or refuses them; `--env oci` takes them apart",
        "bridge, address translation and name server: they come as one",
    ],
};
