//! The page on the method names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// Every `fn` in Rust files below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                if let Some((_, rest)) = line.split_once("fn ") {
                    let name = rest.split(['(', '<']).next().unwrap_or("");
                    found.insert(name.to_owned());
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_method_names_exists() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(root.join("METHODOLOGY.md")).unwrap();
    let mut found = BTreeSet::new();
    for folder in [
        "crates/tare-agent/src",
        "crates/tare-agent/tests",
        "crates/tare-stats/src",
        "crates/tare-stats/tests",
        "crates/tare/src",
        "crates/tare/tests",
    ] {
        functions(&root.join(folder), &mut found);
    }
    // A test's name is a sentence: at least three words.
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| {
            code.matches('_').count() >= 1
                && code.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
        })
        .collect();
    assert!(named.len() > 40, "{named:?}");
    let missing: Vec<&&str> = named
        .iter()
        .filter(|name| !found.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
