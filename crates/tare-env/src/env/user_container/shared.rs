//! Decides what a copy of the user's container may share with it: volumes, folders, names, ports and labels.
//!
//! Pure: takes a configuration, returns one that can run next to the original, and a note for every change. The rule:
//! a copy writes to, answers for and ends nothing of the user's unless that was requested.
//! Limits: a program's traffic over the default bridge is not restricted.

use crate::env::prelude::*;

use self::copy_mounts::{Below, CopyMounts, ShareMode, SharedMount};
use super::machine::Machine;
use super::protect::OUR_PROCESSES;
use super::share::{Share, shares};
use super::sockets::may_hold_sockets;
use super::{ChangedLine, NOT_MEASURED, Shares, reach};

mod copy_mounts;

/// Types of mounts that hold nothing of the user's that could be written to.
const HARMLESS: [&str; 6] = ["cluster", "devpts", "image", "npipe", "ramfs", "tmpfs"];

/// The replacement of a writable share if each arm has its own copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copy {
    /// A new volume, into which the files are copied.
    Volume,
    /// The container's writable layer, into which the file is copied.
    Layer,
    /// An overlay of the container over the share, made by the engine.
    Overlay,
    /// The image's file below the mount.
    Images,
}

/// How to treat the shares of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct Policy<'a> {
    /// What may be written to.
    pub(crate) shares: Shares,
    /// Whether sockets and named pipes stay visible.
    pub(crate) joins: bool,
    /// The machine that holds the shares.
    pub(crate) machine: &'a dyn Machine,
    /// Returns the replacement of a share if copies are wanted; `None` if it cannot be copied.
    pub(crate) copy: &'a dyn Fn(&Share) -> Option<Copy>,
}

/// Returns the configuration changed so that a copy can run next to the original.
pub(crate) fn for_copy(body: &Value, policy: Policy<'_>, notes: &mut Vec<String>) -> Value {
    let mut body = body.clone();
    names_and_labels(&mut body, notes);
    ports(&mut body, notes);
    let host = &mut body["HostConfig"];
    processes(host, notes);
    if policy.shares != Shares::Shared {
        reach::disks(host, policy.machine, notes);
    }
    if !matches!(host["VolumeDriver"].as_str(), None | Some("" | "local")) {
        notes.push(format!(
            "new volumes are the engine's own, and none of `--volume-driver {}`, which would make them elsewhere",
            printable(host["VolumeDriver"].as_str().unwrap_or_default())
        ));
        host["VolumeDriver"] = Value::Null;
    }
    let mut kept = CopyMounts::default();
    for text in texts_of(&host["Binds"]) {
        if let Some(share) = Share::of_bind(text) {
            kept.bind(text, &share, judged(&share, policy, notes));
        }
    }
    let mut mounts = host["Mounts"].as_array().cloned().unwrap_or_default();
    if policy.shares != Shares::Shared {
        mounts.extend(of_others(host, policy.machine, notes));
    }
    for mount in mounts {
        let kind = mount["Type"].as_str().unwrap_or_default();
        match Share::of_mount(&mount) {
            Some(share) => kept.mount(mount, &share, judged(&share, policy, notes)),
            None if policy.shares == Shares::Shared || HARMLESS.contains(&kind) => {
                kept.mounts.push(mount);
            }
            None => notes.push(format!(
                "what is mounted by `type={}` is not shown inside: what could be written to by it is not known; `--share-writable` shows it",
                printable(kind)
            )),
        }
    }
    host["Binds"] = Value::Array(kept.binds);
    host["Mounts"] = Value::Array(kept.mounts);
    body
}

/// Returns the mounts of other containers whose volumes it uses, as separate mounts. A container that cannot be
/// inspected stays in the list by name, read-only.
fn of_others(host: &mut Value, machine: &dyn Machine, notes: &mut Vec<String>) -> Vec<Value> {
    let own = shares(&json!({"HostConfig": *host}));
    let mut found = Vec::new();
    let Value::Array(others) = &mut host["VolumesFrom"] else {
        return found;
    };
    others.retain_mut(|other| {
        let text = other.as_str().unwrap_or_default();
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let Some(mounts) = machine.mounts_of(name) else {
            notes.push(format!(
                "the volumes of the container `{}` are shared read-only",
                printable(name)
            ));
            *other = Value::String(format!("{name}:ro"));
            return true;
        };
        let is_closed = options.split(',').any(|option| option == "ro");
        for mut mount in mounts {
            if is_closed {
                mount["ReadOnly"] = Value::Bool(true);
            }
            let is_hidden = own
                .iter()
                .any(|share| mount["Target"] == share.target.as_str());
            if !is_hidden {
                found.push(mount);
            }
        }
        false
    });
    found
}

fn judged(share: &Share, policy: Policy<'_>, notes: &mut Vec<String>) -> SharedMount {
    let (source, target) = (printable(&share.source), printable(&share.target));
    let machine = policy.machine;
    let is_open = policy.shares == Shares::Shared;
    let steers = share.steers();
    if steers && !is_open {
        notes.push(format!(
            "`{source}` is not shown inside: a process that connects to it controls the machine; `--share-writable` shows it"
        ));
        return ShareMode::Gone.into();
    }
    if !policy.joins && !steers && machine.is_socket(share) {
        notes.push(format!(
            "`{source}` is not shown at `{target}`: the command would talk to what is behind it; `--join-networks` shows it"
        ));
        return ShareMode::Gone.into();
    }
    if is_open && !share.source.is_empty() && machine.has(share) {
        return with_covers(share, policy, ShareMode::AsItIs, notes);
    }
    if share.source.is_empty() {
        return ShareMode::New.into();
    }
    if !machine.has(share) {
        notes.push(format!(
            "`{source}` does not exist: an empty volume of the run's own stands at `{target}`"
        ));
        return ShareMode::New.into();
    }
    let holds_sockets = share.is_folder() && may_hold_sockets(&share.source);
    if !machine.is_here() && holds_sockets {
        notes.push(format!(
            "`{source}` is not shown inside: it may hold sockets that control its machine; `--share-writable` shows it"
        ));
        return ShareMode::Gone.into();
    }
    let fate = fate_of(share, policy, notes);
    with_covers(share, policy, fate, notes)
}

/// Above this number of covers, the folder is not mounted instead.
const COVERS_MOST: usize = 100;

/// Returns a share with its sockets and named pipes covered.
fn with_covers(
    share: &Share,
    policy: Policy<'_>,
    fate: ShareMode,
    notes: &mut Vec<String>,
) -> SharedMount {
    let sockets = covered(share, policy, &fate, notes);
    if sockets.len() > COVERS_MOST {
        notes.push(format!(
            "`{}` is not shown inside: it holds more than {COVERS_MOST} sockets and named pipes; `--join-networks` shows it",
            printable(&share.source)
        ));
        return ShareMode::Gone.into();
    }
    SharedMount { fate, sockets }
}

/// Returns the sockets and named pipes to cover in a share, by relative path: those that control the host unless it
/// is shared unchanged, and all others unless the copy joins the user's.
fn covered(
    share: &Share,
    policy: Policy<'_>,
    fate: &ShareMode,
    notes: &mut Vec<String>,
) -> Vec<String> {
    let machine = policy.machine;
    let is_shown = matches!(
        fate,
        ShareMode::ReadOnly(_) | ShareMode::Over | ShareMode::AsItIs
    );
    if !is_shown || !machine.is_here() {
        return Vec::new();
    }
    let Some(folder) = machine.place(share) else {
        return Vec::new();
    };
    let source = printable(&share.source);
    let is_hidden = |socket: &String| {
        // On a mount that is not visible, so nothing can be mounted over it.
        matches!(fate, ShareMode::ReadOnly(Below::Hidden))
            && machine.is_mounted_between(folder.trim_end_matches('/'), socket)
    };
    let mut steering = Vec::new();
    if share.is_folder() {
        steering = machine.sockets(&folder);
        steering.retain(|socket| !is_hidden(socket));
    }
    let mut others = Vec::new();
    if !policy.joins {
        let below = machine.talking(&folder);
        if !below.is_whole {
            notes.push(format!(
                "`{source}` could not be looked through to its end, so a socket or named pipe in it may be shown"
            ));
        }
        others = below.paths;
        others.retain(|socket| !is_hidden(socket) && !steering.contains(socket));
        if !others.is_empty() {
            notes.push(format!(
                "in `{source}` sockets and named pipes are covered ({}); `--join-networks` shows them",
                listed(&others)
            ));
        }
    }
    if policy.shares == Shares::Shared {
        return others;
    }
    if !steering.is_empty() {
        notes.push(format!(
            "in `{source}` the sockets that control the machine are covered ({}); `--share-writable` shows them",
            printable(&steering.join(", "))
        ));
    }
    steering.extend(others);
    steering
}

/// Notes name at most this many sockets.
const NAMED_MOST: usize = 3;

fn listed(all: &[String]) -> String {
    let named = all[..all.len().min(NAMED_MOST)].join(", ");
    match all.len().saturating_sub(NAMED_MOST) {
        0 => printable(&named),
        more => format!("{} and {more} more", printable(&named)),
    }
}

/// Decides how an existing, permitted share is mounted.
fn fate_of(share: &Share, policy: Policy<'_>, notes: &mut Vec<String>) -> ShareMode {
    if share.may_write {
        let copy = (policy.copy)(share).filter(|_| policy.shares == Shares::Copied);
        if let Some(copy) = copy {
            notes.extend(copy_notes(share, policy.machine));
            return match copy {
                Copy::Volume => ShareMode::New,
                Copy::Layer | Copy::Images => ShareMode::Gone,
                Copy::Overlay => ShareMode::Over,
            };
        }
        notes.push(read_only_note(share));
    }
    let machine = policy.machine;
    let below = if !share.is_folder() || (machine.is_here() && !machine.has_mounts(&share.source)) {
        Below::Nothing
    } else if machine.is_recursive() {
        Below::ReadOnly
    } else {
        notes.push(format!(
            "what is mounted below `{}` is not shown at `{}`: this engine could not keep it from being written to",
            printable(&share.source),
            printable(&share.target)
        ));
        Below::Hidden
    };
    ShareMode::ReadOnly(below)
}

/// Returns the note on a writable share that is mounted read-only.
fn read_only_note(share: &Share) -> String {
    format!(
        "`{}` is shown at `{}` READ-ONLY, so that nothing of yours is written to; `--share-writable` lets the command write there",
        printable(&share.source),
        printable(&share.target)
    )
}

/// Returns the notes on a share that every arm now has a copy of; they replace the one that it is read-only.
pub(crate) fn notes_on_copy(share: &Share, machine: &dyn Machine) -> Vec<ChangedLine> {
    let before = read_only_note(share);
    let notes = copy_notes(share, machine).into_iter();
    let one = |now| ChangedLine {
        before: Some(before.clone()),
        now,
    };
    notes.map(one).collect()
}

/// Returns the notes on a share that every arm has a copy of, a line each.
fn copy_notes(share: &Share, machine: &dyn Machine) -> Vec<String> {
    let [target, source] = [&share.target, &share.source].map(|path| printable(path));
    let mut notes = vec![format!(
        "`{target}` is a COPY of `{source}` of each arm's own, so that nothing of yours is written to; `--share-writable` lets the command write there",
    )];
    let slow = machine.slow_file_system(share);
    notes.extend(slow.map(|kind| {
        format!("{NOT_MEASURED}`{source}` lies on {kind}, and what is written to its copy does not go there; `--share-writable` measures it")
    }));
    notes
}

fn names_and_labels(body: &mut Value, notes: &mut Vec<String>) {
    let labels = members_of(&body["Labels"]).count();
    if labels > 0 {
        notes.push(format!(
            "its {labels} label{} left out: proxies and compose act on containers by them",
            if labels == 1 { " is" } else { "s are" }
        ));
    }
    body["Labels"] = Value::Null;
    body["MacAddress"] = Value::Null;
    let host = &mut body["HostConfig"];
    host["AutoRemove"] = Value::Bool(false);
    host["ContainerIDFile"] = Value::Null;
    host["RestartPolicy"] = json!({"Name": "no", "MaximumRetryCount": 0});
    let Value::Object(networks) = &mut body["NetworkingConfig"]["EndpointsConfig"] else {
        body["NetworkingConfig"] = Value::Null;
        return;
    };
    let mut had_names = false;
    for endpoint in networks.values_mut() {
        had_names |= entries_of(&endpoint["Aliases"]).next().is_some();
        // An address or a name belongs to one container.
        let kept = ["Links", "DriverOpts"]
            .iter()
            .filter(|name| !endpoint[**name].is_null())
            .map(|name| ((*name).to_owned(), endpoint[*name].clone()));
        *endpoint = Value::Object(kept.collect());
    }
    if had_names {
        notes.push("its names and addresses in networks stay the original's".to_owned());
    }
}

/// Raises a PID limit by Tare's own processes, so that the command may have as many as in the original.
fn processes(host: &mut Value, notes: &mut Vec<String>) {
    let Some(limit) = host["PidsLimit"].as_i64().filter(|limit| *limit > 0) else {
        return;
    };
    host["PidsLimit"] = json!(limit.saturating_add(OUR_PROCESSES));
    notes.push(format!(
        "`--pids-limit {limit}` is raised by {OUR_PROCESSES}, for processes and threads of Tare's own next to the command"
    ));
}

/// Publishes ports on the loopback, under numbers that the engine chooses.
fn ports(body: &mut Value, notes: &mut Vec<String>) {
    let host = &mut body["HostConfig"];
    let mut is_changed = host["PublishAllPorts"] == true;
    host["PublishAllPorts"] = Value::Null;
    if let Value::Object(ports) = &mut host["PortBindings"] {
        for bindings in ports.values_mut() {
            is_changed = true;
            *bindings = json!([{"HostIp": "127.0.0.1", "HostPort": ""}]);
        }
    }
    if is_changed {
        notes.push("ports are published on the loopback, under other numbers".to_owned());
    }
}

#[cfg(test)]
mod tests;
