//! What `tare why` is asked, and what of the user's own it is about.

use std::path::Path;

use tare_model::command::Pick;
use tare_model::{CommandCall, Params};

use super::Ask;
use crate::env;
use crate::env::own::{Consent, Shares, Source, WHICH, Wish};
use crate::service::user::UserClient;

/// A question.
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
    /// A container of the user's, by name, that arms are like.
    pub(crate) like: Option<String>,
    /// A running container of the user's, by name, in which the command is run.
    pub(crate) inside: Option<String>,
    /// A compose file and one of its services.
    pub(crate) compose: Option<[String; 2]>,
    /// Two sides that are compared with each other.
    pub(crate) sides: Option<[String; 2]>,
    /// The command, or a line for an engine's client.
    pub(crate) command: Vec<String>,
    /// Variables that the command gets on both sides.
    pub(crate) variables: Vec<String>,
    /// The metric.
    pub(crate) metric: &'static str,
    /// The number that is picked from the output, where it is the metric.
    pub(crate) pick: Option<Pick>,
    /// What asks the command from outside, if that is a server.
    pub(crate) client: Option<UserClient>,
    /// Rates at which it asks both sides before anything else, rising; none for a client that has one load.
    pub(crate) rates: Vec<f64>,
    /// How long everything may take, nanoseconds.
    pub(crate) budget_ns: u64,
    /// Seed of the order.
    pub(crate) seed: u64,
    /// What may happen to what of the user's the command can write to.
    pub(crate) shares: Shares,
    /// Whether what a service depends on is started.
    pub(crate) with_dependencies: bool,
    /// Whether runs may use the machine's own network.
    pub(crate) host_network: bool,
    /// Whether runs join the networks of the user's container.
    pub(crate) join_networks: bool,
    /// Protections that are removed like other differences.
    pub(crate) loosen: Vec<String>,
    /// Whether a folder is shown inside that holds a home or Tare's files.
    pub(crate) show_private: bool,
    /// Whether what the command prints is stored.
    pub(crate) keep_output: bool,
    /// Whether the ladder is climbed even if the command is not slower.
    pub(crate) ladder: bool,
    /// Whether the fix is applied at the end.
    pub(crate) apply_check: bool,
    /// Whether nothing is run.
    pub(crate) is_dry: bool,
}

/// Something of the user's that is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) driver: &'a str,
    pub(crate) source: Source<'a>,
    pub(crate) asked: &'a Question,
}

impl Question {
    /// What of the user's own is asked about, if anything.
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
            // A line for a client is a command like any other where another environment is named for it.
            (None, Some(own), Some(name)) if name != own.id() => return None,
            (None, own, _) => (own?.id(), Source::Line(&self.command)),
        };
        Some(Subject {
            driver,
            source,
            asked: self,
        })
    }

    /// The question about a command in an environment.
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
    /// How it is to be taken; `folder` is the run's.
    pub(crate) fn wish(&self, folder: &'a Path) -> Wish<'a> {
        let asked = self.asked;
        Wish {
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
