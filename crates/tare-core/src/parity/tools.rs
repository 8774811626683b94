//! Checks whether a tool is the same program in both arms, by version and hash.
//!
//! A ratio between two programs is not an overhead. So a difference in a tool's version output, in its bytes or in
//! the bytes of its loader is separate from every other difference: a run refuses to start with one, unless allowed
//! to, and then labels every cell of that tool. A missing tool is not a difference: its measurements are not
//! available there.
//! Limits: ignores shared libraries, modules and locales, which a program opens at run time.

use std::fmt;

use tare_model::fact;
use tare_model::tool::{NOT_INSTALLED, ToolAnswer};
use tare_model::{CheckResult, Facts, Params, Reason};

use super::{Finding, Side};
use crate::driver::{self, Files};

/// Number of digits of a hash that distinguish two programs for a reader.
const DIGITS: usize = 12;

/// A tool that differs between an arm and the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The tool.
    pub program: String,
    arm: String,
    baseline: String,
    parts: Vec<Part>,
}

/// One property of a tool that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    name: &'static str,
    /// In the baseline.
    there: String,
    /// In the arm.
    here: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program.escape_debug();
        write!(out, "`{program}` in `{}` has ", self.arm)?;
        for (number, part) in self.parts.iter().enumerate() {
            let joint = if number == 0 { "" } else { " and " };
            let Part { name, there, here } = part;
            write!(out, "{joint}{name} `{here}`, not `{there}`")?;
        }
        write!(out, " as in `{}`", self.baseline)
    }
}

/// Returns the tools that differ. Properties that one side does not report are not compared.
pub fn mismatches(base: Side<'_>, arm: Side<'_>, programs: &[String]) -> Vec<Mismatch> {
    let programs = programs.iter();
    programs
        .filter_map(|program| mismatch(base, arm, program))
        .collect()
}

fn mismatch(base: Side<'_>, arm: Side<'_>, program: &str) -> Option<Mismatch> {
    let answers = [base, arm].map(|side| ToolAnswer::from_facts(side.facts, program));
    let [ToolAnswer::Present(there), ToolAnswer::Present(here)] = answers else {
        return None;
    };
    let properties = [
        ("version", there.version, here.version, usize::MAX),
        ("SHA-256", there.sha256, here.sha256, DIGITS),
        (
            "the interpreter with SHA-256",
            there.interpreter_sha256,
            here.interpreter_sha256,
            DIGITS,
        ),
    ];
    let different = properties
        .into_iter()
        .filter_map(|(name, there, here, most)| {
            let (there, here) = there.zip(here).filter(|(there, here)| there != here)?;
            let short = |text: String| text.chars().take(most).collect();
            Some(Part {
                name,
                there: short(there),
                here: short(here),
            })
        });
    let parts: Vec<Part> = different.collect();
    (!parts.is_empty()).then(|| Mismatch {
        program: program.to_owned(),
        arm: arm.id.to_owned(),
        baseline: base.id.to_owned(),
        parts,
    })
}

/// Why an arm lacks the tool; `None` if it has it, or was not checked.
pub fn missing(facts: &Facts, program: &str) -> Option<Reason> {
    match ToolAnswer::from_facts(facts, program) {
        ToolAnswer::Missing(why) if why.starts_with(NOT_INSTALLED) => {
            Some(Reason::MissingTool(program.escape_debug().to_string()))
        }
        ToolAnswer::Missing(why) => Some(Reason::Unsupported(format!(
            "`{}` cannot be used: {}",
            program.escape_debug(),
            why.escape_debug()
        ))),
        ToolAnswer::Unknown | ToolAnswer::Present(_) => None,
    }
}

/// How to install a missing tool in an arm of this driver with these settings.
pub fn fix(program: &str, driver: &str, settings: &Params) -> String {
    match settings.text("image") {
        None if driver::find(driver).is_some_and(|driver| driver.files == Files::Packed) => {
            format!(
                "install `{program}` and add it to the arm's `programs`: a guest holds the agent and what is packed into it"
            )
        }
        Some(image) => format!(
            "install `{program}` in the image `{}`, or remove `image`: then the host's own `{program}` is packed",
            image.escape_debug()
        ),
        None if settings.text("rootfs") == Some("minimal") => {
            format!("remove `rootfs`: then the root is the host's own, with its `{program}`")
        }
        None => format!("install `{program}` and run again"),
    }
}

/// Returns the dossier's findings on each tool.
pub(super) fn findings(base: Side<'_>, arm: Side<'_>, programs: &[String]) -> Vec<Finding> {
    const MEANING: &str = "not the same program: the ratio is not attributable to the environment";
    programs
        .iter()
        .map(|program| {
            let what = fact::name_for(fact::TOOL, program);
            if let Some(mismatch) = mismatch(base, arm, program) {
                let text = |value: fn(&Part) -> &String| {
                    let parts = mismatch.parts.iter();
                    let parts: Vec<String> = parts
                        .map(|part| format!("{} {}", part.name, value(part)))
                        .collect();
                    parts.join(", ")
                };
                let (there, here) = (text(|part| &part.there), text(|part| &part.here));
                return Finding::new(
                    arm,
                    &what,
                    CheckResult::Fail,
                    format!("{mismatch}: {MEANING}"),
                )
                .with_difference(&there, &here, MEANING);
            }
            let answers =
                [base, arm].map(|side| (side, ToolAnswer::from_facts(side.facts, program)));
            let untold = answers.iter().find_map(|(side, answer)| {
                let why = match answer {
                    ToolAnswer::Unknown => "it was not asked for".to_owned(),
                    ToolAnswer::Missing(why) => why.clone(),
                    ToolAnswer::Present(tool) if tool.sha256.is_none() => {
                        "its hash could not be read".to_owned()
                    }
                    ToolAnswer::Present(_) => return None,
                };
                Some(format!("`{}`: {why}", side.id))
            });
            let (result, detail) = match (untold, &answers[1].1) {
                (None, ToolAnswer::Present(tool)) => {
                    let version = tool.version.as_deref().unwrap_or("no version reported");
                    let hash = tool.sha256.as_deref().unwrap_or_default();
                    (CheckResult::Pass, format!("{version}; SHA-256 {hash}"))
                }
                (untold, _) => (CheckResult::NotKnown, untold.unwrap_or_default()),
            };
            Finding::new(arm, &what, result, detail)
        })
        .collect()
}

#[cfg(test)]
mod tests {

    use super::*;

    fn facts(version: &str, sha256: &str, interpreter: &str) -> Facts {
        Facts::from([
            (
                fact::name_for(fact::TOOL_PATH, "x"),
                "/usr/bin/x".to_owned(),
            ),
            (fact::name_for(fact::TOOL_VERSION, "x"), version.to_owned()),
            (fact::name_for(fact::TOOL_SHA256, "x"), sha256.to_owned()),
            (
                fact::name_for(fact::TOOL_INTERPRETER_SHA256, "x"),
                interpreter.to_owned(),
            ),
        ])
    }

    fn compared(base: &Facts, arm: &Facts) -> (Vec<String>, CheckResult) {
        let settings = Params::new();
        let side = |id: &'static str, facts| Side {
            id,
            settings: &settings,
            facts,
            agent_sha256: None,
        };
        let (base, arm) = (side("host", base), side("box", arm));
        let programs = ["x".to_owned()];
        let shown = mismatches(base, arm, &programs);
        let result = findings(base, arm, &programs)[0].result;
        (shown.iter().map(ToString::to_string).collect(), result)
    }

    #[test]
    fn tool_parity_compares_version_hash_interpreter() {
        let base = facts("1", "aa", "cc");
        assert_eq!(compared(&base, &base), (Vec::new(), CheckResult::Pass));
        for (other, said) in [
            (facts("2", "aa", "cc"), "version `2`, not `1`"),
            (facts("1", "bb", "cc"), "SHA-256 `bb`, not `aa`"),
            (facts("1", "aa", "dd"), "interpreter with SHA-256 `dd`"),
        ] {
            let (told, result) = compared(&base, &other);
            assert_eq!(result, CheckResult::Fail);
            assert!(told[0].contains(said), "{told:?}");
            assert!(told[0].starts_with("`x` in `box` has "), "{told:?}");
        }
    }

    #[test]
    fn tool_fact_missing_on_one_side_is_not_compared() {
        let base = facts("1", "aa", "cc");
        let missing = Facts::from([("unreadable.tool.x".to_owned(), NOT_INSTALLED.to_owned())]);
        let mut unreadable = base.clone();
        unreadable.remove(&fact::name_for(fact::TOOL_SHA256, "x"));
        for other in [&missing, &unreadable, &Facts::new()] {
            assert_eq!(compared(&base, other), (Vec::new(), CheckResult::NotKnown));
        }
        assert_eq!(
            super::missing(&missing, "x"),
            Some(Reason::MissingTool("x".into()))
        );
        assert_eq!(super::missing(&base, "x"), None);
        assert_eq!(super::missing(&Facts::new(), "x"), None);
    }

    #[test]
    fn tool_fix_depends_on_source_of_arm_files() {
        assert!(
            fix("x", "docker", &Params::new().with("image", "old:1")).contains("the image `old:1`")
        );
        assert!(fix("x", "container", &Params::new().with("rootfs", "minimal")).contains("rootfs"));
        let plain = |driver| fix("x", driver, &Params::new());
        assert_eq!(plain("host"), "install `x` and run again");
        assert!(plain("vm").contains("`programs`"), "{}", plain("vm"));
    }
}
