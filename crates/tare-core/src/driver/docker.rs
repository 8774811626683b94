//! Mechanisms of Docker, and the flags that switch them off.

use super::Declared;
use super::mechanism::{
    Kind, Mechanism, Mechanisms, NETWORK, OUTPUT, SYSTEM_CALL_FILTER, Set, is_confined,
};

const MECHANISMS: Mechanisms = Mechanisms {
    base: |_| "Docker with all off: namespaces, root, cgroups, capabilities".to_owned(),
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
        SYSTEM_CALL_FILTER,
        Mechanism {
            title: "network: bridge and NAT",
            ..NETWORK
        },
        OUTPUT,
    ],
    together: &[
        "namespaces, the overlay root, cgroups and fewer capabilities: Docker has no flags for each, or refuses them; `--env oci` takes them apart",
        "bridge, address translation and name server: they come as one",
    ],
    // The engine reports its runtimes.
    sparing_filter: None,
};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    mechanisms: &MECHANISMS,
    links: &["docker", "br-", "veth"],
    choice: Some(1),
    switches: &["binds", "cpuset", "runtime", "storage"],
    ..Declared::new(
        "docker",
        "a container of a Docker engine, made through its API from an image that holds only the agent",
    )
};
