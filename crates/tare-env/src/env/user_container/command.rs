//! The differences of a user's container that are parts of its command: the entrypoint in front of it, and its
//! working directory.
//!
//! No engine has a switch for them: the arm without one runs fewer words, or starts them elsewhere.
//! Limits: the rest may not be a program; such an arm fails, and is then no baseline.

use tare_model::CommandChange;

use super::{Difference, UserContainer};
use crate::env::text::printable;

/// The name of the difference for the words in front of the command.
const ENTRY: &str = "entrypoint";
/// The name of the difference for the working directory.
const DIRECTORY: &str = "workdir";

/// A command as a container runs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Started {
    /// The words in front of the command.
    pub(crate) entry: Vec<String>,
    /// Whether these words are from the image.
    pub(crate) has_images_entry: bool,
    /// The command itself.
    pub(crate) command: Vec<String>,
    /// Working directory: the container's, and the image's default.
    pub(crate) directory: String,
    pub(crate) image_directory: String,
}

/// Whether a difference is a part of the command rather than of the container's configuration.
pub(crate) fn is_part(id: &str) -> bool {
    matches!(id.trim_end_matches('?'), ENTRY | DIRECTORY)
}

impl Started {
    /// Returns the complete command line.
    pub(crate) fn argv(&self) -> Vec<String> {
        self.entry.iter().chain(&self.command).cloned().collect()
    }

    /// Returns its part of a container's description: words, directory, and parts as differences.
    pub(crate) fn own(&self, client: &str) -> UserContainer {
        let parts = self.parts(client).into_iter();
        let (differences, of_command) = parts
            .map(|(part, change)| (part.clone(), (part.id, change)))
            .unzip();
        UserContainer {
            argv: self.argv(),
            directory: self.directory.clone(),
            differences,
            of_command,
            ..UserContainer::default()
        }
    }

    /// Returns its parts, each with the change in an arm without it, in the terms of an engine's client.
    pub(crate) fn parts(&self, client: &str) -> Vec<(Difference, CommandChange)> {
        let parts = [self.entry_part(), self.directory_part(client)];
        parts.into_iter().flatten().collect()
    }

    fn entry_part(&self) -> Option<(Difference, CommandChange)> {
        let first = self.command.first()?;
        // An option, or the text of a script, is no command without the words before it.
        if self.entry.is_empty() || first.starts_with('-') || first.contains(char::is_whitespace) {
            return None;
        }
        let text: String = self.entry.join(" ").chars().take(60).collect();
        let text = printable(&text);
        let direct = printable(first);
        let difference = Difference {
            id: ENTRY.to_owned(),
            what: if self.has_images_entry {
                format!("the image's entry `{text}`")
            } else {
                format!("the entry `{text}`")
            },
            advice: format!(
                "have `{text}` do less, or run the command without it: `--entrypoint {direct}`, and behind the image only what follows `{direct}`"
            ),
            price: "what it prepares is not prepared".to_owned(),
            likelihood: 0.3,
            may_be_needed: true,
            every_ns: None,
        };
        let change = CommandChange {
            left_out: self.entry.len(),
            ..CommandChange::default()
        };
        Some((difference, change))
    }

    fn directory_part(&self, client: &str) -> Option<(Difference, CommandChange)> {
        if self.directory == self.image_directory {
            return None;
        }
        let flag = format!("--workdir {}", printable(&self.directory));
        let difference = Difference {
            id: DIRECTORY.to_owned(),
            what: format!("`{flag}`"),
            advice: format!(
                "remove `{flag}` from the `{client} run` line (in a compose file: `working_dir:`)"
            ),
            price: "it is started where the image says, and finds other files there".to_owned(),
            likelihood: 0.15,
            may_be_needed: true,
            every_ns: None,
        };
        let change = CommandChange {
            directory: Some(self.image_directory.clone()),
            ..CommandChange::default()
        };
        Some((difference, change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(entry: &[&str], command: &[&str], directory: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let started = Started {
            entry: words(entry),
            has_images_entry: true,
            command: words(command),
            directory: directory.to_owned(),
            image_directory: "/".to_owned(),
        };
        let parts = started.parts("docker");
        assert!(parts.iter().all(|(part, _)| is_part(&part.id)));
        parts.into_iter().map(|(part, _)| part.id).collect()
    }

    #[test]
    fn entrypoint_with_program_and_new_workdir_are_parts() {
        assert_eq!(ids(&["/entry.sh"], &["serve", "-p"], "/"), ["entrypoint"]);
        assert_eq!(
            ids(&["/entry.sh"], &["serve"], "/srv"),
            ["entrypoint", "workdir"]
        );
        assert_eq!(ids(&["sh", "-c"], &["a long script"], "/srv"), ["workdir"]);
        for (entry, command) in [
            (&["serve"][..], &["-p"][..]),
            (&[], &["serve"]),
            (&["serve"], &[]),
        ] {
            assert!(ids(entry, command, "/").is_empty(), "{entry:?} {command:?}");
        }
    }
}
