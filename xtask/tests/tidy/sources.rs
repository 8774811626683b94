//! The pages of the sources in `METHODOLOGY.md`: whoever knows a source finds everything of its study there.
//!
//! What it cannot see: whether everything of the source is in the study; that is for people who have read it.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::root;

/// What stands between two letters of which the first opens and the second closes.
fn between(text: &str, opens: char, closes: char) -> BTreeSet<&str> {
    let parts = text.split(opens).skip(1);
    parts.filter_map(|part| part.split(closes).next()).collect()
}

/// What an entry of a list is called, under the first of these keys that it has.
fn names<'a>(list: Option<&'a Value>, keys: &[&str]) -> Vec<&'a str> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    let name = |entry: &'a Value| keys.iter().find_map(|key| entry.get(*key)?.as_str());
    entries.map(|entry| name(entry).unwrap()).collect()
}

#[test]
fn every_arm_workload_quantity_claim_table_and_figure_of_a_source_stands_on_its_page() {
    let methodology = std::fs::read_to_string(root().join("METHODOLOGY.md")).unwrap();
    let (_, pages) = methodology.split_once("\n## 14. ").unwrap();
    let mut n_sources = 0;
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root().join("studies")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let study: Table = text.parse().unwrap();
        let Some(publication) = study.get("publication") else {
            continue;
        };
        n_sources += 1;
        let id = study["id"].as_str().unwrap();
        let (_, page) = pages
            .split_once(&format!("\n### `{id}`"))
            .unwrap_or_else(|| panic!("`{id}` has no page"));
        let page = page.split("\n##").next().unwrap();
        // A row never breaks, so quotes pair up within it.
        let code: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
        let titles = between(page, '“', '”');
        let named = [
            names(study.get("arm"), &["id"]),
            names(study.get("workload"), &["id"]),
            names(publication.get("quantity"), &["name"]),
            names(publication.get("claim"), &["id"]),
        ];
        let titled = ["table", "figure"].map(|list| names(publication.get(list), &["title"]));
        let lost = named
            .concat()
            .into_iter()
            .filter(|name| !code.contains(name))
            .chain(
                titled
                    .concat()
                    .into_iter()
                    .filter(|title| !titles.contains(title)),
            );
        missing.extend(lost.map(|name| format!("{id}: {name}")));
    }
    assert!(n_sources >= 6);
    assert!(
        missing.is_empty(),
        "METHODOLOGY.md, section 14, lacks:\n{}",
        missing.join("\n")
    );
}
