//! The question to `tare why`, and the user's object that it is about.

use std::path::Path;

use clap::Args;
use tare_model::command::Pick;
use tare_model::{CommandCall, Params};

use super::Ask;
use crate::config::units;
use crate::env;
use crate::env::user_container::{Consent, ContainerRequest, Shares, Source, WHICH};
use crate::service::user::UserClient;

/// A question to `tare why`.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Question {
    /// The environment, if one is named.
    #[arg(skip)]
    pub(crate) driver: Option<String>,
    /// Its settings.
    #[arg(skip)]
    pub(crate) settings: Params,
    /// The command, or a line for an engine's client.
    #[arg(skip)]
    pub(crate) command: Vec<String>,
    #[arg(skip)]
    pub(crate) metric: &'static str,
    /// The number to pick from the output, if that is the metric.
    #[arg(skip)]
    pub(crate) pick: Option<Pick>,
    /// The client, if the command is a server.
    #[arg(skip)]
    pub(crate) client: Option<UserClient>,
    /// Increasing rates at which both sides are first queried; empty for a client with a single load.
    #[arg(skip)]
    pub(crate) rates: Vec<f64>,
    /// Seed of the trial order.
    #[arg(skip)]
    pub(crate) seed: u64,
    /// Whether the command's output is stored.
    #[arg(skip)]
    pub(crate) keep_output: bool,
    /// Whether nothing is run.
    #[arg(skip)]
    pub(crate) is_dry: bool,
    /// Limit the total time.
    #[arg(long = "budget", value_parser = units::some_duration_ns, default_value = "2m", value_name = "TIME")]
    pub(crate) budget_ns: u64,
    /// Pass a variable to the command on both sides.
    #[arg(long = "variable", value_name = "NAME[=TEXT]")]
    pub(crate) variables: Vec<String>,
    /// Expose the working directory inside even if it holds a home or Tare's files.
    #[arg(long)]
    pub(crate) show_private: bool,
    /// Climb the ladder even if the command is not slower.
    #[arg(long)]
    pub(crate) ladder: bool,
    /// Explain what makes the command slower in a container like this one of yours, running or stopped, by name or id
    /// (default command: the container's own). A `docker run …` line as the command is taken the same way.
    #[arg(long, value_name = "CONTAINER", conflicts_with_all = ["inside", "compose"])]
    pub(crate) like: Option<String>,
    /// Run the command in this running container of yours itself, next to its own processes and under its limits as they
    /// are. Nothing is left in it.
    #[arg(
        long,
        value_name = "CONTAINER",
        conflicts_with = "compose",
        requires = "command"
    )]
    pub(crate) inside: Option<String>,
    /// Explain what makes this service of a compose file slower: its command, or the one given, in a container like it.
    /// What it depends on is started with `--with-dependencies` only.
    #[arg(long, num_args = 2, value_names = ["FILE", "SERVICE"])]
    compose: Option<Vec<String>>,
    /// Start what the service depends on for the time of the question, on a network of its own, with empty volumes where
    /// it could write to yours; all of it is removed in the end.
    #[arg(long, requires = "compose")]
    pub(crate) with_dependencies: bool,
    /// Ask why another side is slower than this one: an environment such as `docker:image=app:1`, variables such as
    /// `X=1`, or without `--` a command.
    #[arg(long, value_name = "SIDE", requires = "b", conflicts_with_all = ["env", "like", "inside", "compose"])]
    a: Option<String>,
    /// Explain this side.
    #[arg(long, value_name = "SIDE", requires = "a")]
    b: Option<String>,
    /// Apply the fix to your command line at the end and check that the slowdown is gone.
    #[arg(long)]
    pub(crate) apply_check: bool,
    /// Allow writes to the volumes and folders of your container (default: read-only).
    #[arg(long)]
    share_writable: bool,
    /// Try the container's network as a suspect, and run it on this machine's own network for that: the command then
    /// reaches every service that listens here.
    #[arg(long)]
    host_network_ok: bool,
    /// Let every run join the networks of your container and use the sockets and named pipes in its folders: the command
    /// then acts on what is there, each time.
    #[arg(long)]
    pub(crate) join_networks: bool,
    /// Measure what a protection costs (`user`, `cap-drop`, `network`, `pids-limit`, `no-new-privileges`, `seccomp`,
    /// `runtime`, `readonly`, …), by running without it; `all` removes every one.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    loosen: Vec<String>,
}

/// The user's object that a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) driver: &'a str,
    pub(crate) source: Source<'a>,
    pub(crate) asked: &'a Question,
}

impl Question {
    /// The two sides to compare, if they are given.
    pub(crate) fn sides(&self) -> Option<[&str; 2]> {
        Some([self.a.as_deref()?, self.b.as_deref()?])
    }

    /// What may happen to the user's data that the command can write to.
    pub(crate) fn shares(&self) -> Shares {
        if self.share_writable {
            Shares::Shared
        } else {
            Shares::ReadOnly
        }
    }

    /// Returns the first given flag by which the question reaches more than a copy of a container does by itself.
    pub(crate) fn reach(&self) -> Option<&'static str> {
        let flags = [
            (self.host_network_ok, "--host-network-ok"),
            (self.join_networks, "--join-networks"),
            (!self.loosen.is_empty(), "--loosen"),
        ];
        flags.into_iter().find_map(|(is, name)| is.then_some(name))
    }

    /// The user's object that the question is about, if any.
    pub(crate) fn subject(&self) -> Option<Subject<'_>> {
        let named = match (&self.like, &self.inside, self.compose.as_deref()) {
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
            shares: asked.shares(),
            with_dependencies: asked.with_dependencies,
            context: WHICH.iter().find_map(|name| asked.settings.text(name)),
            consent: Consent {
                host_network: asked.host_network_ok,
                join_networks: asked.join_networks,
                loosen: &asked.loosen,
            },
        }
    }
}
