//! The shape of a study file, with the place of every value.

use serde::Deserialize;
use toml::Spanned;

use super::error::StudyError;
use super::{Table, suggest};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyFile {
    pub(super) id: Spanned<String>,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) baseline: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) design: Design,
    #[serde(default)]
    pub(super) margins: Margins,
    #[serde(default, rename = "arm")]
    pub(super) arms: Vec<Arm>,
    #[serde(default, rename = "workload")]
    pub(super) workloads: Vec<Workload>,
    pub(super) publication: Option<Spanned<tare_model::Publication>>,
    pub(super) publication_of: Option<Spanned<PublicationOf>>,
}

/// The publication of a built-in study, for a study that repeats the same at another scale.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublicationOf {
    pub(super) study: String,
    /// In place of that study's own.
    #[serde(default)]
    pub(super) deviations: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Design {
    pub(super) seed: Option<u64>,
    pub(super) budget: Option<Spanned<String>>,
    pub(super) precision: Option<Spanned<String>>,
    pub(super) trial: Option<Spanned<String>>,
    pub(super) limit: Option<Spanned<String>>,
    pub(super) settle: Option<Spanned<String>>,
    pub(super) blocks_min: Option<Spanned<u32>>,
    pub(super) blocks_max: Option<Spanned<u32>>,
    pub(super) blocks_per_launch: Option<Spanned<u32>>,
    pub(super) lifecycle: Option<tare_model::Lifecycle>,
    #[serde(default)]
    pub(super) allow_different_tools: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Margins {
    pub(super) compute: Option<Spanned<String>>,
    pub(super) kernel: Option<Spanned<String>>,
    pub(super) disk: Option<Spanned<String>>,
    pub(super) network: Option<Spanned<String>>,
    pub(super) start_up: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arm {
    pub(super) id: Spanned<String>,
    pub(super) driver: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) settings: Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    pub(super) id: Spanned<String>,
    pub(super) path: Option<Spanned<String>>,
    pub(super) instances: Option<Spanned<toml::Value>>,
    pub(super) spread: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) params: Table,
}

/// Reads the shape; the meaning is checked afterwards.
pub(super) fn read(name: &str, text: &str) -> Result<StudyFile, StudyError> {
    toml::from_str(text).map_err(|error| {
        let message = error.message();
        StudyError {
            file: name.to_owned(),
            text: text.to_owned(),
            span: error.span(),
            problem: message.to_owned(),
            hint: unknown_field(message),
        }
    })
}

/// `unknown field `x`, expected one of `a`, `b`` → did you mean.
fn unknown_field(message: &str) -> Option<String> {
    let mut words = message
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2);
    let offender = words.next()?;
    let known: Vec<&str> = words.collect();
    Some(suggest::hint(offender, known))
}
