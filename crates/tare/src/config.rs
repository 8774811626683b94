//! Reads study files: [`tare_core::config`] with the settings of the drivers in [`crate::env`].

use tare_model::{ArmId, Params, Study};

use tare_core::config::Drivers;
pub use tare_core::config::{
    Adjustments, GivenEnvironment, StudyError, builtin, environment_flags, error, spread, units,
};

use crate::env::{self, SettingsError};

#[cfg(test)]
mod tests;

/// All drivers.
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

/// The built-in study of this name; `None` if there is none.
pub fn built_in(id: &str, adjustments: &Adjustments) -> Option<Result<Study, StudyError>> {
    tare_core::config::built_in(id, adjustments, &All)
}

/// Fills in the values recorded elsewhere. `read` returns the text of a file, given its path relative to the study.
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
