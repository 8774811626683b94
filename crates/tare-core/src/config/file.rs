//! The structure of a study file, with the position of every value.

use std::ops::Range;

use serde::Deserialize;
use tare_model::Value;
use toml::Spanned;

use super::Table;
use super::error::StudyError;
use crate::suggest;

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

/// The publication of a built-in study, for a study that repeats it at another scale or with other programs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublicationOf {
    pub(super) study: String,
    /// Replaces that study's deviations.
    #[serde(default)]
    pub(super) deviations: Vec<String>,
    /// Replaces that study's quantities of the same names with what measures them here. Others are those that its
    /// numbers name and it does not measure.
    #[serde(default, rename = "quantity")]
    pub(super) quantities: Vec<tare_model::publication::Quantity>,
    /// Replaces that study's tables of the same titles; others are added.
    #[serde(default, rename = "table")]
    pub(super) tables: Vec<tare_model::publication::Layout>,
    /// Added to that study's records.
    #[serde(default)]
    pub(super) recorded: Vec<tare_model::publication::Recorded>,
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
    pub(super) alternate: Option<bool>,
    #[serde(default)]
    pub(super) pairs: bool,
    #[serde(default)]
    pub(super) usage: bool,
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
    /// Parameters with a list of values each.
    #[serde(default)]
    pub(super) sweep: Table,
    /// The condition of the combinations that are measured, such as `record <= size`.
    #[serde(rename = "where")]
    pub(super) condition: Option<Spanned<String>>,
}

/// Reads the structure; the meaning is checked afterwards.
pub(super) fn read(name: &str, text: &str) -> Result<StudyFile, StudyError> {
    toml::from_str(text).map_err(|error| {
        let message = error.message();
        StudyError {
            file: name.to_owned(),
            text: text.to_owned(),
            span: error.span(),
            problem: message.to_owned(),
            hint: unknown_field(message).or_else(|| hint_at(text, error.span()?, message)),
        }
    })
}

/// How to write the value at an error's place.
fn hint_at(text: &str, span: Range<usize>, message: &str) -> Option<String> {
    /// Keys whose values have a unit of time.
    const TIMES: [&str; 4] = ["budget", "trial", "limit", "settle"];
    let from = text.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(from..)?.lines().next()?.trim();
    let value = text.get(span)?;
    if line.starts_with('[') {
        let table = line.trim_matches(['[', ']']).trim();
        return ["arm", "workload"]
            .contains(&table)
            .then(|| format!("there may be several: write `[[{table}]]`, in double brackets"));
    }
    let is_number = message.starts_with("invalid type: integer")
        || message.starts_with("invalid type: floating point");
    let key = line.split('=').next()?.trim();
    (is_number && message.ends_with("expected a string")).then(|| {
        let unit = if TIMES.contains(&key) { "s" } else { "%" };
        format!("with its unit and in quotes: `{key} = \"{value}{unit}\"`")
    })
}

/// `unknown field `x`, expected one of `a`, `b`` → "did you mean", or where such names belong.
fn unknown_field(message: &str) -> Option<String> {
    let mut words = message
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2);
    let offender = words.next()?;
    let known: Vec<&str> = words.collect();
    let below = [("params", "workload"), ("settings", "arm")]
        .into_iter()
        .find(|(table, _)| known.contains(table));
    match below {
        Some((table, of)) if suggest::nearest(offender, known.iter().copied()).is_none() => {
            Some(format!(
                "what the {of} itself takes stands below it, in `[{of}.{table}]`; next to `id` there are: {}",
                known.join(", ")
            ))
        }
        _ => Some(suggest::hint(offender, known)),
    }
}

/// Converts a value of a table; `None` for a date or a table.
pub(super) fn plain(value: &toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Integer(number) => Value::Int(*number),
        toml::Value::Float(number) => Value::Float(*number),
        toml::Value::Boolean(truth) => Value::Bool(*truth),
        toml::Value::Array(values) => Value::List(values.iter().map(plain).collect::<Option<_>>()?),
        toml::Value::Datetime(_) | toml::Value::Table(_) => return None,
    })
}
