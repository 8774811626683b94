//! Reads study files: TOML in, a validated [`tare_model::Study`] out.
//!
//! Every error is shown at its place: file, line and a caret under the word, the problem, and the fix. The built-in
//! studies are files of the same kind ([`builtin`]) and pass the same checks. Limits: does not know whether an
//! environment exists on this machine; that shows when it runs.

use std::collections::BTreeMap;

use tare_model::{ArmId, Params, Spread, Study, Value};

use crate::driver::SettingsError;

pub mod builtin;
mod design;
pub mod environment_flags;
pub mod error;
mod file;
mod instances;
mod publication;
mod resolve;
mod sweep;
pub mod units;

pub use environment_flags::GivenEnvironment;
pub use error::StudyError;

/// Changes that the command line makes to a study.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adjustments {
    /// Only these arms in addition to the baseline; each is then required. Names of arms of the study or of drivers,
    /// with settings.
    pub environments: Vec<GivenEnvironment>,
    /// Further settings: the arm, the setting, its value.
    pub settings: Vec<(String, String, Value)>,
    /// Only these workloads.
    pub workloads: Vec<String>,
    /// Each workload with these numbers of concurrent instances, one after another.
    pub instances: Vec<u32>,
    /// Where they run.
    pub spread: Option<Spread>,
    /// Time for the whole run, in nanoseconds.
    pub budget_ns: Option<u64>,
    /// Target half-width of the ratio, as a fraction.
    pub precision: Option<f64>,
    /// Exact number of blocks.
    pub blocks: Option<u32>,
    /// Seed.
    pub seed: Option<u64>,
    /// The seed if neither this nor the file specifies one.
    pub drawn_seed: u64,
    /// Whether arms may have other tools than the baseline; their cells are then labelled.
    pub allow_different_tools: bool,
    /// Whether every two arms are compared with each other as well.
    pub pairs: bool,
    /// Whether programs are recorded while they run.
    pub usage: bool,
}

/// The drivers and the settings that they accept.
pub trait Drivers {
    /// Returns the names of a driver's settings.
    fn settings(&self, driver: &str) -> Vec<&'static str>;
    /// Checks the settings of an arm, without side effects.
    ///
    /// # Errors
    /// The invalid setting.
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

/// Returns a built-in study from its file's text; `None` if there is none of that name.
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

/// Parses where instances run.
///
/// # Errors
/// The valid names.
pub fn spread(word: &str) -> Result<Spread, String> {
    instances::named(word).ok_or_else(|| {
        let known: Vec<&str> = instances::labels().collect();
        format!("known are: {}", known.join(", "))
    })
}

/// A table of a study file: names and values that a driver or workload checks.
type Table = BTreeMap<toml::Spanned<String>, toml::Spanned<toml::Value>>;
