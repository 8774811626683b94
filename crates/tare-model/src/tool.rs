//! Tools: third-party programs that workloads run, and how an arm reports which ones it has.
//!
//! A ratio is about the environment only if the same program ran on both sides. The agent is therefore asked about
//! each tool before the first trial, and answers with facts under `tool.<program>.…`: `path` (the final file, links
//! resolved), `sha256`, `version` (the first line that it prints), `interpreter` (the dynamic linker of an ELF file,
//! the interpreter of a script) and `interpreter_sha256`. A missing tool has `unreadable.tool.<program>` instead, and
//! an unreadable part `unreadable.tool.<program>.<part>`.
//! Limits: does not see shared libraries, or files that a program opens by name at run time.

use serde::{Deserialize, Serialize};

use crate::fact;
use crate::facts::Facts;

/// Prefix of `unreadable.tool.<program>` if the program is missing.
pub const NOT_INSTALLED: &str = "not installed";

/// A question about one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolQuestion {
    /// Its name on the search path, or its path.
    pub program: String,
    /// Arguments with which it prints its version; empty if it cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version: Vec<String>,
}

/// An environment's answer about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAnswer {
    /// Not asked, or not known.
    Unknown,
    /// Missing or unusable, with the reason.
    Missing(String),
    /// Present.
    Present(ToolIdentity),
}

/// Identity of a program. Parts that could not be read are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolIdentity {
    /// Its file, links resolved.
    pub path: String,
    /// SHA-256 of the file, as hexadecimal digits.
    pub sha256: Option<String>,
    /// First line of its version output, without the kernel release that some programs include: another fact has
    /// that, and it is not the program's.
    pub version: Option<String>,
    /// Its loader or interpreter.
    pub interpreter: Option<String>,
    /// SHA-256 of that file.
    pub interpreter_sha256: Option<String>,
}

impl ToolAnswer {
    /// Reads the answer from an environment's facts.
    pub fn from_facts(facts: &Facts, program: &str) -> Self {
        let part = |pattern: &str| facts.get(&fact::name_for(pattern, program)).cloned();
        if let Some(path) = part(fact::TOOL_PATH) {
            let release = facts
                .get(fact::KERNEL_RELEASE)
                .filter(|text| !text.is_empty());
            return Self::Present(ToolIdentity {
                path,
                sha256: part(fact::TOOL_SHA256),
                version: part(fact::TOOL_VERSION).map(|line| match release {
                    Some(release) => line.replace(release.as_str(), "…"),
                    None => line,
                }),
                interpreter: part(fact::TOOL_INTERPRETER),
                interpreter_sha256: part(fact::TOOL_INTERPRETER_SHA256),
            });
        }
        match facts.get(&fact::name_for(fact::UNREADABLE_TOOL, program)) {
            Some(why) => Self::Missing(why.clone()),
            None => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_programs_and_not_the_kernels() {
        let facts = |release: &str| {
            Facts::from([
                ("kernel.release".to_owned(), release.to_owned()),
                (
                    fact::name_for(fact::TOOL_PATH, "x"),
                    "/usr/bin/x".to_owned(),
                ),
                (
                    fact::name_for(fact::TOOL_VERSION, "x"),
                    format!("x, version 1 (gcc, Linux {release})"),
                ),
            ])
        };
        let of = |release| ToolAnswer::from_facts(&facts(release), "x");
        assert_eq!(of("6.1.0"), of("6.18.5"));
        let ToolAnswer::Present(identity) = of("6.1.0") else {
            panic!("it is there");
        };
        assert_eq!(
            identity.version.as_deref(),
            Some("x, version 1 (gcc, Linux …)")
        );
        assert_eq!(
            ToolAnswer::from_facts(&facts("6"), "y"),
            ToolAnswer::Unknown
        );
        let missing = Facts::from([("unreadable.tool.y".to_owned(), "not installed".to_owned())]);
        assert_eq!(
            ToolAnswer::from_facts(&missing, "y"),
            ToolAnswer::Missing("not installed".into())
        );
    }

    #[test]
    fn old_facts_request_has_no_tools() {
        let old = r#"{"request":"facts","paths":["/"]}"#;
        let request: crate::wire::Request = serde_json::from_str(old).unwrap();
        assert_eq!(
            request,
            crate::wire::Request::Facts {
                paths: vec!["/".into()],
                tools: Vec::new()
            }
        );
    }
}
