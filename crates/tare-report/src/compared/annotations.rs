//! Log lines that mark a CI job.

use super::shown;
use tare_core::compare::{Comparison, Decision};
use tare_core::foreign::harmless;

/// The CI system that reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotations {
    /// GitHub's workflow commands.
    Github,
    /// A plain line: GitLab shows the JUnit report instead.
    Gitlab,
    /// Nothing.
    None,
}

/// Returns the lines. Line ends, percent signs and colons are escaped, so that a label cannot start a command.
pub fn annotations(comparison: &Comparison, whose: Annotations) -> String {
    let headline = harmless(&shown::headline(comparison));
    match whose {
        Annotations::None => String::new(),
        Annotations::Gitlab => format!("tare: {headline}\n"),
        Annotations::Github => {
            let kind = match comparison.decision {
                Decision::Slower if comparison.gate => "error",
                Decision::Slower | Decision::Inconclusive => "warning",
                Decision::Faster | Decision::Same => "notice",
            };
            let escaped = headline
                .replace('%', "%25")
                .replace(['\r', '\n'], " ")
                .replace("::", "%3A%3A");
            format!("::{kind} title=tare gate::{escaped}\n")
        }
    }
}
