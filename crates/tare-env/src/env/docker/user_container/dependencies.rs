//! Starts the dependencies of a compose service for the duration of a `tare why`, on their own network.
//!
//! Each is created like an arm from the plugin's output: without its labels and published ports, with the user's
//! files mounted read-only, and with an empty volume in place of each writable one, so that two servers never share
//! one. On the network they have the names by which they call each other. Everything has the run's label, is on the
//! run's record before it is created, and is cleaned up with the run.
//! Limits: the contents of the services' real volumes are missing; here they are empty.

use crate::env::prelude::*;

use bollard::models::{
    ContainerCreateBody, EndpointSettings, HealthConfig, NetworkCreateRequest, NetworkingConfig,
};
use bollard::query_parameters::{CreateContainerOptions, StartContainerOptions};
use tare_model::whole_ns;

use super::super::api::{Api, labels_of_run};
use super::super::creation_record::CreationRecord;
use super::compose::{self, Needed, nanoseconds, needed, plain, strings};
use super::template::Template;
use super::{EngineMachine, StartedDependencies};
use crate::env::user_container::Shares;

/// How long a service may take to meet the condition of those that depend on it.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// The label of a service that must keep running; its value is the service's name.
const STAYS: &str = "tare.stays";
const PAUSE: Duration = Duration::from_millis(100);
const ALONE: &str = "what it can write to is empty here, and the rest read-only; start the project yourself and take the container: `--like CONTAINER`";

/// The engine, and everything that the services have in common.
struct Project<'a> {
    cx: &'a Context<'a>,
    api: &'a Api,
    machine: &'a EngineMachine<'a>,
    file: &'a str,
    config: &'a Value,
}

/// Starts the dependencies of a service, and returns the network they are on.
///
/// # Errors
/// A service cannot be created, or does not meet its condition. Started services are cleaned up with the run.
pub(super) fn started(
    cx: &Context<'_>,
    api: &Api,
    machine: &EngineMachine<'_>,
    (file, service): (&str, &str),
) -> Result<StartedDependencies, EnvError> {
    let config = compose::config(cx, &[file])?;
    let project = Project {
        cx,
        api,
        machine,
        file,
        config: &config,
    };
    let all = needed(&config, service);
    if all.is_empty() {
        return Ok(StartedDependencies::default());
    }
    CreationRecord::add(cx, api, "services")?;
    project.make_network()?;
    let mut notes = Vec::new();
    for needed in &all {
        let name = printable(&needed.name);
        match project.start(needed) {
            Ok(lines) => {
                notes.push(format!(
                    "`{name}`, which it depends on, runs too for the time of the question, with an empty volume where it could write to one of yours"
                ));
                notes.extend(lines.into_iter().map(|line| format!("`{name}`: {line}")));
            }
            Err(error) if needed.may_be_missing => notes.push(format!(
                "`{name}`, without which it can do, is not there: {error}"
            )),
            Err(error) => return Err(error),
        }
    }
    notes.push(
        "the network with what it depends on is the same on both sides, and no difference"
            .to_owned(),
    );
    Ok(StartedDependencies {
        network: project.network_of(service),
        notes,
    })
}

impl Project<'_> {
    fn service(&self, name: &str) -> &Value {
        &self.config["services"][name]
    }

    fn network(&self) -> String {
        format!("tare-{}-services", self.cx.run)
    }

    fn container(&self, service: &str) -> String {
        format!("tare-{}-service-{service}", self.cx.run)
    }

    /// The network of a service in the client's terms; `None` for a network mode other than `service:`.
    fn network_of(&self, service: &str) -> Option<String> {
        match self.service(service)["network_mode"].as_str() {
            None => Some(self.network()),
            Some(mode) => mode
                .strip_prefix("service:")
                .map(|other| format!("container:{}", self.container(other))),
        }
    }

    fn make_network(&self) -> Result<(), EnvError> {
        let request = NetworkCreateRequest {
            name: self.network(),
            labels: Some(labels_of_run(self.cx)),
            ..Default::default()
        };
        let request = self.api.client.create_network(request);
        self.api
            .call("create a network for the services", CONTROL_LIMIT, request)
            .map(drop)
    }

    /// Starts a service; returns notes about parts that are not carried and about what it reaches.
    fn start(&self, needed: &Needed) -> Result<Vec<String>, EnvError> {
        let name = self.container(&needed.name);
        let (body, notes) = self.body(needed)?;
        let options = CreateContainerOptions {
            name: Some(name.clone()),
            ..Default::default()
        };
        let what = format!("create the service `{}`", printable(&needed.name));
        let request = self.api.client.create_container(Some(options), body);
        self.api.call(&what, CONTROL_LIMIT, request)?;
        let what = format!("start the service `{}`", printable(&needed.name));
        let request = self
            .api
            .client
            .start_container(&name, None::<StartContainerOptions>);
        self.api.call(&what, CONTROL_LIMIT, request)?;
        self.wait(needed, &name)?;
        Ok(notes)
    }

    fn body(&self, needed: &Needed) -> Result<(ContainerCreateBody, Vec<String>), EnvError> {
        let name = &needed.name;
        if let Some(mode) = network_of_others(self.service(name)) {
            return Err(EnvError::absent(
                format!(
                    "the service `{}`, which it depends on, has `network_mode: {}`, where a copy would answer in place of the original",
                    printable(name),
                    printable(mode)
                ),
                ALONE,
            ));
        }
        let network = self.network_of(name);
        let found = compose::line(self.config, name, network.as_deref())?;
        let line = Template::of_line(self.cx, self.api, &found.words, Shares::ReadOnly);
        let (mut template, ..) = line.map_err(|error| found.unbuilt(error, self.file, name))?;
        found.complete(&mut template.body);
        let notes = found.notes.into_iter().chain(template.warned()).collect();
        let mut body = template.body_of_copy(&[], &self.machine.emptied(), &mut Vec::new())?;
        if network.as_deref() == Some(self.network().as_str()) {
            let endpoint = EndpointSettings {
                aliases: Some(aliases(name, self.service(name))),
                ..Default::default()
            };
            body.networking_config = Some(NetworkingConfig {
                endpoints_config: Some([(self.network(), endpoint)].into()),
            });
        }
        if let Some(host) = &mut body.host_config {
            // The services that depend on it are on its network.
            host.port_bindings = None;
        }
        let mut labels = labels_of_run(self.cx);
        if !needed.ends {
            labels.insert(STAYS.to_owned(), name.clone());
        }
        body.labels = Some(labels);
        body.healthcheck = health_check(self.service(name)).or(body.healthcheck);
        Ok((body, notes))
    }

    fn wait(&self, needed: &Needed, name: &str) -> Result<(), EnvError> {
        let service = printable(&needed.name);
        let not_ready = |how: String| {
            EnvError::absent(
                format!("the service `{service}`, which it depends on, {how}"),
                ALONE,
            )
        };
        let begun_ns = self.cx.clock.now_ns();
        loop {
            let request = self.api.client.inspect_container(name, None);
            let found = self.api.call("look at a service", CONTROL_LIMIT, request)?;
            let found = found.state.unwrap_or_default();
            let status = found.status.map(|it| it.to_string()).unwrap_or_default();
            let health = found.health.and_then(|it| it.status);
            let health = health.map(|it| it.to_string()).unwrap_or_default();
            let code = found.exit_code.unwrap_or(0);
            match state(needed.ends, &status, code, &health) {
                State::Ready => return Ok(()),
                State::Ended => return Err(ended(&needed.name, code)),
                State::Unhealthy => {
                    return Err(not_ready("is unhealthy by its own check".to_owned()));
                }
                State::NotYet => {}
            }
            if self.cx.cancel.is_requested() {
                return Err(not_ready("was not waited for: interrupted".to_owned()));
            }
            let waited_ns = self.cx.clock.now_ns().saturating_sub(begun_ns);
            if waited_ns > whole_ns(READY_LIMIT) {
                let seconds = READY_LIMIT.as_secs();
                return Err(not_ready(format!("was not ready within {seconds} s")));
            }
            self.cx.clock.sleep(PAUSE);
        }
    }
}

/// Checks again that the services that must keep running do so: one may run for a moment, and end.
///
/// # Errors
/// One has ended.
pub(super) fn check(cx: &Context<'_>, api: &Api) -> Result<(), EnvError> {
    let labels = [format!("tare.run={}", cx.run), STAYS.to_owned()];
    for container in api.containers(&labels)? {
        let request = api.client.inspect_container(&container.key, None);
        let found = api.call("look at a service", CONTROL_LIMIT, request)?;
        let labels = found.config.and_then(|it| it.labels).unwrap_or_default();
        let service = labels.get(STAYS).map(String::as_str).unwrap_or_default();
        let found = found.state.unwrap_or_default();
        let status = found.status.map(|it| it.to_string()).unwrap_or_default();
        if state(false, &status, 0, "") == State::Ended {
            return Err(ended(service, found.exit_code.unwrap_or(0)));
        }
    }
    Ok(())
}

fn ended(service: &str, code: i64) -> EnvError {
    EnvError::absent(
        format!(
            "the service `{}`, which it depends on, ended with status {code}",
            printable(service)
        ),
        ALONE,
    )
}

/// The network mode of a service that uses the host's network or that of a container outside the file.
fn network_of_others(service: &Value) -> Option<&str> {
    let mode = service["network_mode"].as_str();
    mode.filter(|mode| *mode == "host" || mode.starts_with("container:"))
}

/// The names by which others find a service: its own, its container's, and its network aliases.
fn aliases(name: &str, service: &Value) -> Vec<String> {
    let in_networks =
        members_of(&service["networks"]).flat_map(|(_, network)| strings(&network["aliases"]));
    let container = strings(&service["container_name"]);
    let mut all: Vec<String> = std::iter::once(name.to_owned())
        .chain(container)
        .chain(in_networks)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// The health check of a service, if the file has one; otherwise the image's applies.
fn health_check(service: &Value) -> Option<HealthConfig> {
    let check = Some(&service["healthcheck"]).filter(|it| it.is_object())?;
    let length = |name: &str| check[name].as_str().and_then(nanoseconds);
    let test = match &check["test"] {
        _ if check["disable"] == true => vec!["NONE".to_owned()],
        Value::String(text) => vec!["CMD-SHELL".to_owned(), plain(text)],
        other => strings(other),
    };
    Some(HealthConfig {
        test: (!test.is_empty()).then_some(test),
        interval: length("interval"),
        timeout: length("timeout"),
        retries: check["retries"].as_i64(),
        start_period: length("start_period"),
        ..Default::default()
    })
}

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    NotYet,
    /// It ended and will not meet its condition.
    Ended,
    Unhealthy,
}

/// Determines a service's state. One with a health check must be healthy; of the others it is only known that they
/// run.
fn state(ends: bool, status: &str, exit_code: i64, health: &str) -> State {
    match (ends, matches!(status, "exited" | "dead")) {
        (true, true) if exit_code == 0 => State::Ready,
        (_, true) => State::Ended,
        (true, false) => State::NotYet,
        (false, false) => match health {
            "" | "none" | "healthy" if status == "running" => State::Ready,
            "unhealthy" => State::Unhealthy,
            _ => State::NotYet,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_is_ready_if_its_condition_holds() {
        for (ends, status, code, health, expected) in [
            (false, "created", 0, "", State::NotYet),
            (false, "running", 0, "", State::Ready),
            (false, "running", 0, "none", State::Ready),
            (false, "running", 0, "starting", State::NotYet),
            (false, "running", 0, "healthy", State::Ready),
            (false, "running", 0, "unhealthy", State::Unhealthy),
            (false, "exited", 0, "", State::Ended),
            (false, "exited", 1, "starting", State::Ended),
            (true, "running", 0, "", State::NotYet),
            (true, "exited", 0, "", State::Ready),
            (true, "exited", 3, "", State::Ended),
        ] {
            let found = state(ends, status, code, health);
            assert_eq!(found, expected, "{ends} {status} {code} {health}");
        }
    }

    #[test]
    fn service_on_host_or_foreign_network_is_not_started() {
        let of = |service: Value| network_of_others(&service).map(str::to_owned);
        assert_eq!(of(json!({"network_mode": "host"})).as_deref(), Some("host"));
        assert!(of(json!({"network_mode": "container:db"})).is_some());
        for own in [
            json!({}),
            json!({"network_mode": "service:db"}),
            json!({"network_mode": "none"}),
        ] {
            assert_eq!(of(own), None);
        }
    }

    #[test]
    fn service_has_every_compose_network_alias() {
        let config: Value = serde_json::from_str(include_str!("compose/captured.json")).unwrap();
        let web = &config["services"]["web"];
        assert_eq!(aliases("web", web), ["shop", "web"]);
        let named = json!({"container_name": "shop-web-1", "networks": {"default": null}});
        assert_eq!(aliases("web", &named), ["shop-web-1", "web"]);
    }

    #[test]
    fn compose_health_check_replaces_image_only_if_set() {
        let of = |check: Value| health_check(&json!({"healthcheck": check}));
        let check = of(json!({
            "test": ["CMD-SHELL", "ask $$HOME"], "interval": "1m30s", "timeout": "500ms", "retries": 4,
            "start_period": "2s"
        }));
        let check = check.unwrap();
        assert_eq!(check.test.unwrap(), ["CMD-SHELL", "ask $HOME"]);
        assert_eq!(
            (
                check.interval,
                check.timeout,
                check.retries,
                check.start_period
            ),
            (
                Some(90_000_000_000),
                Some(500_000_000),
                Some(4),
                Some(2_000_000_000)
            )
        );
        let none = of(json!({"disable": true})).unwrap();
        assert_eq!(none.test.unwrap(), ["NONE"]);
        // Only the interval changes; the test is the image's.
        assert_eq!(of(json!({"interval": "1s"})).unwrap().test, None);
        assert_eq!(of(Value::Null), None);
    }
}
