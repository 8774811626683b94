//! A running container of the user's itself as an arm: the agent beside the container's own processes, by `exec`.
//!
//! The container is neither started nor stopped nor changed in its settings. The agent is copied into a folder of its
//! own at the container's root, runs as the container's own user under its limits, and is removed with the folder by
//! itself, as root, because a folder at the root is nobody else's to remove. What could not be removed is on record,
//! for `sweep`.
//! What it cannot see: what the container's own processes do meanwhile; that is part of what is asked.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;
use tare_model::fact;

use bollard::errors::Error as ApiError;
use bollard::exec::StartExecResults;
use bollard::models::{ContainerInspectResponse, ExecConfig};
use bollard::query_parameters::ContainerArchiveInfoOptions;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tare_model::launch::GUEST_FOLDER;
use tare_model::{ArmId, Facts, Reason, RunId};

use super::super::image::packed;
use super::super::image::{AGENT_PATH, ImageTar};
use super::super::{
    Availability, Channel, Charged, Driver, EnvError, Environment, Instance, StartMode, record,
};
use super::api::Api;
use super::channel::{EngineChannel, Input, Output};
use super::errors::{and_cleanup, is_missing, printable};
use super::places::Place;
use super::{DETECT_LIMIT, Docker, facts, image, locality, own};
use crate::cx::{CONTROL_LIMIT, Context};

/// How much is kept of what the end of an agent says, bytes or nearly so.
const SAID_LIMIT: usize = 4096;

/// A folder of ours in somebody's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guest {
    container: String,
    folder: String,
}

impl Guest {
    fn new(cx: &Context<'_>, arm: &ArmId, container: &str) -> Self {
        Self {
            container: container.to_owned(),
            folder: format!("{GUEST_FOLDER}{}-{arm}", cx.run),
        }
    }

    fn agent(&self) -> String {
        format!("{}{AGENT_PATH}", self.folder)
    }

    fn workdir(&self) -> String {
        format!("{}/work", self.folder)
    }

    fn archive(&self, agent: &[u8]) -> Vec<u8> {
        ImageTar::new()
            .with_folder(&self.folder, 0o755)
            .with_folder(&self.workdir(), 0o1777)
            .with_file(&self.agent(), 0o755, agent)
            .into_bytes()
    }

    /// The request that has the agent serve, and the one that has it remove the folder with itself. Where the container's
    /// own programs are started may be gone.
    fn serving(&self, run: &RunId) -> ExecConfig {
        ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            working_dir: Some("/".to_owned()),
            env: Some(vec![format!("TARE_RUN={run}")]),
            cmd: Some(vec![self.agent(), "serve".into()]),
            ..Default::default()
        }
    }

    fn leaving(&self) -> ExecConfig {
        ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            user: Some("0".to_owned()),
            working_dir: Some("/".to_owned()),
            cmd: Some(vec![self.agent(), "leave".into(), self.folder.clone()]),
            ..Default::default()
        }
    }

    /// Whether the folder is not in the container, or the container is gone with it, as the engine says.
    fn is_gone(&self, api: &Api) -> bool {
        let options = ContainerArchiveInfoOptions {
            path: self.folder.clone(),
        };
        let asked = &api.client;
        let asked = asked.get_container_archive_info(&self.container, Some(options));
        matches!(api.attempt(CONTROL_LIMIT, asked), Err(error) if is_missing(&error))
    }

    /// Removes the folder, by the agent in it. Fine if the container is gone, and with it the folder.
    pub(super) fn leave(&self, api: &Api) -> Result<(), EnvError> {
        const WHAT: &str = "remove the agent from the container";
        let config = self.leaving();
        let done = api.attempt(CONTROL_LIMIT, async {
            let exec = api.client.create_exec(&self.container, config).await?;
            let mut said = String::new();
            if let StartExecResults::Attached { mut output, .. } =
                api.client.start_exec(&exec.id, None).await?
            {
                while let Some(part) = output.next().await {
                    let part = part?.to_string();
                    said.extend(part.chars().take(SAID_LIMIT.saturating_sub(said.len())));
                }
            }
            let ended = api.client.inspect_exec(&exec.id).await?;
            Ok((ended.exit_code, said))
        });
        let failure = match done {
            Ok((Some(0), _)) => return Ok(()),
            // What is not there need not be removed, and cannot be started either.
            _ if self.is_gone(api) => return Ok(()),
            Ok((_, said)) => EnvError::Refused {
                what: format!("removing `{}` from the container", self.folder),
                answer: printable(said.trim()),
            },
            Err(error) => api.explain(WHAT, CONTROL_LIMIT, &error),
        };
        if !has_ended(api, &self.container) {
            return Err(failure);
        }
        Err(EnvError::Absent {
            why: format!(
                "the container `{}` does not run any more, and `{}` still lies in it",
                printable(&self.container),
                self.folder
            ),
            fix: Some(
                "`docker start` it, then `tare clean`; it also goes with the container".into(),
            ),
        })
    }
}

/// Whether a container has ended; an engine may take a moment to notice.
fn has_ended(api: &Api, container: &str) -> bool {
    const LOOKS: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(100);
    let looks = async {
        for _ in 0..LOOKS {
            let found = api.client.inspect_container(container, None).await?;
            let is_running = found.state.and_then(|state| state.running);
            if is_running != Some(true) {
                return Ok(true);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(false)
    };
    api.attempt(CONTROL_LIMIT, looks).unwrap_or(false)
}

/// The container, if it runs.
///
/// # Errors
/// There is none of this name, or it is stopped, paused or about to start again.
pub(super) fn must_run(api: &Api, name: &str) -> Result<ContainerInspectResponse, EnvError> {
    let found = own::looked_up(api, name)?;
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
    Err(EnvError::Absent {
        why: format!("the container `{shown}` {why}, and nothing can be run inside it"),
        fix: Some(fix),
    })
}

/// The arm.
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

    fn place(&self, guest: &Guest) -> Place {
        Place::in_container(&self.arm, self.driver.named(), guest.clone())
    }

    fn launch(
        &self,
        cx: &Context<'_>,
        api: &Api,
        guest: &Guest,
    ) -> Result<(Output, Input), EnvError> {
        let config = guest.serving(cx.run);
        api.call("start the agent in the container", CONTROL_LIMIT, async {
            let exec = api.client.create_exec(&self.container, config).await?;
            match api.client.start_exec(&exec.id, None).await? {
                StartExecResults::Attached { output, input } => Ok((output, input)),
                StartExecResults::Detached => Err(ApiError::DockerStreamError {
                    error: "the engine detached from the agent".into(),
                }),
            }
        })
    }
}

/// Refuses a container into which nothing can be copied.
fn can_be_written(found: &ContainerInspectResponse) -> Result<(), EnvError> {
    let host = found.host_config.as_ref();
    if host.and_then(|host| host.readonly_rootfs) != Some(true) {
        return Ok(());
    }
    Err(EnvError::Absent {
        why: "the container's root is read-only, and the agent cannot be put into it while it runs"
            .into(),
        fix: Some("`--like` asks about a fresh container like it".into()),
    })
}

impl Environment for InsideEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let (api, engine) = self.driver.identify_linux(cx, DETECT_LIMIT)?;
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
        facts::of_own(&mut facts, &own::body_of(&api, &self.container)?);
        self.prepared = Some(Prepared {
            architecture,
            facts,
        });
        Ok(())
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError> {
        if mode == StartMode::Once {
            return Err(EnvError::Absent {
                why: "a container that runs is not started".into(),
                fix: None,
            });
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
            .and_then(|()| self.launch(cx, &api, &guest));
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
        for place in record::of_arm::<Place>(cx, id, &self.arm)? {
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
    /// Looked up once.
    charged: OnceLock<Charged>,
}

const NO_PEERS: &str = "the container's network is the user's own, and nothing is served in it";

impl Instance for InsideInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        Err(Reason::NoPath(NO_PEERS.into()))
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        Err(Reason::NoPath(NO_PEERS.into()))
    }

    fn workdir(&self) -> String {
        self.guest.workdir()
    }

    fn charged(&self) -> Charged {
        let look = || locality::charged(&self.channel.api, &self.guest.container);
        self.charged.get_or_init(look).clone()
    }

    fn stop(mut self: Box<Self>, _cx: &Context<'_>) -> Result<(), EnvError> {
        self.channel.farewell();
        self.guest.leave(&self.channel.api)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_runs_and_the_arms_own_and_holds_all_that_is_ours() {
        let guest = Guest {
            container: "web".into(),
            folder: format!("{GUEST_FOLDER}r1-look"),
        };
        assert_eq!(guest.agent(), "/tare-inside-r1-look/tare-agent");
        let archive = guest.archive(b"agent");
        let mut names: Vec<String> = tar::Archive::new(archive.as_slice())
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        names.sort();
        let all = names.iter();
        let is_ours = |name: &String| name.starts_with("tare-inside-r1-look");
        assert!(names.len() == 3 && all.clone().all(is_ours), "{names:?}");
    }

    #[test]
    fn a_root_that_nothing_can_be_copied_into_is_told_with_the_other_way() {
        let of = |host: serde_json::Value| {
            let found = serde_json::json!({"HostConfig": host});
            can_be_written(&serde_json::from_value(found).unwrap())
        };
        let error = of(serde_json::json!({"ReadonlyRootfs": true})).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("--like")));
        assert!(of(serde_json::json!({"ReadonlyRootfs": false})).is_ok());
        assert!(of(serde_json::Value::Null).is_ok());
    }

    #[test]
    fn the_agent_is_started_where_a_folder_is_that_nobody_removes() {
        let guest = Guest {
            container: "web".into(),
            folder: format!("{GUEST_FOLDER}r1-look"),
        };
        let run = RunId::new("r1").unwrap();
        for config in [guest.serving(&run), guest.leaving()] {
            assert_eq!(config.working_dir.as_deref(), Some("/"));
        }
    }
}
