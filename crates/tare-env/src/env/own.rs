//! Environments of the user's own, as a driver takes them: a container that is there, or the line that would make one.
//!
//! Plain data between drivers and those who ask. A driver finds out what something of the user's is made of, keeps
//! that in a file of the run's own, and lists in which parts it differs from a plain one; an arm is then like it
//! without some of them ([`LIKE`], [`WITHOUT`]).
//! What it cannot see: what the program makes of a difference; that is measured.
//! This file is no driver; drivers use it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tare_model::Params;

use self::fields::{Whose, whose};
pub use tare_core::driver::own::{
    ALIKE, AS_TYPED, Bare, Difference, INSIDE, LIKE, NOT_MEASURED, NOT_REMOVED, OWN, Own, STARTING,
    WITHOUT, is_inside, is_of_starts, is_own, leave_out, protection, without,
};

use super::EnvError;
use super::grammar::{is_container_name, is_safe_path};
use super::text::printable;
use crate::cx::files;

pub mod asked;
pub(in crate::env) mod command;
pub(in crate::env) mod fields;
pub(in crate::env) mod like;
pub mod limits;
pub(in crate::env) mod machine;
pub mod protect;
pub(in crate::env) mod reach;
pub(in crate::env) mod share;
pub(in crate::env) mod shared;
mod sockets;

/// The settings that say which of several engines it is, the only ones that stand beside something of the user's.
pub const WHICH: [&str; 2] = ["context", "as"];
/// What is kept of a container of the user's, in words.
pub(super) const CONFIGURATION: &str = "your container's configuration";
/// Where something of the user's is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A line for an engine's client, such as `docker run IMAGE`.
    Line(&'a [String]),
    /// A container, running or stopped, by name or id.
    Container(&'a str),
    /// A running container, in which the command itself is to be run.
    Inside(&'a str),
    /// A service of a compose file.
    Service {
        /// The file.
        file: &'a str,
        /// Its name there.
        service: &'a str,
    },
}

/// What may happen to volumes and folders of the user's that it can write to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shares {
    /// They are shown read-only.
    #[default]
    ReadOnly,
    /// Each arm has copies of its own of those that the command could write to, and writes to these.
    Copied,
    /// They are shared as they are, and written to.
    Shared,
}

/// How something is to be taken.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// What.
    pub source: Source<'a>,
    /// A folder in which a file may be kept that nobody else reads.
    pub folder: &'a Path,
    /// What may be written to.
    pub shares: Shares,
    /// Whether what a service depends on is started beside it; whoever asks sweeps the run in the end.
    pub with_dependencies: bool,
    /// Which engine, where several are known by names, or whose it is.
    pub context: Option<&'a str>,
    /// What may be reached that a copy does not reach by itself.
    pub consent: Consent<'a>,
}

/// What the arms of a question may reach beyond their own files, on demand only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consent<'a> {
    /// The machine's own network, where the container has another one.
    pub host_network: bool,
    /// The networks, sockets and named pipes of the user's that the container has.
    pub join_networks: bool,
    /// The protections that are removed like other differences, by name, or `all`.
    pub loosen: &'a [String],
}

/// How something was taken, and the settings of an arm that is like it.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'a> {
    /// How.
    pub wish: Wish<'a>,
    /// The settings.
    pub settings: &'a Params,
}

/// What is said of a network of the user's that no copy joins.
pub(in crate::env) fn not_joined(network: &str) -> String {
    format!(
        "the copies are on a network of the run's own, without {network} and what is on it; `--join-networks` lets every run act on that"
    )
}

/// Parts of an image that are compared with those of another one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageParts {
    /// Copies of its files, by their paths inside.
    pub files: BTreeMap<String, PathBuf>,
    /// The variables that it brings.
    pub variables: BTreeMap<String, String>,
}

/// A line that is told in place of another, because something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retold {
    /// What was told before, if anything.
    pub before: Option<String>,
    /// What is told now.
    pub now: String,
}

/// What is told of a change that is made by the switch that found it, because its user would make none that is the same.
pub(super) const BY_ITS_SWITCH: &str = "the same without it, by the switch that found it";

/// Keeps in a file of the run's own, which nobody else reads, what an arm is like.
pub(super) fn keep(file: &Path, what: &impl Serialize) -> Result<(), EnvError> {
    let text = serde_json::to_vec(what).expect("plain data with text keys becomes JSON");
    Ok(files::write_working(file, &text)?)
}

/// Reads it from there.
///
/// # Errors
/// The file is gone, with what it said in the words of `what`; or it is none of these.
pub(super) fn kept<T: DeserializeOwned>(file: &str, what: &str) -> Result<T, EnvError> {
    let text = files::read_text(Path::new(file)).map_err(|_| EnvError::Absent {
        why: format!("the file with {what} went with the run that kept it"),
        fix: Some("ask again: `tare why` keeps nothing secret for later".into()),
    })?;
    serde_json::from_str(&text).map_err(|error| EnvError::Refused {
        what: format!("reading {what}"),
        answer: printable(&error.to_string()),
    })
}

/// Something of the user's, taken once more after a change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changed {
    /// The settings of an arm that is like it.
    pub settings: Params,
    /// What was changed, in words, without anything secret.
    pub change: String,
}

/// What it gives up to do without a file system in memory.
pub(super) const IN_MEMORY_PRICE: &str = "what is written there goes to a disk, and stays";

/// A file system in memory that is asked for as a mount of this client's.
pub(super) fn in_memory(target: &str, client: &str) -> Difference {
    let target = printable(target);
    let flag = format!("--mount type=tmpfs,target={target}");
    Difference {
        id: format!("tmpfs-mount.{target}"),
        what: format!("`{flag}`"),
        advice: format!(
            "remove `{flag}` from the `{client} run` line (in a compose file: below `volumes:`)"
        ),
        price: IN_MEMORY_PRICE.to_owned(),
        likelihood: 0.3,
        may_be_needed: true,
        every_ns: None,
    }
}

/// A usual search path has no more folders.
const USUAL_FOLDERS: usize = 16;

/// A variable that a line gives, or that its image brings: then `unset` says how a container goes without it. `None`
/// where it is left as it is, or where it is a part of the command because the command's own text names it.
/// `text` is the name, or the name with its value.
pub(super) fn variable(
    text: &str,
    unset: Option<String>,
    client: &str,
    command: &[String],
) -> Option<Difference> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let whose = whose(name);
    let uses = [format!("${name}"), format!("${{{name}")];
    let mut texts = command.iter();
    let is_in_command = texts.any(|text| uses.iter().any(|one| text.contains(one)));
    let is_images_place = whose == Whose::Places && unset.is_some();
    if whose == Whose::Nobodys || is_images_place || is_in_command || name.is_empty() {
        return None;
    }
    // Each is searched for whatever is looked up.
    let has_many_folders =
        value.split(':').filter(|it| it.starts_with('/')).count() > USUAL_FOLDERS;
    let is_likely = whose == Whose::Runtimes || has_many_folders;
    let name = printable(name);
    let brings = if unset.is_some() { "image's " } else { "" };
    Some(Difference {
        id: format!("env.{name}"),
        what: format!("the {brings}variable `{name}`"),
        advice: unset.unwrap_or_else(|| {
            format!("remove `-e {name}=…` from the `{client} run` line (in a compose file: below `environment:`)")
        }),
        price: "whatever it was set for".to_owned(),
        likelihood: if is_likely { 0.6 } else { 0.25 },
        may_be_needed: whose != Whose::Runtimes,
        every_ns: None,
    })
}

/// Whether a text can be the name of a difference: of a flag, a variable, a sysctl, a path.
pub(super) fn is_difference(text: &str) -> bool {
    let is_letter =
        |letter: char| letter.is_ascii_graphic() && !matches!(letter, '\'' | '"' | '\\' | '`');
    !text.is_empty() && text.len() <= 256 && text.chars().all(is_letter)
}

/// Whether a text names a container, or the file in which one is kept.
pub(super) fn is_source(text: &str) -> bool {
    is_container_name(text) || is_safe_path(text)
}

/// Where the verb stands that makes a container, in a line for an engine's client.
pub(super) fn verb(words: &[String]) -> Option<usize> {
    let place = match words.get(1).map(String::as_str) {
        Some("container") => 2,
        _ => 1,
    };
    matches!(words.get(place)?.as_str(), "run" | "create").then_some(place)
}

/// Whether a command is such a line for this client.
pub(super) fn is_line_for(client: &str, words: &[String]) -> bool {
    let program = words.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name == client) && verb(words).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_from_a_command_that_only_begins_like_one() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(verb(&words("docker run x")), Some(1));
        assert_eq!(verb(&words("docker container run x")), Some(2));
        assert_eq!(verb(&words("docker -H x run y")), None);
        assert!(is_line_for("docker", &words("/usr/bin/docker run x")));
        assert!(!is_line_for("docker", &words("podman run x")));
        assert!(!is_line_for("docker", &words("docker ps")));
        assert!(!is_line_for("docker", &words("docker")));
    }

    #[test]
    fn a_long_list_of_folders_is_likelier_than_a_short_one() {
        let likelihood = |value: &str| {
            let text = format!("PATH={value}");
            variable(&text, None, "docker", &[]).unwrap().likelihood
        };
        let long: Vec<String> = (0..40).map(|number| format!("/opt/{number}/bin")).collect();
        assert!(likelihood(&long.join(":")) > likelihood("/usr/local/bin:/usr/bin:/bin"));
    }
}
