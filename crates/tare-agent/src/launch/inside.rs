//! Runs the container's first process, from its creation to `execve`.
//!
//! It waits until the launcher has mapped its ids, moved it into its cgroups and given it its network device. Then it
//! sets up the container and drops its privileges, in the order in which each step still has the privilege that it
//! needs: without no_new_privs the seccomp filter is loaded before the capabilities are dropped, with it after.
//! Missing features and errors go to the launcher through a pipe that `execve` closes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use tare_model::launch::{LaunchError, Missing, PairAddresses, REFUSED_STATUS};

use super::control::Group;
use super::inner::Root;
use super::rootfs::{self, Layers};
use super::seccomp::Filter;
use super::spec::Plan;
use super::{capabilities, hidden, mounts, network, refused, speculation, sys};

/// A message from the first process to the launcher, one JSON value per line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Message {
    /// A feature is not available.
    Missing(Missing),
    /// The launch failed; no program will be executed.
    Failed(LaunchError),
}

/// The first process's inputs.
#[derive(Debug)]
pub(super) struct Inside<'a> {
    /// The requested container.
    pub(super) plan: &'a Plan,
    /// The overlay's folders, if there is one.
    pub(super) layers: Option<&'a Layers>,
    /// The instance's cgroups.
    pub(super) groups: &'a [Group],
    /// Its addresses, if there is a veth pair.
    pub(super) addresses: Option<&'a PairAddresses>,
    /// The seccomp filter, if there is one.
    pub(super) filter: Option<&'a Filter>,
    /// The capabilities to keep; `None` drops nothing.
    pub(super) kept: Option<&'a [String]>,
    /// Pipes for the standard streams, if the launcher relays them.
    pub(super) streams: Option<[OwnedFd; 3]>,
}

fn say(status: &mut File, word: &Message) {
    // Errors are ignored: the launcher may be gone.
    if let Ok(mut line) = serde_json::to_vec(word) {
        line.push(b'\n');
        let _ = status.write_all(&line);
    }
}

/// Waits for the launcher's byte, sets up the container and executes the program. `go` ends without a byte if the
/// launcher is gone.
pub(super) fn run(inside: &Inside<'_>, go: OwnedFd, status: OwnedFd) -> ! {
    let mut status = File::from(status);
    let mut byte = [0u8; 1];
    let bound = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
    if File::from(go).read_exact(&mut byte).is_err() {
        sys::leave(REFUSED_STATUS);
    }
    let mut missing = Vec::new();
    let built = bound
        .map(drop)
        .map_err(refused("bind this life to the launcher's"))
        .and_then(|()| build(inside, &mut missing));
    for item in missing {
        say(&mut status, &Message::Missing(item));
    }
    let failure = if let Err(error) = built {
        error
    } else {
        let argv = arguments(inside);
        let error = sys::execute(&argv);
        refused(&format!("execute `{}`", argv[0]))(error)
    };
    say(&mut status, &Message::Failed(failure));
    sys::leave(REFUSED_STATUS)
}

/// Adds the container's address and name to the overlay's /etc/hosts, as engines do: a program that looks up its host
/// name would wait for a name server. A file that is bound there, or a symlink, is left to the user; with a read-only
/// root the name stays unknown.
fn name_address(plan: &Plan, addresses: &PairAddresses) {
    const HOSTS: &str = "/etc/hosts";
    let mut binds = plan.spec.binds.iter();
    let is_bound = binds.any(|bind| matches!(bind.target.as_str(), HOSTS | "/etc" | "/etc/"));
    let is_file = std::fs::symlink_metadata(HOSTS).is_ok_and(|found| found.is_file());
    if is_bound || !is_file {
        return;
    }
    let opened = std::fs::OpenOptions::new().append(true).open(HOSTS);
    let line = format!("\n{}\t{}\n", addresses.arm, plan.spec.hostname);
    let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Returns the program's arguments, with the word `agent` replaced by the agent's path inside.
fn arguments(inside: &Inside<'_>) -> Vec<String> {
    let spec = &inside.plan.spec;
    let mut argv = spec.argv.clone();
    if let Some(first) = argv.first_mut().filter(|first| *first == "agent") {
        *first = agent_path(inside.plan);
    }
    argv
}

/// Returns the path of the agent's file inside.
pub(super) fn agent_path(plan: &Plan) -> String {
    match plan.spec.rootfs {
        tare_model::launch::Rootfs::Host => rootfs::agent_in_scratch(&plan.spec),
        tare_model::launch::Rootfs::Overlay => rootfs::AGENT_INSIDE.to_owned(),
    }
}

fn build(inside: &Inside<'_>, missing: &mut Vec<Missing>) -> Result<(), LaunchError> {
    let plan = inside.plan;
    let spec = &plan.spec;
    if let Some(streams) = &inside.streams {
        for (target, stream) in (0..).zip(streams) {
            sys::duplicate_onto(stream, target).map_err(refused("connect the streams"))?;
        }
    }
    sys::reset_signals().map_err(refused("reset the signals"))?;
    sys::new_session().map_err(refused("start a session"))?;
    leave_keyring(missing);
    if spec.namespaces.cgroup {
        sys::unshare(libc::CLONE_NEWCGROUP).map_err(refused("enter a cgroup namespace"))?;
    }
    if spec.bridge.is_some() && inside.addresses.is_some() {
        network::without_ipv6()?;
    }
    if spec.namespaces.mount {
        mounts::make_private()?;
        let root = Root::new(match inside.layers {
            Some(layers) => rootfs::mount(layers, plan.has_user_namespace, missing)?,
            None => "/".into(),
        });
        let wanted = spec.binds.iter().cloned().chain(hidden::own(spec));
        let sources = mounts::open_binds(wanted)?;
        hidden::cover(spec, &root)?;
        mounts::bind_all(&sources, &root)?;
        mounts::mount_all(spec, &root, inside.groups, plan.has_user_namespace, missing)?;
        if let (Some(folder), Some(_)) = (&spec.shared, inside.layers) {
            mounts::bind_shared(folder, &root)?;
        }
        if inside.layers.is_some() {
            rootfs::enter(root.folder())?;
        }
    }
    if spec.namespaces.net {
        network::raise_inside(inside.addresses)?;
        if let Some(link) = &spec.siblings {
            network::raise_sibling(link.address, link.prefix_bits)?;
        }
    }
    if spec.namespaces.uts {
        sys::set_host_name(&spec.hostname).map_err(refused("set the host name"))?;
        if let (Some(addresses), Some(_)) = (inside.addresses, inside.layers) {
            name_address(plan, addresses);
        }
    }
    std::env::set_current_dir(&spec.workdir)
        .map_err(refused(&format!("enter `{}`", spec.workdir)))?;
    sys::close_others_on_execution().or_else(|error| {
        // The syscall is missing before Linux 5.9. Everything that the launcher opens is close-on-exec; only the
        // descriptors that it inherited stay.
        if error.raw_os_error() == Some(libc::ENOSYS) {
            missing.push(Missing {
                what: "closing of inherited descriptors".into(),
                why: "this kernel has no close_range".into(),
            });
            Ok(())
        } else {
            Err(refused("close inherited descriptors")(error))
        }
    })?;
    if spec.ssbd {
        // Before the filter, which may deny it.
        speculation::forbid_store_bypass()?;
    }
    if spec.no_new_privs {
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(refused("set no_new_privs"))?;
    } else {
        load(inside)?;
    }
    if let Some(kept) = inside.kept {
        capabilities::keep_only(kept)?;
    }
    if spec.no_new_privs {
        load(inside)?;
    }
    // A change of credentials may have cleared it.
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)
        .map(drop)
        .map_err(refused("bind this life to the launcher's"))
}

/// Leaves the caller's session keyring. A kernel without keyrings is fine.
fn leave_keyring(missing: &mut Vec<Missing>) {
    match sys::new_keyring() {
        Err(error) if error.raw_os_error() != Some(libc::ENOSYS) => missing.push(Missing {
            what: "session keyring of its own".into(),
            why: error.to_string(),
        }),
        _ => {}
    }
}

fn load(inside: &Inside<'_>) -> Result<(), LaunchError> {
    inside.filter.map_or(Ok(()), Filter::load)
}
