//! `tare why -- CMD ARG…`: finds the mechanism that makes a command slower in an environment.

use clap::Args;
use tare_model::Params;
use tare_model::dossier::Dossier;

use super::service::ServiceFlags;
use super::{Exit, Failed, GivenPaths, output};
use crate::config::environment_flags;
use crate::env;
use crate::output::DossierFiles;
use crate::report;
use crate::why::in_environment::RUNNING;
use crate::why::question::Question;

mod line;

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
    #[command(flatten)]
    question: Question,
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
        let mut question = self.question.clone();
        question.driver = driver;
        question.settings = settings;
        question.command.clone_from(&self.command);
        question.seed = self.seed.unwrap_or_else(crate::cx::drawn_seed);
        question.keep_output = self.keep_output;
        question.is_dry = self.dry_run;
        self.check_flags(&question)?;
        question.client = self.service.client()?;
        (question.metric, question.pick) =
            self.service.metric(&self.metric, self.more_is_better)?;
        question.rates = self.service.rates();
        Ok(question)
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
