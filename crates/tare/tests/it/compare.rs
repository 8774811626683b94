//! Tests `tare compare`: commands, environments and stored runs, and the messages if they cannot be compared.

use crate::prelude::*;

use crate::schema::Checker;

/// Shell work that takes about `units` times as long as one unit.
pub(crate) fn work(units: u32) -> String {
    times(units * 8_000)
}

fn times(count: u32) -> String {
    format!("sh -c 'i=0; while [ $i -lt {count} ]; do i=$((i+1)); done'")
}

fn compare(product: &Product, arguments: &[&str]) -> Ended {
    let usual = [
        "compare", "--json", "-", "--budget", "60s", "--margin", "40%", "--only", "wall",
    ];
    let ended = product.run(usual.iter().chain(arguments));
    if ended.code == Some(0) {
        assert_is_as_the_schema_says(&ended.json());
    }
    ended
}

pub(crate) fn assert_is_as_the_schema_says(comparison: &Value) {
    let checked = Checker::load("comparison-1").check(comparison);
    assert_eq!(checked, Ok(()), "{comparison:#}");
    let mut wrong = comparison.clone();
    wrong["decision"] = "passed".into();
    assert!(Checker::load("comparison-1").check(&wrong).is_err());
}

pub(crate) fn row<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let mut rows = comparison["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no row `{name}`: {comparison:#}"))
}

#[test]
fn compare_finds_the_slower_of_two_commands() {
    let product = Product::new();
    let ended = compare(&product, &[&work(1), &work(6)]).expect(0);
    let json = ended.json();
    assert_eq!(json["decision"], "slower", "{json:#}");
    let wall = row(&json, "wall");
    assert_eq!(wall["word"], "slower", "{wall:#}");
    assert!(wall["change"]["low"].as_f64().unwrap() > 1.0, "{wall:#}");
    assert!(wall["control"].is_object(), "{wall:#}");
    ended.complains("a: ");
    ended.complains("in one run of");
    // Inverted it is faster, and a third side has its own rows.
    let json = compare(&product, &[&work(6), &work(1), &work(6)])
        .expect(0)
        .json();
    assert_eq!(row(&json, "b.wall")["word"], "faster", "{json:#}");
    assert_ne!(row(&json, "c.wall")["word"], "faster", "{json:#}");
    product.assert_nothing_left();
}

#[test]
fn compare_goes_on_until_the_budget_is_used() {
    let product = Product::new();
    let arguments = [
        "compare",
        "--json",
        "-",
        "--budget",
        "8s",
        "--margin",
        "0.001%",
        &times(20_000),
        &times(20_100),
    ];
    let json = product.run(arguments).expect(0).json();
    // No sample is decisive at such a margin, so all of the time is used.
    assert!(json["wall_s"].as_f64().unwrap() > 5.0, "{json:#}");
    assert!(
        row(&json, "wall")["blocks"].as_u64().unwrap() >= 1,
        "{json:#}"
    );
}

#[test]
fn commands_that_print_different_things_are_refused() {
    let product = Product::new();
    compare(&product, &["echo one", "echo two"])
        .expect(2)
        .complains("print different things")
        .advises("--allow-different-output");
    assert!(product.runs().is_empty());
    let budget = ["--budget", "4s", "--json", "-"];
    let arguments = [
        "compare",
        "--allow-different-output",
        "echo one",
        "echo two",
    ];
    let json = product
        .run(arguments.iter().chain(&budget))
        .expect(0)
        .json();
    // Commands this short are interleaved run by run.
    let how = json["how"].as_str().unwrap();
    assert_says(how, "of each side in a block, interleaved");
}

#[test]
fn same_program_is_reported_without_measuring() {
    let product = Product::new();
    let json = compare(&product, &["printf x", "printf x"])
        .expect(0)
        .json();
    assert_eq!(json["decision"], "same");
    assert_eq!(json["rows"].as_array().unwrap().len(), 0);
    assert!(json["notes"][0].as_str().unwrap().contains("same program"));
    assert!(product.stored("SELECT id FROM run").is_empty());
    product.assert_nothing_left();
}

#[test]
fn failing_command_is_refused_unless_ignored() {
    let product = Product::new();
    compare(&product, &["true", "sh -c 'echo broken >&2; exit 3'"])
        .expect(5)
        .complains("exited with status 3")
        .complains("broken");
    let arguments = [
        "compare",
        "--ignore-failure",
        "--budget",
        "4s",
        "true",
        "sh -c 'exit 3'",
    ];
    product.run(arguments).expect(0);
}

#[test]
fn compare_misuse_is_refused_with_hint() {
    let product = Product::new();
    for (arguments, problem) in [
        (&["compare"][..], "nothing to compare"),
        (&["compare", "true"], "compared with nothing"),
        (&["compare", "true", "--", "true"], "before and behind"),
        (&["compare", "'open", "true"], "quote"),
        (
            &["compare", "no-such-program-here", "true"],
            "no-such-program-here",
        ),
        (
            &["compare", "--a", "nowhere", "--b", "host", "--", "true"],
            "nowhere",
        ),
        (&["compare", "--max", "5%", "true", "false"], "names no row"),
        (
            &[
                "compare",
                "--prepare",
                "x",
                "--env",
                "host",
                "true",
                "false",
            ],
            "on the host",
        ),
    ] {
        let ended = product.run(arguments).expect(2);
        ended.complains(problem);
        assert!(!ended.hint().is_empty());
    }
}

#[test]
fn compare_hooks_run_expected_number_of_times() {
    let product = Product::new();
    let note = |word: &str| format!("echo {word} >>log");
    let (setup, prepare, conclude, cleanup) = (
        note("setup"),
        note("prepare"),
        note("conclude"),
        note("cleanup"),
    );
    let ended = product.tare(
        "compare --json - --budget 6s --setup",
        &[
            &setup,
            "--prepare",
            &prepare,
            "--conclude",
            &conclude,
            "--cleanup",
            &cleanup,
            "true",
            "sh -c true",
        ],
    );
    ended.expect(0);
    let log = contents(product.folder().join("log"));
    let count = |word: &str| log.lines().filter(|line| *line == word).count();
    assert_eq!((count("setup"), count("cleanup")), (1, 1), "{log}");
    let trials = product.n_trials();
    assert!(trials >= 3, "{trials}\n{log}");
    // They also run around the first check of both sides.
    assert_eq!(count("conclude"), trials + 2, "{log}");
    assert_eq!(count("prepare"), trials + 3, "{log}");
    assert!(
        log.starts_with("setup\nprepare\n") && log.ends_with("cleanup\n"),
        "{log}"
    );
}

#[test]
fn two_environments_are_compared_with_one_command() {
    if !needs_container() {
        return;
    }
    let product = Product::new();
    let script = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    let json = product
        .tare("compare --json - --budget 60s --margin 40% --only wall --a container --b container:cpus=0.1 -- sh -c", &[script])
        .expect(0)
        .json();
    assert_eq!(row(&json, "wall")["word"], "slower", "{json:#}");
    assert_eq!(json["sides"][1]["label"], "container:cpus=0.1");
    product.assert_nothing_left();
}

#[test]
fn stored_runs_compare_unpaired_without_proof() {
    let product = Product::new();
    let ask = |sides: [&str; 2]| {
        let json = product
            .tare("compare --json - --budget 5s", &[sides[0], sides[1]])
            .expect(0)
            .json();
        let runs = json["runs"].as_array().unwrap();
        runs.last().unwrap().as_str().unwrap().to_owned()
    };
    let first = ask(["true", "sh -c true"]);
    let second = ask(["true", &work(4)]);
    let ended = product
        .tare(&format!("compare --json - {first} {second}"), &[])
        .expect(0);
    let json = ended.json();
    assert_eq!(json["paired"], false);
    assert_ne!(json["decision"], "slower", "{json:#}");
    assert!(
        json["notes"][0].as_str().unwrap().contains("unpaired"),
        "{json:#}"
    );
    // The stored run can be shown like any other.
    product.run(["show", &first]).expect(0);
}

#[test]
fn suite_has_rows_of_every_entry_and_one_decision() {
    let product = Product::new();
    let text = format!(
        "[[compare]]\nname = \"long\"\ncommands = [{:?}, {:?}]\n[[compare]]\nname = \"equal\"\ncommands = [\"true\", \"true\"]\n",
        work(1),
        work(8)
    );
    let suite = product.file("gate.toml", text);
    let json = compare(&product, &["--suite", &suite]).expect(0).json();
    assert_eq!(row(&json, "long.wall")["word"], "slower", "{json:#}");
    assert_eq!(json["decision"], "slower", "{json:#}");
    let notes = json["notes"].as_array().unwrap();
    let is_same = |note: &Value| note.as_str().unwrap().starts_with("equal: ");
    assert!(notes.iter().any(is_same), "{json:#}");
    let broken = product.file("broken.toml", "[[compare]]\nnam = 1\n");
    compare(&product, &["--suite", &broken])
        .expect(2)
        .complains("line 2");
    product.assert_nothing_left();
}

#[test]
fn variables_before_a_command_are_its_sides_own() {
    let product = Product::new();
    let with =
        |count: u32| format!("N={count} sh -c 'i=0; while [ $i -lt $N ]; do i=$((i+1)); done'");
    let json = compare(&product, &[&with(8_000), &with(64_000)])
        .expect(0)
        .json();
    assert_eq!(row(&json, "wall")["word"], "slower", "{json:#}");
    // The program is the same file.
    let size = row(&json, "binary-size");
    assert_eq!(size["base"], size["head"], "{json:#}");
}

#[test]
fn unrepeatable_command_is_refused_with_advice() {
    let product = Product::new();
    product.file("once", "x");
    compare(&product, &["rm once", "true"])
        .expect(5)
        .complains("fails when it is run again")
        .advises("--prepare");
    compare(&product, &["cat once | wc", "true"]).complains("no shell");
    // If there is no such program, the hint names a shell.
    compare(&product, &["no-such-alias x", "true"])
        .expect(2)
        .advises("--shell");
}

#[test]
fn odd_commands_are_measured_and_noted() {
    let product = Product::new();
    let short = |sides: [&str; 2]| {
        let arguments = [
            "compare", "--json", "-", "--budget", "4s", sides[0], sides[1],
        ];
        let json = product.run(arguments).expect(0).json();
        json["notes"].to_string()
    };
    // Each run prints another number.
    let notes = short(["sh -c 'echo $$'", "sh -c 'echo $$ '"]);
    assert_says(&notes, "another text in each run");
    let notes = short(["sh -c 'sleep 60 & exit 0'", "true"]);
    assert_says(&notes, "in the background");
    // A command that prompts its user gets end of file and does not wait.
    short(["sh -c 'read x; exit 0'", "sh -c 'read y; exit 0'"]);
    let name = "a 'b\" $(c)";
    product.program(name, "#!/bin/sh\nexit 0\n");
    short([r#""./a 'b\" \$(c)""#, "true"]);
    product.assert_nothing_left();
}
