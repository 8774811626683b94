//! Declarations of a workload: its name, a table of its parameters, its metrics.
//!
//! Help, checks, hints and documentation are derived from them. A parameter's accepted values are next to its
//! default, so that none is forgotten.
//! Limits: does not check combinations of parameters; the workload does.
//! Not a workload itself.

use tare_model::{MetricSpec, Params, Value};

use super::ParamError;

/// The declaration of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its name: the file's name with `-` for `_`. A probe has the same one.
    pub id: &'static str,
    /// A description in one sentence.
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
    /// Its default, as a study file would write it.
    pub default: DefaultValue,
    /// The accepted values.
    pub accepts: Accepts,
    /// The description, with unit and allowed values.
    pub doc: &'static str,
}

/// A default value, usable in a `static`.
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

/// The values that a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// Checked by the workload when it makes its recipe.
    Any,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number in this range, both ends included.
    Between(i64, i64),
}

impl Accepts {
    /// Returns an error if `value` is not accepted.
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
    /// Fills in the defaults.
    ///
    /// # Errors
    /// A name is unknown, or a value is not accepted.
    pub fn complete(&self, params: &Params) -> Result<Params, ParamError> {
        let specs = self.params;
        for name in params.0.keys() {
            if !specs.iter().any(|spec| spec.name == name) {
                return Err(ParamError::new(
                    name,
                    format!("`{}` has no parameter `{}`", self.id, name.escape_default()),
                    if specs.is_empty() {
                        "it has no parameters".to_owned()
                    } else {
                        format!("it has {}", listed(specs.iter().map(|spec| spec.name)))
                    },
                ));
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

/// The names in backticks, separated by commas.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Declares parameters as a table, one row each: `"name" = Int(default), Between(low, high): "meaning";`, with
/// `Text(default)` and `OneOf(&[words])` for texts, and no range if the recipe checks the value. Shared parameters
/// come last: `+ PYTHON;`.
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

/// Declares a workload: `"id": "one sentence";`, its parameters as rows of [`params!`], if any, and the rows of its
/// metrics.
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

/// Declares a workload within its `impl`, like [`described!`] or with `metrics` that are constants.
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
