//! Docker Engine, through its API.
//!
//! The API rather than the `docker` command: one request does one thing, so the engine is timed and not a client's
//! start-up; errors keep their status; and no shell, terminal or output format is in between.
//! A resident instance is a container whose first process does nothing, with an agent started by `exec`; an instance
//! for one first instruction is a container whose first process is the agent, attached before the start. Networks,
//! security profile, logging and cgroups are the engine's defaults unless a setting says otherwise, because users
//! have the defaults.
//! Limits: other load on the engine's machine is not seen if that is not this machine, as with Docker Desktop or a
//! remote engine.

use crate::env::prelude::*;

use std::io;

use tare_model::launch::DockerRelease;

use super::record;
use super::user_container::image_command::ImageCommand;
use super::user_container::{
    ArmRequest, Bare, Changed, ChangedLine, ContainerRequest, ImageParts, UserContainer,
};

mod api;
mod as_typed;
mod bounded;
mod catalogue;
mod channel;
mod created;
mod creation_record;
mod endpoint;
mod environment;
mod errors;
mod facts;
mod guest;
mod image;
mod inside;
mod instance;
mod locality;
mod profile;
mod request;
mod running;
mod served;
mod settings;
mod system;
mod user_container;

use api::{Api, DENIED_FIX};
use catalogue::SETTINGS;
use creation_record::CreationRecord;
use endpoint::{Endpoint, EngineName};
use environment::DockerEnvironment;
use inside::InsideEnvironment;
use settings::Settings;
use system::System;

/// Time limit of `detect`.
const DETECT_LIMIT: Duration = Duration::from_secs(3);

/// The engine that the `docker` command would use here.
pub static DOCKER: Docker = Docker { engine: None };

/// The release of the engine that the `docker` command would use, if it listens on a socket of this machine; other
/// machines are not asked. `None` without an engine, or if another program speaks Docker's API there.
pub(super) fn release_here(cx: &Context<'_>) -> Option<DockerRelease> {
    let endpoint = DOCKER.endpoint().ok()?;
    if !matches!(endpoint, Endpoint::Socket(_)) {
        return None;
    }
    let named = (DOCKER.named(), endpoint);
    let api = Api::connect(named, cx.scratch, DETECT_LIMIT).ok()?;
    let what = "tell its version";
    let version = api.call(what, DETECT_LIMIT, api.client.version()).ok()?;
    let mut components = version.components.into_iter().flatten();
    let engine = components.find(|component| component.name == "Engine")?;
    Some(DockerRelease::of_engine(&engine.version))
}

/// The Docker driver.
#[derive(Debug, Clone)]
pub struct Docker {
    /// The engine; `None` for the one that the `docker` command would use.
    engine: Option<EngineName>,
}

impl Docker {
    /// The driver for the engine at `host` (a value of `DOCKER_HOST`), regardless of the environment.
    pub fn with_host(host: impl Into<String>) -> Self {
        Self {
            engine: Some(EngineName::Host(host.into())),
        }
    }

    fn named(&self) -> EngineName {
        self.engine.clone().unwrap_or_else(EngineName::usual)
    }

    /// The driver for a context's engine, or this driver if no context is named.
    fn within(&self, context: Option<&str>) -> Self {
        match context {
            Some(name) => Self {
                engine: Some(EngineName::Context(name.to_owned())),
            },
            None => self.clone(),
        }
    }

    fn endpoint(&self) -> Result<Endpoint, EnvError> {
        Endpoint::resolve(&self.named())
    }

    fn connect(&self, cx: &Context<'_>, limit: Duration) -> Result<Api, EnvError> {
        let endpoint = self.endpoint()?;
        Api::connect((self.named(), endpoint.clone()), cx.scratch, limit)
            .map_err(|reason| self.placed(unreachable(cx, &endpoint, &reason, limit)))
    }

    /// Adds the context, if one is named, to an error.
    fn placed(&self, error: EnvError) -> EnvError {
        let Some(EngineName::Context(name)) = &self.engine else {
            return error;
        };
        let place = format!("of the docker context `{name}`");
        match error {
            EnvError::Absent { why, .. } => {
                EnvError::absent(format!("the engine {place}: {why}"), CONTEXT_FIX)
            }
            EnvError::Denied { what, fix } => EnvError::Denied {
                what: format!("the engine {place}: {what}"),
                fix,
            },
            EnvError::Timeout { phase, limit } => EnvError::absent(
                format!(
                    "the engine {place} does not answer: {phase} took longer than {} s",
                    limit.as_secs_f64()
                ),
                CONTEXT_FIX,
            ),
            other => other,
        }
    }

    fn identify(&self, cx: &Context<'_>, limit: Duration) -> Result<(Api, Engine), EnvError> {
        let api = self.connect(cx, limit)?;
        let (version, info) = api.identity(limit).map_err(|error| self.placed(error))?;
        let facts = facts::of_engine(&api, &version, &info);
        let os_type = info.os_type.or(version.os).unwrap_or_default();
        let architecture = version.arch.or(info.architecture).unwrap_or_default();
        let elsewhere = locality::elsewhere(&facts);
        Ok((
            api,
            Engine {
                facts,
                architecture,
                system: System::from_os_type(&os_type),
                elsewhere,
            },
        ))
    }

    /// The same for what works with Linux containers only.
    fn identify_linux(&self, cx: &Context<'_>) -> Result<(Api, Engine), EnvError> {
        let (api, engine) = self.identify(cx, DETECT_LIMIT)?;
        if engine.system == System::Windows {
            return Err(EnvError::absent(
                "the engine runs Windows containers, and one of the user's own can be asked about on Linux only",
                "in Docker Desktop's menu: `Switch to Linux containers`",
            ));
        }
        Ok((api, engine))
    }
}

/// Properties of a reached engine.
struct Engine {
    facts: Facts,
    architecture: String,
    system: System,
    elsewhere: Option<String>,
}

const CONTEXT_FIX: &str =
    "`docker context ls` lists contexts; start the engine of this one, or name another";

/// Why no engine was reached, with a hint.
fn unreachable(
    cx: &Context<'_>,
    endpoint: &Endpoint,
    reason: &io::Error,
    limit: Duration,
) -> EnvError {
    match reason.kind() {
        io::ErrorKind::PermissionDenied => EnvError::denied(
            format!("`{endpoint}` is there, and this user may not connect to it"),
            DENIED_FIX,
        ),
        io::ErrorKind::TimedOut => EnvError::Timeout {
            phase: format!("connecting to `{endpoint}`"),
            limit,
        },
        io::ErrorKind::ConnectionRefused => EnvError::absent(
            format!("nothing listens at `{endpoint}`: the Docker engine is not running"),
            how_to_start(cx).1,
        ),
        io::ErrorKind::NotFound => {
            let (state, fix) = how_to_start(cx);
            EnvError::absent(
                format!("no Docker engine listens at `{endpoint}`: {state}"),
                fix,
            )
        }
        _ => EnvError::unavailable(format!(
            "cannot connect to `{endpoint}`: {}",
            printable(&reason.to_string())
        )),
    }
}

/// What is installed here, and the command that would start an engine.
fn how_to_start(cx: &Context<'_>) -> (&'static str, String) {
    let rootless = vars::text("XDG_RUNTIME_DIR").map(|folder| format!("{folder}/docker.sock"));
    let desktop = vars::home().map(|home| home.join(".docker/desktop/docker.sock"));
    for path in rootless.map(PathBuf::from).into_iter().chain(desktop) {
        if matches!(files::kind(&path), Ok(files::Kind::Other)) {
            let fix = format!("`export DOCKER_HOST=unix://{}`", path.display());
            return ("another one may listen elsewhere", fix);
        }
    }
    let answers = |program: &str| {
        cx.exec
            .run(
                &CommandLine::new(program, ["--version"]).at_home(),
                b"",
                Duration::from_secs(2),
            )
            .is_ok_and(|finished| finished.succeeded())
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
    fn declared(&self) -> &Declared {
        &tare_core::driver::docker::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        let limit = self
            .endpoint()
            .map_or(DETECT_LIMIT, |endpoint| endpoint.patience());
        let found = self.identify(cx, limit).and_then(|(_, engine)| {
            engine.system.agent(cx.agents, &engine.architecture)?;
            Ok(engine.facts)
        });
        found.into()
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        let settings = Settings::read(settings)?;
        let driver = self.within(settings.context.as_deref());
        if let Some(container) = settings.inside {
            return Ok(Box::new(InsideEnvironment::new(driver, arm, container)));
        }
        Ok(Box::new(DockerEnvironment::new(driver, arm, settings)))
    }

    fn knows_line(&self, command: &[String]) -> bool {
        super::user_container::is_line_for("docker", command)
    }

    fn line_for(
        &self,
        cx: &Context<'_>,
        settings: &Params,
        asked: &ImageCommand,
    ) -> Option<Vec<String>> {
        let driver = self.within(settings.text("context"));
        let (api, _) = driver.identify_linux(cx).ok()?;
        let image = image::inspect(&api, settings.text("image")?).ok()?;
        let config = image.config.unwrap_or_default();
        asked.line("docker", settings, &config.env.unwrap_or_default())
    }

    fn has_container(&self, cx: &Context<'_>, name: &str) -> bool {
        let engine = self.identify(cx, DETECT_LIMIT);
        engine.is_ok_and(|(api, _)| running::looked_up(&api, name).is_ok())
    }

    fn writers(&self, cx: &Context<'_>, path: &Path) -> Vec<String> {
        let engine = self.identify(cx, DETECT_LIMIT);
        engine.map_or_else(|_| Vec::new(), |(api, _)| running::writers(&api, path))
    }

    fn take(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
    ) -> Result<UserContainer, EnvError> {
        self.within(wish.context).taken(cx, wish)
    }

    fn take_bare(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
        taken: &UserContainer,
    ) -> Result<Vec<Bare>, EnvError> {
        self.within(wish.context).taken_bare(cx, wish, taken)
    }

    fn take_outside(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
        taken: &UserContainer,
    ) -> Result<Option<Params>, EnvError> {
        self.within(wish.context).taken_outside(cx, taken)
    }

    fn take_copies(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
    ) -> Result<Option<Vec<ChangedLine>>, EnvError> {
        self.within(taken.wish.context).taken_with_copies(cx, taken)
    }

    fn check_dependencies(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
    ) -> Result<(), EnvError> {
        self.within(wish.context).are_dependencies_up(cx)
    }

    fn take_changed(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
        without: &[String],
    ) -> Result<Changed, EnvError> {
        self.within(taken.wish.context)
            .taken_changed(cx, taken, without)
    }

    fn image_parts(
        &self,
        cx: &Context<'_>,
        settings: &Params,
        paths: &[String],
        folder: &Path,
    ) -> Result<ImageParts, EnvError> {
        let context = settings.text("context");
        self.within(context).parts(cx, settings, paths, folder)
    }

    /// Every place on record must be cleaned. The default engine is cleaned in any case, unless it is absent or this
    /// user may not use it: the run has created nothing elsewhere.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>, EnvError> {
        let mut removed = Vec::new();
        let mut trouble = None;
        let mut looked_at = Vec::new();
        for mut record in record::of_run::<CreationRecord>(cx, self.id(), run)? {
            for place in record.places.clone() {
                let named = place.engine();
                let engine = Self {
                    engine: Some(named.clone()),
                };
                let swept = engine.sweep_engine(cx, run).and_then(|mut lines| {
                    if let Some(guest) = &place.guest {
                        let limit = engine.endpoint()?.patience();
                        guest.leave(&engine.connect(cx, limit)?)?;
                    }
                    lines.extend(
                        place.remove_folders(run, |folder| served::remove(cx.exec, folder))?,
                    );
                    record.forget(&place)?;
                    Ok(lines)
                });
                match swept {
                    Ok(lines) => removed.extend(lines),
                    Err(error) => {
                        let at = format!("in the Docker engine {named}");
                        trouble = Some(record.kept(&at, &error));
                    }
                }
                looked_at.push(named);
            }
        }
        if !looked_at.contains(&self.named()) {
            match self.sweep_engine(cx, run) {
                Ok(lines) => removed.extend(lines),
                Err(EnvError::Absent { .. } | EnvError::Denied { .. }) => {}
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        trouble.map_or(Ok(removed), Err)
    }
}

impl Docker {
    /// Removes everything with the run's label from one engine.
    fn sweep_engine(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>, EnvError> {
        let limit = self.endpoint()?.patience();
        let api = self.connect(cx, limit)?;
        let labels = ["tare=1".to_owned(), format!("tare.run={run}")];
        let mut removed = api.remove_labelled(&labels)?;
        for image in image::packed(&api, &labels)? {
            if image::remove(&api, &image.key)? {
                removed.push(format!("docker image {}", image.name));
            }
        }
        Ok(removed)
    }
}
