//! Looks up a user's container and checks that it runs.

use crate::env::prelude::*;

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::ListContainersOptions;

use super::api::Api;
use crate::env::user_container::machine::writes_to;

/// The engine's description of a user's container.
///
/// # Errors
/// There is no container of this name.
pub(super) fn looked_up(api: &Api, name: &str) -> Result<ContainerInspectResponse, EnvError> {
    let request = api.client.inspect_container(name, None);
    let found = api.found("inspect the container", CONTROL_LIMIT, request)?;
    found.ok_or_else(|| {
        EnvError::absent(
            format!("there is no container `{}` in this Docker engine", printable(name)),
            "`docker ps --all` lists them; DOCKER_HOST or `--set context=NAME` names another engine",
        )
    })
}

/// The container, if it runs.
///
/// # Errors
/// There is no container of this name, or it is stopped, paused or restarting.
pub(super) fn must_run(api: &Api, name: &str) -> Result<ContainerInspectResponse, EnvError> {
    let found = looked_up(api, name)?;
    let state = found.state.as_ref();
    let is = |of: fn(&bollard::models::ContainerState) -> Option<bool>| {
        state.and_then(of).unwrap_or(false)
    };
    let shown = printable(name);
    let (why, fix) = if is(|state| state.paused) {
        ("is paused", format!("`docker unpause {shown}`"))
    } else if is(|state| state.restarting) {
        (
            "is started again and again by the engine: it ends by itself",
            format!("`docker logs {shown}` says why"),
        )
    } else if is(|state| state.running) {
        return Ok(found);
    } else {
        (
            "does not run",
            format!("`docker start {shown}`; or `--like {shown}`, which takes stopped ones too"),
        )
    };
    Err(EnvError::absent(
        format!("the container `{shown}` {why}, and nothing can be run inside it"),
        fix,
    ))
}

/// The running containers that can write to a path of the engine's machine, to a parent or to a child of it.
pub(super) fn writers(api: &Api, path: &Path) -> Vec<String> {
    let request = api.client.list_containers(None::<ListContainersOptions>);
    let running = api.attempt(CONTROL_LIMIT, request).unwrap_or_default();
    let names = running.into_iter().filter_map(|container| {
        // The list lacks the paths of volumes.
        let found = looked_up(api, container.id.as_deref()?).ok()?;
        let mut mounts = found.mounts?.into_iter();
        let writes = mounts.any(|mount| {
            let source = mount.source.unwrap_or_default();
            writes_to(Path::new(&source), mount.rw == Some(true), path)
        });
        let name = found.name?;
        writes.then(|| {
            format!(
                "the container `{}`",
                printable(name.trim_start_matches('/'))
            )
        })
    });
    names.collect()
}
