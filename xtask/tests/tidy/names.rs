//! Checks the names of facts and counters: each is spelled in one place, written somewhere and read somewhere.
//!
//! Works on text, with the constants of the names. A name counts as written if its constant, or that of a family that
//! it belongs to, occurs in a file of its writers, and as read if it occurs in another one. The needs of a cause are
//! shown to users and do not count as reading.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::counter::COUNTERS;
use tare_model::fact::{self, FACTS};
use tare_model::names::{Name, Use, Writer};

use super::{assert_none, product_lines, read, root, rust_files};

/// The files of the tables themselves.
const TABLES: [&str; 3] = [
    "tare-model/src/fact.rs",
    "tare-model/src/counter.rs",
    "tare-model/src/names.rs",
];

/// A table under the name of its module, with files that use its words for something else.
struct Table {
    module: &'static str,
    rows: &'static [Name],
    spares: &'static [(&'static str, &'static [&'static str])],
}

const TABLES_OF_NAMES: [Table; 2] = [
    Table {
        module: "fact",
        rows: FACTS,
        spares: &[
            // The differences between a user container and an engine's own have names like facts.
            ("tare-env/src/env/user_container.rs", &["engine."]),
            ("tare-core/src/driver/user_container.rs", &["engine."]),
            ("tare-env/src/env/docker/user_container/", &["engine."]),
            ("tare-env/src/env/podman/user_container", &["engine."]),
            ("tare-env/src/env/docker/catalogue.rs", &["engine."]),
            ("tare-core/src/why/user_container", &["engine.", "sysctl."]),
        ],
    },
    Table {
        module: "counter",
        rows: COUNTERS,
        spares: &[
            // A key of the command's JSON.
            ("tare/src/cli/doctor.rs", &["steal_ticks"]),
        ],
    },
];

/// Words with other meanings elsewhere: alone they do not count as names.
const COMMON: &[&str] = &[
    "libc", "machine", "os", "pid", "slices", "threads", "uid", "units", "wall_ns",
];

/// Returns the text of every product file of the workspace's crates by its path below `crates`.
fn product() -> BTreeMap<String, String> {
    let crates = root().join("crates");
    let mut product = BTreeMap::new();
    for file in rust_files(&crates) {
        let path = file.strip_prefix(&crates).unwrap().to_str().unwrap();
        let is_product = path.contains("/src/")
            && !path.contains("/tests/")
            && !path.starts_with("tare-testkit/")
            && !path.ends_with("tests.rs")
            && !TABLES.contains(&path);
        // Cases for tests spell names as they are stored.
        if is_product && !path.ends_with("src/testing.rs") {
            let text = read(&file);
            let lines: Vec<&str> = product_lines(&text).iter().map(|(_, line)| *line).collect();
            product.insert(path.to_owned(), lines.join("\n"));
        }
    }
    product
}

/// Returns the text without the lists of what causes need.
fn without_needs(text: &str) -> String {
    let mut parts = text.split("needs: &[");
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        left.push_str(part.split_once(']').map_or("", |(_, behind)| behind));
    }
    left
}

/// Returns the constants of this module that a text uses.
fn used(text: &str, module: &str) -> BTreeSet<String> {
    let path = format!("{module}::");
    let behind = text.match_indices(&path).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|it| it.is_alphanumeric() || it == '_')
    });
    behind
        .map(|(at, _)| {
            let name = text[at + path.len()..].chars();
            name.take_while(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || *it == '_')
                .collect::<String>()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

fn is_of(path: &str, writer: Writer) -> bool {
    let folders: &[&str] = match writer {
        Writer::Agent => &["tare-agent/src/"],
        Writer::Driver => &["tare-env/src/env/", "tare-core/src/driver/"],
        Writer::Run => &[
            "tare/src/run/",
            "tare/src/session.rs",
            "tare-core/src/analyze/decode.rs",
        ],
        Writer::Why => &["tare/src/why/", "tare-core/src/why"],
    };
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether every name of the second pattern is one of the first.
fn covers(family: &str, name: &str) -> bool {
    family.contains('*')
        && name.starts_with(fact::beginning(family))
        && name.ends_with(fact::ending(family))
}

#[test]
fn every_name_is_written_and_read_as_its_row_declares() {
    let product = product();
    let mut wrong = Vec::new();
    for table in &TABLES_OF_NAMES {
        let uses: BTreeMap<&str, BTreeSet<String>> = product
            .iter()
            .map(|(path, text)| (path.as_str(), used(&without_needs(text), table.module)))
            .collect();
        for row in table.rows {
            let family = |other: &&Name| other.name == row.name || covers(other.name, row.name);
            let families: Vec<&Name> = table.rows.iter().filter(family).collect();
            let of_family = |names: &BTreeSet<String>| {
                let mut families = families.iter();
                families.any(|family| names.contains(family.constant))
            };
            // Writing or reading members of a family counts for the family.
            let of_members = |names: &BTreeSet<String>| {
                let mut members = table
                    .rows
                    .iter()
                    .filter(|other| covers(row.name, other.name));
                members.any(|member| names.contains(member.constant))
            };
            let is_meant = |names: &BTreeSet<String>| of_family(names) || of_members(names);
            for writer in row.writers {
                let mut files = uses.iter();
                if !files.any(|(path, names)| is_of(path, *writer) && is_meant(names)) {
                    wrong.push(format!("`{}` is not written by {writer:?}", row.name));
                }
            }
            let is_writers = |path: &str| row.writers.iter().any(|writer| is_of(path, *writer));
            let is_carrying = |path: &str| path.ends_with("analyze/counters.rs");
            let outside = uses
                .iter()
                .filter(|(path, _)| !is_writers(path) && !is_carrying(path));
            let is_named_outside = outside
                .clone()
                .any(|(_, names)| names.contains(row.constant));
            let is_read_outside = outside.clone().any(|(_, names)| is_meant(names));
            let n_inside = uses
                .iter()
                .filter(|(path, names)| is_writers(path) && names.contains(row.constant))
                .count();
            match row.used {
                Use::Kept if is_named_outside => wrong.push(format!(
                    "`{}` is kept for people only, as its row says, and rules read it",
                    row.name
                )),
                Use::Kept => {}
                _ if is_read_outside || n_inside > 1 => {}
                _ => wrong.push(format!("nobody reads `{}`", row.name)),
            }
        }
    }
    assert_none(&wrong);
}

/// Returns the quoted texts of a line.
fn literals(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut begun, mut is_escaped) = (None, false);
    for (at, letter) in line.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            // The character `"` itself.
            '"' if line[..at].ends_with('\'') && line[at + 1..].starts_with('\'') => {}
            '"' => match begun.take() {
                None => begun = Some(at + 1),
                Some(from) => found.push(&line[from..at]),
            },
            _ => {}
        }
    }
    found
}

#[test]
fn quotes_within_quotes_do_not_end_literal() {
    assert_eq!(literals(r#"f("a.b", '"', "c \" d")"#), ["a.b", r#"c \" d"#]);
}

#[test]
fn no_name_is_spelled_anywhere_but_in_its_table() {
    let mut wrong = Vec::new();
    for (path, text) in product() {
        for line in text.lines() {
            for literal in literals(line) {
                for table in &TABLES_OF_NAMES {
                    let Some(row) = named(table, &path, literal) else {
                        continue;
                    };
                    let module = table.module;
                    wrong.push(format!(
                        "{path}: \"{literal}\" is `{module}::{}`",
                        row.constant
                    ));
                }
            }
        }
    }
    assert_none(&wrong);
}

/// Returns the row whose name the literal is, or with whose family it begins.
fn named(table: &Table, path: &str, literal: &str) -> Option<&'static Name> {
    let is_spared = table.spares.iter().any(|(file, words)| {
        path.starts_with(file) && words.iter().any(|word| literal.starts_with(word))
    });
    if is_spared || COMMON.contains(&literal) {
        return None;
    }
    table.rows.iter().find(|row| {
        let beginning = fact::beginning(row.name);
        if beginning == row.name {
            return literal == row.name;
        }
        // A driver's own facts, which begin with its name, are spelled in its own files.
        let driver = beginning.trim_end_matches('.');
        let is_its_own = [".rs", "/"].iter().any(|ending| {
            path.starts_with(&format!("tare-env/src/env/{driver}{ending}"))
                || path.starts_with(&format!("tare-core/src/driver/{driver}{ending}"))
        });
        let is_word = !literal.contains(' ');
        is_word && literal.starts_with(beginning) && !is_its_own
    })
}
