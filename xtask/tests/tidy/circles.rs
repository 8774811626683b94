//! Checks that files do not depend on each other in a circle: what two files both need belongs below both.
//!
//! Works on text: the names in a file's `use` items, and in paths that begin with `crate`, `super` or one of its
//! modules. A file and its folder are one family: `mod.rs` names its files, and they name its items.
//! Limits: does not see methods that a type gets in another file than its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{assert_none, product_lines, read, rust_files, source_of};

/// A module by its path from the root of its crate.
type Module = Vec<String>;

fn module(file: &Path) -> Module {
    let path = file.with_extension("");
    let mut names: Module = path
        .components()
        .map(|part| part.as_os_str().to_str().unwrap().to_owned())
        .collect();
    if matches!(
        names.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        names.pop();
    }
    names
}

/// Returns the file that a path written in `from` refers to, as far as its words are files.
fn resolved(files: &BTreeMap<Module, String>, from: &Module, path: &[&str]) -> Option<Module> {
    let mut at = from.clone();
    for (place, word) in path.iter().enumerate() {
        match *word {
            "super" => {
                at.pop();
            }
            "self" => {}
            "crate" => at.clear(),
            word => {
                let mut next = at.clone();
                next.push(word.to_owned());
                if files.contains_key(&next) {
                    at = next;
                } else if place == 0 {
                    return None;
                } else {
                    break;
                }
            }
        }
    }
    (at != *from && files.contains_key(&at)).then_some(at)
}

/// Collects the paths of a `use`: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths<'a>(tree: &'a str, before: &[&'a str], found: &mut Vec<Vec<&'a str>>) {
    let (mut depth, mut begun) = (0, 0);
    let mut parts = Vec::new();
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[begun..at]);
                begun = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[begun..]);
    for part in parts {
        let (head, inner) = part.split_once('{').unwrap_or((part, ""));
        let head = head.split(" as ").next().unwrap_or_default();
        let words = head
            .split("::")
            .map(str::trim)
            .filter(|word| !word.is_empty());
        let path: Vec<&str> = before.iter().copied().chain(words).collect();
        if let Some((inner, _)) = inner.rsplit_once('}') {
            paths(inner, &path, found);
        } else if !path.is_empty() {
            found.push(path);
        }
    }
}

/// Returns the paths in a text.
fn named(text: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut statements = text.split(';');
    for statement in &mut statements {
        let Some(at) = statement.rfind("use ") else {
            continue;
        };
        let is_statement = statement[..at].ends_with(['\n', ' ', ')']) || at == 0;
        if is_statement && !statement[at..].contains('=') {
            paths(&statement[at + 4..], &[], &mut found);
        }
    }
    let mut rest = text;
    while let Some(at) = rest.find("::") {
        let begins = rest[..at]
            .rfind(|letter| !is_word(letter) && letter != ':')
            .map_or(0, |it| it + 1);
        let ends = rest[at..].find(|letter| !is_word(letter) && letter != ':');
        let ends = ends.map_or(rest.len(), |it| at + it);
        let path: Vec<&str> = rest[begins..ends]
            .split("::")
            .filter(|word| !word.is_empty())
            .collect();
        found.push(path);
        rest = &rest[ends..];
    }
    found
}

/// Returns which files each file names, without those of its own family.
fn arrows(source: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let files: BTreeMap<Module, String> = rust_files(source)
        .into_iter()
        .filter(|file| !file.ends_with("tests.rs") && !file.to_str().unwrap().contains("/tests/"))
        .map(|file| {
            let text = read(&file);
            let lines: Vec<&str> = product_lines(&text)
                .into_iter()
                .map(|(_, line)| line)
                .collect();
            (module(file.strip_prefix(source).unwrap()), lines.join("\n"))
        })
        .collect();
    let mut arrows = BTreeMap::new();
    for (from, text) in &files {
        let is_family = |to: &Module| to.starts_with(from) || from.starts_with(to);
        let named = named(text);
        let to = named.iter().filter_map(|path| resolved(&files, from, path));
        arrows.insert(from.clone(), to.filter(|to| !is_family(to)).collect());
    }
    arrows
}

/// Returns all files that can be reached from a file.
fn reached(arrows: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&Module> = arrows[from].iter().collect();
    while let Some(next) = left.pop() {
        if reached.insert(next.clone()) {
            left.extend(&arrows[next]);
        }
    }
    reached
}

#[test]
fn no_file_needs_one_that_needs_it() {
    let mut wrong = Vec::new();
    for package in [
        "tare-model",
        "tare-stats",
        "tare-agent",
        "tare-core",
        "tare-env",
        "tare-report",
        "tare",
    ] {
        let arrows = arrows(&source_of(package));
        let reach: BTreeMap<&Module, BTreeSet<Module>> = arrows
            .keys()
            .map(|from| (from, reached(&arrows, from)))
            .collect();
        for (from, to) in &arrows {
            for to in to.iter().filter(|to| reach[to].contains(from)) {
                let (from, to) = (from.join("/"), to.join("/"));
                wrong.push(format!("{package}: `{from}` needs `{to}`, which needs it"));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn paths_are_found_in_imports_and_in_code() {
    let text = "use super::a::{B, c::{self, D}};\npub(super) fn f() -> crate::g::H { i::j(k) }\n";
    let found: Vec<String> = named(text).iter().map(|path| path.join("::")).collect();
    for path in [
        "super::a::B",
        "super::a::c::self",
        "super::a::c::D",
        "crate::g::H",
        "i::j",
    ] {
        assert!(found.contains(&path.to_owned()), "{path}: {found:?}");
    }
}
