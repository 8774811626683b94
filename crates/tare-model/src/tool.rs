//! Tools: other people's programs that workloads run, and how an arm says which ones it has.
//!
//! A ratio is about the environment only if the same program ran on both sides. So the agent is asked about
//! each tool before the first trial, and answers with facts under `tool.<program>.…`: `path` (the file in the
//! end, links resolved), `sha256`, `version` (the first line that it prints), `interpreter` (the dynamic
//! linker of an ELF file, the interpreter of a script) and `interpreter_sha256`. A tool that is not there has
//! `unreadable.tool.<program>` instead, and a part that could not be read `unreadable.tool.<program>.<part>`.
//! What it cannot see: shared libraries and files that a program opens by name at run time.

use serde::{Deserialize, Serialize};

use crate::fact;
use crate::facts::Facts;

/// How `unreadable.tool.<program>` begins where the program is not there at all.
pub const NOT_INSTALLED: &str = "not installed";

/// A question about one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolQuestion {
    /// Its name on the search path, or its path.
    pub program: String,
    /// The arguments with which it prints its version; none where it cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version: Vec<String>,
}

/// What a place said about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAnswer {
    /// It was not asked, or could not tell.
    Unknown,
    /// It is not there or cannot be used, and why.
    Missing(String),
    /// It is there.
    Present(ToolIdentity),
}

/// Which program it is. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolIdentity {
    /// Its file, links resolved.
    pub path: String,
    /// SHA-256 of the file, as hexadecimal digits.
    pub sha256: Option<String>,
    /// The first line that it prints when asked for its version, without the release of the kernel that some
    /// programs put into it: that is told by another fact and is not the program's.
    pub version: Option<String>,
    /// What loads or interprets it.
    pub interpreter: Option<String>,
    /// SHA-256 of that file.
    pub interpreter_sha256: Option<String>,
}

impl ToolAnswer {
    /// Reads the facts of a place.
    pub fn of(facts: &Facts, program: &str) -> Self {
        let part = |pattern: &str| facts.get(&fact::of(pattern, program)).cloned();
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
        match facts.get(&fact::of(fact::UNREADABLE_TOOL, program)) {
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
                (fact::of(fact::TOOL_PATH, "x"), "/usr/bin/x".to_owned()),
                (
                    fact::of(fact::TOOL_VERSION, "x"),
                    format!("x, version 1 (gcc, Linux {release})"),
                ),
            ])
        };
        let of = |release| ToolAnswer::of(&facts(release), "x");
        assert_eq!(of("6.1.0"), of("6.18.5"));
        let ToolAnswer::Present(identity) = of("6.1.0") else {
            panic!("it is there");
        };
        assert_eq!(
            identity.version.as_deref(),
            Some("x, version 1 (gcc, Linux …)")
        );
        assert_eq!(ToolAnswer::of(&facts("6"), "y"), ToolAnswer::Unknown);
        let missing = Facts::from([("unreadable.tool.y".to_owned(), "not installed".to_owned())]);
        assert_eq!(
            ToolAnswer::of(&missing, "y"),
            ToolAnswer::Missing("not installed".into())
        );
    }

    #[test]
    fn a_question_for_facts_of_an_older_host_is_one_without_tools() {
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
