//! The engine's API, blocking and with time limits.
//!
//! Each value owns a single-threaded runtime that runs only inside [`Api::call`] and the channel: between trials
//! nothing of it is awake. Every request has a limit for the whole exchange, because the client library's limit ends
//! with the response's head and an engine can die or freeze in the body.
//! Requests have no version in their path, so an engine answers with its newest one.

use crate::env::prelude::*;

use std::collections::HashMap;
use std::future::Future;
use std::io;

#[cfg(windows)]
use bollard::API_DEFAULT_VERSION;
use bollard::Docker as Client;
use bollard::errors::Error as ApiError;
use bollard::models::{SystemInfo, SystemVersion};
use bollard::query_parameters::{
    ListContainersOptions, ListNetworksOptions, ListVolumesOptions, RemoveContainerOptions,
};
use tokio::runtime::{Builder, Runtime};

use super::bounded;
use super::endpoint::{Endpoint, EngineName};
use super::errors::{explain, is_conflict, is_missing, system_error};
#[cfg(unix)]
use crate::cx::relay::Relay;

/// The labels of everything that a run creates in an engine.
pub(super) fn labels_of_run(cx: &Context<'_>) -> HashMap<String, String> {
    [("tare", "1"), ("tare.run", cx.run.as_str())]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// An object in the engine that was found by its labels.
pub(super) struct Labelled {
    /// Its name or id for the API.
    pub(super) key: String,
    /// Its name for messages; printable.
    pub(super) name: String,
}

/// A connection's parameters, with the runtime that carries its requests.
pub(super) struct Api {
    pub(super) runtime: Runtime,
    pub(super) client: Client,
    pub(super) endpoint: Endpoint,
    /// The name by which the engine was chosen.
    pub(super) named: EngineName,
    /// The relay to an endpoint that is not a socket of this machine.
    #[cfg(unix)]
    relay: Option<Relay>,
}

impl Api {
    /// Prepares to speak to `endpoint` and checks that it accepts connections. `folder` is for the relay's socket.
    ///
    /// # Errors
    /// The system's own if it does not accept them, and of the kind `TimedOut` after `limit`.
    pub(super) fn connect(
        (named, endpoint): (EngineName, Endpoint),
        folder: &Path,
        limit: Duration,
    ) -> Result<Self, io::Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(io::Error::other)?;
        runtime.block_on(async { tokio::time::timeout(limit, knock(&endpoint)).await })??;
        #[cfg(unix)]
        let (client, relay) = match &endpoint {
            Endpoint::Relayed { command, .. } => {
                let relay = Relay::open(command.clone(), folder).map_err(io::Error::other)?;
                let nearby = Endpoint::Socket(relay.path().display().to_string());
                (client(&nearby), Some(relay))
            }
            _ => (client(&endpoint), None),
        };
        #[cfg(not(unix))]
        let (client, _) = (client(&endpoint), folder);
        Ok(Self {
            runtime,
            client: client.map_err(io::Error::other)?,
            endpoint,
            named,
            #[cfg(unix)]
            relay,
        })
    }

    /// Performs one request within `limit`. `what` is an infinitive for messages.
    pub(super) fn call<T>(
        &self,
        what: &str,
        limit: Duration,
        request: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, EnvError> {
        self.attempt(limit, request)
            .map_err(|error| self.explain(what, limit, &error))
    }

    /// Runs a request about something that may be missing; `None` if it is.
    pub(super) fn found<T>(
        &self,
        what: &str,
        limit: Duration,
        request: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<Option<T>, EnvError> {
        match self.attempt(limit, request) {
            Err(error) if is_missing(&error) => Ok(None),
            found => found
                .map(Some)
                .map_err(|error| self.explain(what, limit, &error)),
        }
    }

    /// Runs a request, at most this long, and returns the client's own error.
    pub(super) fn attempt<T>(
        &self,
        limit: Duration,
        request: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        self.runtime
            .block_on(async { tokio::time::timeout(limit, request).await })
            .unwrap_or(Err(ApiError::RequestTimeoutError))
    }

    /// An API error in the user's terms.
    pub(super) fn explain(&self, what: &str, limit: Duration, error: &ApiError) -> EnvError {
        let endpoint = self.endpoint.to_string();
        if system_error(error) == Some(io::ErrorKind::PermissionDenied) {
            return EnvError::denied(format!("connecting to `{endpoint}`"), DENIED_FIX);
        }
        #[cfg(unix)]
        if let Some(words) = self.relay.as_ref().and_then(Relay::failure)
            && !matches!(error, ApiError::DockerResponseServerError { .. })
        {
            return relay_failure(&endpoint, &words);
        }
        explain(what, &endpoint, limit, error)
    }

    /// The engine's answers to `version` and `info`.
    pub(super) fn identity(
        &self,
        limit: Duration,
    ) -> Result<(SystemVersion, SystemInfo), EnvError> {
        self.call("describe itself", limit, async {
            let version = self.client.version().await?;
            Ok((version, self.client.info().await?))
        })
    }

    /// The objects in an answer, by `named`.
    fn listed<T>(
        &self,
        what: &str,
        answer: impl Future<Output = Result<Vec<T>, ApiError>>,
        named: impl Fn(T) -> Option<Labelled>,
    ) -> Result<Vec<Labelled>, EnvError> {
        let found = self.call(what, CONTROL_LIMIT, answer)?;
        Ok(found.into_iter().filter_map(named).collect())
    }

    /// The containers with these labels, stopped ones included.
    pub(super) fn containers(&self, labels: &[String]) -> Result<Vec<Labelled>, EnvError> {
        let options = ListContainersOptions {
            all: true,
            filters: Some(label_filter(labels)),
            ..Default::default()
        };
        let answer = self.client.list_containers(Some(options));
        self.listed("list containers", answer, |container| {
            let key = container.id?;
            let names = container.names.unwrap_or_default();
            let name = names.first().unwrap_or(&key).trim_start_matches('/');
            Some(Labelled {
                name: printable(name),
                key,
            })
        })
    }

    /// The volumes with these labels.
    pub(super) fn volumes(&self, labels: &[String]) -> Result<Vec<Labelled>, EnvError> {
        let filters = Some(label_filter(labels));
        let answer = async {
            let options = Some(ListVolumesOptions { filters });
            let found = self.client.list_volumes(options).await?;
            Ok(found.volumes.unwrap_or_default())
        };
        self.listed("list volumes", answer, |volume| {
            Some(Labelled {
                name: printable(&volume.name),
                key: volume.name,
            })
        })
    }

    /// The networks with these labels.
    pub(super) fn networks(&self, labels: &[String]) -> Result<Vec<Labelled>, EnvError> {
        let filters = Some(label_filter(labels));
        let answer = self
            .client
            .list_networks(Some(ListNetworksOptions { filters }));
        self.listed("list networks", answer, |network| {
            let name = network.name?;
            Some(Labelled {
                name: printable(&name),
                key: network.id.unwrap_or(name),
            })
        })
    }

    /// Removes the containers, volumes and networks with these labels; returns a line for each.
    pub(super) fn remove_labelled(&self, labels: &[String]) -> Result<Vec<String>, EnvError> {
        let mut removed = Vec::new();
        for container in self.containers(labels)? {
            self.remove_container(&container.key)?;
            removed.push(format!("docker container {}", container.name));
        }
        for volume in self.volumes(labels)? {
            self.remove_volume(&volume.key)?;
            removed.push(format!("docker volume {}", volume.name));
        }
        for network in self.networks(labels)? {
            self.remove_network(&network.key)?;
            removed.push(format!("docker network {}", network.name));
        }
        Ok(removed)
    }

    /// Removes a network; succeeds if it is gone.
    fn remove_network(&self, id: &str) -> Result<(), EnvError> {
        let removal = self.client.remove_network(id);
        self.found("remove a network", CONTROL_LIMIT, removal)
            .map(drop)
    }

    /// Stops a container as `docker stop` does: SIGTERM to its first process, and SIGKILL after `patience`, which the
    /// container was created with. Does nothing if it is gone.
    pub(super) fn stop_container(&self, id: &str, patience: Duration) -> Result<(), EnvError> {
        let limit = patience + CONTROL_LIMIT;
        let stop = self
            .client
            .stop_container(id, None::<bollard::query_parameters::StopContainerOptions>);
        self.found("stop a container", limit, stop).map(drop)
    }

    /// Kills and removes a container with its anonymous volumes, and waits until it is gone. Does nothing if it is
    /// gone already.
    pub(super) fn remove_container(&self, id: &str) -> Result<(), EnvError> {
        const WHAT: &str = "remove a container";
        let options = || RemoveContainerOptions {
            v: true,
            force: true,
            link: false,
        };
        let removal = self.attempt(
            CONTROL_LIMIT,
            self.client.remove_container(id, Some(options())),
        );
        match removal {
            Ok(()) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            // Another client is removing it already: wait for that.
            Err(error) if is_conflict(&error) => self.call(WHAT, CONTROL_LIMIT, async {
                loop {
                    match self.client.inspect_container(id, None).await {
                        Err(error) if is_missing(&error) => return Ok(()),
                        Err(error) => return Err(error),
                        Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            }),
            Err(error) => Err(self.explain(WHAT, CONTROL_LIMIT, &error)),
        }
    }

    /// Removes a volume; does nothing if it is gone.
    pub(super) fn remove_volume(&self, name: &str) -> Result<(), EnvError> {
        let removal = self
            .client
            .remove_volume(name, None::<bollard::query_parameters::RemoveVolumeOptions>);
        self.found("remove a volume", CONTROL_LIMIT, removal)
            .map(drop)
    }
}

/// Hint for a user who may not use the socket.
pub(super) const DENIED_FIX: &str = "`sudo usermod -aG docker $USER`, then log in again (members of that \
     group are as good as root); or a rootless engine: `dockerd-rootless-setuptool.sh install`";

/// Why a relay's program could not reach an engine, in its own words.
#[cfg(unix)]
fn relay_failure(endpoint: &str, words: &str) -> EnvError {
    let shown = printable(words);
    let fix = if words.contains("is not installed") && words.contains("docker") {
        "install Docker's client (`sudo apt-get install docker.io`): it has the certificates"
    } else if endpoint.starts_with("ssh://") && words.contains("Permission denied") {
        "make `ssh` to that machine work without a password: `ssh-copy-id`, or a key in ssh-agent"
    } else if endpoint.starts_with("ssh://") && words.contains("Host key verification failed") {
        "connect once with `ssh` and check the machine's key"
    } else if endpoint.starts_with("ssh://") && words.contains("not found") {
        "install Docker on that machine"
    } else if words.contains("x509") || words.contains("certificate") || words.contains("tls") {
        "check the certificates: DOCKER_CERT_PATH, or those of the context (`docker context inspect`)"
    } else {
        "`docker version` with the same DOCKER_HOST or context shows whether the client reaches it"
    };
    EnvError::absent(format!("`{endpoint}` cannot be reached: {shown}"), fix)
}

/// The API's filter for labels.
pub(super) fn label_filter(labels: &[String]) -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), labels.to_vec())])
}

/// Opens and closes a connection, to get the system's own error.
async fn knock(endpoint: &Endpoint) -> io::Result<()> {
    match endpoint {
        #[cfg(windows)]
        Endpoint::Pipe(name) => {
            // If all pipe instances are busy, the engine is there.
            const ERROR_PIPE_BUSY: i32 = 231;
            match tokio::net::windows::named_pipe::ClientOptions::new().open(name) {
                Err(error) if error.raw_os_error() != Some(ERROR_PIPE_BUSY) => Err(error),
                _ => Ok(()),
            }
        }
        // The first request will show it, with the program's own words.
        Endpoint::Relayed { .. } => Ok(()),
        _ => bounded::open(endpoint).await.map(drop),
    }
}

fn client(endpoint: &Endpoint) -> Result<Client, ApiError> {
    match endpoint {
        // The library's own client: an engine on this machine, as trusted as its user.
        #[cfg(windows)]
        Endpoint::Pipe(name) => {
            Client::connect_with_named_pipe(name, CONTROL_LIMIT.as_secs(), API_DEFAULT_VERSION)
        }
        _ => bounded::client(endpoint),
    }
}
