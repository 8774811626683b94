//! The image of a `docker` arm: packed from the agent and files of the host, or the user's with the agent copied in.
//!
//! Nothing is pulled or built: a tar archive is imported over the API, so an arm needs no network, no registry and no
//! userland. All arms of a run that pack the same things share one image, each under its own tag; the engine counts
//! the tags and removes the image with the last one.
//! The agent is built for the image's architecture, so an image for another one runs under emulation, and the facts
//! say so.
//! Limits: cannot see whether the engine's machine can emulate it.

use crate::env::prelude::*;

use bollard::models::{ImageInspect, ImageSummary};
use bollard::query_parameters::{
    CreateImageOptions, ListImagesOptions, RemoveImageOptions, TagImageOptions,
    UploadToContainerOptions,
};
use futures_util::StreamExt;

use super::super::image::packed::{REPOSITORY, packed_name, tag};
use super::super::image::{AGENT_PATH, ImageTar};
use super::api::{Api, Labelled, label_filter};
use super::errors::{is_conflict, is_missing};

/// Time limit of an import: unpacking a few megabytes onto a busy disk.
pub(super) const IMPORT_LIMIT: Duration = Duration::from_secs(120);

/// The platform by its name in images.
fn platform(architecture: &str) -> String {
    let name = match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("linux/{name}")
}

/// Ensures that the arm's packed image with the contents `root` exists: imports it, or tags another arm's image of
/// this run.
pub(super) fn ensure_packed(
    api: &Api,
    run: &RunId,
    arm: &ArmId,
    root: ImageTar,
    architecture: &str,
) -> Result<ImageInspect, EnvError> {
    let name = packed_name(run, arm);
    let labels = [
        "tare=1".to_owned(),
        format!("tare.run={run}"),
        format!("tare.content={}", root.sha256()),
    ];
    let present = labelled(api, &labels)?;
    if let Some(image) = present.first() {
        let options = TagImageOptions {
            repo: Some(REPOSITORY.into()),
            tag: Some(tag(run, arm)),
        };
        api.call(
            "tag the image",
            CONTROL_LIMIT,
            api.client.tag_image(&image.id, Some(options)),
        )?;
        return inspect(api, &name);
    }
    let mut changes: Vec<String> = labels
        .iter()
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| format!("LABEL {key}=\"{value}\""))
        .collect();
    changes.push(format!("ENTRYPOINT [\"{AGENT_PATH}\"]"));
    let options = CreateImageOptions {
        from_src: Some("-".into()),
        repo: Some(REPOSITORY.into()),
        tag: Some(tag(run, arm)),
        message: Some("packed by tare".into()),
        changes,
        platform: platform(architecture),
        ..Default::default()
    };
    let parts = futures_util::stream::iter(root.into_parts().map(Into::into));
    let body = bollard::body_stream(parts);
    api.call("import the packed image", IMPORT_LIMIT, async {
        let mut progress = Box::pin(api.client.create_image(Some(options), Some(body), None));
        while let Some(step) = progress.next().await {
            step?;
        }
        Ok(())
    })?;
    inspect(api, &name)
}

/// Inspects a local image; the error for a missing one names the command that pulls it.
pub(super) fn inspect(api: &Api, name: &str) -> Result<ImageInspect, EnvError> {
    let request = api.client.inspect_image(name);
    let found = api.found("inspect the image", CONTROL_LIMIT, request)?;
    found.ok_or_else(|| {
        EnvError::absent(
            format!("the image `{name}` is not on this engine, and Tare pulls nothing"),
            format!("`docker pull {name}`"),
        )
    })
}

/// Unpacks an archive at the root of a container that has not been started.
pub(super) fn upload(
    api: &Api,
    container: &str,
    root: &str,
    archive: Vec<u8>,
) -> Result<(), EnvError> {
    let options = UploadToContainerOptions {
        path: root.into(),
        ..Default::default()
    };
    api.call(
        "copy files into the container",
        IMPORT_LIMIT,
        api.client.upload_to_container(
            container,
            Some(options),
            bollard::body_full(archive.into()),
        ),
    )
}

/// Removes the arm's tag, and with the last tag the image. Does nothing if it is gone; one that another container
/// still uses is left to that container's owner.
pub(super) fn remove(api: &Api, name: &str) -> Result<bool, EnvError> {
    let removal = api.attempt(
        CONTROL_LIMIT,
        api.client
            .remove_image(name, None::<RemoveImageOptions>, None),
    );
    match removal {
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) || is_conflict(&error) => Ok(false),
        Err(error) => Err(api.explain("remove the packed image", CONTROL_LIMIT, &error)),
    }
}

/// The images with these labels.
fn labelled(api: &Api, labels: &[String]) -> Result<Vec<ImageSummary>, EnvError> {
    let options = ListImagesOptions {
        filters: Some(label_filter(labels)),
        ..Default::default()
    };
    let asked = api.client.list_images(Some(options));
    api.call("list images", CONTROL_LIMIT, asked)
}

/// The packed images with these labels, one entry per tag.
pub(super) fn packed(api: &Api, labels: &[String]) -> Result<Vec<Labelled>, EnvError> {
    let found = labelled(api, labels)?;
    let mut images = Vec::new();
    for image in found {
        let is_tag = |tag: &String| tag != "<none>:<none>";
        let mut keys: Vec<String> = image.repo_tags.into_iter().filter(is_tag).collect();
        if keys.is_empty() {
            keys.push(image.id);
        }
        images.extend(keys.into_iter().map(|key| Labelled {
            name: printable(&key),
            key,
        }));
    }
    Ok(images)
}
