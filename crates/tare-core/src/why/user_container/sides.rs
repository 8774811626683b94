//! Lists the differences between two sides of the user's, such as two images or two commands, and builds an arm that
//! is the second side with some of them taken from the first.
//!
//! Pure: observations of both sides are passed in.
//! Limits: files that only one side reads are named but not exchanged; files that are read too briefly are missed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tare_model::command::ProcessSamples;
use tare_model::{CommandChange, Params, Value};

use super::super::Ask;
use super::super::counterfactual::TriedArm;
use crate::driver::user_container::Difference;

/// The first side's name; the second one's is `b`.
pub const FIRST: &str = "a";
/// Settings that are no difference by themselves: files and variables of images are compared one by one.
const NO_DIFFERENCE: [&str; 2] = ["image", "binds"];
/// The maximum number of words of a command that are compared one by one.
const WORDS_MOST: usize = 400;

/// How to give the second side one thing from the first.
#[derive(Debug, Clone, PartialEq)]
pub enum Undo {
    /// A setting and its value, if the first side has one.
    Setting(String, Option<Value>),
    /// A bind mount over a file: `FILE:PLACE:ro`.
    Bind(String),
    /// A variable and its value, if the first side has one.
    Variable(String, Option<String>),
    /// A range of words of the second side's command, and the words that replace it.
    Words(Range<usize>, Vec<String>),
}

/// Differences, with the way to undo each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// The differences.
    pub differences: Vec<Difference>,
    /// How each is undone, by id.
    pub undo: BTreeMap<String, Undo>,
}

impl Listed {
    fn add(&mut self, id: &str, what: String, likelihood: f64, undo: Undo) {
        // In the id of a cause a plus joins two differences.
        let id = id.replace('+', "_");
        self.differences.push(Difference {
            id: id.clone(),
            advice: format!("take it from {FIRST}: {what}"),
            what,
            likelihood,
            ..Difference::default()
        });
        self.undo.insert(id, undo);
    }

    /// Adds differing settings of the environments.
    pub fn settings(&mut self, first: &Params, second: &Params) {
        let names: BTreeSet<&String> = first.0.keys().chain(second.0.keys()).collect();
        for name in names {
            let (one, other) = (first.value(name), second.value(name));
            if one == other || NO_DIFFERENCE.contains(&name.as_str()) {
                continue;
            }
            let text = |value: Option<&Value>| {
                value.map_or_else(|| "unset".to_owned(), |value| format!("`{value}`"))
            };
            self.add(
                &format!("setting.{name}"),
                format!(
                    "the setting `{name}`, {} in place of {}",
                    text(other),
                    text(one)
                ),
                0.6,
                Undo::Setting(name.clone(), one.cloned()),
            );
        }
    }

    /// Adds differing variables of the commands.
    pub fn variables(
        &mut self,
        first: &BTreeMap<String, String>,
        second: &BTreeMap<String, String>,
    ) {
        let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
        for name in names {
            let one = first.get(name);
            if one == second.get(name) {
                continue;
            }
            self.add(
                &format!("env.{name}"),
                format!("the variable `{}`", name.escape_debug()),
                0.4,
                Undo::Variable(name.clone(), one.cloned()),
            );
        }
    }

    /// Adds differing words of the commands: the program, then each replaced argument.
    pub fn words(&mut self, first: &[String], second: &[String]) {
        let (Some(one), Some(other)) = (first.first(), second.first()) else {
            return;
        };
        if one != other {
            self.add(
                "program",
                format!(
                    "the program `{}` in place of `{}`",
                    plain(other),
                    plain(one)
                ),
                0.7,
                Undo::Words(0..1, vec![one.clone()]),
            );
        }
        let hunks = hunks(&first[1..], &second[1..]);
        let single = hunks
            .into_iter()
            .flat_map(|(here, there)| one_by_one(here, there));
        for (number, (here, there)) in single.enumerate() {
            let of = |words: &[String]| plain(&words.join(" "));
            let (from, to) = (&first[1..][here], &second[1..][there.clone()]);
            let what = match (from.is_empty(), to.is_empty()) {
                (true, _) => format!("the further argument `{}`", of(to)),
                (_, true) => format!("the missing argument `{}`", of(from)),
                _ => format!("the argument `{}` in place of `{}`", of(to), of(from)),
            };
            self.add(
                &format!("argument.{}", number + 1),
                what,
                0.5,
                Undo::Words(there.start + 1..there.end + 1, from.to_vec()),
            );
        }
    }

    /// Adds a file of the second side that has other bytes in the first; `file` holds the first side's.
    pub fn file(&mut self, path: &str, file: &str) {
        self.add(
            &format!("file.{path}"),
            format!("the file `{}`", plain(path)),
            0.5,
            Undo::Bind(format!("{file}:{path}:ro")),
        );
    }
}

fn plain(text: &str) -> String {
    text.escape_debug().to_string()
}

/// The paths of files that both sides read or run with different bytes, and the files that only one has, each with
/// its side.
pub fn other_files(first: &ProcessSamples, second: &ProcessSamples) -> (Vec<String>, Vec<String>) {
    let both: BTreeSet<&String> = first.sha256.keys().chain(second.sha256.keys()).collect();
    let (mut differing, mut alone) = (Vec::new(), Vec::new());
    for path in both {
        match (first.sha256.get(path), second.sha256.get(path)) {
            (Some(one), Some(other)) if one != other => differing.push(path.clone()),
            (Some(_), None) => alone.push(format!("`{}` in {FIRST}", plain(path))),
            (None, Some(_)) => alone.push(format!("`{}` in b", plain(path))),
            _ => {}
        }
    }
    (differing, alone)
}

/// The ranges that replace each other, by the longest common subsequence.
fn hunks(first: &[String], second: &[String]) -> Vec<(Range<usize>, Range<usize>)> {
    let (n, m) = (first.len(), second.len());
    if first == second {
        return Vec::new();
    }
    if n.max(m) > WORDS_MOST {
        return vec![(0..n, 0..m)];
    }
    let mut common = vec![vec![0_u32; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            common[i][j] = if first[i] == second[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let mut found = Vec::new();
    let (mut i, mut j, mut begin) = (0, 0, (0, 0));
    while i < n && j < m {
        if first[i] == second[j] {
            if begin != (i, j) {
                found.push((begin.0..i, begin.1..j));
            }
            (i, j) = (i + 1, j + 1);
            begin = (i, j);
        } else if common[i + 1][j] >= common[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    if begin != (n, m) {
        found.push((begin.0..n, begin.1..m));
    }
    found
}

/// Splits a replacement of equally many words into single differences.
fn one_by_one(here: Range<usize>, there: Range<usize>) -> Vec<(Range<usize>, Range<usize>)> {
    if here.len() != there.len() {
        return vec![(here, there)];
    }
    here.zip(there).map(|(i, j)| (i..i + 1, j..j + 1)).collect()
}

/// The second side with these differences undone.
pub(super) fn tried(
    ask: &Ask,
    head: &CommandChange,
    undo: &BTreeMap<String, Undo>,
    without: &[String],
) -> TriedArm {
    let mut settings = ask.settings.clone();
    let mut change = ask.change();
    let words = if head.argv.is_empty() {
        &ask.call.argv
    } else {
        &head.argv
    };
    let mut spliced: Vec<(&Range<usize>, &Vec<String>)> = Vec::new();
    let mut binds = settings.words("binds");
    for one in without.iter().filter_map(|id| undo.get(id)) {
        match one {
            Undo::Setting(name, Some(value)) => {
                settings.0.insert(name.clone(), value.clone());
            }
            Undo::Setting(name, None) => {
                settings.0.remove(name);
            }
            Undo::Variable(name, Some(text)) => {
                change.variables.insert(name.clone(), text.clone());
            }
            Undo::Variable(name, None) => {
                change.variables.remove(name);
            }
            Undo::Bind(bind) => binds.push(bind.clone()),
            Undo::Words(place, from) => spliced.push((place, from)),
        }
    }
    if binds.len() > settings.words("binds").len() {
        let list = binds.into_iter().map(Value::Text).collect();
        settings = settings.with("binds", Value::List(list));
    }
    if !spliced.is_empty() {
        // From the last range to the first, so that earlier ranges stay valid.
        spliced.sort_by_key(|(place, _)| std::cmp::Reverse((place.start, place.end)));
        change.argv.clone_from(words);
        for (place, from) in spliced {
            change.argv.splice(place.clone(), from.iter().cloned());
        }
    }
    TriedArm {
        driver: ask.driver.clone(),
        settings,
        change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn asked(words: &[String]) -> Ask {
        let mut ask = crate::why::studies::tests::ask("host", Params::new());
        ask.call.argv = words.to_vec();
        ask
    }

    fn ids(listed: &Listed) -> Vec<&str> {
        listed.differences.iter().map(|it| it.id.as_str()).collect()
    }

    #[test]
    fn words_are_undone_alone_and_together() {
        let (first, second) = (words("gzip -6 -k f"), words("pigz -5 -k --fast f"));
        let mut listed = Listed::default();
        listed.words(&first, &second);
        assert_eq!(ids(&listed), ["program", "argument.1", "argument.2"]);
        assert_eq!(
            listed.differences[1].what,
            "the argument `-5` in place of `-6`"
        );
        assert_eq!(listed.differences[2].what, "the further argument `--fast`");
        let ask = asked(&first);
        let head = CommandChange {
            argv: second,
            ..CommandChange::default()
        };
        let without = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            tried(&ask, &head, &listed.undo, &names)
                .change
                .argv
                .join(" ")
        };
        assert_eq!(without(&["argument.1"]), "pigz -6 -k --fast f");
        let mut two = Listed::default();
        two.words(&words("x a b"), &words("x c d"));
        assert_eq!(ids(&two), ["argument.1", "argument.2"]);
        assert_eq!(without(&["argument.2", "program"]), "gzip -5 -k f");
        assert_eq!(
            without(&["argument.1", "argument.2", "program"]),
            "gzip -6 -k f"
        );
    }

    #[test]
    fn hunks_undone_from_the_last_give_the_first_again() {
        for (one, other) in [
            ("", "a b"),
            ("a b", ""),
            ("a b c", "c b a"),
            ("x a y", "a z"),
            ("a a b", "a b b a"),
        ] {
            let (first, mut second) = (words(one), words(other));
            for (here, there) in hunks(&first, &second).into_iter().rev() {
                second.splice(there, first[here].iter().cloned());
            }
            assert_eq!(second, first, "{one} / {other}");
        }
    }

    #[test]
    fn settings_variables_and_files_are_undone_in_an_arm() {
        let mut listed = Listed::default();
        let first = Params::new().with("image", "x:1").with("cpus", 2.0);
        let second = Params::new().with("image", "x:2").with("memory", "64m");
        listed.settings(&first, &second);
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
            pairs.iter().map(owned).collect()
        };
        listed.variables(&of(&[("X", "1")]), &of(&[("X", "2"), ("Y", "3")]));
        listed.file("/lib/libc++.so", "/scratch/libc++.so");
        assert_eq!(
            ids(&listed),
            [
                "setting.cpus",
                "setting.memory",
                "env.X",
                "env.Y",
                "file./lib/libc__.so"
            ]
        );
        let mut ask = asked(&words("work"));
        ask.settings = second;
        let own = super::super::ContainerQuestion {
            head: CommandChange {
                variables: of(&[("X", "2"), ("Y", "3")]),
                ..CommandChange::default()
            },
            ..super::super::ContainerQuestion::default()
        };
        ask.own = Some(own.clone());
        let all: Vec<String> = listed.undo.keys().cloned().collect();
        let arm = tried(&ask, &own.head, &listed.undo, &all);
        assert_eq!(arm.settings.value("memory"), None);
        assert!(arm.settings.value("cpus").is_some());
        assert_eq!(
            arm.settings.words("binds"),
            ["/scratch/libc++.so:/lib/libc++.so:ro"]
        );
        assert_eq!(arm.change.variables, of(&[("X", "1")]));
        assert!(arm.change.argv.is_empty());
    }

    #[test]
    fn one_sided_files_are_listed_but_not_swapped() {
        let seen = |pairs: &[(&str, &str)]| ProcessSamples {
            sha256: pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect(),
            ..ProcessSamples::default()
        };
        let (differing, alone) = other_files(
            &seen(&[("/p", "1"), ("/l", "2"), ("/old", "3")]),
            &seen(&[("/p", "1"), ("/l", "9"), ("/new", "4")]),
        );
        assert_eq!(differing, ["/l"]);
        assert_eq!(alone, ["`/new` in b", "`/old` in a"]);
    }
}
