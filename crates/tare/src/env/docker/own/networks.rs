//! The network of copies whose original is on networks of the user's: one of the run's own, so that no copy talks to
//! what is on those.
//!
//! It carries the run's label, is on record before it is made, and is removed with the run.
//! What it cannot see: what a network of another driver than `bridge` does to a program; copies have a bridge.

use std::collections::BTreeSet;

use bollard::models::NetworkCreateRequest;
use bollard::query_parameters::InspectNetworkOptions;
use serde_json::Value;
use tare_model::ArmId;

use super::super::Docker;
use super::super::api::{Api, labels_of_run};
use super::super::errors::{is_missing, printable};
use super::super::places::Place;
use super::super::running::looked_up;
use super::template::Template;
use crate::cx::{CONTROL_LIMIT, Context};
use crate::env::{Driver as _, EnvError, record};

/// Modes that are no network of the user's.
const NOT_THE_USERS: [&str; 5] = ["", "default", "bridge", "host", "none"];
/// The one option of a network that changes what a program can do on it.
const MTU: &str = "com.docker.network.driver.mtu";

/// The networks of the user's that a container is on, and the containers to which it has links.
fn named(body: &Value) -> (BTreeSet<String>, Vec<String>) {
    let host = &body["HostConfig"];
    let mode = host["NetworkMode"].as_str().unwrap_or_default();
    let endpoints = body["NetworkingConfig"]["EndpointsConfig"].as_object();
    let names = endpoints.into_iter().flat_map(|it| it.keys());
    let names = names.map(String::as_str).chain([mode]);
    let names = names.filter(|name| !NOT_THE_USERS.contains(name));
    let links = host["Links"].as_array().into_iter().flatten();
    let links = links.filter_map(Value::as_str);
    (
        names.map(str::to_owned).collect(),
        links.map(str::to_owned).collect(),
    )
}

/// What a network of the user's is like, as far as copies are to find the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Like {
    /// Whether nothing outside is reached from it.
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
    let request = api
        .client
        .inspect_network(name, None::<InspectNetworkOptions>);
    let found = match api.attempt(CONTROL_LIMIT, request) {
        Err(error) if is_missing(&error) => {
            return Err(EnvError::Absent {
                why: format!("there is no network `{}`", printable(name)),
                fix: Some("`docker network ls` lists them".into()),
            });
        }
        found => {
            found.map_err(|error| api.explain("inspect the network", CONTROL_LIMIT, &error))?
        }
    };
    let mut options = found.options.unwrap_or_default();
    Ok(Like {
        is_internal: found.internal.unwrap_or(false),
        is_none: false,
        mtu: options.remove(MTU),
    })
}

/// Puts a container that is on networks of the user's, or linked to its containers, on a network of the run's own, unless
/// it is to join those; what it does not join, in words.
pub(super) fn isolate(
    cx: &Context<'_>,
    (docker, api): (&Docker, &Api),
    template: &mut Template,
) -> Result<Vec<String>, EnvError> {
    let (names, links) = named(&template.body);
    if (names.is_empty() && links.is_empty()) || template.network().is_some() {
        return Ok(Vec::new());
    }
    if template.joins {
        // Without it an arm would be on the default bridge, where other containers are.
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
        let name = format!("tare-{}-own", cx.run);
        let arm = ArmId::new("network").expect("the constant is a name");
        record::add(cx, docker.id(), &arm, &Place::beside(&arm, docker.named()))?;
        let mtu = all.iter().find_map(|it| it.mtu.clone());
        let request = NetworkCreateRequest {
            name: name.clone(),
            internal: Some(is_so(|it| it.is_internal || it.is_none)),
            options: mtu.map(|mtu| [(MTU.to_owned(), mtu)].into()),
            labels: Some(labels_of_run(cx)),
            ..Default::default()
        };
        let request = api.client.create_network(request);
        api.call("create a network for the copies", CONTROL_LIMIT, request)?;
        template.move_to(&name);
    }
    Ok(words(&names, &links))
}

fn words(names: &BTreeSet<String>, links: &[String]) -> Vec<String> {
    let names = names.iter().map(|name| match name.split_once(':') {
        Some(("container", other)) => {
            format!("the network of the container `{}`", printable(other))
        }
        _ => format!("the network `{}`", printable(name)),
    });
    let links = links.iter().map(|link| {
        let other = link.split(':').next().unwrap_or_default();
        format!("`--link {}`", printable(other.trim_start_matches('/')))
    });
    names.chain(links).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn networks_of_the_user_are_told_from_the_engines() {
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
