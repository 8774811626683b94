//! Tests commands that are stopped and interleaved with their copies in other arms, and those that are not.

use crate::prelude::*;

/// Perl that computes for some tenths of a second, on any machine for more than a few slices.
const COMPUTES: &str = "my $x = 1; for (1..4_000_000) { $x = ($x * 3 + 1) % 65521 } print $x";

/// Returns the answer of `tare why` about a command in the built-in container.
fn why(product: &Product, command: &[&str]) -> Value {
    let arguments = [
        "why",
        "--env",
        "container",
        "--budget",
        "25s",
        "--json",
        "-",
    ];
    let ended = product.run(arguments.iter().chain(["--"].iter()).chain(command));
    let dossier = ended.expect(0).json();
    assert_valid_dossier(&dossier);
    product.assert_nothing_left();
    dossier
}

/// Returns whether the command took turns in the container.
fn is_in_turn(dossier: &Value) -> bool {
    cell(dossier, "container", "command.wall.time")["in_turn"] == true
}

fn carried(dossier: &Value) -> String {
    dossier["why"]["carried"].to_string()
}

#[test]
fn why_alternates_slices_of_computing_command() {
    if !needs_container() {
        return;
    }
    let dossier = why(&Product::new(), &["perl", "-e", COMPUTES]);
    assert!(is_in_turn(&dossier), "{dossier:#}");
    assert!(carried(&dossier).contains("in turn"), "{dossier:#}");
}

#[test]
fn why_explains_sleeping_command_runs_uninterrupted() {
    if !needs_container() {
        return;
    }
    let dossier = why(&Product::new(), &["sleep", "0.2"]);
    assert!(!is_in_turn(&dossier), "{dossier:#}");
    assert!(
        carried(&dossier).contains("uninterrupted, because it waits for"),
        "{dossier:#}"
    );
}

#[test]
fn why_detects_clock_bound_command_by_stopping_it() {
    if !needs_container() {
        return;
    }
    let script = "use Time::HiRes 'time'; my $end = time + 0.6; 1 while time < $end";
    let dossier = why(&Product::new(), &["perl", "-e", script]);
    assert!(!is_in_turn(&dossier), "{dossier:#}");
    assert!(
        carried(&dossier).contains("it goes by a clock"),
        "{dossier:#}"
    );
}

fn study(argv: &str) -> String {
    format!(
        r#"id = "mine"
design = {{ blocks_min = 3, blocks_max = 3 }}
arm = [{{ id = "host" }}, {{ id = "container" }}]
workload = [{{ id = "command", params = {{ argv = {argv} }} }}]
"#
    )
}

#[test]
fn study_commands_take_turns_unless_check_objects() {
    if !needs_container() {
        return;
    }
    let product = Product::new();
    product.file(
        "computes.toml",
        study(&format!("[\"perl\", \"-e\", \"{COMPUTES}\"]")),
    );
    product.file("sleeps.toml", study("[\"sleep\", \"0.1\"]"));
    let run = |file: &str| {
        let dossier = product.dossier(["run", file]);
        assert_valid_dossier(&dossier);
        product.assert_nothing_left();
        dossier
    };
    let wall = |dossier: &Value| cell(dossier, "container", "command.run.wall")["in_turn"] == true;
    let computes = run("computes.toml");
    assert!(wall(&computes), "{computes:#}");
    let sleeps = run("sleeps.toml");
    assert!(!wall(&sleeps), "{sleeps:#}");
    let reasons = sleeps["whole_trials"].to_string();
    let reason = "`command` is measured by whole trials, because in `host` it waits for";
    assert!(reasons.contains(reason), "{sleeps:#}");
    assert_eq!(computes["whole_trials"], Value::Null, "{computes:#}");
}
