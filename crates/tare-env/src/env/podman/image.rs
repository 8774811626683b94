//! The image of a `podman` arm: packed from the agent and files of the host's, or the user's own with the agent
//! copied in.
//!
//! Nothing is pulled and nothing is built: a tar archive made in memory goes into `podman import` by its
//! standard input, so no file has to be readable by whoever podman belongs to. Arms of a run that pack the
//! same things share one image under names of their own; podman drops it with the last name. What cannot be
//! seen from here is how podman stores it.

use crate::env::prelude::*;

use serde_json::Value as Json;

use super::super::image::packed::packed_name;
use super::super::image::{AGENT_PATH, ImageTar};
use super::caller::{Caller, NONE, USED};

/// The full name of an arm's packed image.
pub(super) fn own_name(run: &RunId, arm: &ArmId) -> String {
    format!("localhost/{}", packed_name(run, arm))
}

/// Makes sure that the arm's packed image exists: imports it, or names the one of another arm of this run.
/// `root` is what is in it.
pub(super) fn ensure_packed(
    cx: &Context<'_>,
    caller: &Caller,
    arm: &ArmId,
    root: ImageTar,
    limit: Duration,
) -> Result<Json, EnvError> {
    let name = own_name(cx.run, arm);
    let content = root.sha256();
    let is_same = |image: &Json| label(image, "tare.content") == Some(content.as_str());
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

/// Packs the arm's image.
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

/// Describes a local image; its absence is an error with the command that would fetch it.
pub(super) fn inspect(
    cx: &Context<'_>,
    caller: &Caller,
    name: &str,
    limit: Duration,
) -> Result<Json, EnvError> {
    match caller.inspect(cx, "image", name, limit) {
        Err(EnvError::Refused { .. }) if !caller.exists(cx, "image", name)? => {
            Err(EnvError::Absent {
                why: format!(
                    "the image `{name}` is not in the storage{}, and Tare pulls nothing",
                    caller.whose()
                ),
                fix: Some(format!("`podman pull {name}`")),
            })
        }
        other => other,
    }
}

/// Takes a name away, and with the last one the image. Fine if it is gone; one that another container still
/// uses stays for that one's owner.
pub(super) fn remove(cx: &Context<'_>, caller: &Caller, name: &str) -> Result<bool, EnvError> {
    let arguments = ["rmi", "--", name];
    caller.has_done(cx, "remove the packed image", &arguments, &[NONE, USED])
}

/// The packed images of a run, each once whatever the number of its names.
pub(super) fn labelled(
    cx: &Context<'_>,
    caller: &Caller,
    run: &str,
    limit: Duration,
) -> Result<Vec<Json>, EnvError> {
    let filter = format!("--filter=label=tare.run={run}");
    let arguments = ["images", "--all", "--format=json", &filter];
    let answer = caller.ask(cx, "list images", &arguments, limit)?;
    Ok(answer.as_array().cloned().unwrap_or_default())
}

/// The names of an image; its id where it has none.
pub(super) fn names(image: &Json) -> Vec<String> {
    let text = |json: &Json| json.as_str().map(str::to_owned);
    let names = image.get("Names").and_then(Json::as_array);
    let mut names: Vec<String> = names.into_iter().flatten().filter_map(text).collect();
    if names.is_empty() {
        names.extend(image.get("Id").and_then(text));
    }
    names
}

/// A label of something that podman listed.
fn label<'a>(thing: &'a Json, name: &str) -> Option<&'a str> {
    thing.get("Labels")?.get(name)?.as_str()
}
