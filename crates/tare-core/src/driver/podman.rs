//! What Podman does to a program, and the flags that take it away.

use super::Declared;
use super::mechanism::{Mechanisms, NETWORK, OUTPUT, SYSTEM_CALL_FILTER, Set};

const MECHANISMS: Mechanisms = Mechanisms {
    base: |_| "Podman with all off: namespaces, root, control groups, capabilities".to_owned(),
    weight: 7,
    keeps: &[],
    whole_with: None,
    all: &[SYSTEM_CALL_FILTER, NETWORK, OUTPUT],
    together: &[
        "namespaces, the root, control groups and fewer capabilities: one step; `--env oci` takes them apart",
        "bridge, address translation and name server: they come as one",
    ],
    sparing_filter: Some(("runtime", Set::Text("crun"))),
};

/// What is known of it.
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
