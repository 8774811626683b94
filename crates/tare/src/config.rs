//! Study files: [`tare_core::config`] with what the drivers of [`crate::env`] take.

use tare_model::{ArmId, Params, Study};

use tare_core::config::Drivers;
pub use tare_core::config::{Adjustments, Given, StudyError, builtin, error, given, spread, units};

use crate::env::{self, SettingsError};

#[cfg(test)]
mod tests;

/// The drivers that there are.
struct All;

impl Drivers for All {
    fn settings(&self, driver: &str) -> Vec<&'static str> {
        let settings = env::find(driver).map_or(&[][..], env::Driver::settings);
        settings.iter().map(|setting| setting.name).collect()
    }

    fn check(&self, driver: &str, arm: &ArmId, settings: &Params) -> Result<(), SettingsError> {
        let found = env::find(driver);
        found.map_or(Ok(()), |driver| {
            driver.configure(arm.clone(), settings).map(drop)
        })
    }
}

/// Reads a study from `text`; `name` is the file's name for messages.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse(name: &str, text: &str, adjustments: &Adjustments) -> Result<Study, StudyError> {
    tare_core::config::parse(name, text, adjustments, &All)
}

/// The study in a file that was read already, under its built-in name; `None` when there is none of that name.
pub fn built_in(id: &str, adjustments: &Adjustments) -> Option<Result<Study, StudyError>> {
    tare_core::config::built_in(id, adjustments, &All)
}

/// Puts in the values of what was recorded elsewhere: `read` gives the text of a file, by its path from the study's
/// on.
///
/// # Errors
/// Which file, and what is wrong with it.
pub fn read_recorded(
    study: &mut Study,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<(), String> {
    let publication = study.publication.as_mut();
    for it in publication.into_iter().flat_map(|it| &mut it.recorded) {
        if let Some(file) = &it.file {
            let values = read(file)
                .and_then(|log| tare_core::workload::recorded::values(it, log.as_bytes()))
                .map_err(|problem| format!("{file}, recorded of `{}`: {problem}", it.arm))?;
            it.values = values;
        }
    }
    Ok(())
}
