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
pub(super) fn ensure_packed(caller: Caller<'_>, arm: &ArmId, root: ImageTar) -> Result<Value> {
    let run = caller.cx.run;
    let name = own_name(run, arm);
    let content = root.sha256();
    let present = labelled(caller, run.as_str())?;
    if let Some(id) = present
        .iter()
        .find(|image| image["Labels"]["tare.content"] == content.as_str())
        .and_then(|image| image["Id"].as_str())
    {
        caller.call("name the image", &["tag", id, &name])?;
    } else {
        import(caller, arm, root)?;
    }
    inspect(caller, &name)
}

/// Imports the arm's image.
pub(super) fn import(caller: Caller<'_>, arm: &ArmId, root: ImageTar) -> Result<()> {
    let run = caller.cx.run;
    let name = own_name(run, arm);
    let changes = [
        "LABEL tare=1".to_owned(),
        format!("LABEL tare.run={run}"),
        format!("LABEL tare.content={}", root.sha256()),
        format!("ENTRYPOINT [\"{AGENT_PATH}\"]"),
    ];
    let mut arguments = vec!["import", "--quiet", "--message=packed by tare"];
    for change in &changes {
        arguments.extend(["--change", change]);
    }
    arguments.extend(["-", &name]);
    let archive = root.into_bytes();
    let imported = caller.call_with("import the packed image", &arguments, &archive);
    imported.map(drop)
}

/// Describes a local image; if it is missing, the error names the command that would fetch it.
pub(super) fn inspect(caller: Caller<'_>, name: &str) -> Result<Value> {
    match caller.inspect("image", name) {
        Err(EnvError::Refused { .. }) if !caller.exists("image", name)? => Err(EnvError::absent(
            format!(
                "the image `{name}` is not in the storage{}, and Tare pulls nothing",
                caller.access.owner()
            ),
            format!("`podman pull {name}`"),
        )),
        other => other,
    }
}

/// Removes a name, and with the last one the image. Succeeds if it is gone; an image that another container uses
/// stays for its owner.
pub(super) fn remove(caller: Caller<'_>, name: &str) -> Result<bool> {
    let arguments = ["rmi", "--", name];
    caller.has_done("remove the packed image", &arguments, &[NONE, USED])
}

/// Returns the packed images of a run, each once regardless of its number of names.
pub(super) fn labelled(caller: Caller<'_>, run: &str) -> Result<Vec<Value>> {
    caller.labelled(run, ("list images", ["images", "--all"]))
}

/// Returns the names of an image, or its id if it has none.
pub(super) fn names(image: &Value) -> Vec<String> {
    let mut names: Vec<String> = texts_of(&image["Names"]).map(str::to_owned).collect();
    if names.is_empty() {
        names.extend(image["Id"].as_str().map(str::to_owned));
    }
    names
}
