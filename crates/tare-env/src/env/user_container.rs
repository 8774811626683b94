//! The user's containers as drivers read them: an existing container, or a command line that would create one.
//!
//! Plain data between drivers and their callers. A driver finds out how a user's container is configured, keeps that
//! in a file of the run, and lists its differences from a plain container. An arm is then like it without some of
//! them ([`LIKE`], [`WITHOUT`]).
//! Limits: the effect of a difference on the program is measured, not derived.
//! Not a driver; drivers use it.

use serde::de::DeserializeOwned;

use self::fields::{VariableKind, reader_of};
pub use tare_core::driver::user_container::{
    ALIKE, AS_TYPED, Bare, Difference, INSIDE, LIKE, NOT_MEASURED, NOT_REMOVED, OWN, STARTING,
    UserContainer, WITHOUT, is_inside, is_of_starts, is_own, leave_out, protection, without,
};

use super::grammar::{is_container_name, is_safe_path};
use super::prelude::*;

pub(crate) mod command;
pub(crate) mod fields;
pub mod image_command;
pub(crate) mod like;
pub mod limits;
pub(crate) mod machine;
pub mod protect;
pub(crate) mod reach;
pub(crate) mod share;
pub(crate) mod shared;
mod sockets;

/// The settings that choose one of several engines: the only ones allowed together with a user's container.
pub const WHICH: [&str; 2] = ["context", "as"];
/// The kept data about a user's container, for messages.
pub(super) const CONFIGURATION: &str = "your container's configuration";
/// The source of a user's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// A command line of an engine's client, such as `docker run IMAGE`.
    Line(&'a [String]),
    /// A container, running or stopped, by name or id.
    Container(&'a str),
    /// A running container in which the command itself is to run.
    Inside(&'a str),
    /// A service of a compose file.
    Service {
        /// The file.
        file: &'a str,
        /// The service's name in it.
        service: &'a str,
    },
}

/// What happens to the user's volumes and folders that the container can write to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shares {
    /// They are mounted read-only.
    #[default]
    ReadOnly,
    /// Each arm writes to its own copies of those that the command could write to.
    Copied,
    /// They are shared unchanged, and written to.
    Shared,
}

/// A request to read a user's container.
#[derive(Debug, Clone, Copy)]
pub struct ContainerRequest<'a> {
    /// The container's source.
    pub source: Source<'a>,
    /// A folder for a file that only this user may read.
    pub folder: &'a Path,
    /// What may be written to.
    pub shares: Shares,
    /// Whether a service's dependencies are started next to it; the caller sweeps the run at the end.
    pub with_dependencies: bool,
    /// The engine, if several are known by names, or its owner.
    pub context: Option<&'a str>,
    /// What the copies may reach only with the user's consent.
    pub consent: Consent<'a>,
}

/// What the arms of a question may reach beyond their own files, on request only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consent<'a> {
    /// Whether they may use the host's network, if the container has another one.
    pub host_network: bool,
    /// Whether they may use the user's networks, sockets and named pipes that the container has.
    pub join_networks: bool,
    /// The protections to remove like other differences, by name, or `all`.
    pub loosen: &'a [String],
}

/// The request for a user's container, and the settings of an arm that is like it.
#[derive(Debug, Clone, Copy)]
pub struct ArmRequest<'a> {
    /// The request.
    pub wish: ContainerRequest<'a>,
    /// The settings.
    pub settings: &'a Params,
}

/// Returns the note on a user's network that no copy joins.
pub(crate) fn not_joined(network: &str) -> String {
    format!(
        "the copies are on a network of the run's own, without {network} and what is on it; `--join-networks` lets every run act on that"
    )
}

/// Returns the name of the copies' network: of a question, or of an arm of a study.
pub(crate) fn network_of_copies(cx: &Context<'_>, arm: Option<&ArmId>) -> String {
    match arm {
        None => format!("tare-{}-own", cx.run),
        Some(arm) => format!("tare-{}-{arm}-own", cx.run),
    }
}

/// Describes a user's network by its name, or by `container:` and the name of the container whose network it is.
pub(crate) fn described_network(name: &str) -> String {
    match name.split_once(':') {
        Some(("container", other)) => {
            format!("the network of the container `{}`", printable(other))
        }
        _ => format!("the network `{}`", printable(name)),
    }
}

/// Parts of an image, to be compared with those of another one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImageParts {
    /// Copies of its files, by their paths inside.
    pub files: BTreeMap<String, PathBuf>,
    /// The variables that the image sets.
    pub variables: BTreeMap<String, String>,
}

/// A line that replaces another in the report, because something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLine {
    /// The previous line, if any.
    pub before: Option<String>,
    /// The new line.
    pub now: String,
}

/// Describes a change made by the switch that found it, because the user has no equivalent change.
pub(super) const BY_ITS_SWITCH: &str = "the same without it, by the switch that found it";

/// Keeps an arm's container description in a file of the run that only this user may read.
pub(super) fn keep(file: &Path, what: &impl Serialize) -> Result<(), EnvError> {
    let text = serde_json::to_vec(what).expect("plain data with text keys becomes JSON");
    Ok(files::write_working(file, &text)?)
}

/// Reads such a file; `what` names its content in messages.
///
/// # Errors
/// The file is gone, or its content is invalid.
pub(super) fn kept<T: DeserializeOwned>(file: &str, what: &str) -> Result<T, EnvError> {
    let text = files::read_text(Path::new(file)).map_err(|_| {
        EnvError::absent(
            format!("the file with {what} went with the run that kept it"),
            "ask again: `tare why` keeps nothing secret for later",
        )
    })?;
    serde_json::from_str(&text).map_err(|error| EnvError::failed(format!("reading {what}"), &error))
}

/// A user's container, read again after a change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changed {
    /// The settings of an arm that is like the changed container.
    pub settings: Params,
    /// The change in words, without secrets.
    pub change: String,
}

/// The price of removing a tmpfs.
pub(super) const IN_MEMORY_PRICE: &str = "what is written there goes to a disk, and stays";

/// Describes a tmpfs that is requested by this client's `--mount`.
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

/// A usual search path has at most this many folders.
const USUAL_FOLDERS: usize = 16;

/// Describes a variable as a difference: one that a command line sets, or one of its image; `unset` then says how to
/// remove it. `None` if it stays, or if it is part of the command because the command's text names it. `text` is the
/// name, or the name with its value.
pub(super) fn variable(
    text: &str,
    unset: Option<String>,
    client: &str,
    command: &[String],
) -> Option<Difference> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let whose = reader_of(name);
    let uses = [format!("${name}"), format!("${{{name}")];
    let mut texts = command.iter();
    let is_in_command = texts.any(|text| uses.iter().any(|one| text.contains(one)));
    let is_images_place = whose == VariableKind::Path && unset.is_some();
    if whose == VariableKind::Ignored || is_images_place || is_in_command || name.is_empty() {
        return None;
    }
    // Every lookup searches each folder.
    let has_many_folders =
        value.split(':').filter(|it| it.starts_with('/')).count() > USUAL_FOLDERS;
    let is_likely = whose == VariableKind::Runtime || has_many_folders;
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
        may_be_needed: whose != VariableKind::Runtime,
        every_ns: None,
    })
}

/// Whether a text can be the name of a difference: a flag, a variable, a sysctl, a path.
pub(super) fn is_difference(text: &str) -> bool {
    let is_letter =
        |letter: char| letter.is_ascii_graphic() && !matches!(letter, '\'' | '"' | '\\' | '`');
    !text.is_empty() && text.len() <= 256 && text.chars().all(is_letter)
}

/// Whether a text names a container, or the file in which its description is kept.
pub(super) fn is_source(text: &str) -> bool {
    is_container_name(text) || is_safe_path(text)
}

/// Returns the position of the verb that creates a container, in a command line of an engine's client.
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
    fn run_line_is_distinguished_from_other_commands() {
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
    fn long_path_list_is_likelier_than_short_one() {
        let likelihood = |value: &str| {
            let text = format!("PATH={value}");
            variable(&text, None, "docker", &[]).unwrap().likelihood
        };
        let long: Vec<String> = (0..40).map(|number| format!("/opt/{number}/bin")).collect();
        assert!(likelihood(&long.join(":")) > likelihood("/usr/local/bin:/usr/bin:/bin"));
    }
}
