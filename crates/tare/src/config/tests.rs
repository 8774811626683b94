//! Tests that study files with mistakes are refused, with the place of the mistake.

use tare_model::{Params, Spread, Study, Value};

use super::{Adjustments, StudyError, built_in, environment_flags, parse};

mod builtin;
mod publication;
mod sweep;

const HEAD: &str = "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"getppid\"\n";

/// Reads a study without adjustments.
pub(super) fn read(text: &str) -> Result<Study, StudyError> {
    parse("mine.toml", text, &Adjustments::default())
}

/// Returns a built-in study.
fn of(id: &str, adjustments: &Adjustments) -> Study {
    built_in(id, adjustments).unwrap().unwrap()
}

pub(super) fn refused(text: &str, expected: &[&str]) {
    let error = read(text).expect_err("the study was accepted").to_string();
    for part in expected {
        assert!(error.contains(part), "{part:?} is not in:\n{error}");
    }
}

#[test]
fn typo_error_shows_line_caret_and_suggestion() {
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
fn wrong_setting_or_parameter_has_place_and_hint() {
    for (setting, expected) in [
        ("memroy = \"1g\"", "did you mean `memory`?"),
        ("memory = \"12 apples\"", "apples"),
    ] {
        let text = HEAD.replace(
            "id = \"host\"",
            &format!("id = \"container\"\n[arm.settings]\n{setting}"),
        );
        refused(&text, &["mine.toml:5", expected]);
    }
    refused(
        &format!("{HEAD}[workload.params]\nn = 3\n"),
        &["mine.toml:7", "`getppid` has no parameter `n`"],
    );
    refused(&format!("{HEAD}path = \"loopback\"\n"), &["takes no path"]);
}

#[test]
fn duplicate_reserved_or_missing_arm_is_refused() {
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
fn non_toml_and_control_chars_are_shown_safely() {
    refused("id = \n", &["mine.toml:1"]);
    let text = "id = \"m\"\n[[arm]]\nid = \"\u{7f}ho\"\n";
    let error = parse("\u{1b}[31mx.toml", text, &Adjustments::default()).unwrap_err();
    let error = error.to_string();
    assert!(
        !error.contains('\u{1b}') && !error.contains('\u{7f}'),
        "{error:?}"
    );
}

#[test]
fn baseline_arm_is_first_and_aa_copy_second() {
    let study = of("quick", &Adjustments::default());
    let ids: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
    assert_eq!(ids, ["host", "a-prime", "container", "docker"]);
    assert!(study.arms[0].required && !study.arms[2].required);
}

#[test]
fn named_environment_is_required_unknown_is_refused() {
    let chosen = |name: &str| Adjustments {
        environments: environment_flags::environments(name).unwrap(),
        ..Adjustments::default()
    };
    let study = of("quick", &chosen("container"));
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
    let study = of("quick", &adjustments);
    assert_eq!(
        (study.workloads.len(), study.blocks_min, study.blocks_max),
        (1, 7, 7)
    );
    assert!(!study.workloads[0].params.is_empty());
}

#[test]
fn budget_ends_study_unless_blocks_are_given() {
    let longer = |budget_ns: Option<u64>, blocks: Option<u32>| {
        let adjustments = Adjustments {
            budget_ns,
            blocks,
            workloads: vec!["integer".into()],
            ..Adjustments::default()
        };
        let study = of("ram-disk", &adjustments);
        (study.blocks_max, study.block_ns())
    };
    let (as_written, block_ns) = longer(None, None);
    assert_eq!(as_written, 16);
    let (with_ten_minutes, _) = longer(Some(600_000_000_000), None);
    assert!(u64::from(with_ten_minutes) * block_ns >= 600_000_000_000);
    assert_eq!(longer(Some(600_000_000_000), Some(7)).0, 7);
    // A budget smaller than the study's blocks removes none of them.
    assert!(longer(Some(1_000_000_000), None).0 >= 16);
}

/// A study of two arms whose publication makes one claim.
pub(super) const WITH_PUBLICATION: &str = r#"
id = "s"
arm = [{ id = "host" }, { id = "container" }]
workload = [{ id = "integer" }]
[publication]
title = "t"
where = "w"
machine = "m"
quantity = [{ name = "compute", label = "Computing", metric = "cpu.integer.time" }]
[[publication.claim]]
id = "c"
published = "p"
at = "a"
rule = { kind = "cost", quantity = "compute", arm = "container", at_most = 1.1 }
"#;

#[test]
fn publication_must_reference_measured_items() {
    let study = read(WITH_PUBLICATION).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.publication.unwrap().claims.len(), 1);
    for (from, to, offender, said) in tare_model::rows! {
        ("quantity = \"compute\"", "quantity = \"compite\"", "compite", "compute"),
        ("arm = \"container\"", "arm = \"contaner\"", "contaner", "container"),
        ("cpu.integer.time", "cpu.intger.time", "cpu.intger.time", "cpu.integer.time"),
        (", at_most = 1.1", "", "\"c\"", "no bound"),
        ("at_most = 1.1", "at_most = 0.9, at_least = 1.0", "\"c\"", "no bound"),
    } {
        let text = WITH_PUBLICATION.replace(from, to);
        let error = read(&text).unwrap_err();
        let span = error.span.clone().unwrap();
        assert!(text[span].contains(offender), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    // Leaving out what the publication uses by command line is not a mistake in the file.
    let fewer = Adjustments {
        environments: environment_flags::environments("host").unwrap(),
        ..Adjustments::default()
    };
    assert!(parse("s.toml", WITH_PUBLICATION, &fewer).is_ok());
}

#[test]
fn numbers_of_instances_become_one_workload_each() {
    let text = HEAD.replace(
        "id = \"getppid\"\n",
        "id = \"getppid\"\ninstances = [3, 1, 2]\nspread = \"environments\"\n",
    );
    let study = read(&text).unwrap();
    let shown: Vec<(u32, Option<Spread>)> = study
        .workloads
        .iter()
        .map(|spec| (spec.instances, spec.spread))
        .collect();
    let spread = Some(Spread::Environments);
    assert_eq!(shown, [(1, spread), (2, spread), (3, spread)]);
    let one = HEAD.replace("\"getppid\"\n", "\"getppid\"\ninstances = 2\n");
    let study = read(&one).unwrap();
    assert_eq!(study.workloads[0].instances, 2);
    assert_eq!(study.workloads[0].spread, Some(Spread::Processes));
    let none = read(HEAD).unwrap();
    assert_eq!(
        (none.workloads[0].instances, none.workloads[0].spread),
        (1, None)
    );
}

#[test]
fn bad_instance_count_error_has_place_and_limit() {
    let with = |line: &str| HEAD.replace("\"getppid\"\n", &format!("\"getppid\"\n{line}\n"));
    for (line, expected) in tare_model::rows! {
        ("instances = 0", &["mine.toml:6", "cannot be 0 instances", "^"][..]),
        ("instances = [1, -2]", &["mine.toml:6", "cannot be -2 instances", "^^^"]),
        ("instances = [1, 257]", &["257 instances are too many", "at most 256", "three pipes for each"]),
        ("instances = 33\nspread = \"environments\"", &["33 instances are too many", "at most 32", "run all the time"]),
        ("instances = []", &["names no number", "[1, 2, 3]"]),
        ("instances = [2, 2]", &["2 instances are asked for twice"]),
        ("instances = 1.5", &["must be a whole number or a list"]),
        ("instances = \"all\"", &["must be a whole number or a list"]),
        ("instances = 2\nspread = \"environment\"", &["mine.toml:7", "no way to spread", "did you mean `environments`?"]),
        ("spread = \"processes\"", &["mine.toml:6", "`instances` does not say how many"]),
    } {
        refused(&with(line), expected);
    }
}

#[test]
fn multi_instance_is_refused_for_unfit_workloads() {
    let with =
        |id: &str, lines: &str| HEAD.replace("\"getppid\"\n", &format!("\"{id}\"\n{lines}\n"));
    refused(
        &with("tcp-stream", "path = \"host->arm\"\ninstances = 2"),
        &["mine.toml:7", "has two ends", "loopback"],
    );
    refused(
        &with("start-up", "instances = [1, 2]"),
        &["mine.toml:6", "starts and stops an environment"],
    );
    refused(
        &with("copy-up", "instances = 2"),
        &["mine.toml:6", "only one of", "environments"],
    );
    let fine = with("tcp-stream", "path = \"loopback\"\ninstances = 2");
    assert!(read(&fine).is_ok());
}

#[test]
fn instances_option_overrides_study_counts() {
    let text = HEAD.replace(
        "\"getppid\"\n",
        "\"getppid\"\ninstances = [1, 5]\nspread = \"environments\"\n[[workload]]\nid = \"integer\"\n",
    );
    let adjustments = Adjustments {
        instances: vec![1, 2, 3],
        ..Adjustments::default()
    };
    let study = parse("mine.toml", &text, &adjustments).unwrap();
    let shown: Vec<(&str, u32, Option<Spread>)> = study
        .workloads
        .iter()
        .map(|spec| (spec.id.as_str(), spec.instances, spec.spread))
        .collect();
    let (apart, beside) = (Some(Spread::Environments), Some(Spread::Processes));
    assert_eq!(
        shown,
        [
            ("getppid", 1, apart),
            ("getppid", 2, apart),
            ("getppid", 3, apart),
            ("integer", 1, beside),
            ("integer", 2, beside),
            ("integer", 3, beside),
        ]
    );
    let moved = Adjustments {
        spread: Some(Spread::Processes),
        ..Adjustments::default()
    };
    let study = parse("mine.toml", &text, &moved).unwrap();
    assert_eq!(study.workloads[1].spread, beside);
    assert_eq!(
        (study.workloads[1].instances, study.workloads[2].spread),
        (5, None)
    );
}

#[test]
fn unmet_instances_option_error_names_option() {
    let error = |text: &str, adjustments: Adjustments| {
        parse("mine.toml", text, &adjustments)
            .unwrap_err()
            .to_string()
    };
    let several = Adjustments {
        instances: vec![1, 2],
        ..Adjustments::default()
    };
    let text = format!("{HEAD}[[workload]]\nid = \"start-up\"\n");
    let shown = error(&text, several);
    assert!(
        shown.contains("--instances") && shown.contains("--workload"),
        "{shown}"
    );
    let apart = Adjustments {
        spread: Some(Spread::Environments),
        ..Adjustments::default()
    };
    let shown = error(HEAD, apart);
    assert!(
        shown.contains("--spread") && shown.contains("--instances 1,2,3"),
        "{shown}"
    );
}

#[test]
fn common_study_mistakes_get_correct_hint() {
    let hint = |text: &str| {
        let text = format!("id = \"m\"\n{text}");
        let error = read(&text).unwrap_err();
        error.hint.clone().unwrap_or_else(|| panic!("{error}"))
    };
    assert!(hint("[design]\nbudget = 40\n").contains("`budget = \"40s\"`"));
    assert!(hint("[design]\nprecision = 2\n").contains("`precision = \"2%\"`"));
    let one = "[workload]\nid = \"getppid\"\n";
    assert!(hint(one).contains("`[[workload]]`"));
    assert!(hint(&format!("{one}{one}")).contains("`[[workload]]`"));
    let argv = "[[workload]]\nid = \"command\"\nargv = [\"true\"]\n";
    assert!(hint(argv).contains("`[workload.params]`"));
}

#[test]
fn cli_sets_environment_settings_like_file() {
    let text = "id = \"m\"\n[[arm]]\nid = \"host\"\n[[arm]]\nid = \"half\"\ndriver = \"container\"\n\
                settings = { memory = \"64m\" }\n[[workload]]\nid = \"getppid\"\n";
    let adjusted = |environments: &str, settings: &[(&str, &str, Value)]| {
        let settings = settings.iter();
        let adjustments = Adjustments {
            environments: environment_flags::environments(environments).unwrap(),
            settings: settings
                .map(|(arm, name, value)| ((*arm).into(), (*name).into(), value.clone()))
                .collect(),
            ..Adjustments::default()
        };
        parse("m.toml", text, &adjustments)
    };
    let study = adjusted("half:cpus=0.5", &[("half", "pids", Value::Int(9))]).unwrap();
    let half = &study.arms[2];
    assert_eq!((half.id.as_str(), half.required), ("half", true));
    let expected = Params::new()
        .with("memory", "64m")
        .with("cpus", 0.5)
        .with("pids", 9);
    assert_eq!(half.settings, expected);
    // An unknown setting, an unknown arm, and two arms of one name.
    let refused = |environments: &str, settings: &[(&str, &str, Value)]| {
        adjusted(environments, settings).unwrap_err().to_string()
    };
    assert!(refused("container:cpuz=1", &[]).contains("cpuz"));
    assert!(refused("half", &[("hal", "cpus", Value::Int(1))]).contains("did you mean `half`?"));
    assert!(refused("half,half:cpus=1", &[]).contains("two arms"));
}

#[test]
fn a_seed_is_the_users_or_the_files_or_drawn() {
    let study = |text: &str, seed| {
        let adjustments = Adjustments {
            seed,
            drawn_seed: 77,
            ..Adjustments::default()
        };
        parse("own.toml", text, &adjustments).unwrap().seed
    };
    let head = "id = \"own\"\n";
    let arms = "[[arm]]\nid = \"host\"\n[[workload]]\nid = \"integer\"\n";
    let plain = &format!("{head}{arms}");
    let seeded = format!("{head}[design]\nseed = 5\n{arms}");
    assert_eq!(study(plain, None), 77);
    assert_eq!(study(plain, Some(3)), 3);
    assert_eq!(study(&seeded, None), 5);
    assert_eq!(study(&seeded, Some(3)), 3);
}

#[test]
fn pairs_enabled_by_study_or_command_line() {
    let pairs = |design: &str, adjustments: &Adjustments| {
        let text = format!("{HEAD}[design]\n{design}\n");
        parse("mine.toml", &text, adjustments).unwrap().pairs
    };
    let asked = Adjustments {
        pairs: true,
        ..Adjustments::default()
    };
    assert!(!pairs("", &Adjustments::default()));
    assert!(pairs("pairs = true", &Adjustments::default()));
    assert!(pairs("", &asked));
    let storage = of("storage", &Adjustments::default());
    assert!(storage.pairs, "volume against layer is its question");
}
