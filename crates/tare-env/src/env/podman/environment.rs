//! A `podman` arm: prepares its image, rehearses, and starts its containers.
//!
//! Before the first instance, a rehearsal runs `tare-agent version` in a container with the arm's options and removes
//! it. So every refusal is explained while the arm is prepared. If podman's default runtime does not work here (crun
//! on hybrid cgroups), another one is used and recorded in the facts. Limits that podman would accept and silently
//! not apply are refused.
//! Limits: a later start can fail in other ways, such as on a full disk.

use crate::env::prelude::*;

use super::super::image::packed::{self, Contents, agent_archive, agent_for, machine};
use super::super::image::{AGENT_PATH, WORKDIR};
use super::super::record;
use super::caller::{Access, Caller, is_reachable};
use super::facts::{self, Engine, info, note_hybrid};
use super::instance::{
    Belongings, PodmanInstance, agent_file, charged_to, in_memory, remove_containers,
    remove_folder, remove_volumes,
};
use super::settings::{Network, Settings, Storage};
use super::user_container::{Template, networks};
use super::{CreationRecord, Podman, address, detect, errors, image};
use crate::cx::owner;

/// Time limit for unpacking a whole userland onto a busy disk.
const IMPORT_LIMIT: Duration = Duration::from_secs(120);

/// A `podman` arm.
pub(super) struct PodmanEnvironment {
    driver: Podman,
    arm: ArmId,
    settings: Settings,
    /// Programs of the study's workloads.
    provided: FileRequest,
    /// The flags of a user's container, if the arm is like one.
    own: Option<Vec<String>>,
    /// How to call podman, once known; from then on something may have been created.
    access: Option<Access>,
    prepared: Option<Prepared>,
    instances: u32,
}

/// The results of `prepare`.
struct Prepared {
    image: String,
    architecture: String,
    engine: Engine,
    facts: Facts,
}

impl PodmanEnvironment {
    pub(super) fn new(driver: Podman, arm: ArmId, settings: Settings) -> Self {
        Self {
            driver,
            arm,
            settings,
            provided: FileRequest::default(),
            own: None,
            access: None,
            prepared: None,
            instances: 0,
        }
    }

    fn belongings(&self, cx: &Context<'_>, number: u32) -> Belongings {
        let name = format!("tare-{}-{}-{number}", cx.run, self.arm);
        Belongings {
            has_volume: self.settings.storage == Storage::Volume,
            folder: (self.settings.storage == Storage::Bind).then(|| cx.scratch.join(&name)),
            name,
        }
    }

    /// Whether the image is the user's, without an agent in it.
    fn is_foreign(&self) -> bool {
        self.settings.image.is_some() || self.settings.like.is_some()
    }

    /// Whether nothing can be copied into the container, so that the agent must be bind-mounted.
    fn is_closed(&self) -> bool {
        let mut flags = self.own.iter().flatten();
        flags.any(|flag| matches!(flag.as_str(), "--read-only" | "--read-only=true"))
    }

    /// Returns the flags of a user's container, with the agent in place of its program.
    fn like(&self, cx: &Context<'_>, flags: &[String]) -> Vec<String> {
        let mut flags: Vec<String> = flags
            .iter()
            .filter(|flag| !flag.starts_with("--entrypoint"))
            .cloned()
            .collect();
        if self.is_closed() {
            flags.push(format!(
                "--volume={}:{AGENT_PATH}:ro",
                agent_file(cx).display()
            ));
            flags.push(in_memory());
        }
        flags
    }

    fn labels(&self, cx: &Context<'_>) -> [String; 3] {
        [
            "--label=tare=1".to_owned(),
            format!("--label=tare.run={}", cx.run),
            format!("--label=tare.arm={}", self.arm),
        ]
    }

    /// Returns a complete `create` or `run` command, including the agent's arguments.
    fn creation(
        &self,
        cx: &Context<'_>,
        image: &str,
        belongings: &Belongings,
        verb: &[&str],
        agent: &[&str],
    ) -> Vec<String> {
        let mut arguments: Vec<String> = verb.iter().map(|&word| word.to_owned()).collect();
        arguments.extend([
            "--interactive".into(),
            "--pull=never".into(),
            // The agent ends at once when asked; there is no need to wait for one that hangs.
            "--stop-timeout=1".into(),
            format!("--name={}", belongings.name),
            format!("--env=TARE_RUN={}", cx.run),
            format!("--entrypoint=[\"{AGENT_PATH}\"]"),
        ]);
        arguments.extend(self.labels(cx));
        if self.is_foreign() {
            // A foreign image's health check would run during the trials.
            arguments.push("--no-healthcheck".into());
        }
        match &self.own {
            Some(flags) => arguments.extend(self.like(cx, flags)),
            None => arguments.extend(self.settings.options()),
        }
        match self.settings.storage {
            Storage::Layer => {}
            Storage::Volume => arguments.push(format!("--volume={}:{WORKDIR}", belongings.name)),
            Storage::Bind => {
                let folder = belongings.folder.as_deref().unwrap_or(cx.scratch);
                arguments.push(format!("--volume={}:{WORKDIR}", folder.display()));
            }
            Storage::Tmpfs => arguments.push(in_memory()),
        }
        arguments.push(image.to_owned());
        arguments.extend(agent.iter().map(|&word| word.to_owned()));
        arguments
    }

    /// Creates the container's storage.
    fn make_storage(&self, caller: Caller<'_>, belongings: &Belongings) -> Result<()> {
        if belongings.has_volume {
            let labels = self.labels(caller.cx);
            let mut arguments = vec!["volume", "create"];
            arguments.extend(labels.iter().map(String::as_str));
            arguments.push(&belongings.name);
            caller.call("create the volume", &arguments)?;
        }
        if let Some(folder) = &belongings.folder {
            if folder.display().to_string().contains(':') {
                return Err(EnvError::absent(
                    format!(
                        "podman cannot bind `{}`: its name holds a colon",
                        folder.display()
                    ),
                    "put Tare's folder elsewhere with TARE_HOME, or use `storage = \"volume\"`",
                ));
            }
            files::create_folder(folder)?;
            files::open_to_all(folder)?;
            if let Some(account) = &caller.access.account {
                files::give_away(folder, account.uid, account.gid)?;
                is_reachable(caller, account, folder)?;
            }
        }
        Ok(())
    }

    /// Creates a container with the agent in it, which will run with these arguments.
    fn create(
        &self,
        caller: Caller<'_>,
        prepared: &Prepared,
        belongings: &Belongings,
        agent: &[&str],
    ) -> Result<()> {
        self.make_storage(caller, belongings)?;
        let arguments = self.creation(caller.cx, &prepared.image, belongings, &["create"], agent);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let made = caller.call("create the container", &arguments)?;
        // If podman drops a limit of the user's container, it may drop it here too.
        let ignored = errors::ignored_limit(&made.stderr).filter(|_| self.own.is_none());
        if let Some(words) = ignored {
            return Err(EnvError::absent(
                format!("podman does not apply a limit that was asked for ({words})"),
                "leave the limit out, or use rootful podman or cgroups of version 2",
            ));
        }
        if self.is_foreign() && !self.is_closed() {
            let program = agent_for(caller.cx.agents, &prepared.architecture)?.bytes()?;
            let target = format!("{}:/", belongings.name);
            let what = "copy the agent into the container";
            caller.call_with(what, &["cp", "-", &target], &agent_archive(&program))?;
        }
        Ok(())
    }

    /// Runs a container with the arm's options to its end, and returns podman's description of it.
    fn rehearse(&self, caller: Caller<'_>, prepared: &Prepared) -> Result<Value> {
        let belongings = self.belongings(caller.cx, 0);
        let name = belongings.name.as_str();
        let outcome = self
            .create(caller, prepared, &belongings, &["version"])
            .and_then(|()| {
                let arguments = ["start", "--attach", name];
                let shown = caller.call("start a container", &arguments)?;
                let found = caller.inspect("container", name)?;
                // The output is no evidence: podman can attach too late for a program this short.
                if found["State"]["ExitCode"] == 0 {
                    return Ok(found);
                }
                Err(errors::explain(
                    "run the agent in a container",
                    &shown.stderr,
                ))
            });
        let cleaned = belongings.discard(caller);
        match outcome {
            Ok(found) => cleaned.map(|()| found),
            Err(error) => Err(and_cleanup(error, cleaned)),
        }
    }

    /// Refuses limits that podman would accept and not apply.
    fn check_limits(&self, engine: &Engine) -> Result<()> {
        if !engine.is_rootless {
            return Ok(());
        }
        for (setting, controller) in self.settings.limits() {
            if engine.cgroup_version == 1 {
                return Err(EnvError::absent(
                    format!(
                        "`{setting}` has no effect on rootless podman here: limits need cgroups of version 2, and this machine has version 1"
                    ),
                    "leave it out, or start the machine with systemd.unified_cgroup_hierarchy=1",
                ));
            }
            if !engine.controllers.iter().any(|known| known == controller) {
                return Err(EnvError::absent(
                    format!(
                        "`{setting}` has no effect on rootless podman here: the controller `{controller}` is not delegated to the user"
                    ),
                    format!(
                        "add `Delegate={controller}` for user@.service: `systemctl edit user@.service`"
                    ),
                ));
            }
        }
        Ok(())
    }

    fn try_prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        let access = self.driver.access(cx, &self.settings)?;
        let mut access = self.access.insert(access).clone();
        let place = CreationRecord::new(&access);
        record::add(cx, self.driver.id(), &self.arm, &place)?;
        if access.account.is_some() {
            owner::let_through(cx.scratch)?;
        }
        let caller = access.caller(cx);
        let engine = info(caller)?;
        self.check_limits(&engine)?;
        let mut packed_facts = Facts::new();
        let template = Template::of_arm(caller, &self.arm, &self.settings)?;
        if let Some(template) = &template {
            let mut shown = Vec::new();
            let without = &self.settings.without;
            self.own = Some(template.flags_of_copy(caller, without, &mut shown)?);
        }
        let own_image = template
            .as_ref()
            .map(|template| template.image().to_owned());
        let (name, found, delivery) =
            if let Some(name) = self.settings.image.as_ref().or(own_image.as_ref()) {
                let found = image::inspect(caller, name)?;
                (name.clone(), found, "copied into each container")
            } else {
                let contents = Contents {
                    wanted: self.settings.wanted.clone(),
                    provided: self.provided.clone(),
                    lower_file: None,
                };
                let root = packed::root(cx, &engine.architecture, &contents, &mut packed_facts)?;
                let found = image::ensure_packed(caller.within(IMPORT_LIMIT), &self.arm, root)?;
                let name = image::own_name(cx.run, &self.arm);
                (name, found, "part of the image")
            };
        let architecture = found["Architecture"].as_str();
        let architecture = architecture.unwrap_or(&engine.architecture).to_owned();
        let agent = agent_for(cx.agents, &architecture)?;
        if self.is_closed() {
            files::write_program(&agent_file(cx), &agent.bytes()?)?;
        }
        let mut prepared = Prepared {
            image: name,
            architecture,
            engine,
            facts: Facts::new(),
        };
        let rehearsed = self.rehearse_with_runtime(cx, &mut access, &mut prepared)?;
        let facts = &mut prepared.facts;
        facts.extend(prepared.engine.facts.clone());
        facts.extend(packed_facts);
        facts::of_image(facts, &prepared.image, &found);
        facts::of_container(facts, &rehearsed);
        facts::of_options(facts, &self.settings.options());
        let mut put = |name: &str, value: &str| facts.insert(name.into(), value.into());
        put(fact::AGENT_DELIVERY, delivery);
        put(fact::AGENT_SHA256, &agent.sha256);
        if let Some(user) = access.user() {
            put(fact::ENGINE_USER, &user);
        }
        if machine(&prepared.architecture) != machine(&prepared.engine.architecture) {
            put(fact::IMAGE_EMULATED, "true");
        }
        self.access = Some(access);
        self.prepared = Some(prepared);
        Ok(())
    }

    /// Rehearses with podman's OCI runtime, or with runc if that one refuses this machine's hybrid cgroups; returns the
    /// rehearsed container.
    fn rehearse_with_runtime(
        &self,
        cx: &Context<'_>,
        access: &mut Access,
        prepared: &mut Prepared,
    ) -> Result<Value> {
        let has_choice = access.runtime.is_none();
        if !(has_choice && prepared.engine.is_hybrid) {
            let caller = access.caller(cx);
            match self.rehearse(caller, prepared) {
                Err(error) if has_choice && errors::is_hybrid(&error) => note_hybrid(caller),
                other => return other,
            }
        }
        access.runtime = Some("runc".into());
        let caller = access.caller(cx);
        prepared.engine.take_runtime(caller, "runc");
        let chosen = errors::chosen();
        let facts = &mut prepared.engine.facts;
        facts.insert(fact::ENGINE_RUNTIME_CHOSEN.into(), chosen);
        self.rehearse(caller, prepared)
    }

    /// Creates and starts a container, with the agent at the other end of the pipes.
    fn launch(
        &self,
        caller: Caller<'_>,
        prepared: &Prepared,
        belongings: &Belongings,
        mode: StartMode,
    ) -> Result<PodmanInstance> {
        let name = belongings.name.as_str();
        let instance = |running, container: &Value, charged| {
            let ends = self.ends(&prepared.engine, container);
            let (access, belongings) = (caller.access.clone(), belongings.clone());
            PodmanInstance::new(running, caller.cx.cancel, access, belongings, ends, charged)
        };
        if mode == StartMode::Once && !self.is_foreign() {
            // A single command, as a user would start a program.
            self.make_storage(caller, belongings)?;
            let words = mode.arguments();
            let verb = ["run", "--rm=false"];
            let arguments = self.creation(caller.cx, &prepared.image, belongings, &verb, words);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let running = caller.spawn(&arguments)?;
            return Ok(instance(running, &Value::Null, Charged::Nowhere)?);
        }
        self.create(caller, prepared, belongings, mode.arguments())?;
        let mut found = Value::Null;
        if mode == StartMode::Resident {
            // The runtime creates the container and its network here, and reports failures at once.
            caller.call("set up the container", &["init", name])?;
            found = caller.inspect("container", name)?;
        }
        let running = caller.spawn(&["start", "--attach", "--interactive", name])?;
        let charged = charged_to(&prepared.engine, &found);
        Ok(instance(running, &found, charged)?)
    }

    fn ends(&self, engine: &Engine, container: &Value) -> Result<(IpAddr, IpAddr), Reason> {
        if engine.is_remote {
            return Err(no_path("podman's containers run on another machine"));
        }
        match self.settings.network {
            Network::None => Err(no_path("the arm has `network = \"none\"`")),
            Network::Host => Ok(address::loopback()),
            _ if engine.is_rootless => Err(no_path(address::ROOTLESS)),
            _ => address::bridge(container),
        }
    }
}

impl Environment for PodmanEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn provide(&mut self, wanted: &FileRequest) {
        if !self.is_foreign() {
            self.provided.add(wanted);
        }
    }

    fn detect(&self, cx: &Context<'_>) -> Option<Availability> {
        let essentials = self.settings.essentials();
        (essentials != Settings::default()).then(|| detect::detect(cx, &self.driver, &essentials))
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        match self.prepared {
            Some(_) => Ok(()),
            None => self.try_prepare(cx),
        }
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>> {
        if self.prepared.is_none() {
            self.prepare(cx)?;
        }
        self.instances += 1;
        let belongings = self.belongings(cx, self.instances);
        let access = self.access.clone().unwrap_or_default();
        let caller = access.caller(cx);
        let prepared = self.prepared.as_ref().expect("prepared above, or returned");
        match self.launch(caller, prepared, &belongings, mode) {
            Ok(instance) => Ok(Box::new(instance)),
            Err(error) => Err(and_cleanup(error, belongings.discard(caller))),
        }
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        self.prepared
            .as_ref()
            .map(|prepared| prepared.facts.clone())
            .unwrap_or_default()
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<()> {
        let Some(access) = self.access.clone() else {
            return Ok(());
        };
        let caller = access.caller(cx);
        let all: Vec<Belongings> = (0..=self.instances)
            .map(|number| self.belongings(cx, number))
            .collect();
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        remove_containers(caller, &names)?;
        if self.settings.storage == Storage::Volume {
            remove_volumes(caller, &names)?;
        }
        for folder in all.iter().filter_map(|one| one.folder.as_ref()) {
            remove_folder(caller, folder)?;
        }
        if self.settings.like.is_some() {
            networks::remove(caller, &self.arm)?;
        }
        if !self.is_foreign() {
            image::remove(caller, &image::own_name(cx.run, &self.arm))?;
        }
        record::forget(
            cx,
            self.driver.id(),
            &self.arm,
            &CreationRecord::new(&access),
        )?;
        self.access = None;
        self.prepared = None;
        self.instances = 0;
        Ok(())
    }
}
