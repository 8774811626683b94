//! The user's environments: settings of arms that copy them, and their differences from plain ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tare_model::{CommandChange, Params, Value};

/// The setting of arms that copy the user's environment: the file in which it is stored, or its name.
pub const LIKE: &str = "like";
/// The setting for an engine client's command line.
pub const RUN: &str = "run";
/// The setting for a compose file and one of its services.
pub const COMPOSE: &str = "compose";
/// The setting of an arm that is the user's running container itself: its name.
pub const INSIDE: &str = "inside";
/// The arm with only the files of an image, as a bare process.
pub const IMAGE: &str = "image";
/// The setting that lists the differences removed from an arm.
pub const WITHOUT: &str = "without";
/// Prefix of causes that are a difference of the user's environment.
pub const OWN: &str = "own.";

/// How many of the things that a program may need are each kept alone.
const SINGLE_MOST: usize = 5;

/// Whether an arm with these settings copies the user's environment, or is that environment.
pub fn is_own(settings: &Params) -> bool {
    let says = |name: &str| settings.value(name).is_some();
    [LIKE, RUN, COMPOSE].into_iter().any(says) || is_inside(settings)
}

/// Whether an arm with these settings is the user's running container itself.
pub fn is_inside(settings: &Params) -> bool {
    settings.value(INSIDE).is_some()
}

/// A captured environment of the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserContainer {
    /// The settings of an arm that copies it.
    pub settings: Params,
    /// Its display name, without secrets.
    pub name: String,
    /// Its default command.
    pub argv: Vec<String>,
    /// The command's working directory, as a path inside.
    pub directory: String,
    /// Its differences from a plain one, the likeliest to matter first.
    pub differences: Vec<Difference>,
    /// For each difference that is part of the command, by name: the change of the command that removes it.
    pub of_command: BTreeMap<String, CommandChange>,
    /// What was changed and why, one line each.
    pub notes: Vec<String>,
    /// The settings of an arm that is the running container itself, if requested; the other settings are those of a
    /// copy.
    pub inside: Option<Params>,
    /// Why a copy must not run the container's command, if so.
    pub answers: Option<String>,
    /// Differences that stay in every arm, because they protect the user.
    pub kept: Vec<Difference>,
    /// Names of differences that are not tested without consent.
    pub untried: Vec<String>,
    /// Settings of a bare process that keep the user's protections.
    pub bare: Params,
    /// Why there is no bare process to compare with, if so.
    pub not_bare: Option<String>,
    /// The user's networks that no copy joins, in words.
    pub networks: Vec<String>,
    /// The user's files that the container could write to, by path on the engine's machine.
    pub writable: Vec<PathBuf>,
    /// Published ports: on the engine's machine, and inside.
    pub published: Vec<(u16, u16)>,
    /// Whether its command receives its client's standard input.
    pub reads_input: bool,
    /// Whether its copies write to `writable` itself (`--share-writable`), and not to copies of it.
    pub is_written: bool,
    /// Whether the engine runs on another machine.
    pub is_elsewhere: bool,
}

/// Prefix of the line with the start-up time and its causes.
pub const STARTING: &str = "starting and removing the container took ";

/// Prefix of the line with the time of a plain run.
pub const AS_TYPED: &str = "a plain run of it";

/// Prefix of the line with the protections that stay on both sides.
pub const NOT_REMOVED: &str = "not removed: ";

/// Prefix of the line with what the numbers do not include.
pub const NOT_MEASURED: &str = "not measured: ";

/// Prefix of the line with what is mounted on both sides.
pub const ALIKE: &str = "mounted on both sides alike, and no difference: ";

/// Adds to a change of the command what an arm without these differences removes from it; `of_command` maps the
/// differences that are parts of the command ([`UserContainer::of_command`]).
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
        change.stdout = part.stdout.or(change.stdout);
    }
}

/// Returns the name by which a protection is loosened.
pub fn protection(id: &str) -> &str {
    id.strip_prefix("security-opt.").unwrap_or(id)
}

impl UserContainer {
    /// Returns the protections that stay on both sides, each with the name by which it is loosened.
    pub fn protected(&self) -> Vec<(String, String)> {
        let of = |it: &Difference| (it.what.clone(), protection(&it.id).to_owned());
        self.kept.iter().map(of).collect()
    }

    /// Returns the names of the differences that match.
    pub fn names(&self, is_so: impl Fn(&Difference) -> bool) -> Vec<String> {
        let differences = self.differences.iter().filter(|it| is_so(it));
        differences.map(|it| it.id.clone()).collect()
    }

    /// Returns sets of removable differences, the barest first: all; all but one of those that the program may need
    /// and can be given, for a few of them; all but those.
    pub fn barest_first(&self, can_be_given: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
        let needed = self.names(|it| it.may_be_needed && can_be_given(&it.id));
        let but = |kept: &[String]| self.names(|it| !kept.contains(&it.id));
        let mut all = vec![but(&[])];
        if needed.len() > 1 {
            all.extend(needed.chunks(1).take(SINGLE_MOST).map(but));
        }
        if !needed.is_empty() {
            all.push(but(&needed));
        }
        all
    }

    /// Drops the differences of the entrypoint, for another command that has none.
    pub fn forget_entry(&mut self) {
        let of_entry = |id: &String| {
            let change = self.of_command.get(id);
            change.is_some_and(|change| change.left_out > 0)
        };
        self.differences.retain(|it| !of_entry(&it.id));
        self.of_command.retain(|_, change| change.left_out == 0);
    }
}

/// Files as a bare process: the reference below every container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bare {
    /// The driver of the arm.
    pub driver: String,
    /// Its settings.
    pub settings: Params,
    /// The names of the removed differences.
    pub without: Vec<String>,
}

/// One difference of the user's environment from a plain one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// Its name: `cpu-shares`, `env.LD_PRELOAD`, `engine.seccomp`.
    pub id: String,
    /// What it is, as a noun: "`--cpu-shares 2`".
    pub what: String,
    /// What to change, ready to paste.
    pub advice: String,
    /// The price of that change.
    pub price: String,
    /// How likely it matters, from 0 to 1.
    pub likelihood: f64,
    /// Whether the program may need it to do the same work.
    pub may_be_needed: bool,
    /// The interval in nanoseconds at which it acts, if it is periodic: it shows only if a container lives for
    /// several intervals.
    pub every_ns: Option<u64>,
}

/// Whether an engine handles a difference of this name when it starts a container.
pub fn is_of_starts(id: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "publish",
        "runtime",
        "network",
        "engine.network",
        "log",
        "engine.log",
        "mounted",
        "health",
        "storage-opt",
    ];
    BEGINNINGS.iter().any(|it| id.starts_with(it))
}

/// Returns settings with further differences removed.
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

/// Returns the removed differences of an arm that copies the user's environment, or of the second of two sides.
pub fn without_of(arm: &tare_model::ArmSpec) -> Option<Vec<String>> {
    if is_own(&arm.settings) {
        return Some(arm.settings.words(WITHOUT));
    }
    let without = &arm.role.without;
    (!without.is_empty()).then(|| without.clone())
}

/// Maps a setting of a catalogue counterfactual to the differences that it removes. `None` if the user's environment
/// has no such switch.
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

/// Applies a counterfactual's changes to the settings of an arm that copies the user's environment.
///
/// # Errors
/// The change that cannot be made to it.
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
    fn without_list_is_merged_sorted_and_deduplicated() {
        let settings = Params::new().with(LIKE, "web").with(WITHOUT, "b");
        let all = without(&settings, &["c".into(), "a".into(), "b".into()]);
        assert_eq!(all.words(WITHOUT), ["a", "b", "c"]);
        assert!(is_own(&all) && !is_own(&Params::new()));
        assert_eq!(without(&Params::new(), &[]), Params::new());
    }

    #[test]
    fn barest_first_keeps_one_needed_item_before_all() {
        let difference = |id: &str, may_be_needed| Difference {
            id: id.to_owned(),
            may_be_needed,
            ..Difference::default()
        };
        let all = [
            ("cpus", false),
            ("dns", true),
            ("dns-search", true),
            ("device", true),
        ];
        let own = |n: usize| UserContainer {
            differences: all[..n]
                .iter()
                .map(|(id, needed)| difference(id, *needed))
                .collect(),
            ..UserContainer::default()
        };
        let names = |n: usize| own(n).barest_first(|id| id != "device");
        assert_eq!(names(1), [vec!["cpus"]]);
        assert_eq!(names(2), [vec!["cpus", "dns"], vec!["cpus"]]);
        assert_eq!(
            names(4),
            [
                vec!["cpus", "dns", "dns-search", "device"],
                vec!["cpus", "dns-search", "device"],
                vec!["cpus", "dns", "device"],
                vec!["cpus", "device"],
            ]
        );
    }

    #[test]
    fn own_counterfactual_only_removes_differences() {
        let own = Params::new().with(LIKE, "web");
        let changed_to = |name: &str, value: &str| changed(&own, &Params::new().with(name, value));
        let words = changed_to("cpus", "").unwrap().words(WITHOUT);
        assert_eq!(words, ["cpu-quota?", "cpus?"]);
        // An additional volume would not move its files.
        assert!(changed_to("storage", "volume").is_err());
        assert!(changed_to("cpus", "2").is_err());
        // A running container is never changed.
        let inside = Params::new().with(INSIDE, "web");
        assert!(changed(&inside, &Params::new().with("cpus", "")).is_err());
    }
}
