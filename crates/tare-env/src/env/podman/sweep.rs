//! Removes a run's leftovers in one user's podman, found by label.
//!
//! Podman has no daemon that knows all containers: each user has a separate storage, and the record says which one
//! was used. Another user's storage is never read as files: podman is called as that user.

use crate::env::prelude::*;

use super::caller::Caller;
use super::image;
use super::instance::{remove_containers, remove_folder, remove_volumes};

/// Returns the names of the run's networks.
pub(super) fn networks(caller: Caller<'_>, run: &str) -> Result<Vec<String>> {
    names(caller, run, ("list networks", ["network", "ls"]), |it| {
        it.get("name").or(it.get("Name"))?.as_str()
    })
}

/// Returns the names of everything of a kind that carries the run's label.
fn names(
    caller: Caller<'_>,
    run: &str,
    kind: (&str, [&str; 2]),
    name: fn(&Value) -> Option<&str>,
) -> Result<Vec<String>> {
    let found = caller.labelled(run, kind)?;
    Ok(found.iter().filter_map(name).map(str::to_owned).collect())
}

/// Removes everything of `run` that `caller` can see; returns what was removed, one line each.
pub(super) fn sweep(caller: Caller<'_>, run: &str) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let mut tell = |kind: &str, name: &str| {
        removed.push(format!(
            "podman {kind} {}{}",
            printable(name),
            caller.access.owner()
        ));
    };
    let kind = ("list containers", ["ps", "--all"]);
    for container in names(caller, run, kind, |it| {
        it.pointer("/Names/0").or(it.get("Id"))?.as_str()
    })? {
        remove_containers(caller, &[container.as_str()])?;
        tell("container", &container);
    }
    let kind = ("list volumes", ["volume", "ls"]);
    for volume in names(caller, run, kind, |it| it.get("Name")?.as_str())? {
        remove_volumes(caller, &[volume.as_str()])?;
        tell("volume", &volume);
    }
    for network in networks(caller, run)? {
        caller.remove_network(&network)?;
        tell("network", &network);
    }
    for found in image::labelled(caller, run)? {
        for name in image::names(&found) {
            if image::remove(caller, &name)? {
                tell("image", &name);
            }
        }
    }
    // Bind-mounted folders may hold files of subordinate users, which only podman's user can remove.
    if let Some(state) = vars::state_folder() {
        let folder = state.join("runs").join(run);
        let prefix = format!("tare-{run}-");
        let names = files::names(&folder).unwrap_or_default();
        for name in names.iter().filter(|name| name.starts_with(&prefix)) {
            remove_folder(caller, &folder.join(name))?;
            tell("folder", name);
        }
    }
    Ok(removed)
}
