//! A user's running container itself as an arm: the agent runs next to the container's processes, by `exec`.
//!
//! The container is neither started nor stopped, and its settings do not change. The agent is copied into a folder at
//! the container's root and runs as the container's user under its limits. It removes itself and the folder as root,
//! because only root may remove a folder at the root. Leftovers are on record for `sweep`.
//! Limits: the activity of the container's own processes is not separated; it is part of what is measured.

use crate::env::prelude::*;

use std::sync::OnceLock;

use bollard::models::ContainerInspectResponse;

use super::super::image::packed;
use super::super::record;
use super::channel::{EngineChannel, served_inside};
use super::creation_record::CreationRecord;
use super::errors::and_cleanup;
use super::guest::Guest;
use super::running::must_run;
use super::{DETECT_LIMIT, Docker, facts, image, locality, user_container};

/// The arm of a running container.
pub(super) struct InsideEnvironment {
    driver: Docker,
    arm: ArmId,
    container: String,
    prepared: Option<Prepared>,
}

struct Prepared {
    architecture: String,
    facts: Facts,
}

impl InsideEnvironment {
    pub(super) fn new(driver: Docker, arm: ArmId, container: String) -> Self {
        Self {
            driver,
            arm,
            container,
            prepared: None,
        }
    }

    fn place(&self, guest: &Guest) -> CreationRecord {
        CreationRecord::in_container(&self.arm, self.driver.named(), guest.clone())
    }
}

/// Rejects a container into which nothing can be copied.
fn can_be_written(found: &ContainerInspectResponse) -> Result<(), EnvError> {
    let host = found.host_config.as_ref();
    if host.and_then(|host| host.readonly_rootfs) != Some(true) {
        return Ok(());
    }
    Err(EnvError::absent(
        "the container's root is read-only, and the agent cannot be put into it while it runs",
        "`--like` asks about a fresh container like it",
    ))
}

impl Environment for InsideEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let (api, engine) = self.driver.identify_linux(cx)?;
        let found = must_run(&api, &self.container)?;
        let name = found.image.unwrap_or_default();
        let image = image::inspect(&api, &name)?;
        let architecture = image.architecture.clone().unwrap_or_default();
        let agent = packed::agent_for(cx.agents, &architecture)?;
        let mut facts = engine.facts;
        let how = "copied into the running container, and removed from it";
        facts.insert(fact::AGENT_DELIVERY.into(), how.into());
        facts.insert(fact::AGENT_SHA256.into(), agent.sha256.clone());
        facts::of_image(&mut facts, &name, &image);
        facts::of_own(&mut facts, &user_container::body_of(&api, &self.container)?);
        self.prepared = Some(Prepared {
            architecture,
            facts,
        });
        Ok(())
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError> {
        if mode == StartMode::Once {
            return Err(EnvError::unavailable(
                "a container that runs is not started",
            ));
        }
        if self.prepared.is_none() {
            self.prepare(cx)?;
        }
        let prepared = self.prepared.as_ref().expect("prepared above, or returned");
        let api = self.driver.connect(cx, DETECT_LIMIT)?;
        can_be_written(&must_run(&api, &self.container)?)?;
        let agent = packed::agent_for(cx.agents, &prepared.architecture)?;
        let guest = Guest::new(cx, &self.arm, &self.container);
        record::add(cx, self.driver.id(), &self.arm, &self.place(&guest))?;
        let launched = image::upload(&api, &self.container, "/", guest.archive(&agent.bytes()?))
            .and_then(|()| served_inside(&api, &self.container, guest.serving(cx.run)));
        match launched {
            Ok((output, input)) => Ok(Box::new(InsideInstance {
                channel: EngineChannel::new(api, self.container.clone(), output, input),
                guest,
                charged: OnceLock::new(),
            })),
            Err(error) => Err(and_cleanup(error, guest.leave(&api))),
        }
    }

    fn detect(&self, cx: &Context<'_>) -> Option<Availability> {
        Some(self.driver.detect(cx))
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        let prepared = self.prepared.as_ref();
        prepared.map(|it| it.facts.clone()).unwrap_or_default()
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        self.prepared = None;
        let id = self.driver.id();
        for place in record::of_arm::<CreationRecord>(cx, id, &self.arm)? {
            if let Some(guest) = &place.guest {
                let api = self.driver.connect(cx, DETECT_LIMIT)?;
                guest.leave(&api)?;
            }
            record::forget(cx, id, &self.arm, &place)?;
        }
        Ok(())
    }
}

/// The agent in the container.
struct InsideInstance {
    channel: EngineChannel,
    guest: Guest,
    /// Determined once.
    charged: OnceLock<Charged>,
}

const NO_PEERS: &str = "the container's network is the user's own, and nothing is served in it";

impl Instance for InsideInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        Err(no_path(NO_PEERS))
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        Err(no_path(NO_PEERS))
    }

    fn workdir(&self) -> String {
        self.guest.workdir()
    }

    fn charged(&self) -> Charged {
        let look = || locality::charged(&self.channel.api, &self.guest.container);
        self.charged.get_or_init(look).clone()
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError> {
        self.channel.farewell(cx);
        self.guest.leave(&self.channel.api)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_root_is_refused_with_like_hint() {
        let of = |host: Value| {
            let found = json!({"HostConfig": host});
            can_be_written(&serde_json::from_value(found).unwrap())
        };
        let error = of(json!({"ReadonlyRootfs": true})).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("--like")));
        assert!(of(json!({"ReadonlyRootfs": false})).is_ok());
        assert!(of(Value::Null).is_ok());
    }
}
