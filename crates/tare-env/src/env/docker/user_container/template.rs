//! The configuration of a user's container, as the body of the request that would create it, with that of a plain
//! one.
//!
//! That of a line comes from its client ([`line`](mod@super::line)), that of a container from the engine. It is
//! stored in the run's private file, because it may contain secrets.
//! Limits: changes to an original since its start are not seen.

use crate::env::prelude::*;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse, HostConfig, ImageInspect};

use super::super::api::Api;
use super::super::image;
use super::super::running::looked_up;
use super::difference::{self, Copied, Pair};
use super::line;
use super::temporary;
use crate::env::grammar::Ulimit;
use crate::env::user_container::machine::Machine;
use crate::env::user_container::share::{self, Share};
use crate::env::user_container::shared::{self, Copy};
use crate::env::user_container::{self, Shares, reach};

/// The configuration of a user's container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Template {
    /// The body of the request that created it, or would.
    pub(super) body: Value,
    /// The same for a plain container of the same image.
    pub(super) plain: Value,
    /// The image's variables.
    pub(super) image_env: Vec<String>,
    /// Nanoseconds between two of the image's health checks, if it has one.
    pub(super) images_check_ns: Option<u64>,
    /// Which shares may be written to.
    pub(super) shares: Shares,
    /// Whether a plain one has the same network: either its dependencies are only there, or the network is the run's.
    #[serde(default)]
    has_kept_network: bool,
    /// The names of differences that every arm keeps: they protect the user, or there is no consent to try them.
    #[serde(default)]
    pub(super) kept: Vec<String>,
    /// Whether copies join the user's networks, and whether the user's sockets and named pipes are mounted.
    #[serde(default)]
    pub(super) joins: bool,
    /// The mounts whose files were copied, so that each can be removed.
    #[serde(default)]
    pub(super) copied: Vec<Copied>,
    /// The limits of processes on this machine, if the engine runs here.
    #[serde(default)]
    pub(super) limits: Vec<Ulimit>,
}

impl Template {
    /// Reads a template from the run's private file, or takes the container of this name.
    pub(crate) fn read(
        cx: &Context<'_>,
        api: &Api,
        like: &str,
    ) -> Result<(Self, ImageInspect), EnvError> {
        if !like.starts_with('/') {
            return Self::of_container(cx, api, like, Shares::ReadOnly);
        }
        let template: Self = user_container::kept(like, user_container::CONFIGURATION)?;
        let image = image::inspect(api, template.image())?;
        Ok((template, image))
    }

    fn of((body, plain): (Value, Value), image: &ImageInspect, shares: Shares) -> Self {
        Self {
            body,
            plain,
            image_env: variables_of(image),
            images_check_ns: check_ns(image),
            shares,
            has_kept_network: false,
            kept: Vec::new(),
            joins: false,
            copied: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// Gives the plain one the same network.
    pub(super) fn keep_network(&mut self) {
        self.has_kept_network = true;
        self.plain["HostConfig"]["NetworkMode"] = self.body["HostConfig"]["NetworkMode"].clone();
    }

    /// Moves both it and a plain one to this network, and to no other.
    pub(super) fn move_to(&mut self, network: &str) {
        moved(&mut self.body, network);
        self.keep_network();
    }

    /// The network that a plain one has too, if any.
    pub(super) fn network(&self) -> Option<&str> {
        let mode = self.body["HostConfig"]["NetworkMode"].as_str();
        mode.filter(|_| self.has_kept_network)
    }

    /// Whether this part is no difference, because a plain one has it too.
    pub(super) fn keeps(&self, id: &str) -> bool {
        self.has_kept_network && matches!(id, "network" | "engine.network")
    }

    /// The image's name or id.
    pub(crate) fn image(&self) -> &str {
        self.body["Image"].as_str().unwrap_or_default()
    }

    pub(super) fn pair(&self) -> Pair<'_> {
        Pair {
            body: &self.body,
            plain: &self.plain,
            image_env: &self.image_env,
            images_check_ns: self.images_check_ns,
            copied: &self.copied,
            limits: &self.limits,
        }
    }

    /// The files to copy into an arm without these differences, and where to; none if the image's file reappears.
    pub(crate) fn copied_for(&self, without: &[String]) -> Vec<(Copied, Copy)> {
        let shares = share::shares(&self.body);
        let is_mounted = |copied: &&Copied| shares.iter().any(|it| it.target == copied.target);
        let copied = self.copied.iter().filter(is_mounted);
        copied
            .filter_map(|copied| Some((copied.clone(), copied.copy(without)?)))
            .filter(|(_, copy)| *copy != Copy::Images)
            .collect()
    }

    pub(super) fn of_line(
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
        let template = Self::of((asked.body, plain.body), &image, shares);
        Ok((template, image, asked.platform))
    }

    pub(super) fn of_container(
        cx: &Context<'_>,
        api: &Api,
        name: &str,
        shares: Shares,
    ) -> Result<(Self, ImageInspect), EnvError> {
        let body = inspected(api, name)?;
        let image_id = body["Image"].as_str().unwrap_or_default().to_owned();
        let image = image::inspect(api, &image_id)?;
        // Created and never started, so that the engine shows its defaults.
        let request = ContainerCreateBody {
            image: Some(image_id),
            // Engines fill in defaults only in a `HostConfig` that is present.
            host_config: Some(HostConfig::default()),
            ..Default::default()
        };
        let what = ("plain", "create a plain container to compare with");
        let plain = temporary::with(cx, api, what, request, |name| inspected(api, name))?;
        Ok((Self::of((body, plain), &image, shares), image))
    }

    /// The configuration of an arm without these differences, made safe to run next to the original.
    pub(crate) fn body_of_copy(
        &self,
        without: &[String],
        machine: &dyn Machine,
        notes: &mut Vec<String>,
    ) -> Result<ContainerCreateBody, EnvError> {
        let mut kept = self.kept.clone();
        if self.has_kept_network {
            kept.extend(["network", user_container::protect::ENGINES_NETWORK].map(str::to_owned));
        }
        let without = user_container::protect::removable(without, &kept)?;
        let mut body = difference::without(self.pair(), &without).map_err(EnvError::unavailable)?;
        let limit = |body: &Value| body["HostConfig"]["Memory"].as_i64().unwrap_or(0);
        let had = limit(&self.body);
        if had > 0
            && limit(&body) <= 0
            && let Some(free) = machine.free_memory(had)
        {
            body["HostConfig"]["Memory"] = json!(free << 20);
        }
        request(&self.shown(&body, machine, notes))
    }

    /// Takes the shares, limits and network from another template of the same container.
    pub(super) fn share_like(&mut self, other: &Self) {
        self.shares = other.shares;
        self.copied.clone_from(&other.copied);
        self.limits.clone_from(&other.limits);
        self.kept.clone_from(&other.kept);
        self.joins = other.joins;
        if let Some(network) = other.network().map(str::to_owned) {
            self.move_to(&network);
        }
    }

    /// A configuration, made safe to run next to the original.
    pub(super) fn shown(
        &self,
        body: &Value,
        machine: &dyn Machine,
        notes: &mut Vec<String>,
    ) -> Value {
        let copy = |share: &Share| {
            let mut copied = self.copied.iter().filter(|it| it.target == share.target);
            copied.find_map(|copied| copied.copy(&[]))
        };
        let policy = shared::Policy {
            shares: self.shares,
            joins: self.joins,
            machine,
            copy: &copy,
        };
        shared::for_copy(body, policy, notes)
    }

    /// Warnings about a copy of it: what it reaches, and which fields are lost.
    pub(super) fn warned(&self) -> Vec<String> {
        let lost = self.lost().into_iter();
        let lost = lost.map(|name| format!("NOT carried: `{name}`, which this Tare does not know"));
        reach::warned(&self.body).into_iter().chain(lost).collect()
    }

    /// Fields of newer or older engines that this program does not know and would lose.
    fn lost(&self) -> Vec<String> {
        let Ok(known) = request(&self.body).and_then(|body| {
            serde_json::to_value(body)
                .map_err(|error| EnvError::failed("reading a configuration", &error))
        }) else {
            return Vec::new();
        };
        let mut lost: Vec<String> = members_of(&self.body["HostConfig"])
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

/// Moves a body to another network.
fn moved(body: &mut Value, network: &str) {
    body["HostConfig"]["NetworkMode"] = json!(network);
    body["HostConfig"]["Links"] = Value::Null;
    body["NetworkingConfig"] = Value::Null;
}

/// The newest API version of the engine.
pub(super) fn version_of(api: &Api) -> Result<String, EnvError> {
    let version = api.call("tell its version", CONTROL_LIMIT, api.client.version())?;
    Ok(version.api_version.unwrap_or_else(|| "1.41".to_owned()))
}

fn variables_of(image: &ImageInspect) -> Vec<String> {
    let config = image.config.as_ref();
    config
        .and_then(|config| config.env.clone())
        .unwrap_or_default()
}

/// Nanoseconds between two of the image's health checks, if it has one.
fn check_ns(image: &ImageInspect) -> Option<u64> {
    let config = image.config.as_ref();
    let check = config.and_then(|config| config.healthcheck.as_ref())?;
    let first = check.test.as_deref().and_then(<[String]>::first)?;
    (first != "NONE").then(|| difference::check_ns(check.interval.unwrap_or(0)))
}

/// A body as the client library sends it.
fn request(body: &Value) -> Result<ContainerCreateBody, EnvError> {
    let mut body = body.clone();
    drop_nulls(&mut body);
    serde_json::from_value(body)
        .map_err(|error| EnvError::failed("reading a container's configuration", &error))
}

fn drop_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(drop_nulls);
    }
}

/// The request that would create a container like one of the user's.
///
/// # Errors
/// There is no container of this name, or its configuration is not understood.
pub(crate) fn body_of(api: &Api, name: &str) -> Result<ContainerCreateBody, EnvError> {
    request(&inspected(api, name)?)
}

/// The configuration of a container, as the body of a request.
fn inspected(api: &Api, name: &str) -> Result<Value, EnvError> {
    let found = looked_up(api, name)?;
    shown_body(name, found)
}

/// The body of the request, from an engine's description of a container.
fn shown_body(name: &str, found: ContainerInspectResponse) -> Result<Value, EnvError> {
    let labels = found
        .config
        .as_ref()
        .and_then(|config| config.labels.as_ref());
    if labels.is_some_and(|labels| labels.contains_key("com.docker.swarm.task.id")) {
        return Err(EnvError::absent(
            format!(
                "`{}` is a task of a swarm's service, whose networks and secrets no other container gets",
                printable(name)
            ),
            "ask about the same image with `tare why -- docker run …`",
        ));
    }
    let as_json = |value: Result<Value, serde_json::Error>| {
        value.map_err(|error| EnvError::failed("reading the engine's answer", &error))
    };
    let mut body = as_json(serde_json::to_value(&found.config))?;
    let host = as_json(serde_json::to_value(&found.host_config))?;
    let networks = found
        .network_settings
        .and_then(|settings| settings.networks);
    let networks = as_json(serde_json::to_value(networks))?;
    if !body.is_object() || !host.is_object() {
        return Err(EnvError::unavailable(format!(
            "the engine does not tell what `{}` was made with",
            printable(name)
        )));
    }
    let mode = host["NetworkMode"].as_str().unwrap_or_default().to_owned();
    let is_joined = mode.starts_with("container:");
    let has_own_name = !is_joined && host["UTSMode"] != "host";
    let id = found.id.unwrap_or_default();
    // Engines use the id as the host name of a container that was given none.
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
    // The default network, and another container's, are named by the mode alone.
    body["NetworkingConfig"] = match mode.as_str() {
        "default" | "bridge" | "host" | "none" => Value::Null,
        _ if is_joined => Value::Null,
        _ => json!({"EndpointsConfig": networks}),
    };
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_body_names_no_network_of_the_user() {
        let mut body = json!({
            "HostConfig": {"NetworkMode": "mine", "Links": ["db"], "Dns": ["192.0.2.1"]},
            "NetworkingConfig": {"EndpointsConfig": {"mine": {"Aliases": ["web"]}}}
        });
        moved(&mut body, "other");
        let expected = json!({
            "HostConfig": {"NetworkMode": "other", "Links": null, "Dns": ["192.0.2.1"]},
            "NetworkingConfig": null
        });
        assert_eq!(body, expected);
    }

    /// An engine's description of a container, reduced to the relevant fields.
    fn notes(config: &Value, host: &Value) -> Result<Value, EnvError> {
        let found = json!({
            "Id": "0a1b2c3d4e5f", "Image": "sha256:ff", "Config": config, "HostConfig": host,
            "NetworkSettings": {"Networks": {"mine": {"Aliases": ["web"]}}}
        });
        shown_body("web", serde_json::from_value(found).unwrap())
    }

    #[test]
    fn swarm_task_is_refused_plain_container_is_accepted() {
        let labels =
            json!({"com.docker.swarm.task.id": "x1", "com.docker.swarm.service.name": "web"});
        let error = notes(&json!({"Labels": labels}), &json!({})).unwrap_err();
        assert!(error.to_string().contains("swarm's service"), "{error}");
        assert!(error.hint().unwrap().contains("docker run"));
        let error = notes(&Value::Null, &json!({})).unwrap_err();
        assert!(error.to_string().contains("does not tell"), "{error}");
        let host = json!({"NetworkMode": "mine", "PidMode": "host", "Privileged": true});
        let body = notes(
            &json!({"Hostname": "0a1b2c3d4e5f", "Labels": {"a": "b"}}),
            &host,
        )
        .unwrap();
        // The host name comes from the engine and is dropped; the network stays.
        assert_eq!(body["Hostname"], Value::Null);
        assert_eq!(
            body["NetworkingConfig"]["EndpointsConfig"]["mine"]["Aliases"],
            json!(["web"])
        );
        // Copies have the same rights on the machine.
        assert_eq!(reach::warned(&body).len(), 2);
    }

    #[test]
    fn container_network_has_no_hostname_or_ports() {
        let config = json!({"Hostname": "given", "ExposedPorts": {"80/tcp": {}}});
        let body = notes(&config, &json!({"NetworkMode": "container:ff"})).unwrap();
        assert_eq!(body["Hostname"], Value::Null);
        assert_eq!(body["ExposedPorts"], Value::Null);
        assert_eq!(body["NetworkingConfig"], Value::Null);
    }

    #[test]
    fn client_body_becomes_request_keeping_known_fields() {
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
        let pair = (body, json!({}));
        let template = Template::of(pair, &ImageInspect::default(), Shares::ReadOnly);
        assert_eq!(template.lost(), ["Newest"]);
    }
}
