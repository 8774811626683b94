//! Environments of the user's own: the settings of arms that are like them, and in what they differ from plain ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tare_model::{CommandChange, Params, Value};

/// The setting of arms that are like something of the user's: the file in which it is kept, or its name.
pub const LIKE: &str = "like";
/// The setting that is a line for an engine's client.
pub const RUN: &str = "run";
/// The setting that is a compose file and one of its services.
pub const COMPOSE: &str = "compose";
/// The setting of an arm that is a running container of the user's itself: its name.
pub const INSIDE: &str = "inside";
/// The arm with the files of an image alone, as a bare process.
pub const IMAGE: &str = "image";
/// The setting that names differences which an arm does without.
pub const WITHOUT: &str = "without";
/// What the names of causes begin with that are a difference of the user's own environment.
pub const OWN: &str = "own.";

/// Of so many things that a program may need each is kept alone.
const SINGLE_MOST: usize = 5;

/// Whether an arm with these settings is like something of the user's, or that itself.
pub fn is_own(settings: &Params) -> bool {
    let says = |name: &str| settings.value(name).is_some();
    [LIKE, RUN, COMPOSE].into_iter().any(says) || is_inside(settings)
}

/// Whether an arm with these settings is a running container of the user's itself.
pub fn is_inside(settings: &Params) -> bool {
    settings.value(INSIDE).is_some()
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
    /// Whether its command is given what stands in its client's standard input.
    pub reads_input: bool,
    /// Whether its copies write to that.
    pub is_written: bool,
    /// Whether the engine's machine is another one.
    pub is_elsewhere: bool,
}

/// How a line begins that says what starting takes, and what carries it.
pub const STARTING: &str = "starting and removing the container took ";

/// How a line begins that says what a plain run takes.
pub const AS_TYPED: &str = "a plain run of it";

/// How a line begins that says what protects the user and stays on both sides.
pub const NOT_REMOVED: &str = "not removed: ";

/// How a line begins that says what the numbers do not have in them.
pub const NOT_MEASURED: &str = "not measured: ";

/// How a line begins that says what is mounted on both sides.
pub const ALIKE: &str = "mounted on both sides alike, and no difference: ";

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
        change.stdout = part.stdout.or(change.stdout);
    }
}

/// The name by which a protection is loosened.
pub fn protection(id: &str) -> &str {
    id.strip_prefix("security-opt.").unwrap_or(id)
}

impl Own {
    /// What protects the user and stays on both sides, each with the name by which it is loosened.
    pub fn protected(&self) -> Vec<(String, String)> {
        let of = |it: &Difference| (it.what.clone(), protection(&it.id).to_owned());
        self.kept.iter().map(of).collect()
    }

    /// The names of the differences for which this is so.
    pub fn names(&self, is_so: impl Fn(&Difference) -> bool) -> Vec<String> {
        let differences = self.differences.iter().filter(|it| is_so(it));
        differences.map(|it| it.id.clone()).collect()
    }

    /// The names of what can be done without, the barest first: every difference; all but one of those that the program
    /// may need and can be given, for a few; all but those.
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

/// Whether a difference of this name is something that an engine deals with when it starts a container.
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
    fn what_an_arm_does_without_is_one_sorted_list() {
        let settings = Params::new().with(LIKE, "web").with(WITHOUT, "b");
        let all = without(&settings, &["c".into(), "a".into(), "b".into()]);
        assert_eq!(all.words(WITHOUT), ["a", "b", "c"]);
        assert!(is_own(&all) && !is_own(&Params::new()));
        assert_eq!(without(&Params::new(), &[]), Params::new());
    }

    #[test]
    fn one_thing_that_may_be_needed_is_kept_before_all_are() {
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
        let own = |n: usize| Own {
            differences: all[..n]
                .iter()
                .map(|(id, needed)| difference(id, *needed))
                .collect(),
            ..Own::default()
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
