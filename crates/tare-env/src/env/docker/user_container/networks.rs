//! Puts copies of a container that is on the user's networks on a network of the run instead, so that no copy talks
//! to the user's services.
//!
//! The network has the run's label, is on record before it is created, and is removed with the run.
//! Limits: effects of a network driver other than `bridge` on the program are not seen; copies have a bridge. The
//! engine's own rules keep the networks apart; Docker 20.10 lifts them for a moment whenever any network is created.

use crate::env::prelude::*;

use bollard::models::{NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;

use super::super::Docker;
use super::super::api::{Api, labels_of_run};
use super::super::creation_record::CreationRecord;
use super::super::running::looked_up;
use super::template::Template;
use super::{difference, resolver};
use crate::env::user_container::{LIKE, UserContainer, described_network, network_of_copies};

/// Modes that are not a user's network.
const NOT_THE_USERS: [&str; 5] = ["", "default", "bridge", "host", "none"];
/// The only option of a network that changes what a program can do on it.
const MTU: &str = "com.docker.network.driver.mtu";
/// The option that names the bridge device.
const DEVICE: &str = "com.docker.network.bridge.name";

/// The user's networks that a container is on, and its container links.
fn named(body: &Value) -> (BTreeSet<String>, Vec<String>) {
    let host = &body["HostConfig"];
    let mode = host["NetworkMode"].as_str().unwrap_or_default();
    let endpoints = members_of(&body["NetworkingConfig"]["EndpointsConfig"]);
    let names = endpoints.map(|(name, _)| name.as_str()).chain([mode]);
    let names = names.filter(|name| !NOT_THE_USERS.contains(name));
    let links = texts_of(&host["Links"]);
    (
        names.map(str::to_owned).collect(),
        links.map(str::to_owned).collect(),
    )
}

/// Properties of a user's network that the copies' network must share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Like {
    /// Whether it has no access to the outside.
    is_internal: bool,
    /// Whether there is no network at all.
    is_none: bool,
    mtu: Option<String>,
}

fn like(api: &Api, name: &str) -> Result<Like, EnvError> {
    if let Some(container) = name.strip_prefix("container:") {
        let found = looked_up(api, container)?;
        let host = found.host_config.unwrap_or_default();
        return Ok(Like {
            is_none: host.network_mode.as_deref() == Some("none"),
            ..Like::default()
        });
    }
    let Some(found) = found(api, name)? else {
        return Err(EnvError::absent(
            format!("there is no network `{}`", printable(name)),
            "`docker network ls` lists them",
        ));
    };
    let mut options = found.options.unwrap_or_default();
    Ok(Like {
        is_internal: found.internal.unwrap_or(false),
        is_none: false,
        mtu: options.remove(MTU),
    })
}

/// Moves a container that is on the user's networks, or linked to the user's containers, to a network of the run,
/// unless it is to join them; returns what it does not join, in words. The network belongs to an arm, or to the whole
/// run of `tare why`.
pub(crate) fn isolate(
    cx: &Context<'_>,
    api: &Api,
    template: &mut Template,
    arm: Option<&ArmId>,
) -> Result<Vec<String>, EnvError> {
    let (names, links) = named(&template.body);
    if (names.is_empty() && links.is_empty()) || template.network().is_some() {
        return Ok(Vec::new());
    }
    if template.joins {
        // Otherwise an arm would be on the default bridge, together with other containers.
        template.keep_network();
        return Ok(Vec::new());
    }
    let all: Vec<Like> = names
        .iter()
        .map(|name| like(api, name))
        .collect::<Result<_, _>>()?;
    let is_so = |what: fn(&Like) -> bool| !all.is_empty() && all.iter().all(what);
    if is_so(|it| it.is_none) {
        template.move_to("none");
    } else {
        let name = network_of_copies(cx, arm);
        let like = Like {
            is_internal: is_so(|it| it.is_internal || it.is_none),
            is_none: false,
            mtu: all.iter().find_map(|it| it.mtu.clone()),
        };
        created(cx, api, (&name, arm), like)?;
        template.move_to(&name);
    }
    Ok(words(&names, &links))
}

fn found(api: &Api, name: &str) -> Result<Option<NetworkInspect>, EnvError> {
    let request = api
        .client
        .inspect_network(name, None::<InspectNetworkOptions>);
    api.found("inspect the network", CONTROL_LIMIT, request)
}

/// Creates a network of the run, which is on record before: for an arm of a study, whose place is on record already,
/// or for the whole run. An existing one was created by this run.
fn created(
    cx: &Context<'_>,
    api: &Api,
    (name, arm): (&str, Option<&ArmId>),
    like: Like,
) -> Result<(), EnvError> {
    let mut labels = labels_of_run(cx);
    if let Some(arm) = arm {
        labels.insert("tare.arm".to_owned(), arm.to_string());
    } else {
        CreationRecord::add(cx, api, "network")?;
    }
    if found(api, name)?.is_some() {
        return Ok(());
    }
    let request = NetworkCreateRequest {
        name: name.to_owned(),
        internal: Some(like.is_internal),
        options: like.mtu.map(|mtu| [(MTU.to_owned(), mtu)].into()),
        labels: Some(labels),
        ..Default::default()
    };
    let request = api.client.create_network(request);
    api.call("create a network", CONTROL_LIMIT, request)?;
    Ok(())
}

/// Properties of the network by which copies reach the outside, if they do and nothing of the user's is on it.
fn outside(cx: &Context<'_>, api: &Api, template: &Template) -> Result<Option<Like>, EnvError> {
    let mode = template.body["HostConfig"]["NetworkMode"].as_str();
    match mode.unwrap_or_default() {
        "" | "default" | "bridge" => Ok(Some(Like::default())),
        name if name == network_of_copies(cx, None) => {
            Ok(Some(like(api, name)?).filter(|it| !it.is_internal))
        }
        _ => Ok(None),
    }
}

/// The device and address of a bridge network, in the built-in container's format.
fn bridge_of(network: &NetworkInspect) -> Option<String> {
    let named = network.options.as_ref().and_then(|it| it.get(DEVICE));
    let device = match named {
        Some(name) => name.clone(),
        None => format!("br-{}", network.id.as_ref()?.get(..12)?),
    };
    let ranges = network.ipam.as_ref()?.config.as_ref()?.iter();
    let mut ranges = ranges.filter_map(|it| Some((it.gateway.as_deref()?, it.subnet.as_deref()?)));
    let (gateway, subnet) = ranges.find(|(gateway, _)| !gateway.contains(':'))?;
    let gateway = gateway.split('/').next()?;
    let bits = subnet.split_once('/')?.1;
    Some(format!("{device} {gateway}/{bits}"))
}

impl Docker {
    /// A network like the copies' for bare processes: [`crate::env::Driver::take_outside`].
    pub(crate) fn taken_outside(
        &self,
        cx: &Context<'_>,
        taken: &UserContainer,
    ) -> Result<Option<Params>, EnvError> {
        let (api, engine) = self.identify_linux(cx)?;
        if engine.elsewhere.is_some() || files::own_uid() != 0 {
            return Ok(None);
        }
        let (template, _) =
            Template::read(cx, &api, taken.settings.text(LIKE).unwrap_or_default())?;
        let Some(like) = outside(cx, &api, &template)? else {
            return Ok(None);
        };
        let name = format!("tare-{}-bare", cx.run);
        created(cx, &api, (&name, None), like)?;
        let bridge = found(&api, &name)?.as_ref().and_then(bridge_of);
        let is_here = |bridge: &&String| {
            let device = bridge.split(' ').next().unwrap_or_default();
            files::canonical(&Path::new("/sys/class/net").join(device)).is_ok()
        };
        let Some(bridge) = bridge.as_ref().filter(is_here) else {
            return Err(EnvError::unavailable(
                "the engine's bridges are not on this machine",
            ));
        };
        let all = taken.names(|_| true);
        let body = difference::without(template.pair(), &all).unwrap_or(template.body);
        let names = cx.scratch.join("own-resolv.conf");
        Ok(Some(
            Params::new()
                .with("network", "veth")
                .with("bridge", bridge.as_str())
                .with("binds", resolver::written(&names, &body)?),
        ))
    }
}

fn words(names: &BTreeSet<String>, links: &[String]) -> Vec<String> {
    let names = names.iter().map(|name| described_network(name));
    let links = links.iter().map(|link| {
        let other = link.split(':').next().unwrap_or_default();
        format!("`--link {}`", printable(other.trim_start_matches('/')))
    });
    names.chain(links).collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn bridge_is_found_by_its_name_or_its_networks_id() {
        let of = |options: Value, ranges: Value| {
            let network =
                json!({"Id": "0123456789abcdef", "Options": options, "IPAM": {"Config": ranges}});
            bridge_of(&serde_json::from_value(network).unwrap())
        };
        let six = json!({"Gateway": "2001:db8::1", "Subnet": "2001:db8::/64"});
        let four = json!({"Gateway": "192.0.2.1", "Subnet": "192.0.2.0/24"});
        let expected = Some("br-0123456789ab 192.0.2.1/24".to_owned());
        assert_eq!(of(json!({}), json!([six, four])), expected);
        let named = of(json!({DEVICE: "lab0"}), json!([four]));
        assert_eq!(named.as_deref(), Some("lab0 192.0.2.1/24"));
        assert_eq!(of(json!({}), json!([six])), None);
    }

    #[test]
    fn user_networks_are_distinguished_from_engine_ones() {
        let of = |mode: &str, endpoints: Value, links: Value| {
            let body = json!({
                "HostConfig": {"NetworkMode": mode, "Links": links},
                "NetworkingConfig": {"EndpointsConfig": endpoints}
            });
            let (names, links) = named(&body);
            words(&names, &links).join(", ")
        };
        for mode in NOT_THE_USERS {
            assert_eq!(of(mode, Value::Null, Value::Null), "");
        }
        assert_eq!(
            of("mine", json!({"mine": {}}), Value::Null),
            "the network `mine`"
        );
        assert_eq!(
            of(
                "bridge",
                json!({"bridge": {}, "two": {}}),
                json!(["db:store"])
            ),
            "the network `two`, `--link db`"
        );
        let others = of("container:web", Value::Null, Value::Null);
        assert_eq!(others, "the network of the container `web`");
    }
}
