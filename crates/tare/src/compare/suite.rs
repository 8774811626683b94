//! Runs `--suite FILE`: several commands as one comparison that share the budget and the false-positive rate.
//!
//! Entries run one after the other, each with a part of the remaining budget.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::options::Options;
use crate::compare::{Comparison, Decision};
use crate::config::units;
use crate::cx::files;
use crate::failed::Failed;

/// Most entries.
const ENTRIES_MOST: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    compare: Vec<Entry>,
}

/// A command of a suite, or several commands that are compared with each other.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Entry {
    pub(crate) name: String,
    command: Option<String>,
    commands: Vec<String>,
    margin: Option<String>,
    max: Vec<String>,
    floor: Vec<String>,
    only: Vec<String>,
    skip: Vec<String>,
    metric: Option<String>,
    more_is_better: bool,
    input: Option<PathBuf>,
}

fn wrong(file: &Path, problem: impl std::fmt::Display) -> Failed {
    Failed::usage(format!("{}: {problem}", file.display()))
}

/// Reads the entries of a suite file.
///
/// # Errors
/// What is wrong in the file, and where.
pub(crate) fn entries(file: &Path) -> Result<Vec<Entry>, Failed> {
    let text = files::read_text(file)?;
    parsed(file, &text)
}

fn parsed(file: &Path, text: &str) -> Result<Vec<Entry>, Failed> {
    let example = "[[compare]], then name = \"parse\" and command = \"./parse input\"";
    let suite: Suite = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        wrong(file, format!("line {line}: {}", error.message())).hint(example)
    })?;
    if suite.compare.is_empty() || suite.compare.len() > ENTRIES_MOST {
        return Err(wrong(file, format!("1 to {ENTRIES_MOST} entries are wanted")).hint(example));
    }
    let mut names: Vec<&str> = Vec::new();
    for entry in &suite.compare {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let name = entry.name.as_str();
        if name.is_empty() || name.len() > 40 || !name.bytes().all(is_plain) {
            return Err(wrong(file, format!("`{name}` is no name of an entry"))
                .hint("up to 40 letters, digits, `-` and `_`"));
        }
        if names.contains(&name) {
            return Err(wrong(file, format!("two entries are called `{name}`"))
                .hint("give each a name of its own"));
        }
        if entry.command.is_some() != entry.commands.is_empty() {
            return Err(wrong(
                file,
                format!("`{name}` needs either `command` or `commands`"),
            )
            .hint("`command` runs on both sides; `commands` are compared with each other"));
        }
        if let Some(Err(problem)) = entry.margin.as_deref().map(units::fraction) {
            return Err(wrong(file, format!("`{name}`: {problem}")).hint("margin = \"2%\""));
        }
        names.push(name);
    }
    Ok(suite.compare)
}

impl Entry {
    /// The options of this entry, which override those of the command line.
    ///
    /// # Errors
    /// Its command is empty or malformed.
    pub(crate) fn options(&self, all: &Options, budget_ns: u64) -> Result<Options, Failed> {
        let mut options = all.clone();
        options.suite = None;
        options.budget = budget_ns;
        match &self.command {
            Some(command) => options.command = all.words(command)?,
            None => options.sides.clone_from(&self.commands),
        }
        if let Some(Ok(margin)) = self.margin.as_deref().map(units::fraction) {
            options.margin = margin;
        }
        options.max.extend(self.max.iter().cloned());
        options.floor.extend(self.floor.iter().cloned());
        options.only.extend(self.only.iter().cloned());
        options.skip.extend(self.skip.iter().cloned());
        options.metric.clone_from(&self.metric);
        options.more_is_better = self.more_is_better;
        options.input.clone_from(&self.input);
        Ok(options)
    }

    /// Adds this entry's comparison to those of the entries before it.
    pub(crate) fn joined(&self, before: Option<Comparison>, mut own: Comparison) -> Comparison {
        if self.command.is_none() {
            for arm in own.sides.iter_mut().map(|side| &mut side.arm) {
                *arm = format!("{}.{arm}", self.name);
            }
            for arm in own.rows.iter_mut().map(|row| &mut row.arm) {
                *arm = format!("{}.{arm}", self.name);
            }
        }
        for note in &mut own.notes {
            *note = format!("{}: {note}", self.name);
        }
        own.how = format!("{}: {}", self.name, own.how);
        let Some(mut all) = before else {
            return own;
        };
        for side in own.sides {
            if !all.sides.contains(&side) {
                all.sides.push(side);
            }
        }
        all.runs.extend(own.runs);
        all.rows.extend(own.rows);
        all.notes.extend(own.notes);
        all.wall_s += own.wall_s;
        all.how = format!("{}; {}", all.how, own.how);
        all.decision = if all.rows.is_empty() {
            Decision::Same
        } else {
            Decision::from_rows(&all.rows)
        };
        all
    }
}

/// Checks that a text is a valid suite.
#[cfg(test)]
pub(crate) fn check(file: &Path, text: &str) -> Result<(), Failed> {
    parsed(file, text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Entry>, Failed> {
        parsed(Path::new("gate.toml"), text)
    }

    #[test]
    fn entries_are_read_with_margins_of_their_own() {
        let text = "[[compare]]\nname = \"parse\"\ncommand = \"./parse 'a b'\"\nmargin = \"3%\"\nskip = [\"memory\"]\n[[compare]]\nname = \"save\"\ncommands = [\"a\", \"b\"]\n";
        let entries = read(text).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].margin.as_deref(), Some("3%"));
        assert_eq!(entries[1].commands, ["a", "b"]);
    }

    #[test]
    fn invalid_suite_entry_error_has_location() {
        for (text, problem) in [
            (
                "[[compare]]\nname = \"a\"\ncomand = \"x\"\n",
                "line 3: unknown field",
            ),
            (
                "[[compare]]\nname = \"a\"\n",
                "either `command` or `commands`",
            ),
            ("[[compare]]\nname = \"a b\"\ncommand = \"x\"\n", "no name"),
            (
                "[[compare]]\nname = \"a\"\ncommand = \"x\"\nmargin = \"2\"\n",
                "percentage",
            ),
            (
                "[[compare]]\nname = \"a\"\ncommand = \"x\"\n[[compare]]\nname = \"a\"\ncommand = \"y\"\n",
                "two entries",
            ),
            ("compare = []\n", "1 to 100"),
        ] {
            let failed = read(text).unwrap_err();
            assert!(
                failed.message.contains(problem),
                "{} for {text}",
                failed.message
            );
            assert!(failed.hint.is_some(), "{text}");
        }
    }
}
