//! Parameters of workloads and settings of environments: small ordered maps of scalar values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One scalar value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// A list of values.
    List(Vec<Value>),
}

impl Value {
    /// Returns the value as a level on an axis: a whole number, or a size such as `64k` in bytes; `None` for anything
    /// else.
    pub fn level(&self) -> Option<i64> {
        let text = match self {
            Self::Int(number) => return Some(*number),
            Self::Text(text) => text,
            _ => return None,
        };
        let digits = text.trim_end_matches(['k', 'm', 'g']);
        let shift = match &text[digits.len()..] {
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return None,
        };
        digits.parse::<i64>().ok()?.checked_mul(1 << shift)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Float(value) => write!(out, "{value}"),
            Self::Text(value) => write!(out, "{value}"),
            Self::List(values) => {
                for (position, value) in values.iter().enumerate() {
                    write!(out, "{}{value}", if position == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

/// Parameters by name, in a fixed order, so that equal parameters are equal bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(pub BTreeMap<String, Value>);

impl Params {
    /// Creates an empty set of parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the parameters with `name` set to `value`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the value of `name`, if given.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns the whole number under `name`; `None` if absent or of another type.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(Value::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns the text under `name`; `None` if absent or of another type.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// Returns the boolean under `name`; `None` if absent or of another type.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.0.get(name) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns the words of a list setting: its values, or the comma-separated parts of a text.
    pub fn words(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(Value::List(values)) => values.iter().map(Value::to_string).collect(),
            Some(value) => value
                .to_string()
                .split(',')
                .map(|word| word.trim().to_owned())
                .collect(),
            None => Vec::new(),
        }
    }

    /// Whether these contain every value of `wanted`.
    pub fn covers(&self, wanted: &Self) -> bool {
        wanted
            .0
            .iter()
            .all(|(name, value)| self.0.get(name) == Some(value))
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

macro_rules! value_from {
    ($($type:ty => $variant:ident),+) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )+};
}

value_from!(bool => Bool, i64 => Int, f64 => Float, &str => Text, String => Text);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_and_sizes_are_levels() {
        let level = |text: &str| Value::Text(text.into()).level();
        assert_eq!(Value::Int(7).level(), Some(7));
        assert_eq!(
            [level("64k"), level("1g"), level("k"), level("libaio")],
            [Some(65_536), Some(1 << 30), None, None]
        );
    }
}
