//! One line for a runner's log, by which it marks the job.

use super::shown;
use tare_core::compare::{Comparison, Decision};
use tare_core::foreign::harmless;

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotations {
    /// GitHub's workflow commands.
    Github,
    /// A plain line: GitLab shows the JUnit report instead.
    Gitlab,
    /// Nothing.
    None,
}

/// The lines. A label can begin no command of its own: line ends, percent signs, and colons are escaped.
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
