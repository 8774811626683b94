//! A `docker` arm: its image, its containers' configuration, and starting them.
//!
//! A request contains only what was asked for, so an arm without settings is what a plain `docker run` gives. A
//! failed start is cleaned up before the error is returned.

use crate::env::prelude::*;

use std::collections::HashMap;
use std::sync::OnceLock;

use bollard::models::{
    ContainerCreateBody, ExecConfig, HealthConfig, HostConfig, Mount, MountTmpfsOptions, MountType,
    MountVolumeOptions,
};

use super::super::image::packed::{self, Contents};
use super::super::image::{AGENT_PATH, WORKDIR};
use super::super::record;
use super::super::siblings::Numbers;
use super::super::{AsTyped, FileRequest, TURN_PAGE};
use super::api::{Api, labels_of_run};
use super::channel::{EngineChannel, Input, Output, attached, served_inside};
use super::creation_record::CreationRecord;
use super::errors::and_cleanup;
use super::instance::{Belongings, DockerInstance};
use super::profile::Profile;
use super::settings::{Network, Seccomp, Settings, Storage};
use super::system::System;
use super::user_container::{self, ArmTemplate, EngineMachine};
use super::{DETECT_LIMIT, Docker, facts, image, locality, profile, request, served};
use crate::cx::turn_page;

/// The engines' default for how long a container may take to stop before it is killed (`docker stop --help`),
/// seconds.
const USUAL_PATIENCE_S: u16 = 10;

/// A `docker` arm.
pub(super) struct DockerEnvironment {
    pub(super) driver: Docker,
    arm: ArmId,
    pub(super) settings: Settings,
    /// The programs and files of the study's workloads.
    provided: FileRequest,
    prepared: Option<Prepared>,
    instances: u32,
    numbers: Numbers,
    /// How many instances run at once.
    nodes: u32,
}

impl Prepared {
    /// What the instance with this number, from 1, is made of, if the arm is like a user's container.
    fn template(&self, number: u32) -> Option<&ArmTemplate> {
        let index = number.saturating_sub(1) as usize;
        self.templates.get(index % self.templates.len().max(1))
    }
}

/// The results of `prepare`.
struct Prepared {
    image: String,
    architecture: String,
    system: System,
    facts: Facts,
    elsewhere: Option<String>,
    profile: Option<Profile>,
    /// What the instances of an arm like a user's container are made of in turn; empty for any other arm.
    templates: Vec<ArmTemplate>,
    /// This machine's address on the engine's bridge, if a port is published.
    gateway: Option<IpAddr>,
}

impl DockerEnvironment {
    pub(super) fn new(driver: Docker, arm: ArmId, settings: Settings) -> Self {
        Self {
            driver,
            arm,
            settings,
            provided: FileRequest::default(),
            prepared: None,
            instances: 0,
            numbers: Numbers::default(),
            nodes: 1,
        }
    }

    /// The volume that the instances share, if there are several: it works wherever the engine is.
    fn shared(&self, cx: &Context<'_>) -> Option<String> {
        (self.nodes > 1).then(|| format!("tare-{}-{}-shared", cx.run, self.arm))
    }

    fn volume(&self, cx: &Context<'_>, name: &str, target: &str) -> Mount {
        Mount {
            volume_options: Some(MountVolumeOptions {
                labels: Some(self.labels(cx)),
                ..Default::default()
            }),
            ..mounted(MountType::VOLUME, Some(name.to_owned()), target)
        }
    }

    fn belongings(&self, cx: &Context<'_>, number: u32) -> Belongings {
        let name = format!("tare-{}-{}-{number}", cx.run, self.arm);
        Belongings {
            has_volume: self.settings.storage == Storage::Volume,
            folder: self.settings.storage.is_folder().then(|| {
                let parent = self.settings.bind_folder.as_deref();
                parent.unwrap_or(cx.scratch).join(&name)
            }),
            server: None,
            name,
        }
    }

    /// The container's architecture: the platform's, else the engine's.
    fn architecture<'a>(&'a self, engine: &'a str) -> &'a str {
        let platform = self.settings.platform.as_deref();
        platform
            .and_then(|platform| platform.split('/').nth(1))
            .unwrap_or(engine)
    }

    /// How long the container may take to end after SIGTERM, if it is to be sent one.
    fn patience(&self) -> Option<Duration> {
        let seconds = u64::from(self.settings.stop_after.unwrap_or(USUAL_PATIENCE_S));
        (!self.settings.entry.is_empty()).then(|| Duration::from_secs(seconds))
    }

    /// Whether the image is the user's rather than packed here.
    fn is_foreign(&self) -> bool {
        self.settings.image.is_some() || self.settings.like.is_some()
    }

    /// Prepares the arm, once.
    pub(super) fn prepare_once(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        if self.prepared.is_some() {
            return Ok(());
        }
        self.prepare(cx)
    }

    /// The names and folders of the next instance.
    pub(super) fn next_belongings(&mut self, cx: &Context<'_>) -> Belongings {
        self.instances += 1;
        self.belongings(cx, self.instances)
    }

    /// What the first instance of an arm like a user's container is made of.
    pub(super) fn like_the_users(&self) -> Option<&ArmTemplate> {
        self.prepared.as_ref()?.template(1)
    }

    pub(super) fn labels(&self, cx: &Context<'_>) -> HashMap<String, String> {
        let mut labels = labels_of_run(cx);
        labels.insert("tare.arm".to_owned(), self.arm.to_string());
        labels
    }

    fn mount(&self, cx: &Context<'_>, system: System, belongings: &Belongings) -> Option<Mount> {
        let target = system.workdir();
        match self.settings.storage {
            Storage::Layer => None,
            Storage::Volume => Some(self.volume(cx, &belongings.name, target)),
            Storage::Bind | Storage::Served => {
                let source = belongings.shown();
                let source = source.map(|folder| folder.display().to_string());
                Some(mounted(MountType::BIND, source, target))
            }
            Storage::Tmpfs => Some(open_memory(target)),
        }
    }

    /// The user's bind mounts and tmpfs mounts.
    fn shown(&self) -> impl Iterator<Item = Mount> {
        let binds = self.settings.common.binds.iter().map(|bind| Mount {
            read_only: Some(bind.read_only),
            ..mounted(MountType::BIND, Some(bind.source.clone()), &bind.target)
        });
        let in_memory = self.settings.tmpfs.iter();
        let in_memory = in_memory.map(|path| mounted(MountType::TMPFS, None, path));
        binds.chain(in_memory)
    }

    /// The page by which workers pass the turn, if the engine's machine is this one.
    fn turn_page(&self, cx: &Context<'_>, prepared: &Prepared, mode: StartMode) -> Option<String> {
        // Another user may not write to the page.
        let is_own = self.settings.user.is_none() && self.settings.like.is_none();
        let is_here = is_own
            && prepared.system == System::Linux
            && prepared.elsewhere.is_none()
            && mode == StartMode::Resident;
        turn_page::to_show(cx.scratch).filter(|_| is_here)
    }

    fn body(
        &self,
        cx: &Context<'_>,
        prepared: &Prepared,
        belongings: &Belongings,
        (number, mode): (u32, StartMode),
    ) -> ContainerCreateBody {
        let is_once = mode == StartMode::Once;
        let is_attached = is_once && self.settings.entry.is_empty();
        let shared = self.shared(cx).filter(|_| !is_once);
        let system = prepared.system;
        let shared = shared.map(|name| self.volume(cx, &name, system.shared()));
        let turn_page = self.turn_page(cx, prepared, mode);
        let turn_page = turn_page.map(|source| mounted(MountType::BIND, Some(source), TURN_PAGE));
        let mounts: Vec<Mount> = self
            .mount(cx, system, belongings)
            .into_iter()
            .chain(shared)
            .chain(turn_page)
            .chain(self.shown())
            .collect();
        let mut base = match prepared.template(number) {
            Some(template) => body_like(cx, &template.body, mounts),
            None => self.body_of_settings(prepared, mounts),
        };
        let mut env = base.env.take().unwrap_or_default();
        env.push(format!("TARE_RUN={}", cx.run));
        let role = if is_once { "serve" } else { "hold" };
        let (program, arguments) = match self.settings.entry.split_first() {
            Some((program, arguments)) => (program.clone(), arguments.to_vec()),
            None => (system.agent_path().to_owned(), vec![role.to_owned()]),
        };
        ContainerCreateBody {
            entrypoint: Some(vec![program]),
            cmd: Some(arguments),
            env: Some(env),
            labels: Some(self.labels(cx)),
            // The agent's streams are never a terminal: it would change the bytes of frames.
            tty: (base.tty == Some(true) && !is_once).then_some(true),
            attach_stdin: Some(is_attached),
            attach_stdout: Some(is_attached),
            attach_stderr: Some(is_attached),
            open_stdin: Some(is_attached),
            stdin_once: Some(is_attached),
            ..base
        }
    }

    /// The request for a container by the settings, without its command.
    fn body_of_settings(&self, prepared: &Prepared, mounts: Vec<Mount>) -> ContainerCreateBody {
        let network = &self.settings.network;
        let port_bindings = request::port_bindings(network, prepared.gateway);
        ContainerCreateBody {
            image: Some(prepared.image.clone()),
            exposed_ports: port_bindings
                .is_some()
                .then(|| vec![request::published_key()]),
            stop_timeout: self.settings.stop_after.map(i64::from),
            user: self
                .settings
                .user
                .clone()
                .or_else(|| prepared.system.user()),
            tty: Some(self.settings.tty),
            // A foreign image's health check would run during the trials.
            healthcheck: self.settings.image.is_some().then(|| HealthConfig {
                test: Some(vec!["NONE".into()]),
                ..Default::default()
            }),
            host_config: Some(HostConfig {
                port_bindings,
                network_mode: Some(prepared.system.network(network)),
                mounts: (!mounts.is_empty()).then_some(mounts),
                ..request::host_config(&self.settings, prepared.profile.as_ref())
            }),
            ..Default::default()
        }
    }

    /// The files to copy into a new container: the agent into a foreign image, and the working directory's mode onto
    /// storage whose root belongs to root.
    fn additions(
        &self,
        cx: &Context<'_>,
        prepared: &Prepared,
        number: u32,
    ) -> Result<Option<Vec<u8>>, EnvError> {
        if self.is_foreign() {
            let system = prepared.system;
            let agent = system.agent(cx.agents, &prepared.architecture)?;
            let template = prepared.template(number);
            let host = template.and_then(|template| template.body.host_config.as_ref());
            if host.is_some_and(|host| host.readonly_rootfs == Some(true)) {
                // Nothing can be copied into a read-only root, so the agent is bind-mounted.
                if let Some(engine) = &prepared.elsewhere {
                    return Err(EnvError::absent(
                        format!(
                            "the container's root is read-only, and an agent cannot be shown in it from here: {engine}"
                        ),
                        "remove `--read-only`, or ask on the engine's own machine",
                    ));
                }
                files::write_program(&agent_file(cx), &agent.bytes()?)?;
                return Ok(None);
            }
            return Ok(Some(system.archive(&agent.bytes()?)));
        }
        let storage = self.settings.storage;
        let is_foreign = storage == Storage::Volume || storage.is_folder();
        Ok(is_foreign.then(packed::workdir_archive))
    }

    /// Starts a created container and opens the stream to its agent.
    fn launch(
        &self,
        api: &Api,
        id: &str,
        system: System,
        mode: StartMode,
    ) -> Result<(Output, Input), EnvError> {
        if mode == StartMode::Once && self.settings.entry.is_empty() {
            let streams = attached(api, id, true)?;
            self.start_created(api, id)?;
            return Ok((streams.output, streams.input));
        }
        self.start_created(api, id)?;
        let config = ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(vec![system.agent_path().into(), "serve".into()]),
            privileged: self.settings.common.privileged.then_some(true),
            ..Default::default()
        };
        served_inside(api, id, config)
    }
}

/// The request for a container like the user's, without its command; with a read-only root the agent is mounted.
fn body_like(cx: &Context<'_>, own: &ContainerCreateBody, more: Vec<Mount>) -> ContainerCreateBody {
    let mut body = own.clone();
    let host = body.host_config.get_or_insert_default();
    let mounts = host.mounts.get_or_insert_default();
    mounts.extend(more);
    if host.readonly_rootfs == Some(true) {
        let agent = agent_file(cx).display().to_string();
        mounts.push(Mount {
            read_only: Some(true),
            ..mounted(MountType::BIND, Some(agent), AGENT_PATH)
        });
        mounts.push(open_memory(WORKDIR));
    }
    body
}

/// A mount at this path inside.
fn mounted(kind: MountType, source: Option<String>, target: &str) -> Mount {
    Mount {
        target: Some(target.to_owned()),
        source,
        typ: Some(kind),
        ..Default::default()
    }
}

/// A folder in memory to which every user inside may write.
fn open_memory(target: &str) -> Mount {
    Mount {
        tmpfs_options: Some(MountTmpfsOptions {
            mode: Some(0o1777),
            ..Default::default()
        }),
        ..mounted(MountType::TMPFS, None, target)
    }
}

/// Path of the agent for containers that nothing can be copied into.
fn agent_file(cx: &Context<'_>) -> std::path::PathBuf {
    cx.scratch.join("tare-agent-inside")
}

/// How long a busy engine may take to identify itself while an arm is prepared.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

impl Environment for DockerEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn provide(&mut self, wanted: &FileRequest) {
        if !self.is_foreign() {
            self.provided.add(wanted);
        }
    }

    fn gather(&mut self, nodes: u32) {
        self.nodes = nodes;
    }

    /// Each instance has its own name, network and storage, unless the user's settings fix them.
    fn may_leave_late(&self) -> bool {
        let is_fixed = matches!(self.settings.network, Network::Published(Some(_)));
        self.nodes == 1
            && self.settings.like.is_none()
            && self.settings.entry.is_empty()
            && !is_fixed
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let profile = match &self.settings.seccomp {
            Seccomp::File(path) => Some(profile::read(path)?),
            Seccomp::Default | Seccomp::Unconfined => None,
        };
        let (api, engine) = self.driver.identify(cx, ANSWER_LIMIT)?;
        engine.system.check(&self.settings)?;
        if self.settings.storage == Storage::Served {
            served::check(cx, engine.elsewhere.as_deref())?;
        }
        let place = CreationRecord::new(cx, &self.arm, self.driver.named(), &self.settings);
        record::add(cx, self.driver.id(), &self.arm, &place)?;
        let mut facts = engine.facts.clone();
        let mut templates = Vec::new();
        let copied = "copied into each container";
        let (delivery, name, image) = if let Some(like) = &self.settings.like {
            let machine = EngineMachine::new(&api, &engine);
            let of = (&self.arm, &self.settings);
            let engine = (&api, &machine);
            templates = user_container::templates_of(cx, engine, (like, self.nodes), of)?;
            let first = &templates[0];
            facts::of_own(&mut facts, &first.body);
            (copied, first.name.clone(), first.image.clone())
        } else if let Some(name) = &self.settings.image {
            (copied, name.clone(), image::inspect(&api, name)?)
        } else {
            let architecture = self.architecture(&engine.architecture);
            let contents = Contents {
                wanted: self.settings.wanted.clone(),
                provided: self.provided.clone(),
                lower_file: self.settings.lower_file.map(i64::cast_unsigned),
            };
            let root = packed::root(cx, architecture, &contents, &mut facts)?;
            let image = image::ensure_packed(&api, cx.run, &self.arm, root, architecture)?;
            let name = packed::packed_name(cx.run, &self.arm);
            ("part of the image", name, image)
        };
        facts.insert(fact::AGENT_DELIVERY.into(), delivery.into());
        let architecture = image.architecture.clone().unwrap_or_default();
        if packed::machine(&architecture) != packed::machine(&engine.architecture) {
            facts.insert(fact::IMAGE_EMULATED.into(), "true".into());
        }
        // Report a missing agent now, before anything is started.
        let agent = engine.system.agent(cx.agents, &architecture)?;
        facts.insert(fact::AGENT_SHA256.into(), agent.sha256.clone());
        facts::of_image(&mut facts, &name, &image);
        if templates.is_empty() {
            facts::of_settings(&mut facts, &self.settings, profile.as_ref());
        }
        let gateway = match (&self.settings.network, &engine.elsewhere) {
            (Network::Published(_), None) => locality::gateway(&api),
            _ => None,
        };
        self.prepared = Some(Prepared {
            image: name,
            architecture,
            system: engine.system,
            facts,
            elsewhere: engine.elsewhere,
            profile,
            templates,
            gateway,
        });
        Ok(())
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>, EnvError> {
        self.prepare_once(cx)?;
        let api = self.driver.connect(cx, DETECT_LIMIT)?;
        let mut belongings = self.next_belongings(cx);
        let prepared = self.prepared.as_ref().expect("prepared above, or returned");
        let number = self.numbers.take();
        let additions = self.additions(cx, prepared, number.get())?;
        if let Some(folder) = &belongings.folder {
            files::create_folder(folder)?;
            if self.settings.storage == Storage::Served {
                match served::serve(cx.exec, cx.run.as_str(), folder) {
                    Ok(server) => belongings.server = Some(server),
                    Err(error) => return Err(and_cleanup(error, belongings.discard(cx, &api))),
                }
            }
        }
        let body = self.body(cx, prepared, &belongings, (number.get(), mode));
        let copied = prepared.template(number.get());
        let copied = copied.map_or(&[][..], |template| &template.copied);
        self.create(cx, &api, &belongings, body)?;
        let seen = match belongings.server {
            Some(_) => served::is_seen(&api, &belongings.name),
            None => Ok(()),
        };
        let launched = seen
            .and_then(|()| {
                additions.map_or(Ok(()), |archive| {
                    image::upload(&api, &belongings.name, prepared.system.root(), archive)
                })
            })
            .and_then(|()| user_container::lay_in(&api, &belongings.name, copied))
            .and_then(|()| self.launch(&api, &belongings.name, prepared.system, mode));
        match launched {
            Ok((output, input)) => Ok(Box::new(DockerInstance {
                channel: EngineChannel::new(api, belongings.name.clone(), output, input),
                belongings,
                network: self.settings.network.clone(),
                elsewhere: prepared.elsewhere.clone(),
                number,
                shared: (self.nodes > 1 && mode == StartMode::Resident)
                    .then(|| prepared.system.shared().to_owned()),
                turn_page: self
                    .turn_page(cx, prepared, mode)
                    .map(|_| TURN_PAGE.to_owned()),
                system: prepared.system,
                patience: self.patience(),
                charged: OnceLock::new(),
            })),
            Err(error) => Err(and_cleanup(error, belongings.discard(cx, &api))),
        }
    }

    fn as_typed(
        &mut self,
        cx: &Context<'_>,
        argv: &[String],
        input: &[u8],
        limit: Duration,
    ) -> Result<Option<AsTyped>, EnvError> {
        self.run_as_typed(cx, argv, input, limit)
    }

    fn detect(&self, cx: &Context<'_>) -> Option<Availability> {
        self.settings
            .context
            .is_some()
            .then(|| self.driver.detect(cx))
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        self.prepared
            .as_ref()
            .map(|prepared| prepared.facts.clone())
            .unwrap_or_default()
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let had_places = record::of_arm::<CreationRecord>(cx, self.driver.id(), &self.arm)?;
        if self.prepared.take().is_none() && self.instances == 0 && had_places.is_empty() {
            return Ok(());
        }
        let api = self.driver.connect(cx, DETECT_LIMIT)?;
        let labels = [
            format!("tare.run={}", cx.run),
            format!("tare.arm={}", self.arm),
        ];
        api.remove_labelled(&labels)?;
        if !self.is_foreign() {
            image::remove(&api, &packed::packed_name(cx.run, &self.arm))?;
        }
        for number in 1..=self.instances {
            if let Some(folder) = self.belongings(cx, number).folder {
                served::remove(cx.exec, &folder)?;
            }
        }
        self.instances = 0;
        let place = CreationRecord::new(cx, &self.arm, self.driver.named(), &self.settings);
        record::forget(cx, self.driver.id(), &self.arm, &place)
    }
}
