//! A container of the user's own as an arm: what it was made with, whole, beside what a plain one would have.
//!
//! A line is asked of its client ([`line`]), a container of the engine. Both give the body of the request that makes
//! a container, and a plain one of the same image gives another; in what they differ is a list of switches
//! ([`difference`]). The user's own is never touched: arms are new containers, and what they may share with it is
//! decided in [`shared`]. What is secret stays in the run's own file, and is never told.
//! What it cannot see: what an original has become since it was started; its files are those of the image.

use std::path::{Path, PathBuf};

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, HostConfig, ImageInspect};
use bollard::query_parameters::CreateContainerOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tare_model::Params;

use super::api::Api;
use super::errors::{is_missing, printable};
use super::{Docker, image};
use crate::cx::{CONTROL_LIMIT, Context, files};
use crate::env::EnvError;
use crate::env::own::{self as env_own, Changed, INSIDE, LIKE, Own, Shares, Source, Wish};

#[cfg(unix)]
mod compose;
mod difference;
mod fields;
#[cfg(unix)]
mod line;
#[cfg(unix)]
mod patch;
mod shared;

use difference::{Pair, parts};
pub(super) use shared::Share;

/// What a container of the user's was made with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Template {
    /// The body of the request that made it, or would.
    body: Value,
    /// The same for a plain container of the same image.
    plain: Value,
    /// The image's own variables.
    image_env: Vec<String>,
    /// What may be written to.
    shares: Shares,
}

impl Template {
    /// Reads one from the run's own file, or takes the container of this name.
    pub(super) fn of(
        cx: &Context<'_>,
        api: &Api,
        like: &str,
    ) -> Result<(Self, ImageInspect), EnvError> {
        if !like.starts_with('/') {
            return Self::of_container(cx, api, like, Shares::ReadOnly);
        }
        let text = files::read_text(Path::new(like)).map_err(|_| EnvError::Absent {
            why: "the file with your container's configuration went with the run that kept it"
                .into(),
            fix: Some("ask again: `tare why` keeps nothing secret for later".into()),
        })?;
        let template: Self = serde_json::from_str(&text).map_err(|error| EnvError::Refused {
            what: "reading the kept configuration".into(),
            answer: printable(&error.to_string()),
        })?;
        let image = image::inspect(api, template.image())?;
        Ok((template, image))
    }

    /// The image's name or id.
    pub(super) fn image(&self) -> &str {
        self.body["Image"].as_str().unwrap_or_default()
    }

    fn pair(&self) -> Pair<'_> {
        Pair {
            body: &self.body,
            plain: &self.plain,
            image_env: &self.image_env,
        }
    }

    #[cfg(unix)]
    fn of_line(
        cx: &Context<'_>,
        api: &Api,
        words: &[String],
        shares: Shares,
    ) -> Result<(Self, ImageInspect, Option<String>), EnvError> {
        let version = version_of(api)?;
        let asked = line::asked(cx, &version, words)?;
        let name = asked.body["Image"].as_str().unwrap_or_default().to_owned();
        let image = image::inspect(api, &name)?;
        let plain = line::asked(cx, &version, &[words[0].clone(), "create".to_owned(), name])?;
        let template = Self {
            body: asked.body,
            plain: plain.body,
            image_env: variables_of(&image),
            shares,
        };
        Ok((template, image, asked.platform))
    }

    #[cfg(not(unix))]
    fn of_line(
        _cx: &Context<'_>,
        _api: &Api,
        _words: &[String],
        _shares: Shares,
    ) -> Result<(Self, ImageInspect, Option<String>), EnvError> {
        Err(EnvError::Absent {
            why: "a line can be asked of its client only where there are Unix sockets".into(),
            fix: Some("start the container and take it: `--like CONTAINER`".into()),
        })
    }

    fn of_container(
        cx: &Context<'_>,
        api: &Api,
        name: &str,
        shares: Shares,
    ) -> Result<(Self, ImageInspect), EnvError> {
        let body = inspected(api, name)?;
        let image_id = body["Image"].as_str().unwrap_or_default().to_owned();
        let image = image::inspect(api, &image_id)?;
        // Made and never started, so that the engine says what it fills in by itself.
        let plain_name = format!("tare-{}-plain", cx.run);
        let request = ContainerCreateBody {
            image: Some(image_id),
            cmd: Some(vec!["/".to_owned()]),
            // Engines fill in what is missing only where there is something to fill in.
            host_config: Some(HostConfig::default()),
            labels: Some(
                [("tare", "1"), ("tare.run", cx.run.as_str())]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            ),
            ..Default::default()
        };
        let options = CreateContainerOptions {
            name: Some(plain_name.clone()),
            ..Default::default()
        };
        api.call(
            "create a plain container to compare with",
            CONTROL_LIMIT,
            api.client.create_container(Some(options), request),
        )?;
        let plain = inspected(api, &plain_name);
        api.remove_container(&plain_name)?;
        let template = Self {
            body,
            plain: plain?,
            image_env: variables_of(&image),
            shares,
        };
        Ok((template, image))
    }

    /// The configuration of an arm that does without these differences, as it may stand beside the original.
    pub(super) fn beside(
        &self,
        without: &[String],
        is_there: &dyn Fn(&Share) -> bool,
        told: &mut Vec<String>,
    ) -> Result<ContainerCreateBody, EnvError> {
        let body = difference::without(self.pair(), without)
            .map_err(|why| EnvError::Absent { why, fix: None })?;
        let body = shared::beside(&body, self.shares, is_there, told);
        request(&body)
    }

    /// Fields that newer or older engines know and this program does not: they would be lost.
    fn lost(&self) -> Vec<String> {
        let Ok(known) = request(&self.body).and_then(|body| {
            serde_json::to_value(body).map_err(|error| EnvError::Refused {
                what: "reading a configuration".into(),
                answer: printable(&error.to_string()),
            })
        }) else {
            return Vec::new();
        };
        let given = self.body["HostConfig"].as_object();
        let mut lost: Vec<String> = given
            .into_iter()
            .flatten()
            .filter(|(name, value)| {
                let is_said = !matches!(value, Value::Null | Value::Bool(false))
                    && **value != json!(0)
                    && **value != json!("");
                is_said && known["HostConfig"][name.as_str()].is_null()
            })
            .map(|(name, _)| printable(name))
            .collect();
        lost.sort();
        lost
    }
}

/// The newest version of the API that the engine speaks.
#[cfg(unix)]
fn version_of(api: &Api) -> Result<String, EnvError> {
    let version = api.call("tell its version", CONTROL_LIMIT, api.client.version())?;
    Ok(version.api_version.unwrap_or_else(|| "1.41".to_owned()))
}

fn variables_of(image: &ImageInspect) -> Vec<String> {
    let config = image.config.as_ref();
    config
        .and_then(|config| config.env.clone())
        .unwrap_or_default()
}

/// A body as the client library sends it.
fn request(body: &Value) -> Result<ContainerCreateBody, EnvError> {
    let mut body = body.clone();
    drop_nulls(&mut body);
    serde_json::from_value(body).map_err(|error| EnvError::Refused {
        what: "reading a container's configuration".into(),
        answer: printable(&error.to_string()),
    })
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}

/// What the engine says of a container of the user's.
///
/// # Errors
/// There is none of this name.
pub(super) fn looked_up(api: &Api, name: &str) -> Result<ContainerInspectResponse, EnvError> {
    api.attempt(CONTROL_LIMIT, api.client.inspect_container(name, None))
        .map_err(|error| {
            if is_missing(&error) {
                EnvError::Absent {
                    why: format!("there is no container `{}` in this Docker engine", printable(name)),
                    fix: Some("`docker ps --all` lists them; DOCKER_HOST or `--set context=NAME` names another engine".into()),
                }
            } else {
                api.explain("inspect the container", CONTROL_LIMIT, &error)
            }
        })
}

/// The request that would make a container like one of the user's.
///
/// # Errors
/// There is none of this name, or it is not understood.
pub(super) fn body_of(api: &Api, name: &str) -> Result<ContainerCreateBody, EnvError> {
    request(&inspected(api, name)?)
}

/// What a container was made with, as the body of a request.
fn inspected(api: &Api, name: &str) -> Result<Value, EnvError> {
    let found = looked_up(api, name)?;
    let labels = found
        .config
        .as_ref()
        .and_then(|config| config.labels.as_ref());
    if labels.is_some_and(|labels| labels.contains_key("com.docker.swarm.task.id")) {
        return Err(EnvError::Absent {
            why: format!(
                "`{}` is a task of a swarm's service, whose networks and secrets no other container gets",
                printable(name)
            ),
            fix: Some("ask about the same image with `tare why -- docker run …`".into()),
        });
    }
    let as_json = |value: Result<Value, serde_json::Error>| {
        value.map_err(|error| EnvError::Refused {
            what: "reading the engine's answer".into(),
            answer: printable(&error.to_string()),
        })
    };
    let mut body = as_json(serde_json::to_value(&found.config))?;
    let host = as_json(serde_json::to_value(&found.host_config))?;
    let networks = found
        .network_settings
        .and_then(|settings| settings.networks);
    let networks = as_json(serde_json::to_value(networks))?;
    if !body.is_object() || !host.is_object() {
        return Err(EnvError::Absent {
            why: format!(
                "the engine does not tell what `{}` was made with",
                printable(name)
            ),
            fix: None,
        });
    }
    let mode = host["NetworkMode"].as_str().unwrap_or_default().to_owned();
    let is_joined = mode.starts_with("container:");
    let has_own_name = !is_joined && host["UTSMode"] != "host";
    let id = found.id.unwrap_or_default();
    // Engines call a container by its id where nobody gave it a name.
    let is_given = body["Hostname"]
        .as_str()
        .is_some_and(|name| !id.starts_with(name));
    if !(is_given && has_own_name) {
        body["Hostname"] = Value::Null;
    }
    if is_joined {
        body["ExposedPorts"] = Value::Null;
    }
    body["Image"] = found.image.map_or(Value::Null, Value::String);
    body["HostConfig"] = host;
    // The usual network, and those that are another's, are named by their mode.
    body["NetworkingConfig"] = match mode.as_str() {
        "default" | "bridge" | "host" | "none" => Value::Null,
        _ if is_joined => Value::Null,
        _ => json!({"EndpointsConfig": networks}),
    };
    Ok(body)
}

/// The command that a container runs by itself, and where.
fn command_of(body: &Value, image: &ImageInspect) -> (Vec<String>, String) {
    let list = |value: &Value| -> Option<Vec<String>> {
        let list = value.as_array()?.iter();
        let words: Vec<String> = list.filter_map(Value::as_str).map(str::to_owned).collect();
        (!words.is_empty()).then_some(words)
    };
    let config = image.config.clone().unwrap_or_default();
    let own_entry = list(&body["Entrypoint"]);
    let own_command = list(&body["Cmd"]);
    // With an entry of one's own the image's command means nothing.
    let command = match (&own_entry, own_command) {
        (_, Some(command)) => command,
        (Some(_), None) => Vec::new(),
        (None, None) => config.cmd.unwrap_or_default(),
    };
    let entry = own_entry.or(config.entrypoint).unwrap_or_default();
    let words = entry.into_iter().chain(command);
    let directory = body["WorkingDir"].as_str().filter(|path| !path.is_empty());
    let directory = directory.map(str::to_owned).or(config.working_dir);
    (
        words.filter(|word| !word.is_empty()).collect(),
        directory
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| "/".to_owned()),
    )
}

/// Whether what a share names is there, as far as this machine can tell.
pub(super) fn is_there(api: &Api, is_here: bool, share: &Share) -> bool {
    if share.is_folder() {
        return !is_here || files::kind(Path::new(&share.source)).is_ok();
    }
    let found = api.attempt(CONTROL_LIMIT, api.client.inspect_volume(&share.source));
    !matches!(found, Err(error) if is_missing(&error))
}

/// Something of the user's, as it is known here.
struct Found {
    template: Template,
    image: ImageInspect,
    platform: Option<String>,
    /// What people call it.
    name: String,
    told: Vec<String>,
}

impl Found {
    fn of(cx: &Context<'_>, api: &Api, wish: &Wish<'_>) -> Result<Self, EnvError> {
        let of_line = |words: &[String]| {
            let (template, image, platform) = Template::of_line(cx, api, words, wish.shares)?;
            Ok(Self {
                name: format!("docker run … {}", printable(template.image())),
                template,
                image,
                platform,
                told: Vec::new(),
            })
        };
        match wish.source {
            Source::Line(words) => of_line(words),
            Source::Service { file, service } => {
                let found = service_of(cx, file, service)?;
                let name = format!("{} of {}", printable(service), printable(file));
                let told = found.told;
                let taken = of_line(&found.words).map_err(|error| match error {
                    // It is built here and not pulled.
                    EnvError::Absent { why, fix: Some(_) } if found.is_built => EnvError::Absent {
                        why,
                        fix: Some(format!(
                            "`docker compose -f {} build {}`",
                            printable(file),
                            printable(service)
                        )),
                    },
                    other => other,
                })?;
                Ok(Self {
                    name,
                    told,
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
                    told: Vec::new(),
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

#[cfg(unix)]
fn service_of(cx: &Context<'_>, file: &str, service: &str) -> Result<compose::Service, EnvError> {
    compose::service(cx, file, service)
}

#[cfg(not(unix))]
fn service_of(
    _cx: &Context<'_>,
    _file: &str,
    _service: &str,
) -> Result<compose_none::Service, EnvError> {
    Err(EnvError::Absent {
        why: "a compose file can be taken only where there are Unix sockets".into(),
        fix: Some("start the service and take its container: `--like CONTAINER`".into()),
    })
}

#[cfg(not(unix))]
mod compose_none {
    //! What there is of a service where none can be taken.
    pub(super) struct Service {
        pub(super) words: Vec<String>,
        pub(super) told: Vec<String>,
        pub(super) is_built: bool,
    }
}

impl Docker {
    /// Takes something of the user's: [`crate::env::Driver::take`].
    pub(super) fn taken(&self, cx: &Context<'_>, wish: &Wish<'_>) -> Result<Own, EnvError> {
        let (api, engine) = self.identify(cx, super::DETECT_LIMIT)?;
        let inside = match wish.source {
            Source::Inside(name) => {
                super::inside::must_run(&api, name)?;
                Some(of_context(Params::new().with(INSIDE, name), wish.context))
            }
            _ => None,
        };
        let mut found = Found::of(cx, &api, wish)?;
        let mut told = std::mem::take(&mut found.told);
        let is_here = engine.elsewhere.is_none();
        let there = |share: &Share| is_there(&api, is_here, share);
        let template = &found.template;
        shared::beside(&template.body, template.shares, &there, &mut told);
        told.extend(shared::warned(&template.body));
        for name in template.lost() {
            told.push(format!(
                "NOT carried: `{name}`, which this Tare does not know"
            ));
        }
        let (argv, directory) = command_of(&template.body, &found.image);
        let mut differences: Vec<_> = parts(template.pair())
            .into_iter()
            .map(|part| part.told)
            .collect();
        for difference in &mut differences {
            let of = match wish.source {
                Source::Line(_) => continue,
                Source::Container(_) | Source::Inside(_) => " out of what it is made with",
                Source::Service { .. } => " out of what the service has",
            };
            difference.advice = difference
                .advice
                .replace(" out of the `docker run` line", of);
        }
        let file = kept(wish.folder, "own-container.json", template)?;
        Ok(Own {
            settings: found.settings(&file, wish.context),
            name: found.name,
            argv,
            directory,
            differences,
            told,
            inside,
        })
    }

    /// Takes it once more without these differences: [`crate::env::Driver::take_changed`]. A line is changed as its
    /// user would.
    pub(super) fn taken_changed(
        &self,
        cx: &Context<'_>,
        wish: &Wish<'_>,
        settings: &Params,
        without: &[String],
    ) -> Result<Changed, EnvError> {
        let fallback = Changed {
            settings: env_own::without(settings, without),
            change: "the same without it, by the switch that found it".to_owned(),
        };
        let Source::Line(words) = wish.source else {
            return Ok(fallback);
        };
        let (api, _) = self.identify(cx, super::DETECT_LIMIT)?;
        let found = Found::of(cx, &api, wish)?;
        let Some(patch) = patch_of(cx, &api, words, &found.template, without)? else {
            return Ok(fallback);
        };
        let wish = Wish {
            source: Source::Line(&patch.0),
            ..*wish
        };
        let changed = Found::of(cx, &api, &wish)?;
        let file = kept(wish.folder, "own-container-changed.json", &changed.template)?;
        Ok(Changed {
            settings: changed.settings(&file, wish.context),
            change: format!("your line {}", patch.1),
        })
    }
}

/// The line without these differences, and what was changed in it.
#[cfg(unix)]
fn patch_of(
    cx: &Context<'_>,
    api: &Api,
    words: &[String],
    template: &Template,
    without: &[String],
) -> Result<Option<(Vec<String>, String)>, EnvError> {
    let Some(verb) = env_own::verb(words) else {
        return Ok(None);
    };
    let version = version_of(api)?;
    let ask = |words: &[String]| line::asked(cx, &version, words).ok().map(|it| it.body);
    let patch = patch::patched(words, verb, template.pair(), without, ask);
    Ok(patch.map(|patch| (patch.words, patch.told)))
}

#[cfg(not(unix))]
fn patch_of(
    _cx: &Context<'_>,
    _api: &Api,
    _words: &[String],
    _template: &Template,
    _without: &[String],
) -> Result<Option<(Vec<String>, String)>, EnvError> {
    Ok(None)
}

/// Keeps the configuration where nobody else reads it.
fn kept(folder: &Path, name: &str, template: &Template) -> Result<PathBuf, EnvError> {
    let file = folder.join(name);
    let text = serde_json::to_vec(template).expect("JSON is always JSON");
    files::write_working(&file, &text)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::ImageConfig;

    #[test]
    fn an_entry_of_ones_own_leaves_the_images_command_out() {
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
        let of = |body: Value| command_of(&body, &image).0.join(" ");
        assert_eq!(of(json!({})), "/entry serve all");
        assert_eq!(of(json!({"Cmd": ["one"]})), "/entry one");
        assert_eq!(of(json!({"Entrypoint": ["sh"]})), "sh");
        assert_eq!(of(json!({"Entrypoint": [""], "Cmd": ["one"]})), "one");
        assert_eq!(command_of(&json!({"WorkingDir": ""}), &image).1, "/app");
    }

    #[test]
    fn a_clients_body_becomes_a_request_and_loses_nothing_that_is_known() {
        let body = json!({
            "Image": "x", "Env": null, "ExposedPorts": {"80/tcp": {}}, "Volumes": {"/v": {}}, "Healthcheck": null,
            "HostConfig": {"CgroupnsMode": "", "Isolation": "", "ConsoleSize": [0, 0], "MemorySwappiness": -1,
                           "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}, "Ulimits": null, "Newest": 7,
                           "LogConfig": {"Type": "", "Config": {}}, "MaskedPaths": null, "CpuShares": 5},
            "NetworkingConfig": {"EndpointsConfig": {}}
        });
        let made = request(&body).unwrap();
        assert_eq!(made.volumes, Some(vec!["/v".to_owned()]));
        assert_eq!(made.host_config.as_ref().unwrap().cpu_shares, Some(5));
        let template = Template {
            body,
            plain: json!({}),
            image_env: Vec::new(),
            shares: Shares::ReadOnly,
        };
        assert_eq!(template.lost(), ["Newest"]);
    }
}
