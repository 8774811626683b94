//! `tare why -- CMD ARG…`: finds the mechanism that makes a command slower in an environment.

use clap::Args;
use tare_model::Params;
use tare_model::dossier::Dossier;

use super::service::ServiceFlags;
use super::{Exit, Failed, GivenPaths, output};
use crate::config::{environment_flags, units};
use crate::env;
use crate::env::user_container::Shares;
use crate::output::DossierFiles;
use crate::report;
use crate::why::in_environment::RUNNING;
use crate::why::question::Question;

mod line;

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Run the command in this environment, with settings if wanted: `docker`, `container:cpus=0.5,memory=64m` (default:
    /// docker, else podman, else the built-in container).
    #[arg(long, value_name = "ENV")]
    env: Option<String>,
    /// Set a setting of the environment (all: `tare list environments`).
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Compare wall time, CPU time, or a number in the output that a regular expression finds.
    #[arg(long, default_value = "wall", value_name = "wall|cpu|REGEX")]
    metric: String,
    /// Treat a larger number as better (with a regular expression).
    #[arg(long)]
    more_is_better: bool,
    /// Limit the total time.
    #[arg(long, value_parser = units::some_duration_ns, default_value = "2m", value_name = "TIME")]
    budget: u64,
    /// Pass a variable to the command on both sides.
    #[arg(long = "variable", value_name = "NAME[=TEXT]")]
    variables: Vec<String>,
    /// Expose the working directory inside even if it holds a home or Tare's files.
    #[arg(long)]
    show_private: bool,
    /// Climb the ladder even if the command is not slower.
    #[arg(long)]
    ladder: bool,
    /// Explain what makes the command slower in a container like this one of yours, running or stopped, by name or id
    /// (default command: the container's own). A `docker run …` line as the command is taken the same way.
    #[arg(long, value_name = "CONTAINER", conflicts_with_all = ["inside", "compose"])]
    like: Option<String>,
    /// Run the command in this running container of yours itself, next to its own processes and under its limits as they
    /// are. Nothing is left in it.
    #[arg(
        long,
        value_name = "CONTAINER",
        conflicts_with = "compose",
        requires = "command"
    )]
    inside: Option<String>,
    /// Explain what makes this service of a compose file slower: its command, or the one given, in a container like it.
    /// What it depends on is started with `--with-dependencies` only.
    #[arg(long, num_args = 2, value_names = ["FILE", "SERVICE"])]
    compose: Option<Vec<String>>,
    /// Start what the service depends on for the time of the question, on a network of its own, with empty volumes where
    /// it could write to yours; all of it is removed in the end.
    #[arg(long, requires = "compose")]
    with_dependencies: bool,
    #[command(flatten)]
    sides: SideFlags,
    /// Apply the fix to your command line at the end and check that the slowdown is gone.
    #[arg(long)]
    apply_check: bool,
    /// Allow writes to the volumes and folders of your container (default: read-only).
    #[arg(long)]
    share_writable: bool,
    #[command(flatten)]
    reach: ReachFlags,
    #[command(flatten)]
    service: ServiceFlags,
    /// Print what would be run, how often at most, what it reaches and what it would leave, and run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Store what the command prints (default: its length and SHA-256, unless it fails or `--metric` reads it).
    #[arg(long)]
    keep_output: bool,
    /// Seed for the trial order (default: random; recorded with the run).
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    files: DossierFiles,
    /// Command to run, or a `docker run …` line.
    #[arg(last = true, required_unless_present_any = ["like", "compose", "a"], value_name = "CMD")]
    command: Vec<String>,
}

impl Why {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        self.files.check()?;
        let question = self.question()?;
        question.answered(place, |dossier| self.write(dossier))
    }

    fn question(&self) -> Result<Question, Failed> {
        let (driver, settings) = self.environment()?;
        let question = Question {
            driver,
            settings,
            like: self.like.clone(),
            inside: self.inside.clone(),
            compose: self.compose.clone().and_then(|it| it.try_into().ok()),
            sides: self.sides.given(),
            command: self.command.clone(),
            variables: self.variables.clone(),
            budget_ns: self.budget,
            seed: self.seed.unwrap_or_else(crate::cx::drawn_seed),
            shares: if self.share_writable {
                Shares::Shared
            } else {
                Shares::ReadOnly
            },
            with_dependencies: self.with_dependencies,
            host_network: self.reach.host_network_ok,
            join_networks: self.reach.join_networks,
            loosen: self.reach.loosen.clone(),
            show_private: self.show_private,
            keep_output: self.keep_output,
            ladder: self.ladder,
            apply_check: self.apply_check,
            is_dry: self.dry_run,
            ..Question::default()
        };
        self.check_flags(&question)?;
        let client = self.service.client()?;
        let (metric, pick) = self.service.metric(&self.metric, self.more_is_better)?;
        Ok(Question {
            metric,
            pick,
            client,
            rates: self.service.rates(),
            ..question
        })
    }

    /// Returns the environment's name, if given, and its settings.
    fn environment(&self) -> Result<(Option<String>, Params), Failed> {
        let mut given = match &self.env {
            Some(text) => environment_flags::environments(text)
                .map_err(|problem| Failed::usage(problem).hint(RUNNING))?,
            None => Vec::new(),
        };
        if given.len() > 1 {
            return Err(Failed::usage("`tare why` asks about one environment")
                .hint("`tare run --env A,B` measures several"));
        }
        let (name, mut settings) = match given.pop() {
            Some(given) => (Some(given.name), given.settings),
            None => (None, Params::new()),
        };
        if let Some(name) = &name {
            let known: Vec<&str> = env::DRIVERS.iter().map(|driver| driver.id()).collect();
            if !known.contains(&name.as_str()) {
                return Err(Failed::unknown("environment", name, &known, RUNNING));
            }
            if name == "host" {
                return Err(
                    Failed::usage("the host is what environments are compared with")
                        .hint("`tare run` compares the host with itself too, as A′"),
                );
            }
        }
        for text in &self.settings {
            let (arm, setting, value) =
                environment_flags::setting_of(text).map_err(Failed::usage)?;
            if let (Some(arm), Some(name)) = (arm, &name)
                && arm != name
            {
                return Err(Failed::usage(format!("`{text}`: there is no arm `{arm}`"))
                    .hint(format!("`{name}` is asked about")));
            }
            settings = settings.with(setting, value);
        }
        Ok((name, settings))
    }

    fn write(&self, dossier: &Dossier) -> Result<(), Failed> {
        if !self.files.write(dossier)? {
            output::text(&report::terminal::short_answer(dossier, output::style()))?;
        }
        Ok(())
    }
}

/// Flags by which a question reaches more than a copy of a container does by itself.
#[derive(Debug, Args)]
struct ReachFlags {
    /// Try the container's network as a suspect, and run it on this machine's own network for that: the command then
    /// reaches every service that listens here.
    #[arg(long)]
    host_network_ok: bool,
    /// Let every run join the networks of your container and use the sockets and named pipes in its folders: the command
    /// then acts on what is there, each time.
    #[arg(long)]
    join_networks: bool,
    /// Measure what a protection costs (`user`, `cap-drop`, `network`, `pids-limit`, `no-new-privileges`, `seccomp`,
    /// `runtime`, `readonly`, …), by running without it; `all` removes every one.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    loosen: Vec<String>,
}

impl ReachFlags {
    /// Returns the first given flag, if any.
    fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.host_network_ok, "--host-network-ok"),
            (self.join_networks, "--join-networks"),
            (!self.loosen.is_empty(), "--loosen"),
        ];
        flags.into_iter().find_map(|(is, name)| is.then_some(name))
    }
}

#[derive(Debug, Args)]
struct SideFlags {
    /// Ask why another side is slower than this one: an environment such as `docker:image=app:1`, variables such as
    /// `X=1`, or without `--` a command.
    #[arg(long, value_name = "SIDE", requires = "b", conflicts_with_all = ["env", "like", "inside", "compose"])]
    a: Option<String>,
    /// Explain this side.
    #[arg(long, value_name = "SIDE", requires = "a")]
    b: Option<String>,
}

impl SideFlags {
    fn given(&self) -> Option<[String; 2]> {
        Some([self.a.clone()?, self.b.clone()?])
    }
}
