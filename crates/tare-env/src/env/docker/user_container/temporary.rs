//! Creates containers that are examined or copied from, and never started.
//!
//! Each is on the run's record before it is created and is removed on every path; if the removal fails, that is
//! reported so that the run's folder, and with it the record, stays for `tare clean`.
//! Limits: does not remove a container that an engine creates after the request was abandoned; the cleanup of the run
//! finds it by its label.

use crate::env::prelude::*;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::CreateContainerOptions;

use super::super::api::{Api, labels_of_run};
use super::super::creation_record::CreationRecord;
use super::super::errors::{and_cleanup, is_conflict, is_forbidden, not_removed};
use crate::env::record;

/// The driver in the record.
const DRIVER: &str = "docker";

/// Creates a container of this kind, passes its name to `used`, and removes it. `what` is for messages.
pub(super) fn with<T>(
    cx: &Context<'_>,
    api: &Api,
    (kind, what): (&str, &str),
    body: ContainerCreateBody,
    used: impl FnOnce(&str) -> Result<T, EnvError>,
) -> Result<T, EnvError> {
    let arm = ArmId::new("own").expect("the constant is a name");
    let place = CreationRecord::in_engine(&arm, api.named.clone());
    record::add(cx, DRIVER, &arm, &place)?;
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
            record::forget(cx, DRIVER, &arm, &place)?;
            Ok(value)
        }
        (Ok(_), Err(error)) => Err(not_removed(&name, error)),
        (Err(error), removed) => Err(and_cleanup(error, removed)),
    }
}
