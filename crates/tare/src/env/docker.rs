//! Docker Engine, through its API.
//!
//! The API rather than the `docker` command: one request does one thing, so what is timed is the engine and
//! not a client's start-up; errors keep their status; and no shell, terminal or output format is in between.
//! A resident instance is a container whose first process does nothing and an agent started with `exec`; an
//! instance for one first instruction is a container whose first process is the agent, attached before the
//! start. Networks, security profile, logging and cgroups are the engine's defaults unless a setting says
//! otherwise, because the defaults are what users have.
//! What it cannot see: what the engine's machine does besides; with Docker Desktop or a remote engine that
//! machine is not this one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bollard::errors::Error as ApiError;
use bollard::exec::StartExecResults;
use bollard::models::{
    ContainerCreateBody, ExecConfig, HealthConfig, HostConfig, HostConfigLogConfig, Mount,
    MountTmpfsOptions, MountType, MountVolumeOptions,
};
use bollard::query_parameters::{AttachContainerOptions, CreateContainerOptions};
use tare_model::{ArmId, Facts, Params, Reason};

use super::{
    Availability, Channel, Driver, EnvError, Environment, Instance, SettingSpec, SettingsError,
    StartMode,
};
use crate::cx::{CONTROL_LIMIT, CommandLine, Context, files};

mod api;
mod channel;
mod endpoint;
mod errors;
mod facts;
mod image;
mod locality;
mod owner;
mod settings;

use api::{Api, DENIED_FIX, Unreachable};
use channel::{EngineChannel, Input, Output};
use endpoint::Endpoint;
use errors::and_cleanup;
use image::{AGENT_PATH, WORKDIR};
use settings::{Network, SETTINGS, Settings, Storage};

/// `detect` answers within this time.
const DETECT_LIMIT: Duration = Duration::from_secs(3);

/// The engine that the `docker` command would use here.
pub static DOCKER: Docker = Docker { host: None };

/// The driver.
#[derive(Debug, Clone)]
pub struct Docker {
    host: Option<String>,
}

impl Docker {
    /// The driver for the engine at `host` (as `DOCKER_HOST` would name it), whatever the environment says.
    pub fn at(host: impl Into<String>) -> Self {
        Self {
            host: Some(host.into()),
        }
    }

    fn connect(&self, cx: &Context<'_>, limit: Duration) -> Result<Api, EnvError> {
        let endpoint = match &self.host {
            Some(host) => Endpoint::parse(host, "the caller"),
            None => Endpoint::resolve(),
        };
        let endpoint = endpoint.map_err(|none| EnvError::Absent {
            why: none.why,
            fix: none.fix,
        })?;
        Api::connect(endpoint.clone(), limit).map_err(|reason| match reason {
            Unreachable::Denied => EnvError::Denied {
                what: format!("`{endpoint}` is there, and this user may not connect to it"),
                fix: Some(DENIED_FIX.into()),
            },
            Unreachable::Silent => EnvError::Timeout {
                phase: format!("connecting to `{endpoint}`"),
                limit,
            },
            Unreachable::Failed(words) => EnvError::Absent {
                why: format!("cannot connect to `{endpoint}`: {words}"),
                fix: None,
            },
            Unreachable::NobodyListens => EnvError::Absent {
                why: format!("nobody listens at `{endpoint}`: the Docker engine is not running"),
                fix: Some(how_to_start(cx).1),
            },
            Unreachable::NoSocket => {
                let (state, fix) = how_to_start(cx);
                EnvError::Absent {
                    why: format!("no Docker engine listens at `{endpoint}`: {state}"),
                    fix: Some(fix),
                }
            }
        })
    }

    fn identify(&self, cx: &Context<'_>, limit: Duration) -> Result<(Api, Engine), EnvError> {
        let api = self.connect(cx, limit)?;
        let (version, info) = api.identity(limit)?;
        let facts = facts::of_engine(&api, &version, &info);
        let os_type = info.os_type.or(version.os).unwrap_or_default();
        if os_type == "windows" {
            return Err(EnvError::Absent {
                why: "the engine runs Windows containers, and the agent is a Linux program".into(),
                fix: Some("in Docker Desktop's menu: `Switch to Linux containers`".into()),
            });
        }
        let architecture = version.arch.or(info.architecture).unwrap_or_default();
        let elsewhere = locality::elsewhere(&facts);
        Ok((
            api,
            Engine {
                facts,
                architecture,
                elsewhere,
            },
        ))
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes
        .iter()
        .flat_map(|byte| [u32::from(byte >> 4), u32::from(byte & 15)]);
    digits
        .map(|digit| char::from_digit(digit, 16).expect("four bits are one digit"))
        .collect()
}

/// What is known about a reached engine.
struct Engine {
    facts: Facts,
    architecture: String,
    elsewhere: Option<String>,
}

/// What is installed here, and the command that would bring an engine to life.
fn how_to_start(cx: &Context<'_>) -> (&'static str, String) {
    for (name, path) in [
        ("XDG_RUNTIME_DIR", "docker.sock"),
        ("HOME", ".docker/desktop/docker.sock"),
    ] {
        if let Some(folder) = crate::cx::vars::text(name) {
            let path = std::path::Path::new(&folder).join(path);
            // A folder's socket cannot be read as a file, but is there.
            let is_there = files::read(&path)
                .is_err_and(|error| error.source.kind() != std::io::ErrorKind::NotFound);
            if is_there {
                let fix = format!("`export DOCKER_HOST=unix://{}`", path.display());
                return ("another one may listen elsewhere", fix);
            }
        }
    }
    let answers = |program: &str| {
        cx.exec
            .run(
                &CommandLine::new(program, ["--version"]),
                b"",
                Duration::from_secs(2),
            )
            .is_ok_and(|finished| finished.status == Some(0))
    };
    if !cfg!(target_os = "linux") {
        return (
            "Docker Desktop is not running or not installed",
            "start Docker Desktop".into(),
        );
    }
    if answers("dockerd") {
        (
            "it is installed but not running",
            "`sudo systemctl start docker`".into(),
        )
    } else if answers("docker") {
        (
            "only the client is installed here",
            "`sudo apt-get install docker.io`, or DOCKER_HOST=… for an engine elsewhere".into(),
        )
    } else {
        (
            "it is not installed",
            "`sudo apt-get install docker.io`".into(),
        )
    }
}

impl Driver for Docker {
    fn id(&self) -> &'static str {
        "docker"
    }

    fn about(&self) -> &'static str {
        "a container of a Docker engine, made through its API from an image that holds only the agent"
    }

    fn settings(&self) -> &'static [SettingSpec] {
        SETTINGS
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        let found = self.identify(cx, DETECT_LIMIT).and_then(|(_, engine)| {
            image::read_agent(cx.agent, &engine.architecture)?;
            Ok(engine.facts)
        });
        match found {
            Ok(facts) => Availability::Ready(facts),
            Err(EnvError::Absent { why, fix }) => Availability::Absent { why, fix },
            Err(EnvError::Denied { what, fix }) => Availability::Absent {
                why: format!("permission denied: {what}"),
                fix,
            },
            Err(other) => Availability::Absent {
                why: other.to_string(),
                fix: None,
            },
        }
    }

    fn configure(
        &self,
        arm: ArmId,
        settings: &Params,
    ) -> Result<Box<dyn Environment>, SettingsError> {
        Ok(Box::new(DockerEnvironment {
            driver: self.clone(),
            arm,
            settings: Settings::parse(settings)?,
            prepared: None,
            instances: 0,
        }))
    }

    fn sweep(&self, cx: &Context<'_>, run: Option<&str>) -> Result<Vec<String>, EnvError> {
        let api = self.connect(cx, DETECT_LIMIT)?;
        let mut labels = vec!["tare=1".to_owned()];
        labels.extend(run.map(|run| format!("tare.run={run}")));
        let is_ours = |labels: &HashMap<String, String>| {
            run.is_some() || owner::is_gone(cx, labels.get(owner::LABEL))
        };
        let mut removed = Vec::new();
        for container in api.containers(&labels)? {
            if is_ours(&container.labels) {
                api.remove_container(&container.key)?;
                removed.push(format!("docker container {}", container.name));
            }
        }
        for volume in api.volumes(&labels)? {
            if is_ours(&volume.labels) {
                api.remove_volume(&volume.key)?;
                removed.push(format!("docker volume {}", volume.name));
            }
        }
        for image in image::packed(&api, &labels)? {
            if is_ours(&image.labels) && image::remove(&api, &image.key)? {
                removed.push(format!("docker image {}", image.name));
            }
        }
        Ok(removed)
    }
}

/// One `docker` arm.
struct DockerEnvironment {
    driver: Docker,
    arm: ArmId,
    settings: Settings,
    prepared: Option<Prepared>,
    instances: u32,
}

/// What `prepare` found and made.
struct Prepared {
    image: String,
    architecture: String,
    facts: Facts,
    elsewhere: Option<String>,
}

/// A container's name and the volume or folder that was made for it.
struct Names {
    container: String,
    volume: Option<String>,
}

impl DockerEnvironment {
    fn names(&self, cx: &Context<'_>, number: u32) -> Names {
        let container = format!("tare-{}-{}-{number}", cx.run, self.arm);
        let volume = (self.settings.storage == Storage::Volume).then(|| container.clone());
        Names { container, volume }
    }

    fn labels(&self, cx: &Context<'_>) -> HashMap<String, String> {
        HashMap::from([
            ("tare".to_owned(), "1".to_owned()),
            ("tare.run".to_owned(), cx.run.to_string()),
            ("tare.arm".to_owned(), self.arm.to_string()),
            (owner::LABEL.to_owned(), owner::label()),
        ])
    }

    fn mount(&self, cx: &Context<'_>, names: &Names) -> Option<Mount> {
        let target = Some(WORKDIR.to_owned());
        match self.settings.storage {
            Storage::Layer => None,
            Storage::Volume => Some(Mount {
                target,
                source: names.volume.clone(),
                typ: Some(MountType::VOLUME),
                volume_options: Some(MountVolumeOptions {
                    labels: Some(self.labels(cx)),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            Storage::Bind => Some(Mount {
                target,
                source: Some(cx.scratch.join(&names.container).display().to_string()),
                typ: Some(MountType::BIND),
                ..Default::default()
            }),
            Storage::Tmpfs => Some(Mount {
                target,
                typ: Some(MountType::TMPFS),
                tmpfs_options: Some(MountTmpfsOptions {
                    mode: Some(0o1777),
                    ..Default::default()
                }),
                ..Default::default()
            }),
        }
    }

    /// What is asked for beyond the engine's defaults; nothing else is mentioned in the request.
    fn host_config(&self) -> HostConfig {
        let settings = &self.settings;
        let mut security = Vec::new();
        if settings.seccomp_unconfined {
            security.push("seccomp=unconfined".to_owned());
        }
        if settings.no_new_privileges {
            security.push("no-new-privileges".to_owned());
        }
        let list = |names: &Vec<String>| (!names.is_empty()).then(|| names.clone());
        HostConfig {
            network_mode: Some(settings.network.mode().into()),
            security_opt: list(&security),
            nano_cpus: settings.nano_cpus,
            cpuset_cpus: settings.cpuset.clone(),
            memory: settings.memory,
            shm_size: settings.shm,
            cap_add: list(&settings.cap_add),
            cap_drop: list(&settings.cap_drop),
            privileged: settings.privileged.then_some(true),
            init: settings.init.then_some(true),
            runtime: settings.runtime.clone(),
            log_config: settings
                .log_driver
                .clone()
                .map(|driver| HostConfigLogConfig {
                    typ: Some(driver),
                    config: None,
                }),
            ..Default::default()
        }
    }

    fn body(
        &self,
        cx: &Context<'_>,
        image: &str,
        names: &Names,
        mode: StartMode,
    ) -> ContainerCreateBody {
        let mut host_config = self.host_config();
        host_config.mounts = self.mount(cx, names).map(|mount| vec![mount]);
        let is_once = mode == StartMode::Once;
        ContainerCreateBody {
            image: Some(image.to_owned()),
            entrypoint: Some(vec![AGENT_PATH.into()]),
            cmd: Some(vec![if is_once { "serve" } else { "hold" }.into()]),
            env: Some(vec![format!("TARE_RUN={}", cx.run)]),
            labels: Some(self.labels(cx)),
            user: self.settings.user.clone(),
            attach_stdin: Some(is_once),
            attach_stdout: Some(is_once),
            attach_stderr: Some(is_once),
            open_stdin: Some(is_once),
            stdin_once: Some(is_once),
            // A foreign image's health check would run beside the trials.
            healthcheck: self.settings.image.is_some().then(|| HealthConfig {
                test: Some(vec!["NONE".into()]),
                ..Default::default()
            }),
            host_config: Some(host_config),
            ..Default::default()
        }
    }

    /// What must be laid into a new container: the agent into a foreign image, and the working directory's
    /// mode onto storage whose root belongs to root alone.
    fn additions(
        &self,
        cx: &Context<'_>,
        prepared: &Prepared,
    ) -> Result<Option<Vec<u8>>, EnvError> {
        if self.settings.image.is_some() {
            let agent = image::read_agent(cx.agent, &prepared.architecture)?;
            return Ok(Some(image::agent_archive(&agent)));
        }
        let is_foreign = matches!(self.settings.storage, Storage::Volume | Storage::Bind);
        Ok(is_foreign.then(image::workdir_archive))
    }

    /// Starts what was created and opens the stream to its agent.
    fn launch(&self, api: &Api, id: &str, mode: StartMode) -> Result<(Output, Input), EnvError> {
        let start = || {
            let request = api
                .client
                .start_container(id, None::<bollard::query_parameters::StartContainerOptions>);
            api.attempt(CONTROL_LIMIT, request).map_err(|error| {
                self.refine(
                    api,
                    api.explain("start the container", CONTROL_LIMIT, &error),
                )
            })
        };
        match mode {
            StartMode::Once => {
                let options = AttachContainerOptions {
                    stream: true,
                    stdin: true,
                    stdout: true,
                    stderr: true,
                    ..Default::default()
                };
                let attached = api.call(
                    "attach to the container",
                    CONTROL_LIMIT,
                    api.client.attach_container(id, Some(options)),
                )?;
                start()?;
                Ok((attached.output, attached.input))
            }
            StartMode::Resident => {
                start()?;
                let config = ExecConfig {
                    attach_stdin: Some(true),
                    attach_stdout: Some(true),
                    attach_stderr: Some(true),
                    cmd: Some(vec![AGENT_PATH.into(), "serve".into()]),
                    privileged: self.settings.privileged.then_some(true),
                    ..Default::default()
                };
                api.call("start the agent in the container", CONTROL_LIMIT, async {
                    let exec = api.client.create_exec(id, config).await?;
                    match api.client.start_exec(&exec.id, None).await? {
                        StartExecResults::Attached { output, input } => Ok((output, input)),
                        StartExecResults::Detached => Err(ApiError::DockerStreamError {
                            error: "the engine detached from the agent".into(),
                        }),
                    }
                })
            }
        }
    }

    /// Names the capabilities that the engine lacks, where an error is about them and they can be read.
    fn refine(&self, api: &Api, error: EnvError) -> EnvError {
        match error {
            EnvError::Absent { why, fix: Some(_) } if why.contains("unable to apply caps") => {
                let Some((_, missing)) =
                    facts::bounding_set(api).filter(|(_, missing)| !missing.is_empty())
                else {
                    return EnvError::Absent {
                        why,
                        fix: Some(
                            if self.settings.privileged {
                                PRIVILEGED_FIX
                            } else {
                                CAP_FIX
                            }
                            .into(),
                        ),
                    };
                };
                let list = missing.join("\", \"");
                EnvError::Absent {
                    why: format!(
                        "{why}; dockerd itself runs without CAP_{}",
                        missing.join(", CAP_")
                    ),
                    fix: Some(format!(
                        "instead of `privileged`: cap_add = [\"ALL\"], cap_drop = [\"{list}\"], seccomp = \"unconfined\""
                    )),
                }
            }
            other => other,
        }
    }

    /// Removes a container and what was made for it alone.
    fn discard(
        &self,
        api: &Api,
        cx: &Context<'_>,
        id: Option<&str>,
        names: &Names,
    ) -> Result<(), EnvError> {
        let container = api.remove_container(id.unwrap_or(&names.container));
        let volume = names
            .volume
            .as_deref()
            .map_or(Ok(()), |name| api.remove_volume(name));
        let folder = if self.settings.storage == Storage::Bind {
            files::remove_folder(&cx.scratch.join(&names.container)).map_err(EnvError::from)
        } else {
            Ok(())
        };
        container.and(volume).and(folder)
    }
}

const PRIVILEGED_FIX: &str = "leave `privileged` out; this engine cannot grant it";
const CAP_FIX: &str =
    "add to `cap_drop` what the engine itself lacks: see CapBnd in /proc/$(pidof dockerd)/status";

impl Environment for DockerEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let (api, engine) = self.driver.identify(cx, CONTROL_LIMIT)?;
        let mut facts = engine.facts;
        let (name, image) = if let Some(name) = &self.settings.image {
            let image = image::inspect(&api, name)?;
            facts.insert("agent.delivery".into(), "copied into each container".into());
            (name.clone(), image)
        } else {
            let image = image::ensure_packed(
                &api,
                cx.run,
                &self.arm,
                &owner::label(),
                cx.agent,
                &engine.architecture,
            )?;
            facts.insert("agent.delivery".into(), "part of the image".into());
            (image::packed_name(cx.run, &self.arm), image)
        };
        // The same check for either image: a foreign one may be for another processor.
        let agent = image::read_agent(
            cx.agent,
            image
                .architecture
                .as_deref()
                .unwrap_or(&engine.architecture),
        );
        agent?;
        facts::of_image(&mut facts, &name, &image);
        facts::of_host_config(&mut facts, &self.host_config());
        self.prepared = Some(Prepared {
            image: name,
            architecture: engine.architecture,
            facts,
            elsewhere: engine.elsewhere,
        });
        Ok(())
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError> {
        if self.prepared.is_none() {
            self.prepare(cx)?;
        }
        let api = self.driver.connect(cx, DETECT_LIMIT)?;
        self.instances += 1;
        let names = self.names(cx, self.instances);
        let prepared = self.prepared.as_ref().expect("prepared above, or returned");
        let additions = self.additions(cx, prepared)?;
        if self.settings.storage == Storage::Bind {
            files::create_folder(&cx.scratch.join(&names.container))?;
        }
        let options = CreateContainerOptions {
            name: Some(names.container.clone()),
            ..Default::default()
        };
        let body = self.body(cx, &prepared.image, &names, mode);
        let created = api.call(
            "create the container",
            CONTROL_LIMIT,
            api.client.create_container(Some(options), body),
        );
        let id = match created {
            Ok(created) => created.id,
            Err(error) => {
                // An engine that answers late may have made it all the same.
                let cleanup = self.discard(&api, cx, None, &names);
                return Err(and_cleanup(error, cleanup));
            }
        };
        let launched = additions
            .map_or(Ok(()), |archive| image::upload(&api, &id, archive))
            .and_then(|()| self.launch(&api, &id, mode));
        match launched {
            Ok((output, input)) => Ok(Box::new(DockerInstance {
                channel: EngineChannel::new(api, id.clone(), output, input),
                id,
                names,
                network: self.settings.network,
                elsewhere: prepared.elsewhere.clone(),
                is_bound: self.settings.storage == Storage::Bind,
            })),
            Err(error) => {
                let cleanup = self.discard(&api, cx, Some(&id), &names);
                Err(and_cleanup(error, cleanup))
            }
        }
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        self.prepared
            .as_ref()
            .map(|prepared| prepared.facts.clone())
            .unwrap_or_default()
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        if self.prepared.take().is_none() && self.instances == 0 {
            return Ok(());
        }
        let api = self.driver.connect(cx, DETECT_LIMIT)?;
        let labels = [
            format!("tare.run={}", cx.run),
            format!("tare.arm={}", self.arm),
        ];
        for container in api.containers(&labels)? {
            api.remove_container(&container.key)?;
        }
        for volume in api.volumes(&labels)? {
            api.remove_volume(&volume.key)?;
        }
        if self.settings.image.is_none() {
            image::remove(&api, &image::packed_name(cx.run, &self.arm))?;
        }
        for number in 1..=self.instances {
            if self.settings.storage == Storage::Bind {
                files::remove_folder(&cx.scratch.join(self.names(cx, number).container))?;
            }
        }
        self.instances = 0;
        Ok(())
    }
}

/// A running container with an agent at the other end of a stream.
struct DockerInstance {
    channel: EngineChannel,
    id: String,
    names: Names,
    network: Network,
    elsewhere: Option<String>,
    is_bound: bool,
}

impl DockerInstance {
    /// The addresses of the two ends: the container's, then this machine's as the container sees it.
    fn ends(&self) -> Result<(IpAddr, IpAddr), Reason> {
        if self.network == Network::None {
            return Err(Reason::NoPath(NO_NETWORK.into()));
        }
        if let Some(why) = &self.elsewhere {
            return Err(Reason::NoPath(why.clone()));
        }
        if self.network == Network::Host {
            let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
            return Ok((loopback, loopback));
        }
        locality::bridge(&self.channel.api, &self.id)
    }
}

const NO_NETWORK: &str = "the arm has `network = \"none\"`";

impl Instance for DockerInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.ends().map(|(inside, _)| inside)
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.ends().map(|(_, outside)| outside)
    }

    fn workdir(&self) -> String {
        WORKDIR.to_owned()
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError> {
        self.channel.farewell();
        let api = &self.channel.api;
        let container = api.remove_container(&self.id);
        let volume = self
            .names
            .volume
            .as_deref()
            .map_or(Ok(()), |name| api.remove_volume(name));
        let folder = if self.is_bound {
            files::remove_folder(&cx.scratch.join(&self.names.container)).map_err(EnvError::from)
        } else {
            Ok(())
        };
        container.and(volume).and(folder)
    }
}
