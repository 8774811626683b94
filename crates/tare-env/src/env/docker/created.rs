//! Creates and starts a container of an arm, and explains the engine's errors about it.

use crate::env::prelude::*;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};

use super::api::Api;
use super::environment::DockerEnvironment;
use super::errors::{and_cleanup, is_conflict, is_forbidden};
use super::facts;
use super::instance::Belongings;
use super::settings::Network;

const PRIVILEGED_FIX: &str = "remove `privileged`; this engine cannot grant it";
const CAP_FIX: &str =
    "add to `cap_drop` what the engine itself lacks: see CapBnd in /proc/$(pidof dockerd)/status";

impl DockerEnvironment {
    /// Creates the container; cleans up if that fails.
    pub(super) fn create(
        &self,
        cx: &Context<'_>,
        api: &Api,
        belongings: &Belongings,
        body: ContainerCreateBody,
    ) -> Result<(), EnvError> {
        let options = CreateContainerOptions {
            name: Some(belongings.name.clone()),
            platform: self.settings.platform.clone().unwrap_or_default(),
        };
        let request = api.client.create_container(Some(options), body);
        let Err(error) = api.attempt(CONTROL_LIMIT, request) else {
            return Ok(());
        };
        let why = api.explain("create the container", CONTROL_LIMIT, &error);
        let why = self.refine(api, why);
        if is_conflict(&error) || is_forbidden(&error) {
            // Another container has the name, and is not Tare's to remove; or nothing was created.
            return Err(why);
        }
        // An engine that answers late may have created it after all.
        Err(and_cleanup(why, belongings.discard(cx, api)))
    }

    /// Starts a created container.
    pub(super) fn start_created(&self, api: &Api, id: &str) -> Result<(), EnvError> {
        let request = api
            .client
            .start_container(id, None::<StartContainerOptions>);
        api.attempt(CONTROL_LIMIT, request).map_err(|error| {
            self.refine(
                api,
                api.explain("start the container", CONTROL_LIMIT, &error),
            )
        })
    }

    /// Adds details to an error: the capabilities that the engine lacks, if it is about them and they can be read; or
    /// the container whose network was to be joined, if it does not exist.
    pub(super) fn refine(&self, api: &Api, error: EnvError) -> EnvError {
        match error {
            EnvError::Refused { answer, .. }
                if matches!(self.settings.network, Network::Container(_))
                    && answer.to_lowercase().contains("no such container") =>
            {
                EnvError::absent(
                    format!(
                        "there is no container whose network can be joined by `network = \"{}\"` (the engine says: {answer})",
                        self.settings.network.mode()
                    ),
                    "start it first; `docker ps` lists the running ones",
                )
            }
            EnvError::Absent { why, fix: Some(_) } if why.contains("unable to apply caps") => {
                let Some((_, missing)) =
                    facts::bounding_set(api).filter(|(_, missing)| !missing.is_empty())
                else {
                    return EnvError::absent(
                        why,
                        if self.settings.common.privileged {
                            PRIVILEGED_FIX
                        } else {
                            CAP_FIX
                        },
                    );
                };
                let list = missing.join("\", \"");
                EnvError::absent(
                    format!(
                        "{why}; dockerd itself runs without CAP_{}",
                        missing.join(", CAP_")
                    ),
                    format!(
                        "instead of `privileged`: cap_add = [\"ALL\"], cap_drop = [\"{list}\"], seccomp = \"unconfined\""
                    ),
                )
            }
            other => other,
        }
    }
}
