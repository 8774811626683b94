//! The image of a `podman` arm: packed from the agent and host files, or the user's with the agent copied in.
//!
//! Nothing is pulled or built: a tar archive made in memory goes into the stdin of `podman import`, so podman's user
//! needs no access to a file. Arms of a run that pack the same content share one image under different names; podman
//! removes it with the last name.

use crate::env::prelude::*;

use super::super::image::packed::packed_name;
use super::super::image::{AGENT_PATH, ImageTar};
use super::caller::{Caller, NONE, USED};

/// Returns the full name of an arm's packed image.
pub(super) fn own_name(run: &RunId, arm: &ArmId) -> String {
    format!("localhost/{}", packed_name(run, arm))
}

/// Ensures that the arm's packed image with this `root` exists: imports it, or tags that of another arm of this run.
pub(super) fn ensure_packed(
    cx: &Context<'_>,
    caller: &Caller,
    arm: &ArmId,
    root: ImageTar,
    limit: Duration,
) -> Result<Value, EnvError> {
    let name = own_name(cx.run, arm);
    let content = root.sha256();
    let is_same = |image: &Value| label(image, "tare.content") == Some(content.as_str());
    let present = labelled(cx, caller, cx.run.as_str(), limit)?;
    if let Some(id) = present
        .iter()
        .find(|image| is_same(image))
        .and_then(|image| image.get("Id")?.as_str())
    {
        caller.call(cx, "name the image", &["tag", id, &name], &[], limit)?;
    } else {
        import(cx, caller, arm, root, limit)?;
    }
    inspect(cx, caller, &name, limit)
}

/// Imports the arm's image.
pub(super) fn import(
    cx: &Context<'_>,
    caller: &Caller,
    arm: &ArmId,
    root: ImageTar,
    limit: Duration,
) -> Result<(), EnvError> {
    let name = own_name(cx.run, arm);
    let changes = [
        "LABEL tare=1".to_owned(),
        format!("LABEL tare.run={}", cx.run),
        format!("LABEL tare.content={}", root.sha256()),
        format!("ENTRYPOINT [\"{AGENT_PATH}\"]"),
    ];
    let mut arguments = vec!["import", "--quiet", "--message=packed by tare"];
    for change in &changes {
        arguments.extend(["--change", change]);
    }
    arguments.extend(["-", &name]);
    let archive = root.into_bytes();
    caller.call(cx, "import the packed image", &arguments, &archive, limit)?;
    Ok(())
}

/// Describes a local image; if it is missing, the error names the command that would fetch it.
pub(super) fn inspect(
    cx: &Context<'_>,
    caller: &Caller,
    name: &str,
    limit: Duration,
) -> Result<Value, EnvError> {
    match caller.inspect(cx, "image", name, limit) {
        Err(EnvError::Refused { .. }) if !caller.exists(cx, "image", name)? => {
            Err(EnvError::absent(
                format!(
                    "the image `{name}` is not in the storage{}, and Tare pulls nothing",
                    caller.owner()
                ),
                format!("`podman pull {name}`"),
            ))
        }
        other => other,
    }
}

/// Removes a name, and with the last one the image. Succeeds if it is gone; an image that another container uses
/// stays for its owner.
pub(super) fn remove(cx: &Context<'_>, caller: &Caller, name: &str) -> Result<bool, EnvError> {
    let arguments = ["rmi", "--", name];
    caller.has_done(cx, "remove the packed image", &arguments, &[NONE, USED])
}

/// Returns the packed images of a run, each once regardless of its number of names.
pub(super) fn labelled(
    cx: &Context<'_>,
    caller: &Caller,
    run: &str,
    limit: Duration,
) -> Result<Vec<Value>, EnvError> {
    caller.labelled(cx, run, ("list images", ["images", "--all"]), limit)
}

/// Returns the names of an image, or its id if it has none.
pub(super) fn names(image: &Value) -> Vec<String> {
    let mut names: Vec<String> = texts_of(&image["Names"]).map(str::to_owned).collect();
    if names.is_empty() {
        names.extend(image["Id"].as_str().map(str::to_owned));
    }
    names
}

/// Returns a label of an object that podman listed.
fn label<'a>(thing: &'a Value, name: &str) -> Option<&'a str> {
    thing.get("Labels")?.get(name)?.as_str()
}
