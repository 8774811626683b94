//! `tare run`: a study from its file to the table.

use std::path::Path;

use clap::Args;
use tare_model::{Spread, Study};

use super::measure::{Ends, Work};
use super::{Exit, Failed, dry_run, output};
use crate::config::{self, Adjustments, environment_flags, units};
use crate::cx::files;
use crate::session::home::GivenPaths;
use crate::why::in_environment::RUNNING;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Built-in study, or a study file.
    #[arg(default_value = "quick", value_name = "STUDY | FILE.toml")]
    study: String,
    /// Run these environments and the baseline only, settings behind a colon: `container,docker:cpus=0.5,memory=64m`;
    /// fails if one cannot be started.
    #[arg(long, value_name = "A,B")]
    env: Vec<String>,
    /// Set a setting of one arm: `docker.cpus=0.5` (all: `tare list environments`).
    #[arg(long = "set", value_name = "ARM.NAME=VALUE")]
    settings: Vec<String>,
    /// Run these workloads only.
    #[arg(long, value_name = "W,…", value_delimiter = ',')]
    workload: Vec<String>,
    /// Run so many instances at once, one number after another.
    #[arg(long, value_name = "1,2,3", value_delimiter = ',')]
    instances: Vec<u32>,
    /// Run instances as `processes` of one environment, or in `environments` of their own (default: the study's).
    #[arg(long, value_parser = config::spread, value_name = "WHERE")]
    spread: Option<Spread>,
    /// Limit the time of the run, such as `90s` (default: the study's).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    budget: Option<u64>,
    /// Stop when every ratio has this half-width, such as `2%` (default: half of its margin).
    #[arg(long, value_parser = units::fraction, value_name = "PERCENT")]
    precision: Option<f64>,
    /// Run exactly so many blocks, whatever the precision.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    blocks: Option<u32>,
    /// Seed for the trial order (default: the study's, else random; recorded with the run).
    #[arg(long)]
    seed: Option<u64>,
    /// Allow another version of a tool than the baseline's; its cells are labelled `different-tool` and say nothing
    /// about the environment.
    #[arg(long)]
    allow_different_tools: bool,
    /// Record what programs use while they run: processors, memory and devices, ten times a second.
    #[arg(long)]
    usage: bool,
    #[command(flatten)]
    ends: Ends,
    /// Print what would be measured, how often at most and what it reaches, and run nothing.
    #[arg(long = "dry-run")]
    is_dry: bool,
}

impl Run {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        self.ends.files.check()?;
        // Before the store: an invalid study must not create one, and a store error must not hide the mistake.
        let study = self.study()?;
        self.ends.check(&study)?;
        if self.is_dry {
            output::text(&dry_run::of_study(&study))?;
            return Ok(Exit::Done);
        }
        let mut store = place.store()?;
        let work = Work::Study {
            study: &study,
            by_blocks: self.blocks.is_some(),
            there: None,
        };
        self.ends.carried_out(place, &mut store, &work)
    }

    fn study(&self) -> Result<Study, Failed> {
        let mut environments = Vec::new();
        for text in &self.env {
            let given = environment_flags::environments(text).map_err(|problem| {
                Failed::usage(problem).hint(format!("`--env docker:cpus=0.5`; {RUNNING}"))
            })?;
            environments.extend(given);
        }
        let mut settings = Vec::new();
        for text in &self.settings {
            let (arm, name, value) = environment_flags::setting_of(text).map_err(Failed::usage)?;
            let arm = arm.ok_or_else(|| {
                Failed::usage(format!("`{text}` names no arm")).hint(format!(
                    "`--set ARM.{text}`, for example `--set docker.{text}`"
                ))
            })?;
            settings.push((arm.to_owned(), name.to_owned(), value));
        }
        let adjustments = Adjustments {
            environments,
            settings,
            workloads: self.workload.clone(),
            instances: self.instances.clone(),
            spread: self.spread,
            budget_ns: self.budget,
            precision: self.precision,
            blocks: self.blocks,
            seed: self.seed,
            drawn_seed: crate::cx::drawn_seed(),
            allow_different_tools: self.allow_different_tools,
            pairs: self.ends.compared.pairs,
            usage: self.usage,
        };
        if let Some(study) = config::built_in(&self.study, &adjustments) {
            return Ok(study?);
        }
        let path = Path::new(&self.study);
        let looks_like_a_file = path
            .extension()
            .is_some_and(|extension| extension == "toml")
            || path.components().count() > 1;
        if !looks_like_a_file {
            let known: Vec<&str> = config::builtin::STUDIES
                .iter()
                .map(|study| study.id)
                .collect();
            let more = "a file of your own ends in `.toml`";
            return Err(Failed::unknown("study", &self.study, &known, more));
        }
        let text = files::read_text(path).map_err(Failed::usage)?;
        let mut study = config::parse(&self.study, &text, &adjustments)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        config::read_recorded(&mut study, |file| {
            let text = files::read_text(&beside.join(file));
            text.map_err(|error| error.to_string())
        })
        .map_err(|problem| Failed::usage(problem).hint("`file` names what the tool printed"))?;
        Ok(study)
    }
}
