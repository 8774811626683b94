//! Containers that are made to be looked at or copied from, and never started.
//!
//! Each stands on the run's record before it is made and is removed on every path; one whose removal fails is told so
//! that the run's folder, and with it the record, stays for `tare clean`.
//! What it cannot see: one that an engine makes after it was given up; the sweep of the run finds it by its label.

use crate::env::prelude::*;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::CreateContainerOptions;

use super::super::api::{Api, labels_of_run};
use super::super::errors::{and_cleanup, is_conflict, is_forbidden, not_removed};
use super::super::places::Place;
use crate::env::record;

/// The driver under whose name it is on record.
const DRIVER: &str = "docker";

/// Makes a container of this kind, as `what` says, hands its name to `used`, and removes it.
pub(super) fn with<T>(
    cx: &Context<'_>,
    api: &Api,
    (kind, what): (&str, &str),
    body: ContainerCreateBody,
    used: impl FnOnce(&str) -> Result<T, EnvError>,
) -> Result<T, EnvError> {
    let arm = ArmId::new("own").expect("the constant is a name");
    let place = Place::beside(&arm, api.named.clone());
    record::add(cx, DRIVER, &arm, &place)?;
    let name = format!("tare-{}-{kind}", cx.run);
    let body = ContainerCreateBody {
        // Engines want a command where the image has none.
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
    // The name is somebody else's then, and so is what bears it; or nothing was made.
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
