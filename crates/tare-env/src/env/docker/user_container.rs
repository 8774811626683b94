//! A user's container as an arm: its whole configuration, compared with that of a plain container.
//!
//! The configuration ([`template`]) and a plain one of the same image differ in a list of switches ([`difference`]).
//! The user's container is never touched: arms are new containers, and what they may share with it is decided in
//! [`shared`]. Secrets stay in the run's private file, and are never shown.
//! Limits: changes to an original since its start are not seen; arms have the image's files.

use crate::env::prelude::*;

use bollard::models::ImageInspect;

use super::Docker;
use super::api::Api;
use crate::env::image::packed;
use crate::env::user_container::command::Started;
use crate::env::user_container::limits;
use crate::env::user_container::machine::writable;
use crate::env::user_container::protect;
use crate::env::user_container::reach;
use crate::env::user_container::{
    self as env_own, ArmRequest, ChangedLine, ContainerRequest, INSIDE, LIKE, Shares, Source,
    UserContainer,
};

mod arm;
mod bare;
mod changed;
mod compose;
mod copies;
mod dependencies;
mod difference;
mod engine_machine;
#[cfg(unix)]
mod line;
mod networks;
mod parts;
mod patch;
mod remedy;
mod resolver;
mod template;
mod temporary;

use crate::env::user_container::shared::Copy;
pub(super) use arm::{ArmTemplate, templates_of};
use copies::Copies;
pub(super) use copies::lay_in;
use difference::parts;
pub(super) use engine_machine::EngineMachine;
use template::version_of;
pub(super) use template::{Template, body_of};

/// The difference of the engine's AppArmor profile.
const APPARMOR: &str = concat!("engine", ".apparmor");

/// The command that a container runs by default, and its working directory.
fn started(body: &Value, image: &ImageInspect) -> Started {
    let list = |value: &Value| -> Option<Vec<String>> {
        let words: Vec<String> = texts_of(value).map(str::to_owned).collect();
        (!words.is_empty()).then_some(words)
    };
    let shown = |words: Vec<String>| -> Vec<String> {
        words.into_iter().filter(|word| !word.is_empty()).collect()
    };
    let config = image.config.clone().unwrap_or_default();
    let own_entry = list(&body["Entrypoint"]);
    let own_command = list(&body["Cmd"]);
    let images_entry = shown(config.entrypoint.unwrap_or_default());
    // If the container sets an entrypoint, the image's command does not apply.
    let command = match (&own_entry, own_command) {
        (_, Some(command)) => command,
        (Some(_), None) => Vec::new(),
        (None, None) => config.cmd.unwrap_or_default(),
    };
    let entry = own_entry.map_or_else(|| images_entry.clone(), shown);
    let path = |path: Option<&str>| path.filter(|path| !path.is_empty()).map(str::to_owned);
    let image_directory = path(config.working_dir.as_deref()).unwrap_or_else(|| "/".to_owned());
    Started {
        has_images_entry: entry == images_entry,
        entry,
        command: shown(command),
        directory: path(body["WorkingDir"].as_str()).unwrap_or_else(|| image_directory.clone()),
        image_directory,
    }
}

/// The started dependencies of a compose service.
#[derive(Debug, Default)]
struct StartedDependencies {
    /// The network they are on, in the client's terms; `None` if the service has a network mode other than
    /// `service:`.
    network: Option<String>,
    notes: Vec<String>,
}

/// A user's container, line or service, resolved.
struct ResolvedContainer {
    template: Template,
    image: ImageInspect,
    platform: Option<String>,
    /// Its name for messages.
    name: String,
    notes: Vec<String>,
    /// For a service: its section of the compose file.
    section: Option<Value>,
}

impl ResolvedContainer {
    fn resolve(cx: &Context<'_>, api: &Api, wish: &ContainerRequest<'_>) -> Result<Self, EnvError> {
        Self::changed(cx, api, wish, None, None)
    }

    /// Resolves it with an override of the user's compose file and with started dependencies, if any.
    fn changed(
        cx: &Context<'_>,
        api: &Api,
        wish: &ContainerRequest<'_>,
        over: Option<&Path>,
        others: Option<&StartedDependencies>,
    ) -> Result<Self, EnvError> {
        let of_line = |words: &[String]| {
            let (template, image, platform) = Template::of_line(cx, api, words, wish.shares)?;
            Ok(Self {
                name: format!("docker run … {}", printable(template.image())),
                template,
                image,
                platform,
                notes: Vec::new(),
                section: None,
            })
        };
        match wish.source {
            Source::Line(words) => of_line(words),
            Source::Service { file, service } => {
                let over = over.map(|path| path.display().to_string());
                let files: Vec<&str> = std::iter::once(file).chain(over.as_deref()).collect();
                let found = compose::service(cx, &files, service, others)?;
                let mut taken =
                    of_line(&found.words).map_err(|error| found.unbuilt(error, file, service))?;
                found.complete(&mut taken.template.body);
                if others.is_some_and(|others| others.network.is_some()) {
                    taken.template.keep_network();
                }
                Ok(Self {
                    name: format!("{} of {}", printable(service), printable(file)),
                    notes: found.notes,
                    section: Some(found.section),
                    ..taken
                })
            }
            Source::Container(name) | Source::Inside(name) => {
                let (template, image) = Template::of_container(cx, api, name, wish.shares)?;
                Ok(Self {
                    template,
                    image,
                    platform: None,
                    name: printable(name),
                    notes: Vec::new(),
                    section: None,
                })
            }
        }
    }

    /// The settings of an arm that is like it.
    fn settings(&self, file: &Path, context: Option<&str>) -> Params {
        let settings = Params::new().with(LIKE, file.display().to_string());
        let settings = of_context(settings, context);
        match &self.platform {
            Some(platform) => settings.with("platform", platform.as_str()),
            None => settings,
        }
    }
}

fn of_context(settings: Params, context: Option<&str>) -> Params {
    match context {
        Some(name) => settings.with("context", name),
        None => settings,
    }
}

#[cfg(not(unix))]
mod line {
    //! Stands in for the client where it cannot be asked.
    use crate::env::prelude::*;

    pub(super) struct Request {
        pub(super) body: Value,
        pub(super) platform: Option<String>,
    }

    pub(super) fn asked(_: &Context<'_>, _: &str, _: &[String]) -> Result<Request, EnvError> {
        Err(EnvError::absent(
            "a line can be asked of its client only where there are Unix sockets",
            "start the container and take it: `--like CONTAINER`",
        ))
    }
}

impl Docker {
    /// Takes a user's container, line or service: [`crate::env::Driver::take`].
    pub(super) fn taken(
        &self,
        cx: &Context<'_>,
        wish: &ContainerRequest<'_>,
    ) -> Result<UserContainer, EnvError> {
        let (api, engine) = self.identify_linux(cx)?;
        let inside = match wish.source {
            Source::Inside(name) => {
                super::running::must_run(&api, name)?;
                Some(of_context(Params::new().with(INSIDE, name), wish.context))
            }
            _ => None,
        };
        let machine = EngineMachine::new(&api, &engine);
        let others = match wish.source {
            Source::Service { file, service } if wish.with_dependencies => {
                let started = dependencies::started(cx, &api, &machine, (file, service));
                Some(started?)
            }
            _ => None,
        };
        let mut found = ResolvedContainer::changed(cx, &api, wish, None, others.as_ref())?;
        let architecture = found.image.architecture.as_deref();
        if let Some(architecture) = architecture.filter(|it| !it.is_empty()) {
            packed::check_processor(cx.agents, found.template.image(), architecture)?;
        }
        let mut notes = std::mem::take(&mut found.notes);
        notes.extend(others.into_iter().flat_map(|others| others.notes));
        let template = &mut found.template;
        template.joins = wish.consent.join_networks;
        if engine.elsewhere.is_none() {
            template.limits = limits::here();
        }
        let networks = networks::isolate(cx, &api, template, None)?;
        notes.extend(networks.iter().map(|it| env_own::not_joined(it)));
        let copies = Copies {
            cx,
            api: &api,
            machine: &machine,
            folder: wish.folder,
        };
        notes.extend(copies.take(template, &found.image)?);
        template.shown(&template.body, &machine, &mut notes);
        notes.extend(template.warned());
        let answers = match wish.source {
            // A line is what its user would start anyway, and the running container is there already.
            Source::Line(_) | Source::Inside(_) => None,
            _ => reach::would_answer(&template.body, serves(&found.image)),
        };
        let started = started(&template.body, &found.image);
        let own = started.own("docker");
        let differences = parts(template.pair())
            .into_iter()
            .map(|part| part.difference)
            .chain(own.differences)
            .filter(|it| !template.keeps(&it.id))
            .filter(|it| it.id != APPARMOR || super::facts::has_apparmor(&engine.facts))
            .map(|it| advised(it, wish.source, found.section.as_ref()))
            .collect();
        let writes = wish.shares == Shares::Shared;
        let mut taken = UserContainer {
            name: std::mem::take(&mut found.name),
            differences,
            notes,
            inside,
            answers,
            networks,
            writable: writable(&template.body, &machine),
            published: published(&template.body),
            reads_input: template.body["OpenStdin"] == true,
            is_written: writes,
            is_elsewhere: engine.elsewhere.is_some(),
            ..own
        };
        template.kept = protect::guard(&mut taken, &template.body, wish.consent, &machine)?;
        let file = kept(wish.folder, KEPT, template)?;
        taken.settings = found.settings(&file, wish.context);
        Ok(taken)
    }

    /// Gives every arm copies of what it could write to: [`crate::env::Driver::take_copies`].
    pub(super) fn taken_with_copies(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
    ) -> Result<Option<Vec<ChangedLine>>, EnvError> {
        let ArmRequest { wish, settings } = *taken;
        let (api, engine) = self.identify_linux(cx)?;
        let like = settings.text(LIKE).unwrap_or_default();
        let (mut template, image) = Template::read(cx, &api, like)?;
        let machine = EngineMachine::new(&api, &engine);
        let copies = Copies {
            cx,
            api: &api,
            machine: &machine,
            folder: wish.folder,
        };
        let notes = copies.stand_in(&mut template, &image)?;
        if notes.is_some() {
            kept(wish.folder, KEPT, &template)?;
        }
        Ok(notes)
    }

    /// Checks that the dependencies of a service still run: [`crate::env::Driver::check_beside`].
    pub(super) fn are_dependencies_up(&self, cx: &Context<'_>) -> Result<(), EnvError> {
        let (api, _) = self.identify_linux(cx)?;
        dependencies::check(cx, &api)
    }
}

/// The ports that a configuration publishes under fixed numbers, as (outside, inside).
fn published(body: &Value) -> Vec<(u16, u16)> {
    let of_port = |(inside, bindings): (&String, &Value)| {
        let inside: Option<u16> = inside.strip_suffix("/tcp").and_then(|it| it.parse().ok());
        let outside = entries_of(bindings).filter_map(|it| it["HostPort"].as_str()?.parse().ok());
        outside
            .filter_map(|outside| Some((outside, inside?)))
            .collect::<Vec<_>>()
    };
    members_of(&body["HostConfig"]["PortBindings"])
        .flat_map(of_port)
        .collect()
}

/// Whether an image exposes ports, i.e. runs a server.
fn serves(image: &ImageInspect) -> bool {
    let config = image.config.as_ref();
    let ports = config.and_then(|config| config.exposed_ports.as_ref());
    ports.is_some_and(|ports| !ports.is_empty())
}

/// Returns a difference with advice that fits where the container comes from.
fn advised(
    mut difference: env_own::Difference,
    source: Source<'_>,
    section: Option<&Value>,
) -> env_own::Difference {
    let of = match source {
        Source::Line(_) => return difference,
        Source::Container(_) | Source::Inside(_) => " from what it is made with",
        Source::Service { service, .. } => {
            let ids = std::slice::from_ref(&difference.id);
            if let Some(patch) = section.and_then(|section| remedy::patch(service, section, ids)) {
                difference.advice =
                    format!("`{patch}` in a `compose.override.yml` next to the file");
                return difference;
            }
            " from what the service has"
        }
    };
    difference.advice = difference.advice.replace(" from the `docker run` line", of);
    difference
}

/// The file in the run's folder with the configuration.
const KEPT: &str = "own-container.json";

/// Writes the configuration to a private file.
fn kept(folder: &Path, name: &str, template: &Template) -> Result<PathBuf, EnvError> {
    let file = folder.join(name);
    env_own::keep(&file, template)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ImageConfig;

    #[test]
    fn custom_entrypoint_drops_image_command() {
        let words = |text: &str| Some(text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let image = ImageInspect {
            config: Some(ImageConfig {
                entrypoint: words("/entry"),
                cmd: words("serve all"),
                working_dir: Some("/app".into()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let of = |body: Value| started(&body, &image).argv().join(" ");
        assert_eq!(of(json!({})), "/entry serve all");
        assert_eq!(of(json!({"Cmd": ["one"]})), "/entry one");
        assert_eq!(of(json!({"Entrypoint": ["sh"]})), "sh");
        assert_eq!(of(json!({"Entrypoint": [""], "Cmd": ["one"]})), "one");
        assert_eq!(
            started(&json!({"WorkingDir": ""}), &image).directory,
            "/app"
        );
    }
}
