//! Mechanisms of Podman, and the flags that switch them off.

use super::Declared;
use super::mechanism::{Mechanisms, NETWORK, OUTPUT, SYSTEM_CALL_FILTER, Set};

const MECHANISMS: Mechanisms = Mechanisms {
    base: |_| "Podman with all off: namespaces, root, cgroups, capabilities".to_owned(),
    weight: 7,
    keeps: &[],
    whole_with: None,
    all: &[SYSTEM_CALL_FILTER, NETWORK, OUTPUT],
    together: &[
        "namespaces, the root, cgroups and fewer capabilities: one step; `--env oci` takes them apart",
        "bridge, address translation and name server: they come as one",
    ],
    sparing_filter: Some(("runtime", Set::Text("crun"))),
};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    mechanisms: &MECHANISMS,
    links: &["podman", "cni", "veth"],
    choice: Some(2),
    switches: &["binds", "cpuset", "runtime", "storage"],
    ..Declared::new(
        "podman",
        "a container of podman, rootful or rootless, from an image that holds only the agent",
    )
};
