//! Removes a run's leftovers in one user's podman, found by label.
//!
//! Podman has no daemon that knows all containers: each user has a separate storage, and the record says which one
//! was used. Another user's storage is never read as files: podman is called as that user.

use crate::env::prelude::*;

use serde_json::Value as Json;

use super::caller::Caller;
use super::image;
use super::instance::{remove_containers, remove_folder, remove_volumes};

/// Returns the containers of a run, running or not.
fn containers(cx: &Context<'_>, caller: &Caller, run: &str) -> Result<Vec<String>, EnvError> {
    let filter = format!("--filter=label=tare.run={run}");
    let arguments = ["ps", "--all", "--format=json", &filter];
    let answer = caller.ask(cx, "list containers", &arguments, CONTROL_LIMIT)?;
    Ok(list(&answer, |container| {
        let name = container.pointer("/Names/0").or(container.get("Id"));
        name?.as_str()
    }))
}

/// Returns the volumes of a run.
fn volumes(cx: &Context<'_>, caller: &Caller, run: &str) -> Result<Vec<String>, EnvError> {
    let filter = format!("--filter=label=tare.run={run}");
    let arguments = ["volume", "ls", "--format=json", &filter];
    let answer = caller.ask(cx, "list volumes", &arguments, CONTROL_LIMIT)?;
    Ok(list(&answer, |volume| volume.get("Name")?.as_str()))
}

/// Returns the networks of a run.
pub(super) fn networks(
    cx: &Context<'_>,
    caller: &Caller,
    run: &str,
) -> Result<Vec<String>, EnvError> {
    let filter = format!("--filter=label=tare.run={run}");
    let arguments = ["network", "ls", "--format=json", &filter];
    let answer = caller.ask(cx, "list networks", &arguments, CONTROL_LIMIT)?;
    Ok(list(&answer, |network| {
        // Podman 3 lists them in the form of its plug-ins' files.
        network.get("name").or(network.get("Name"))?.as_str()
    }))
}

fn list(answer: &Json, name: impl Fn(&Json) -> Option<&str>) -> Vec<String> {
    let things = answer.as_array().into_iter().flatten();
    things
        .filter_map(|thing| name(thing).map(str::to_owned))
        .collect()
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
    for container in containers(cx, caller, run)? {
        remove_containers(cx, caller, &[container.as_str()])?;
        tell("container", &container);
    }
    for volume in volumes(cx, caller, run)? {
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
