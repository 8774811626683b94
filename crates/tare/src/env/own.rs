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
use tare_model::{CommandChange, Params, Value};

use self::fields::{Whose, whose};
pub use tare_core::driver::own::{INSIDE, LIKE, is_inside, is_own};

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

/// The setting that names differences which an arm does without.
pub const WITHOUT: &str = "without";
/// The settings that say which of several engines it is, the only ones that stand beside something of the user's.
pub const WHICH: [&str; 2] = ["context", "as"];
/// What is kept of a container of the user's, in words.
pub(super) const CONFIGURATION: &str = "your container's configuration";
/// What the names of causes begin with that are a difference of the user's own environment.
pub const OWN: &str = "own.";

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

/// Something of the user's, taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own {
    /// The settings of an arm that is like it.
    pub settings: Params,
    /// What people call it, without anything secret.
    pub name: String,
    /// The command that it runs by itself.
    pub argv: Vec<String>,
    /// Where that is started, by its path inside.
    pub directory: String,
    /// In what it differs from a plain one, likeliest to matter first.
    pub differences: Vec<Difference>,
    /// What an arm changes of the command that does without a difference which is a part of that, by its name.
    pub of_command: BTreeMap<String, CommandChange>,
    /// What was changed and why, a line each.
    pub notes: Vec<String>,
    /// The settings of an arm that is the running container itself, where that is asked about; the others are those
    /// of a copy.
    pub inside: Option<Params>,
    /// Why a copy is not to run the container's own command, if it is not.
    pub answers: Option<String>,
    /// The differences that stay in every arm, because they protect the user.
    pub kept: Vec<Difference>,
    /// The names of differences that are not tried without consent.
    pub untried: Vec<String>,
    /// The settings of a bare process that keep what protects the user.
    pub bare: Params,
    /// Why there is no bare process to compare with, if there is none.
    pub not_bare: Option<String>,
    /// The networks of the user's that no copy joins, in words.
    pub networks: Vec<String>,
    /// What of the user's the container could write to, by its place on the engine's machine.
    pub writable: Vec<PathBuf>,
    /// The ports that are published: on the engine's machine, and inside.
    pub published: Vec<(u16, u16)>,
    /// Whether its copies write to that.
    pub is_written: bool,
    /// Whether the engine's machine is another one.
    pub is_elsewhere: bool,
}

/// How a line begins that says what is mounted on both sides.
pub const ALIKE: &str = "mounted on both sides alike, and no difference: ";

/// What is said of a network of the user's that no copy joins.
pub(in crate::env) fn not_joined(network: &str) -> String {
    format!(
        "the copies are on a network of the run's own, without {network} and what is on it; `--join-networks` lets every run act on that"
    )
}

/// Adds to a change of the command what an arm leaves out of it that does without these differences; `of_command` says
/// which of them are parts of the command ([`Own::of_command`]).
pub fn leave_out(
    of_command: &BTreeMap<String, CommandChange>,
    without: &[String],
    change: &mut CommandChange,
) {
    for part in without.iter().filter_map(|id| of_command.get(id)) {
        change.left_out = change.left_out.max(part.left_out);
        if part.directory.is_some() {
            change.directory.clone_from(&part.directory);
        }
    }
}

impl Own {
    /// The names of the differences for which this is so.
    pub fn names(&self, is_so: impl Fn(&Difference) -> bool) -> Vec<String> {
        let differences = self.differences.iter().filter(|it| is_so(it));
        differences.map(|it| it.id.clone()).collect()
    }

    /// Where another command is run instead of its own: that has no entry in front of it.
    pub fn forget_entry(&mut self) {
        let of_entry = |id: &String| {
            let change = self.of_command.get(id);
            change.is_some_and(|change| change.left_out > 0)
        };
        self.differences.retain(|it| !of_entry(&it.id));
        self.of_command.retain(|_, change| change.left_out == 0);
    }
}

/// Files as a bare process: what something of the user's can be compared with below every container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bare {
    /// The driver of the arm.
    pub driver: String,
    /// Its settings.
    pub settings: Params,
    /// The differences that it does without, by name.
    pub without: Vec<String>,
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

/// One part in which something of the user's differs from a plain one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// Its name: `cpu-shares`, `env.LD_PRELOAD`, `engine.seccomp`.
    pub id: String,
    /// What it is, as a noun: "`--cpu-shares 2`".
    pub what: String,
    /// What to change, ready to be pasted.
    pub advice: String,
    /// What that gives up.
    pub price: String,
    /// How likely it matters, from 0 to 1.
    pub likelihood: f64,
    /// Whether the program may need it to do the same work.
    pub may_be_needed: bool,
    /// After how many nanoseconds it acts again, if it does so from time to time: it is met only where a container
    /// lives for several of them.
    pub every_ns: Option<u64>,
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
            "leave `{flag}` out of the `{client} run` line (in a compose file: below `volumes:`)"
        ),
        price: IN_MEMORY_PRICE.to_owned(),
        likelihood: 0.3,
        may_be_needed: true,
        every_ns: None,
    }
}

/// A variable that a line gives, or that its image brings: then `unset` says how a container goes without it. `None`
/// where it is nobody's, or a part of the command because the command's own text names it.
pub(super) fn variable(
    name: &str,
    unset: Option<String>,
    client: &str,
    command: &[String],
) -> Option<Difference> {
    let whose = whose(name);
    let uses = [format!("${name}"), format!("${{{name}")];
    let mut texts = command.iter();
    let is_in_command = texts.any(|text| uses.iter().any(|one| text.contains(one)));
    let is_images_place = whose == Whose::Places && unset.is_some();
    if whose == Whose::Nobodys || is_images_place || is_in_command || name.is_empty() {
        return None;
    }
    let name = printable(name);
    let brings = if unset.is_some() { "image's " } else { "" };
    Some(Difference {
        id: format!("env.{name}"),
        what: format!("the {brings}variable `{name}`"),
        advice: unset.unwrap_or_else(|| {
            format!("leave `-e {name}=…` out of the `{client} run` line (in a compose file: below `environment:`)")
        }),
        price: "whatever it was set for".to_owned(),
        likelihood: if whose == Whose::Runtimes { 0.6 } else { 0.25 },
        may_be_needed: matches!(whose, Whose::Programs | Whose::Places),
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

/// Settings without further differences.
#[must_use]
pub fn without(settings: &Params, more: &[String]) -> Params {
    let mut all = settings.words(WITHOUT);
    all.extend(more.iter().cloned());
    all.sort();
    all.dedup();
    if all.is_empty() {
        return settings.clone();
    }
    let list = all.into_iter().map(Value::Text).collect();
    settings.clone().with(WITHOUT, Value::List(list))
}

/// What an arm does without: of something of the user's, or of the second of two sides.
pub fn without_of(arm: &tare_model::ArmSpec) -> Option<Vec<String>> {
    if is_own(&arm.settings) {
        return Some(arm.settings.words(WITHOUT));
    }
    let without = &arm.role.without;
    (!without.is_empty()).then(|| without.clone())
}

/// Settings of a catalogue's counterfactual in the words of differences: which of them a changed setting takes away.
/// `None` where an environment of the user's own has no such switch.
fn taken_away(name: &str, value: &Value) -> Option<&'static [&'static str]> {
    let text = value.to_string();
    Some(match (name, text.as_str()) {
        ("cpus", "") => &["cpus", "cpu-quota"],
        ("cpuset", "") => &["cpuset-cpus", "cpuset-mems"],
        ("memory", "") => &["memory", "memory-swap", "memory-reservation"],
        ("shm", "") => &["shm-size"],
        ("ulimits", "") => &["ulimit.nofile"],
        ("init", "") => &["init"],
        ("runtime", "") => &["runtime"],
        ("seccomp", "unconfined") => &["security-opt.seccomp", "engine.seccomp"],
        ("apparmor", "unconfined") => &["security-opt.apparmor", "engine.apparmor"],
        ("network", "host") => &["network", "publish", "engine.network"],
        ("log_driver", "none") => &["log", "engine.log"],
        _ => return None,
    })
}

/// The settings of an arm that is like something of the user's, with a counterfactual's changes.
///
/// # Errors
/// The change that cannot be made to something of the user's.
pub fn changed(settings: &Params, changes: &Params) -> Result<Params, String> {
    if is_inside(settings) {
        return Err("the running container is not changed; copies of it are".to_owned());
    }
    let mut away = Vec::new();
    for (name, value) in &changes.0 {
        match taken_away(name, value) {
            Some(ids) => away.extend(ids.iter().map(|id| format!("{id}?"))),
            None => return Err(format!("`{name}` is no switch of a container of your own")),
        }
    }
    Ok(without(settings, &away))
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
    fn what_an_arm_does_without_is_one_sorted_list() {
        let settings = Params::new().with(LIKE, "web").with(WITHOUT, "b");
        let all = without(&settings, &["c".into(), "a".into(), "b".into()]);
        assert_eq!(all.words(WITHOUT), ["a", "b", "c"]);
        assert!(is_own(&all) && !is_own(&Params::new()));
        assert_eq!(without(&Params::new(), &[]), Params::new());
    }

    #[test]
    fn a_counterfactual_of_the_catalogue_takes_differences_away_or_is_none() {
        let own = Params::new().with(LIKE, "web");
        let changed_to = |name: &str, value: &str| changed(&own, &Params::new().with(name, value));
        let words = changed_to("cpus", "").unwrap().words(WITHOUT);
        assert_eq!(words, ["cpu-quota?", "cpus?"]);
        // A volume beside it would not move its files.
        assert!(changed_to("storage", "volume").is_err());
        assert!(changed_to("cpus", "2").is_err());
        // What runs is never changed.
        let inside = Params::new().with(INSIDE, "web");
        assert!(changed(&inside, &Params::new().with("cpus", "")).is_err());
    }
}
