//! Mechanisms of an OCI runtime, and the settings that switch them off. In a specification from Docker or the user,
//! the parts that are off are deleted.

use tare_model::Params;

use super::mechanism::{Kind, Mechanism, Mechanisms, NETWORK, SYSTEM_CALL_FILTER, Set, always};
use super::{Declared, Files};

fn base(settings: &Params) -> String {
    let runtime = settings.text("runtime").unwrap_or("runc");
    match settings.value("namespaces") {
        Some(_) => format!("{runtime} with its defaults"),
        None => format!("{runtime}: mount and process namespaces, root, cgroups"),
    }
}

const MECHANISMS: Mechanisms = Mechanisms {
    base,
    weight: 7,
    keeps: &["runtime", "runtime_args", "spec", "rootfs", "private_paths"],
    whole_with: Some("namespaces"),
    all: &[
        Mechanism {
            kind: Kind::Namespaces,
            title: "namespaces uts, ipc, cgroup",
            off: &[("namespaces", Set::Text("mount,pid"))],
            price: "it shares the host's name, its IPC and its view of cgroups",
            weight: 2,
            is_here: always,
        },
        Mechanism {
            kind: Kind::Capabilities,
            title: "fewer capabilities",
            off: &[("caps", Set::Text("all"))],
            price: "its root may do what the host's may",
            weight: 1,
            is_here: always,
        },
        Mechanism {
            kind: Kind::MaskedPaths,
            title: "masked paths",
            off: &[("masked_paths", Set::Flag(false))],
            price: "the kernel's files in /proc and /sys are open to its root",
            weight: 1,
            is_here: always,
        },
        SYSTEM_CALL_FILTER,
        NETWORK,
    ],
    together: &[
        "mount namespace, change of root and overlay: a runtime does not start without them",
    ],
    sparing_filter: Some(("runtime", Set::Text("crun"))),
};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    mechanisms: &MECHANISMS,
    files: Files::Hosts,
    switches: &["binds", "cpuset", "runtime"],
    ..Declared::new(
        "oci",
        "a container made by an OCI runtime (runc, crun, youki, runsc, Kata), without an engine",
    )
};
