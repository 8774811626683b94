//! What a workload declares of itself: its name, its parameters as a table, its metrics.
//!
//! Help, checks, hints and documentation come from it; what a parameter takes stands beside its default, so that
//! none is forgotten. What it cannot see: how parameters go together, which is the workload's own business.
//! This file is no workload.

use tare_model::{MetricSpec, Params, Value};

use super::ParamError;

/// What a workload declares of itself.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its name: that of its file, with `_` as `-`. A probe has the same one.
    pub id: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// Its metrics.
    pub metrics: &'static [MetricSpec],
}

/// A parameter: the source of help, checks and documentation.
#[derive(Debug, Clone, Copy)]
pub struct ParamSpec {
    /// Its name.
    pub name: &'static str,
    /// Its default, as the text that a study file would hold.
    pub default: DefaultValue,
    /// Which values it takes.
    pub accepts: Accepts,
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

/// Which values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Those that the workload takes when it makes its recipe.
    Any,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number from the first to the second, both included.
    Between(i64, i64),
}

impl Accepts {
    /// Says what is wrong with `value`, if anything is.
    fn check(self, param: &str, value: &Value) -> Result<(), ParamError> {
        let (fits, hint) = match self {
            Self::Any => return Ok(()),
            Self::OneOf(texts) => (
                matches!(value, Value::Text(text) if texts.contains(&text.as_str())),
                format!("use one of {}", listed(texts.iter().copied())),
            ),
            Self::Between(low, high) => (
                matches!(value, Value::Int(number) if (low..=high).contains(number)),
                format!("use a whole number from {low} to {high}"),
            ),
        };
        if fits {
            return Ok(());
        }
        Err(ParamError::refused(param, Some(value), hint))
    }
}

impl Declared {
    /// The parameters with the defaults filled in.
    ///
    /// # Errors
    /// A name is unknown, or a value is none that its parameter takes.
    pub fn complete(&self, params: &Params) -> Result<Params, ParamError> {
        let specs = self.params;
        for name in params.0.keys() {
            if !specs.iter().any(|spec| spec.name == name) {
                return Err(ParamError {
                    param: name.clone(),
                    problem: format!("`{}` has no parameter `{}`", self.id, name.escape_default()),
                    hint: Some(if specs.is_empty() {
                        "it has no parameters".to_owned()
                    } else {
                        format!("it has {}", listed(specs.iter().map(|spec| spec.name)))
                    }),
                });
            }
        }
        let mut complete = Params::new();
        for spec in specs {
            let value = params.value(spec.name).cloned();
            let value = value.unwrap_or_else(|| spec.default.into());
            spec.accepts.check(spec.name, &value)?;
            complete = complete.with(spec.name, value);
        }
        Ok(complete)
    }
}

/// The names in backticks, with commas between.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Declares parameters as a table, a row each: `"name" = Int(default), Between(low, high): "meaning";`, with
/// `Text(default)` and `OneOf(&[words])` for texts, and no range where the recipe looks at the value. Parameters
/// from elsewhere stand at the end: `+ PYTHON;`.
macro_rules! params {
    (@ Any) => { $crate::workload::Accepts::Any };
    (@ Any $accepts:ident($($of:expr),+)) => { $crate::workload::Accepts::$accepts($($of),+) };
    (
        $($name:literal = $kind:ident($default:expr) $(, $accepts:ident($($of:expr),+))?: $doc:literal;)*
        $(+ $shared:expr;)*
    ) => {
        &[
            $($crate::workload::ParamSpec {
                name: $name,
                default: $crate::workload::DefaultValue::$kind($default),
                accepts: $crate::workload::declared::params!(@ Any $($accepts($($of),+))?),
                doc: $doc,
            },)*
            $($shared,)*
        ]
    };
}
pub(crate) use params;

/// What a workload declares: `"id": "one sentence";`, its parameters as rows of [`params!`], if it has any, and the rows
/// of its metrics.
macro_rules! described {
    ($id:tt: $about:literal; params { $($params:tt)* } $($metrics:tt)+) => {
        $crate::workload::Declared {
            id: $id,
            about: $about,
            params: $crate::workload::declared::params! { $($params)* },
            metrics: ::tare_model::metrics! { $($metrics)+ },
        }
    };
    ($id:tt: $about:literal; $($metrics:tt)+) => {
        $crate::workload::declared::described! { $id: $about; params {} $($metrics)+ }
    };
}
pub(crate) use described;

/// Declares what a workload is, within its `impl`: as [`described!`] has it, or with `metrics` that are constants.
macro_rules! declared {
    ($id:tt: $about:literal; params { $($params:tt)* } metrics $metrics:expr;) => {
        fn declared(&self) -> &$crate::workload::Declared {
            static DECLARED: $crate::workload::Declared = $crate::workload::Declared {
                id: $id,
                about: $about,
                params: $crate::workload::declared::params! { $($params)* },
                metrics: $metrics,
            };
            &DECLARED
        }
    };
    ($($described:tt)+) => {
        fn declared(&self) -> &$crate::workload::Declared {
            static DECLARED: $crate::workload::Declared =
                $crate::workload::declared::described! { $($described)+ };
            &DECLARED
        }
    };
}
pub(crate) use declared;
