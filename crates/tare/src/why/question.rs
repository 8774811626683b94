//! The question to `tare why`, and the user's object that it is about.

use std::path::Path;

use tare_model::command::Pick;
use tare_model::{CommandCall, Params};

use super::Ask;
use crate::env;
use crate::env::user_container::{Consent, ContainerRequest, Shares, Source, WHICH};
use crate::service::user::UserClient;

/// A question to `tare why`.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Clone, Default)]
pub(crate) struct Question {
    /// The environment, if one is named.
    pub(crate) driver: Option<String>,
    /// Its settings.
    pub(crate) settings: Params,
    /// Name of the user's container that arms are copies of, if any.
    pub(crate) like: Option<String>,
    /// Name of the user's running container in which the command runs, if any.
    pub(crate) inside: Option<String>,
    /// A compose file and one of its services.
    pub(crate) compose: Option<[String; 2]>,
    /// Two sides to compare.
    pub(crate) sides: Option<[String; 2]>,
    /// The command, or a line for an engine's client.
    pub(crate) command: Vec<String>,
    /// Variables that the command gets on both sides.
    pub(crate) variables: Vec<String>,
    pub(crate) metric: &'static str,
    /// The number to pick from the output, if that is the metric.
    pub(crate) pick: Option<Pick>,
    /// The client, if the command is a server.
    pub(crate) client: Option<UserClient>,
    /// Increasing rates at which both sides are first queried; empty for a client with a single load.
    pub(crate) rates: Vec<f64>,
    /// Time for everything, nanoseconds.
    pub(crate) budget_ns: u64,
    /// Seed of the trial order.
    pub(crate) seed: u64,
    /// What may happen to the user's data that the command can write to.
    pub(crate) shares: Shares,
    /// Whether the dependencies of a service are started.
    pub(crate) with_dependencies: bool,
    /// Whether runs may use the host's network.
    pub(crate) host_network: bool,
    /// Whether runs join the networks of the user's container.
    pub(crate) join_networks: bool,
    /// Protections that are removed like other differences.
    pub(crate) loosen: Vec<String>,
    /// Whether a folder is mounted even if it contains a home or Tare's files.
    pub(crate) show_private: bool,
    /// Whether the command's output is stored.
    pub(crate) keep_output: bool,
    /// Whether the ladder is climbed even if the command is not slower.
    pub(crate) ladder: bool,
    /// Whether the fix is applied at the end.
    pub(crate) apply_check: bool,
    /// Whether nothing is run.
    pub(crate) is_dry: bool,
}

/// The user's object that a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) driver: &'a str,
    pub(crate) source: Source<'a>,
    pub(crate) asked: &'a Question,
}

impl Question {
    /// The user's object that the question is about, if any.
    pub(crate) fn subject(&self) -> Option<Subject<'_>> {
        let named = match (&self.like, &self.inside, &self.compose) {
            (Some(name), ..) => Some(Source::Container(name)),
            (_, Some(name), _) => Some(Source::Inside(name)),
            (.., Some([file, service])) => Some(Source::Service { file, service }),
            _ => None,
        };
        let knows = env::DRIVERS.iter().find(|it| it.knows_line(&self.command));
        let (driver, source) = match (named, knows, self.driver.as_deref()) {
            (Some(source), _, driver) => (driver.unwrap_or_else(|| env::usual()[0].id()), source),
            // With another environment named, a line for an engine's client is an ordinary command.
            (None, Some(own), Some(name)) if name != own.id() => return None,
            (None, own, _) => (own?.id(), Source::Line(&self.command)),
        };
        Some(Subject {
            driver,
            source,
            asked: self,
        })
    }

    /// Builds the question about a command in an environment.
    pub(crate) fn asks(&self, driver: &str, settings: Params, call: CommandCall) -> Ask {
        Ask {
            command: self.command.clone(),
            driver: driver.to_owned(),
            settings,
            program: None,
            metric: self.metric.to_owned(),
            budget_ns: self.budget_ns,
            seed: self.seed,
            call: CommandCall {
                pick: self.pick.clone(),
                ..call
            },
            carried: Vec::new(),
            instead: Vec::new(),
            own: None,
        }
    }
}

impl<'a> Subject<'a> {
    /// How to take the object; `folder` is the run's.
    pub(crate) fn wish(&self, folder: &'a Path) -> ContainerRequest<'a> {
        let asked = self.asked;
        ContainerRequest {
            source: self.source,
            folder,
            shares: asked.shares,
            with_dependencies: asked.with_dependencies,
            context: WHICH.iter().find_map(|name| asked.settings.text(name)),
            consent: Consent {
                host_network: asked.host_network,
                join_networks: asked.join_networks,
                loosen: &asked.loosen,
            },
        }
    }
}
