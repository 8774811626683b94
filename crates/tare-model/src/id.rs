//! Identifiers, validated on construction.
//!
//! An identifier ends up in file names, labels, SQL values and terminals. It is therefore restricted to ASCII
//! letters, digits and `.`, `_`, `-`, starting with a letter or digit, at most 64 bytes. Text from outside becomes an
//! identifier only through this check.

use serde::{Deserialize, Serialize};

/// The reason why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a name: use up to 64 letters, digits, `.`, `_` or `-`, starting with a letter or digit", .0.escape_default())]
pub struct IdError(pub String);

fn check(text: &str) -> Result<(), IdError> {
    let first_is_fine = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest_is_fine = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    if first_is_fine && rest_is_fine && text.len() <= 64 {
        Ok(())
    } else {
        Err(IdError(text.to_owned()))
    }
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Validates `text` and makes it an identifier.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                check(&text)?;
                Ok(Self(text))
            }

            /// Returns the identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(&self.0)
            }
        }
    };
}

identifier! {
    /// Names an arm of a study: one environment with its settings.
    ArmId
}
identifier! {
    /// Names a workload: a probe or an adapter.
    WorkloadId
}
identifier! {
    /// Names a metric: `area.thing.quantity`.
    MetricId
}
identifier! {
    /// Names one run of a study; every object that Tare creates is labelled with it.
    RunId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_slash_space_or_control_char_is_refused() {
        for text in [
            "",
            "a/b",
            "a b",
            "a\u{1b}[31m",
            "-a",
            ".a",
            "é",
            &"x".repeat(65),
        ] {
            assert!(ArmId::new(text).is_err(), "{text:?} passed");
        }
    }

    #[test]
    fn id_roundtrips_through_json_and_bad_one_is_refused() {
        let id = MetricId::new("syscall.getppid.time").unwrap();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<MetricId>(&json).unwrap(), id);
        assert!(serde_json::from_str::<MetricId>("\"../x\"").is_err());
    }
}
