//! Tests of the built-in studies and examples.

use super::{HEAD, read, refused};
use crate::config::builtin::STUDIES;
use crate::config::{Adjustments, parse};
use crate::registered::assert_registered;

#[test]
fn all_study_files_are_registered_and_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let ids = STUDIES.iter().map(|study| study.id);
    assert_registered(folder, ".toml", |_| false, ids);
    for builtin in STUDIES {
        let study = read(builtin.text).unwrap_or_else(|error| panic!("{}: {error}", builtin.id));
        assert_eq!(study.id, builtin.id);
    }
}

#[test]
fn every_example_is_valid_and_named_like_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/studies");
    let mut n_examples = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let study = read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format!("{}.toml", study.id), name);
        n_examples += 1;
    }
    assert!(n_examples > 0);
}

#[test]
fn replication_study_is_complete_for_readers() {
    for builtin in STUDIES {
        let study = read(builtin.text).unwrap();
        let Some(publication) = study.publication else {
            continue;
        };
        let decided = publication
            .claims
            .iter()
            .filter(|claim| claim.rule.bounds().is_some());
        assert!(decided.count() >= 3, "{}", study.id);
        assert!(!publication.mistakes.is_empty(), "{}", study.id);
        assert!(!publication.deviations.is_empty(), "{}", study.id);
        assert!(
            !publication.tables.is_empty() && !publication.figures.is_empty(),
            "{}",
            study.id
        );
        assert!(
            study.budget_ns.is_some_and(|ns| ns <= 540_000_000_000),
            "{} takes too long",
            study.id
        );
    }
}

#[test]
fn publication_of_accepts_only_built_in_study() {
    let text = format!("{HEAD}[publication_of]\nstudy = \"storge\"\n");
    refused(&text, &["mine.toml:7", "did you mean `storage`?"]);
}

#[test]
fn inherited_publication_quantity_can_be_overridden() {
    let study = |name: &str| {
        let text = format!(
            "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"stat\"\n[publication_of]\nstudy = \"storage\"\n\
             [[publication_of.quantity]]\nname = \"{name}\"\nlabel = \"mine\"\nmetric = \"fs.stat.time\"\n"
        );
        // With a workload chosen, quantities of other workloads are not a mistake.
        let adjustments = Adjustments {
            workloads: vec!["stat".to_owned()],
            ..Adjustments::default()
        };
        parse("mine.toml", &text, &adjustments).map_err(|error| error.to_string())
    };
    let publication = study("create").unwrap().publication.unwrap();
    let quantities = publication.quantities;
    assert!(quantities.len() > 1);
    let mine: Vec<&str> = quantities
        .iter()
        .filter(|it| it.label == "mine")
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(mine, ["create"]);
    let error = study("craete").unwrap_err();
    assert!(error.contains("mine.toml:9"), "{error}");
    assert!(error.contains("did you mean `create`?"), "{error}");
}
