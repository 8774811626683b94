//! The differences of a container of the user's own that are parts of its command: the entry in front of it, and where
//! it is started.
//!
//! No engine has a switch for them: the arm without one runs less, or starts it elsewhere.
//! What it cannot see: whether the rest is a program; an arm in which it is none fails, and is then no baseline.
//! This file is no driver; drivers use it.

use tare_model::CommandChange;

use super::{Difference, Own};
use crate::env::text::printable;

/// The name of the difference that is the words in front of the command.
const ENTRY: &str = "entrypoint";
/// That of the folder in which it is started.
const DIRECTORY: &str = "workdir";

/// A command as a container runs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Started {
    /// The words in front of it.
    pub(crate) entry: Vec<String>,
    /// Whether they are the image's.
    pub(crate) has_images_entry: bool,
    /// The command itself.
    pub(crate) command: Vec<String>,
    /// Where it is started, and where the image would have it started.
    pub(crate) directory: String,
    pub(crate) image_directory: String,
}

/// Whether a difference is a part of the command, and none of what a container is made with.
pub(crate) fn is_part(id: &str) -> bool {
    matches!(id.trim_end_matches('?'), ENTRY | DIRECTORY)
}

impl Started {
    /// All of it.
    pub(crate) fn argv(&self) -> Vec<String> {
        self.entry.iter().chain(&self.command).cloned().collect()
    }

    /// What it is of something of the user's: its words, its directory, and its parts as differences.
    pub(crate) fn own(&self, client: &str) -> Own {
        let parts = self.parts(client).into_iter();
        let (differences, of_command) = parts
            .map(|(part, change)| (part.clone(), (part.id, change)))
            .unzip();
        Own {
            argv: self.argv(),
            directory: self.directory.clone(),
            differences,
            of_command,
            ..Own::default()
        }
    }

    /// Its parts, with what an arm without them changes, in the words of an engine's client.
    pub(crate) fn parts(&self, client: &str) -> Vec<(Difference, CommandChange)> {
        let parts = [self.entry_part(), self.directory_part(client)];
        parts.into_iter().flatten().collect()
    }

    fn entry_part(&self) -> Option<(Difference, CommandChange)> {
        let first = self.command.first()?;
        // An option, or the text of a script, is no command without what comes before it.
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
    fn the_entry_is_a_part_where_a_program_follows_it_and_the_folder_where_it_is_not_the_images() {
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
