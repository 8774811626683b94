//! Study files with mistakes: each must be shown where it stands.

use super::{Adjustments, built_in, parse};

const HEAD: &str = "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"getppid\"\n";

/// Parses `text` and checks that the message holds every one of `expected`.
fn refused(text: &str, expected: &[&str]) {
    let error = parse("mine.toml", text, &Adjustments::default())
        .expect_err("the study was accepted")
        .to_string();
    for part in expected {
        assert!(error.contains(part), "{part:?} is not in:\n{error}");
    }
}

#[test]
fn a_typo_is_shown_with_line_and_caret_and_what_was_meant() {
    refused(
        &format!("{HEAD}[desing]\nbudget = \"9s\"\n"),
        &[
            "mine.toml:6",
            "unknown field `desing`",
            "^^^^^^",
            "did you mean `design`?",
        ],
    );
    refused(
        "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"getpid\"\n",
        &[
            "mine.toml:5",
            "there is no workload `getpid`",
            "^^^",
            "did you mean `getppid`?",
        ],
    );
    refused(
        "id = \"mine\"\n[[arm]]\nid = \"hots\"\n",
        &[
            "mine.toml:3",
            "there is no environment `hots`",
            "did you mean `host`?",
        ],
    );
}

#[test]
fn a_wrong_unit_is_refused_with_the_right_ones() {
    refused(
        &format!("{HEAD}[design]\nbudget = \"90\"\n"),
        &["mine.toml:7", "no unit", "90s"],
    );
    refused(
        &format!("{HEAD}[design]\ntrial = \"3 parsecs\"\n"),
        &["`parsecs` is not a unit of time"],
    );
    refused(
        &format!("{HEAD}[margins]\ncompute = \"2\"\n"),
        &["mine.toml:7", "not a percentage", "2%"],
    );
}

#[test]
fn zero_blocks_and_contradictory_blocks_are_refused() {
    refused(
        &format!("{HEAD}[design]\nblocks_min = 0\n"),
        &["mine.toml:7", "at least 1"],
    );
    refused(
        &format!("{HEAD}[design]\nblocks_min = 20\nblocks_max = 10\n"),
        &["`blocks_max` (10) is below `blocks_min` (20)"],
    );
    refused(
        &format!("{HEAD}[design]\ntrial = \"5s\"\nlimit = \"1s\"\n"),
        &["every trial would be given up"],
    );
}

#[test]
fn an_unknown_setting_or_parameter_names_the_known_ones() {
    refused(
        "id = \"m\"\n[[arm]]\nid = \"container\"\n[arm.settings]\nmemroy = \"1g\"\n[[workload]]\nid = \"getppid\"\n",
        &["mine.toml:5", "did you mean `memory`?"],
    );
    refused(
        "id = \"m\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"getppid\"\n[workload.params]\nn = 3\n",
        &["mine.toml:7", "`getppid` has no parameter `n`"],
    );
    refused(
        "id = \"m\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"getppid\"\npath = \"loopback\"\n",
        &["takes no path"],
    );
}

#[test]
fn an_impossible_limit_is_refused_where_it_stands() {
    refused(
        "id = \"m\"\n[[arm]]\nid = \"container\"\n[arm.settings]\nmemory = \"12 apples\"\n[[workload]]\nid = \"getppid\"\n",
        &["mine.toml:5", "apples"],
    );
}

#[test]
fn two_arms_of_one_name_a_taken_name_and_no_arm_are_refused() {
    refused(
        "id = \"m\"\n[[arm]]\nid = \"host\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"getppid\"\n",
        &["two arms named `host`"],
    );
    refused(
        "id = \"m\"\n[[arm]]\nid = \"a-prime\"\ndriver = \"host\"\n",
        &["second copy of the baseline"],
    );
    refused("id = \"m\"\n", &["no arm"]);
}

#[test]
fn a_file_that_is_no_toml_and_one_with_control_characters_are_shown_safely() {
    refused("id = \n", &["mine.toml:1"]);
    let error = parse(
        "\u{1b}[31mx.toml",
        "id = \"m\"\n[[arm]]\nid = \"\u{7f}ho\"\n",
        &Adjustments::default(),
    )
    .unwrap_err()
    .to_string();
    assert!(
        !error.contains('\u{1b}') && !error.contains('\u{7f}'),
        "{error:?}"
    );
}

#[test]
fn the_baseline_comes_first_and_its_copy_second() {
    let study = built_in("quick", &Adjustments::default()).unwrap().unwrap();
    let ids: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
    assert_eq!(ids, ["host", "a-prime", "container", "docker"]);
    assert!(study.arms[0].required && !study.arms[2].required);
}

#[test]
fn a_named_environment_is_required_and_an_unknown_one_refused() {
    let chosen = |name: &str| Adjustments {
        environments: vec![name.to_owned()],
        ..Adjustments::default()
    };
    let study = built_in("quick", &chosen("container")).unwrap().unwrap();
    assert!(study.arms.len() == 3 && study.arms[2].required);
    let error = built_in("quick", &chosen("dokcer"))
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--env") && error.contains("did you mean `docker`?"),
        "{error}"
    );
}

#[test]
fn a_workload_chosen_by_name_gets_its_defaults() {
    let adjustments = Adjustments {
        workloads: vec!["matrix".into()],
        blocks: Some(7),
        ..Adjustments::default()
    };
    let study = built_in("quick", &adjustments).unwrap().unwrap();
    assert_eq!(
        (study.workloads.len(), study.blocks_min, study.blocks_max),
        (1, 7, 7)
    );
    assert!(!study.workloads[0].params.is_empty());
}

const WITH_PUBLICATION: &str = r#"
id = "s"
[[arm]]
id = "host"
[[arm]]
id = "container"
[[workload]]
id = "integer"
[publication]
title = "t"
where = "w"
machine = "m"
[[publication.quantity]]
name = "compute"
label = "Computing"
metric = "cpu.integer.time"
[[publication.claim]]
id = "c"
published = "p"
at = "a"
rule = { kind = "cost", quantity = "compute", arm = "container", at_most = 1.1 }
"#;

#[test]
fn a_publication_must_speak_of_what_the_study_measures() {
    let study = parse("s.toml", WITH_PUBLICATION, &Adjustments::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.publication.unwrap().claims.len(), 1);
    for (from, to, offender, said) in [
        (
            "quantity = \"compute\"",
            "quantity = \"compite\"",
            "compite",
            "compute",
        ),
        (
            "arm = \"container\"",
            "arm = \"contaner\"",
            "contaner",
            "container",
        ),
        (
            "cpu.integer.time",
            "cpu.intger.time",
            "cpu.intger.time",
            "cpu.integer.time",
        ),
        (", at_most = 1.1", "", "\"c\"", "no bound"),
        (
            "at_most = 1.1",
            "at_most = 0.9, at_least = 1.0",
            "\"c\"",
            "no bound",
        ),
    ] {
        let text = WITH_PUBLICATION.replace(from, to);
        let error = parse("s.toml", &text, &Adjustments::default()).unwrap_err();
        let span = error.span.clone().unwrap();
        assert!(text[span].contains(offender), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    // What is not measured because of the command line is no mistake of the file.
    let fewer = Adjustments {
        environments: vec!["host".into()],
        ..Adjustments::default()
    };
    assert!(parse("s.toml", WITH_PUBLICATION, &fewer).is_ok());
}
