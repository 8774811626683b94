//! Checks that the pages on the method and on promises name existing tests, and for each source all that its study
//! has.

use std::collections::BTreeSet;
use std::path::Path;

use super::forms::assert_says;
use tare::config::builtin::STUDIES;
use tare::config::{Adjustments, built_in};

/// Collects every `fn` in Rust files below `folder`.
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
fn tests_named_in_documents_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut found = BTreeSet::new();
    for folder in [
        "crates/tare-agent/src",
        "crates/tare-agent/tests",
        "crates/tare-stats/src",
        "crates/tare-stats/tests",
        "crates/tare-core/src",
        "crates/tare-env/src",
        "crates/tare-report/src",
        "crates/tare-testkit/src",
        "crates/tare/src",
        "crates/tare/tests",
        "crates/tare-model/src",
        "xtask",
    ] {
        functions(&root.join(folder), &mut found);
    }
    for page in ["METHODOLOGY.md", "docs/src/promises.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        // A test's name is a sentence.
        let is_name = |code: &&str| {
            code.contains('_') && code.bytes().all(|it| it.is_ascii_lowercase() || it == b'_')
        };
        let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(is_name).collect();
        assert!(named.len() > 40, "{page}: {named:?}");
        let missing: Vec<&&str> = named
            .iter()
            .filter(|name| !found.contains(**name))
            .collect();
        assert!(missing.is_empty(), "{page}: {missing:?}");
    }
}

/// Returns the parts of a text between `open` and `close`.
fn between(text: &str, open: char, close: char) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        let Some((word, behind)) = after.split_once(close) else {
            break;
        };
        found.push(word);
        rest = behind;
    }
    found
}

/// Whether a name with one `{parameter}` is this name for some value of it.
fn stands_for(swept: &str, name: &str) -> bool {
    let Some((begin, (_, end))) = swept
        .split_once('{')
        .and_then(|(begin, rest)| Some((begin, rest.split_once('}')?)))
    else {
        return false;
    };
    let value = name
        .strip_prefix(begin)
        .and_then(|rest| rest.strip_suffix(end));
    value.is_some_and(|value| !value.is_empty() && !value.contains('-'))
}

#[test]
fn source_page_names_exactly_its_study_items() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(root.join("docs/src/sources.md")).unwrap();
    let mut n_pages = 0;
    for builtin in STUDIES {
        let study = built_in(builtin.id, &Adjustments::default())
            .unwrap()
            .unwrap();
        let Some(publication) = &study.publication else {
            continue;
        };
        n_pages += 1;
        let heading = format!("\n## `{}`", study.id);
        let (_, section) = page
            .split_once(&heading)
            .unwrap_or_else(|| panic!("there is no page for `{}`", study.id));
        let section = section.split("\n#").next().unwrap();
        // The second column names the counterpart here.
        let here: Vec<&str> = section
            .lines()
            .filter(|line| line.starts_with("| "))
            .filter_map(|line| line.split(" | ").nth(1))
            .collect();
        let named: BTreeSet<&str> = here
            .iter()
            .flat_map(|cell| between(cell, '`', '`'))
            .collect();
        let titles: BTreeSet<&str> = section
            .lines()
            .flat_map(|line| between(line, '“', '”'))
            .collect();
        let arms = study.arms.iter().map(|arm| arm.id.as_str());
        let workloads = study.workloads.iter().map(|workload| workload.id.as_str());
        let quantities = publication.quantities.iter().map(|it| it.name.as_str());
        let claims = publication.claims.iter().map(|it| it.id.as_str());
        let wanted: BTreeSet<&str> = arms
            .filter(|arm| *arm != tare_model::study::A_PRIME)
            .chain(workloads)
            .chain(quantities)
            .chain(claims)
            .collect();
        // `{parameter}` in a name stands for every value of a sweep, as in the study's file.
        let (swept, named): (Vec<&str>, Vec<&str>) =
            named.into_iter().partition(|name| name.contains('{'));
        let is_swept = |name: &&str| swept.iter().any(|swept| stands_for(swept, name));
        assert!(
            swept
                .iter()
                .all(|it| wanted.iter().any(|name| stands_for(it, name))),
            "{swept:?}"
        );
        let named: BTreeSet<&str> = named
            .into_iter()
            .chain(wanted.iter().copied().filter(is_swept))
            .collect();
        assert_eq!(named, wanted, "{}", study.id);
        let layouts = publication.tables.iter().map(|it| it.title.as_str());
        let figures = publication.figures.iter().map(|it| it.title.as_str());
        let missing: Vec<&str> = layouts
            .chain(figures)
            .filter(|title| !titles.contains(title))
            .collect();
        assert!(missing.is_empty(), "{}: {missing:#?}", study.id);
    }
    assert!(n_pages >= 6, "{n_pages}");
}

#[test]
fn first_run_page_matches_workload_count() {
    let quick = built_in("quick", &Adjustments::default()).unwrap().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/first-run.md");
    let text = std::fs::read_to_string(page).unwrap();
    assert_eq!(
        quick.workloads.len(),
        18,
        "the book says how many there are"
    );
    assert_says(&text, "`quick`: 18 workloads");
}
