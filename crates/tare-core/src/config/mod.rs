//! Study files: TOML in, a validated [`tare_model::Study`] out.
//!
//! Every mistake is shown where it stands: file, line and a caret under the word, what is wrong, and what
//! would be right. The built-in studies are files of the same kind ([`builtin`]) and pass through the same
//! checks. What it cannot see: whether an environment exists on this machine; that is found out when it runs.

use std::collections::BTreeMap;

use tare_model::{ArmId, Params, Spread, Study, Value};

use crate::driver::SettingsError;

pub mod builtin;
mod design;
pub mod error;
mod file;
pub mod given;
mod instances;
mod publication;
mod resolve;
mod sweep;
pub mod units;

pub use error::StudyError;
pub use given::Given;

/// What a command line adds to or takes from a study.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adjustments {
    /// Only these arms beside the baseline; each is then required. Names of arms of the study or of drivers, with
    /// settings of their own.
    pub environments: Vec<Given>,
    /// Further settings: of which arm, the setting, its value.
    pub settings: Vec<(String, String, Value)>,
    /// Only these workloads.
    pub workloads: Vec<String>,
    /// Each workload with so many instances at once, one after another.
    pub instances: Vec<u32>,
    /// Where they run.
    pub spread: Option<Spread>,
    /// Time for the whole run, nanoseconds.
    pub budget_ns: Option<u64>,
    /// Wanted half-width of the ratio, as a fraction.
    pub precision: Option<f64>,
    /// Exactly so many blocks.
    pub blocks: Option<u32>,
    /// Seed.
    pub seed: Option<u64>,
    /// The seed where neither this nor the file gives one.
    pub drawn_seed: u64,
    /// Arms may have other tools than the baseline; their cells are then labelled.
    pub allow_different_tools: bool,
    /// Every two arms are compared with each other as well.
    pub pairs: bool,
}

/// What drivers take. Which drivers there are is known here.
pub trait Drivers {
    /// The names of a driver's settings.
    fn settings(&self, driver: &str) -> Vec<&'static str>;
    /// Checks the settings of an arm; touches nothing outside.
    ///
    /// # Errors
    /// The setting that is wrong.
    fn check(&self, driver: &str, arm: &ArmId, settings: &Params) -> Result<(), SettingsError>;
}

/// Reads a study from `text`; `name` is the file's name for messages.
pub fn parse(
    name: &str,
    text: &str,
    adjustments: &Adjustments,
    drivers: &dyn Drivers,
) -> Result<Study, StudyError> {
    let file = file::read(name, text)?;
    resolve::resolve(name, text, &file, adjustments, drivers)
}

/// The study in a file that was read already, under its built-in name; `None` when there is none of that name.
pub fn built_in(
    id: &str,
    adjustments: &Adjustments,
    drivers: &dyn Drivers,
) -> Option<Result<Study, StudyError>> {
    let builtin = builtin::find(id)?;
    Some(parse(
        &format!("<built-in study {id}>"),
        builtin.text,
        adjustments,
        drivers,
    ))
}

/// Where instances run, by its name on the command line.
///
/// # Errors
/// The names that there are.
pub fn spread(word: &str) -> Result<Spread, String> {
    instances::named(word).ok_or_else(|| {
        let known: Vec<&str> = Spread::ALL.into_iter().map(Spread::name).collect();
        format!("known are: {}", known.join(", "))
    })
}

/// A table of a study file: names and values that a driver or workload checks.
type Table = BTreeMap<toml::Spanned<String>, toml::Spanned<toml::Value>>;
