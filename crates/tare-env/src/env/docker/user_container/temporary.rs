//! Creates containers that are examined or copied from, and never started.
//!
//! Each is on the run's record before it is created and is removed on every path; if the removal fails, that is
//! reported so that the run's folder, and with it the record, stays for `tare clean`.
//! Limits: does not remove a container that an engine creates after the request was abandoned; the cleanup of the run
//! finds it by its label.

use crate::env::prelude::*;

use std::io::Write;

use bollard::errors::Error as ApiError;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptions, DownloadFromContainerOptions};
use futures_util::{Stream, StreamExt};

use super::super::DOCKER;
use super::super::api::{Api, labels_of_run};
use super::super::creation_record::CreationRecord;
use super::super::errors::{and_cleanup, is_conflict, is_forbidden, not_removed};
use super::super::image::IMPORT_LIMIT;
use crate::env::record;

/// Creates a container of this kind, passes its name to `used`, and removes it. `what` is for messages.
pub(super) fn with<T>(
    cx: &Context<'_>,
    api: &Api,
    (kind, what): (&str, &str),
    body: ContainerCreateBody,
    used: impl FnOnce(&str) -> Result<T, EnvError>,
) -> Result<T, EnvError> {
    let (arm, place) = CreationRecord::add(cx, api, "own")?;
    let name = format!("tare-{}-{kind}", cx.run);
    let body = ContainerCreateBody {
        // Engines require a command if the image has none.
        cmd: Some(vec!["/".to_owned()]),
        labels: Some(labels_of_run(cx)),
        ..body
    };
    let options = CreateContainerOptions {
        name: Some(name.clone()),
        ..Default::default()
    };
    let request = api.client.create_container(Some(options), body);
    let made = api.attempt(CONTROL_LIMIT, request);
    let result = match &made {
        Ok(_) => used(&name),
        Err(error) => Err(api.explain(what, CONTROL_LIMIT, error)),
    };
    // On a conflict the name belongs to another container; if forbidden, nothing was created.
    let is_ours = !matches!(&made, Err(error) if is_conflict(error) || is_forbidden(error));
    let removed = if is_ours {
        api.remove_container(&name)
    } else {
        Ok(())
    };
    match (result, removed) {
        (Ok(value), Ok(())) => {
            record::forget(cx, DOCKER.id(), &arm, &place)?;
            Ok(value)
        }
        (Ok(_), Err(error)) => Err(not_removed(&name, error)),
        (Err(error), removed) => Err(and_cleanup(error, removed)),
    }
}

/// The engine's archive of a path in a container, as it arrives.
pub(super) fn archive(
    api: &Api,
    container: &str,
    path: &str,
) -> impl Stream<Item = Result<impl AsRef<[u8]>, ApiError>> {
    let path = path.to_owned();
    let options = DownloadFromContainerOptions { path };
    api.client.download_from_container(container, Some(options))
}

/// Writes what an engine sends; returns whether it is at most this many bytes. `what` is for messages.
pub(super) fn receive(
    api: &Api,
    what: &str,
    stream: impl Stream<Item = Result<impl AsRef<[u8]>, ApiError>>,
    bytes_most: u64,
    to: &mut impl Write,
) -> Result<bool, EnvError> {
    api.call(what, IMPORT_LIMIT, async {
        let mut stream = Box::pin(stream);
        let mut length = 0;
        while let Some(part) = stream.next().await {
            let part = part?;
            length += part.as_ref().len() as u64;
            if length > bytes_most {
                return Ok(false);
            }
            to.write_all(part.as_ref())?;
        }
        Ok(true)
    })
}

/// The same into a file.
pub(super) fn receive_file(
    api: &Api,
    what: &str,
    stream: impl Stream<Item = Result<impl AsRef<[u8]>, ApiError>>,
    bytes_most: u64,
    file: &Path,
) -> Result<bool, EnvError> {
    let mut received = Ok(true);
    files::write_working_with(file, |to| {
        received = receive(api, what, stream, bytes_most, to);
        Ok(())
    })?;
    received
}
