//! Workloads: what is run. One file each; both halves are pure.
//!
//! A workload says what to run ([`Workload::recipe`]) and how to read the bytes ([`Workload::decode`]); it
//! does no I/O and knows nothing of environments. Adding one is a file here and a word in [`WORKLOADS`].

use tare_model::{MetricSpec, Params, Path, RawOutput, Recipe, Sample, Value};

/// Every workload.
pub static WORKLOADS: &[&dyn Workload] = &[];

/// The workload of this name.
pub fn find(id: &str) -> Option<&'static dyn Workload> {
    WORKLOADS
        .iter()
        .copied()
        .find(|workload| workload.id() == id)
}

/// A parameter: the source of help, checks and documentation.
#[derive(Debug, Clone, Copy)]
pub struct ParamSpec {
    /// Its name.
    pub name: &'static str,
    /// Its default, as the text that a study file would hold.
    pub default: DefaultValue,
    /// What it means, with unit and allowed values.
    pub doc: &'static str,
}

/// A default that can stand in a `static`.
#[derive(Debug, Clone, Copy)]
pub enum DefaultValue {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(&'static str),
}

impl From<DefaultValue> for Value {
    fn from(default: DefaultValue) -> Self {
        match default {
            DefaultValue::Int(value) => Self::Int(value),
            DefaultValue::Text(text) => Self::Text(text.to_owned()),
        }
    }
}

/// Why parameters are not acceptable; `param` names the offender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ParamError {
    /// The parameter.
    pub param: String,
    /// What is wrong with it.
    pub problem: String,
    /// What would be right.
    pub hint: Option<String>,
}

/// Why raw output cannot be read. Never partial numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is not in the format that it claims.
    #[error("not readable as {format}: {problem}")]
    Garbled {
        /// The format.
        format: String,
        /// What is wrong.
        problem: String,
    },
    /// A value is missing, infinite or not a number.
    #[error("{metric} has no usable value: {problem}")]
    NoValue {
        /// The metric.
        metric: String,
        /// What is wrong.
        problem: String,
    },
}

/// What is run.
pub trait Workload: Sync {
    /// Its name: that of its file, with `_` as `-`.
    fn id(&self) -> &'static str;
    /// One sentence.
    fn about(&self) -> &'static str;
    /// Its parameters.
    fn params(&self) -> &'static [ParamSpec] {
        &[]
    }
    /// Its metrics.
    fn metrics(&self) -> &'static [MetricSpec];
    /// The paths it can be run over; empty for a workload with one end.
    fn paths(&self) -> &'static [Path] {
        &[]
    }
    /// What to execute, for complete parameters.
    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError>;
    /// Reads what a trial left.
    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError>;
}
