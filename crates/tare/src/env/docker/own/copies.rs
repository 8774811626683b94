//! The files below the mounts of a container, copied once, so that an arm can have them in its own layer instead.
//!
//! The engine makes the archives, of a container that is made for it and never started: so it is the same for an engine
//! elsewhere, and nothing of the user's is opened here. They lie in the run's own folder, where nobody else reads them,
//! and go with it. A mount that holds much stays on both sides.
//! What it cannot see: sparse files, whose holes are filled; sockets, which are in no archive.

use std::path::Path;

use bollard::models::{ContainerCreateBody, HostConfig, ImageInspect};
use bollard::query_parameters::{CreateContainerOptions, DownloadFromContainerOptions};
use futures_util::StreamExt;

use super::super::api::{Api, labels_of_run};
use super::super::errors::printable;
use super::super::image::{self, IMPORT_LIMIT};
use super::difference::{Copied, switchable};
use super::template::Template;
use crate::cx::{CONTROL_LIMIT, Context, files};
use crate::env::EnvError;
use crate::env::image::ImageTar;
use crate::env::own::shared::Share;

/// The most that is copied of one mount, bytes: it is laid into every container that does without the mount.
const BYTES_MOST: usize = 32 << 20;

/// Copies the files below every mount that can be left away so; says which cannot.
///
/// # Errors
/// No container can be made to copy them from.
pub(super) fn take(
    cx: &Context<'_>,
    api: &Api,
    template: &mut Template,
    image: &ImageInspect,
    is_there: &dyn Fn(&Share) -> bool,
    folder: &Path,
) -> Result<Option<String>, EnvError> {
    let volumes = image.config.as_ref().and_then(|it| it.volumes.clone());
    let (able, mut others) = switchable(
        &template.body,
        template.shares,
        &volumes.unwrap_or_default(),
    );
    let name = format!("tare-{}-files", cx.run);
    let is_needed = !able.is_empty();
    if is_needed {
        make(cx, api, template, &name, is_there)?;
    }
    for (number, share) in able.into_iter().enumerate() {
        match archive_of(api, &name, &share.target) {
            Ok(Some(bytes)) => {
                let archive = folder.join(format!("own-mount-{number}.tar"));
                files::write_working(&archive, &bytes)?;
                template.copied.push(Copied {
                    target: share.target,
                    archive,
                });
            }
            Ok(None) => others.push((share.target, "it holds more than 32 MiB")),
            Err(_) => others.push((share.target, "the engine makes no archive of its files")),
        }
    }
    if is_needed {
        api.remove_container(&name)?;
    }
    let told: Vec<String> = others
        .iter()
        .map(|(target, why)| format!("`{}` ({why})", printable(target)))
        .collect();
    Ok((!told.is_empty()).then(|| {
        format!(
            "mounted on both sides alike, and no difference: {}",
            told.join(", ")
        )
    }))
}

/// Makes a container with the same mounts, which is never started.
fn make(
    cx: &Context<'_>,
    api: &Api,
    template: &Template,
    name: &str,
    is_there: &dyn Fn(&Share) -> bool,
) -> Result<(), EnvError> {
    let whole = template.beside(&[], is_there, &mut Vec::new())?;
    let host = whole.host_config.unwrap_or_default();
    let body = ContainerCreateBody {
        image: whole.image,
        cmd: Some(vec!["/".to_owned()]),
        labels: Some(labels_of_run(cx)),
        host_config: Some(HostConfig {
            binds: host.binds,
            mounts: host.mounts,
            ..Default::default()
        }),
        ..Default::default()
    };
    let options = CreateContainerOptions {
        name: Some(name.to_owned()),
        ..Default::default()
    };
    let request = api.client.create_container(Some(options), body);
    api.call(
        "create a container to copy mounted files from",
        CONTROL_LIMIT,
        request,
    )
    .map(drop)
}

/// The engine's archive of a path; `None` where it is longer than is copied.
fn archive_of(api: &Api, container: &str, path: &str) -> Result<Option<Vec<u8>>, EnvError> {
    let options = DownloadFromContainerOptions {
        path: path.to_owned(),
    };
    api.call("copy mounted files", IMPORT_LIMIT, async {
        let stream = api.client.download_from_container(container, Some(options));
        let mut stream = Box::pin(stream);
        let mut bytes = Vec::new();
        while let Some(part) = stream.next().await {
            bytes.extend_from_slice(&part?);
            if bytes.len() > BYTES_MOST {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    })
}

/// Lays files into the layer of a container that has not been started and does without their mounts.
///
/// # Errors
/// The run's copies are gone, or the engine takes them not.
pub(in crate::env::docker) fn lay_in(
    api: &Api,
    container: &str,
    copied: &[Copied],
) -> Result<(), EnvError> {
    for copied in copied {
        // An empty file takes the place of whatever the image has there, and the folders on the way come with it.
        let place = ImageTar::new().with_file(&copied.target, 0o644, b"");
        image::upload(api, container, "/", place.into_bytes())?;
        let parent = Path::new(&copied.target).parent();
        let parent = parent.unwrap_or(Path::new("/")).display().to_string();
        image::upload(api, container, &parent, files::read(&copied.archive)?)?;
    }
    Ok(())
}
