//! `cargo xtask size`: counts words of code, lines and the share of comments, by package and room, and checks each
//! room against its budget.
//!
//! A word is an identifier, a keyword, a number or a whole string literal: formatting does not change their number,
//! and comments have none. The rooms are product, unit tests (files named `tests.rs` and what follows `#[cfg(test)]`
//! at the end of a file) and integration tests. The budgets are in `xtask/size.toml`; a room far below its budget
//! lowers it.
//! Limits: ignores code that macros generate, and languages other than Rust.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::flags::exit_status;
use xtask_build::workspace::root;

/// Fraction by which a budget may exceed its room before it is to be lowered.
const SLACK: f64 = 0.02;

/// The package that exists for the tests of others.
const TESTKIT: &str = "tare-testkit";

/// The category of a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Room {
    Product,
    Unit,
    Integration,
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Product => "product",
            Self::Unit => "unit tests",
            Self::Integration => "integration tests",
        })
    }
}

/// The size of a piece of code.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Size {
    words: u64,
    lines: u64,
    /// Lines with only a comment.
    comments: u64,
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.words += other.words;
        self.lines += other.lines;
        self.comments += other.comments;
    }
}

/// Sizes by package and room.
type Sizes = BTreeMap<(String, Room), Size>;
/// The most words of each package and room.
type Budgets = BTreeMap<String, BTreeMap<Room, u64>>;

/// Prints the sizes.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    ensure!(arguments.is_empty(), "usage: cargo xtask size");
    let (sizes, budgets) = (sizes()?, budgets()?);
    println!(
        "{:<12} {:<18} {:>8} {:>8} {:>7} {:>9}",
        "package", "room", "words", "budget", "lines", "comments"
    );
    let mut all: BTreeMap<Room, Size> = BTreeMap::new();
    for ((package, room), size) in &sizes {
        let budget = budget(&budgets, package, *room);
        print_row(package, *room, budget, *size);
        *all.entry(*room).or_default() += *size;
    }
    for (room, size) in all {
        print_row("all", room, None, size);
    }
    let wrong = outside(&sizes, &budgets);
    for line in &wrong {
        eprintln!("{line}");
    }
    Ok(exit_status(wrong.is_empty()))
}

fn print_row(package: &str, room: Room, budget: Option<u64>, size: Size) {
    let comments = 100.0 * size.comments as f64 / size.lines.max(1) as f64;
    println!(
        "{package:<12} {:<18} {:>8} {:>8} {:>7} {comments:>7.0} %",
        room.to_string(),
        size.words,
        budget.map(|it| it.to_string()).unwrap_or_default(),
        size.lines
    );
}

fn budget(budgets: &Budgets, package: &str, room: Room) -> Option<u64> {
    budgets.get(package)?.get(&room).copied()
}

/// Returns a line for each room above its budget, or so far below that the budget is to be lowered.
fn outside(sizes: &Sizes, budgets: &Budgets) -> Vec<String> {
    let judged = sizes.iter().filter_map(|((package, room), size)| {
        let words = size.words;
        let Some(budget) = budget(budgets, package, *room) else {
            return Some(format!("{package}, {room}: {words} words and no budget"));
        };
        let is_loose = words as f64 * (1.0 + SLACK) + 100.0 < budget as f64;
        let what = if words > budget {
            "take something out, or raise it in this commit and say why"
        } else if is_loose {
            "lower it"
        } else {
            return None;
        };
        Some(format!(
            "{package}, {room}: {words} words of {budget}; {what} in xtask/size.toml"
        ))
    });
    judged.collect()
}

fn budgets() -> Result<Budgets> {
    let file = root().join("xtask/size.toml");
    let text = fs::read_to_string(&file)
        .with_context(|| format!("cannot read the budgets in {}", file.display()))?;
    toml::from_str(&text).context("xtask/size.toml")
}

fn sizes() -> Result<Sizes> {
    let mut sizes = Sizes::new();
    for package in packages()? {
        let name = package
            .file_name()
            .context("a package has a folder")?
            .to_string_lossy();
        let mut files = Vec::new();
        rust_files(&package, &mut files)?;
        for file in files {
            let text = fs::read_to_string(&file)?;
            let below = file.strip_prefix(&package)?;
            for (mut room, part) in rooms(below, &text) {
                if name == TESTKIT {
                    room = Room::Integration;
                }
                *sizes.entry((name.to_string(), room)).or_default() += size(part);
            }
        }
    }
    Ok(sizes)
}

/// Returns the folders of the workspace's packages.
fn packages() -> Result<Vec<PathBuf>> {
    let mut found = vec![root().join("xtask")];
    for entry in fs::read_dir(root().join("crates"))? {
        found.push(entry?.path());
    }
    Ok(found)
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Splits a file into parts by room; `path` is relative to its package.
fn rooms<'a>(path: &Path, text: &'a str) -> Vec<(Room, &'a str)> {
    if path.starts_with("tests") {
        return vec![(Room::Integration, text)];
    }
    let is_tests = path.file_name().is_some_and(|it| it == "tests.rs")
        || path.components().any(|it| it.as_os_str() == "tests");
    if is_tests {
        return vec![(Room::Unit, text)];
    }
    let (product, tests) = text.split_at(tests_begin(text));
    let mut parts = vec![(Room::Product, product)];
    if !tests.is_empty() {
        parts.push((Room::Unit, tests));
    }
    parts
}

/// Returns where the test module begins, at the line of its mark; else the end.
fn tests_begin(text: &str) -> usize {
    const MARK: &str = "#[cfg(test)]\n";
    let mut places = text.match_indices(MARK).map(|(place, _)| place);
    let is_module = |place: &usize| {
        let line = text[place + MARK.len()..].lines().next().unwrap_or("");
        line.contains("mod ") && line.ends_with('{')
    };
    places.find(is_module).unwrap_or(text.len())
}

fn size(text: &str) -> Size {
    let lines = text.lines();
    let comments = lines.filter(|line| line.trim_start().starts_with("//"));
    Size {
        words: words(text),
        lines: text.lines().count() as u64,
        comments: comments.count() as u64,
    }
}

/// Counts words outside comments.
fn words(text: &str) -> u64 {
    let mut rest = text;
    let mut n_words = 0;
    while let Some(first) = rest.chars().next() {
        let is_word = first == '_' || first.is_alphanumeric();
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            n_words += 1;
            length
        } else if first == '"' {
            n_words += 1;
            quoted(rest, '"')
        } else if first == '\'' {
            character(rest)
        } else if is_word {
            n_words += 1;
            let ends = |it: char| !(it == '_' || it.is_alphanumeric());
            rest.find(ends).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    n_words
}

/// Returns the length of a raw string at the beginning.
fn raw_string(text: &str) -> Option<usize> {
    let marks = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let body = marks.trim_start_matches('#');
    let hashes = &marks[..marks.len() - body.len()];
    let inside = body.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let length = inside.find(&end)? + end.len();
    Some(text.len() - inside.len() + length)
}

/// Returns the length of a quoted literal at the beginning.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = true;
    for (place, it) in text.char_indices() {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if it == quote => return place + it.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character, or of the quote before a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].chars();
    let (first, second) = (inside.next(), inside.next());
    if first == Some('\\') || second == Some('\'') {
        quoted(text, '\'')
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_room_is_within_its_budget() {
        let wrong = outside(&sizes().unwrap(), &budgets().unwrap());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn words_are_identifiers_numbers_strings_not_comments() {
        for (text, n_words) in [
            ("let a = b + 12.5;", 5),
            ("// no\nf(\"two words // in one\") /* no */", 2),
            ("'a' 'b: loop '\\'' x", 3),
            ("r#\"a \"quote\" b\"# raw", 2),
            ("br\"x\" \"a\\\"b\" c", 3),
        ] {
            assert_eq!(words(text), n_words, "{text}");
        }
    }

    #[test]
    fn tests_within_a_file_are_another_room() {
        let text = "fn a() {}\n#[cfg(test)]\nuse b;\n#[cfg(test)]\nmod tests {\n fn c() {}\n}\n";
        let of = |path: &str| rooms(Path::new(path), text);
        assert_eq!(
            of("src/a.rs"),
            [(Room::Product, &text[..30]), (Room::Unit, &text[30..])]
        );
        assert_eq!(of("src/a/tests.rs")[0].0, Room::Unit);
        assert_eq!(of("tests/it/a.rs"), [(Room::Integration, text)]);
    }

    #[test]
    fn budget_is_neither_exceeded_nor_left_loose() {
        let sizes = |words| {
            let size = Size {
                words,
                ..Size::default()
            };
            Sizes::from([(("a".to_owned(), Room::Product), size)])
        };
        let budgets: Budgets = toml::from_str("[a]\nproduct = 10_000").unwrap();
        assert_eq!(outside(&sizes(9_900), &budgets), [""; 0]);
        assert!(outside(&sizes(10_001), &budgets)[0].contains("take something out"));
        assert!(outside(&sizes(9_000), &budgets)[0].contains("lower it"));
        assert!(outside(&sizes(9_000), &Budgets::new())[0].contains("no budget"));
    }
}
