//! Prepares the container inside a virtual machine in which the agent runs, like an engine that has a virtual machine
//! for its containers, as on desktops.
//!
//! It is the built-in container with everything that an engine's default container has, but on the machine's network.
//! Its upper layer is on the machine's file system; a folder that the host serves is bind-mounted instead.
//! Limits: does not show the additional overhead of another network namespace.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use tare_model::RunId;
use tare_model::launch::{
    Bind, DOCKER_CAPABILITIES, LaunchSpec, Namespaces, Network, Seccomp, UserNamespace,
};

use super::{WORKDIR, machine};
use crate::launch::sys;

/// Path of the launch specification.
const SPECIFICATION: &str = "/tmp/container.json";
/// Temporary mount point of the initial root.
const SHOWN: &str = "/mnt";

/// Replaces the initial root by a bind mount of itself, because `pivot_root` cannot leave the kernel's initial root.
pub(super) fn leave_first_root() -> Result<(), String> {
    let moved = || -> io::Result<()> {
        fs::create_dir_all(SHOWN)?;
        sys::mount(OsStr::new("/"), Path::new(SHOWN), "", libc::MS_BIND, "")?;
        machine::change_root(Path::new(SHOWN))
    };
    moved().map_err(|error| format!("cannot leave the first root: {error}"))
}

/// Mounts the cgroup tree. Without it the container has no cgroup, which the launcher reports.
pub(super) fn mount_groups() -> io::Result<()> {
    let place = Path::new("/sys/fs/cgroup");
    sys::mount(OsStr::new("cgroup2"), place, "cgroup2", 0, "")
}

/// Returns the command that starts the agent in the container, and the working directory inside.
pub(super) fn command(
    run: &RunId,
    is_bound: bool,
    serve: &[String],
) -> Result<(Command, String), String> {
    let spec = specification(run, is_bound, serve);
    let made = || -> io::Result<()> {
        // The disk may be one that an earlier machine left clean, with that machine's container on it.
        if Path::new(&spec.scratch).exists() {
            fs::remove_dir_all(&spec.scratch)?;
        }
        fs::create_dir_all(&spec.scratch)?;
        fs::write(SPECIFICATION, serde_json::to_vec(&spec)?)
    };
    made().map_err(|error| format!("cannot prepare the container: {error}"))?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["launch", SPECIFICATION]);
    Ok((command, spec.workdir))
}

fn specification(run: &RunId, is_bound: bool, serve: &[String]) -> LaunchSpec {
    let argv = ["agent", "serve"].map(str::to_owned).into_iter();
    let argv = argv.chain(serve.iter().cloned()).collect();
    // A served folder cannot hold an upper layer.
    let scratch = if is_bound {
        "/tmp/container"
    } else {
        "/work/container"
    };
    let mut spec = LaunchSpec::apart(run.clone(), "inner", argv, "/init", scratch);
    spec.namespaces = Namespaces {
        user: UserNamespace::No,
        net: false,
        ..spec.namespaces
    };
    spec.network = Network::Host;
    spec.capabilities = Some(DOCKER_CAPABILITIES.map(str::to_owned).to_vec());
    spec.seccomp = Seccomp::DockerDefault;
    if is_bound {
        spec.binds.push(Bind {
            source: WORKDIR.to_owned(),
            target: spec.workdir.clone(),
            read_only: false,
        });
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_folder_is_bound_and_holds_no_layer() {
        let run = RunId::new("run").unwrap();
        let serve = ["--no-spare".to_owned()];
        let own = specification(&run, false, &serve);
        assert!(own.binds.is_empty() && own.scratch.starts_with(WORKDIR));
        assert_eq!(own.argv, ["agent", "serve", "--no-spare"]);
        let bound = specification(&run, true, &serve);
        assert_eq!(bound.binds[0].target, bound.workdir);
        assert!(!bound.scratch.starts_with(WORKDIR));
    }
}
