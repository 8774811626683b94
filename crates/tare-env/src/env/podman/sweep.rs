//! Removes a run's leftovers in one user's podman, found by label.
//!
//! Podman has no daemon that knows all containers: each user has a separate storage, and the record says which one
//! was used. Another user's storage is never read as files: podman is called as that user.

use crate::env::prelude::*;

use super::caller::Caller;
use super::image;
use super::instance::{remove_containers, remove_folder, remove_volumes};

/// Returns the containers of a run, running or not.
/// Returns the names of the run's networks.
pub(super) fn networks(
    cx: &Context<'_>,
    caller: &Caller,
    run: &str,
) -> Result<Vec<String>, EnvError> {
    names(
        cx,
        caller,
        run,
        ("list networks", ["network", "ls"]),
        |it| it.get("name").or(it.get("Name"))?.as_str(),
    )
}

/// Returns the names of everything of a kind that carries the run's label.
fn names(
    cx: &Context<'_>,
    caller: &Caller,
    run: &str,
    kind: (&str, [&str; 2]),
    name: fn(&Value) -> Option<&str>,
) -> Result<Vec<String>, EnvError> {
    let found = caller.labelled(cx, run, kind, CONTROL_LIMIT)?;
    Ok(found.iter().filter_map(name).map(str::to_owned).collect())
}

/// Removes everything of `run` that `caller` can see; returns what was removed, one line each.
pub(super) fn sweep(cx: &Context<'_>, caller: &Caller, run: &str) -> Result<Vec<String>, EnvError> {
    let mut removed = Vec::new();
    let mut tell = |kind: &str, name: &str| {
        removed.push(format!(
            "podman {kind} {}{}",
            printable(name),
            caller.owner()
        ));
    };
    let kind = ("list containers", ["ps", "--all"]);
    for container in names(cx, caller, run, kind, |it| {
        it.pointer("/Names/0").or(it.get("Id"))?.as_str()
    })? {
        remove_containers(cx, caller, &[container.as_str()])?;
        tell("container", &container);
    }
    let kind = ("list volumes", ["volume", "ls"]);
    for volume in names(cx, caller, run, kind, |it| it.get("Name")?.as_str())? {
        remove_volumes(cx, caller, &[volume.as_str()])?;
        tell("volume", &volume);
    }
    for network in networks(cx, caller, run)? {
        let arguments = ["network", "rm", "--force", "--", &network];
        caller.call(cx, "remove a network", &arguments, &[], CONTROL_LIMIT)?;
        tell("network", &network);
    }
    for found in image::labelled(cx, caller, run, CONTROL_LIMIT)? {
        for name in image::names(&found) {
            if image::remove(cx, caller, &name)? {
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
            remove_folder(cx, caller, &folder.join(name))?;
            tell("folder", name);
        }
    }
    Ok(removed)
}
