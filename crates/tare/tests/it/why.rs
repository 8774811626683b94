//! Tests `tare why`: a user's command on the host and inside, and the messages if that does not work.

use crate::prelude::*;

use crate::oci::is_available;
use crate::product::{Started, environments};

/// Short enough for a test, long enough for six blocks of a short command.
const BUDGET: &str = "40s";

/// Returns the first finding, which must be this cause and confirmed.
#[track_caller]
pub(crate) fn confirmed<'a>(dossier: &'a Value, cause: &str) -> &'a Value {
    let first = &dossier["findings"][0];
    assert_eq!(first["cause"], cause, "{:#}", dossier["findings"]);
    assert_eq!(first["status"], "confirmed", "{first:#}");
    first
}

/// Returns the product, if it can create containers.
fn product_with_container() -> Option<Product> {
    needs_container().then(Product::new)
}

fn why(product: &Product, arguments: &[&str], command: &[&str]) -> Ended {
    let has_budget = arguments.contains(&"--budget");
    let budget: &[&str] = if has_budget {
        &[]
    } else {
        &["--budget", BUDGET]
    };
    product.run(
        ["why", "--json", "-"]
            .into_iter()
            .chain(budget.iter().copied())
            .chain(arguments.iter().copied())
            .chain(["--"])
            .chain(command.iter().copied()),
    )
}

fn steps(dossier: &Value) -> Vec<&str> {
    let rungs = dossier["ladder"]["rungs"].as_array().unwrap();
    rungs
        .iter()
        .map(|rung| rung["title"].as_str().unwrap())
        .collect()
}

#[test]
fn a_quota_is_found_proved_and_explains_the_cost() {
    let product = needed!(product_with_container());
    let work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    let dossier = why(
        &product,
        &["--env", "container:cpus=0.05", "--budget", "60s"],
        &["sh", "-c", work],
    )
    .expect(0)
    .json();
    assert_valid_dossier(&dossier);
    assert_eq!(dossier["why"]["outcome"], "cost", "{:#}", dossier["why"]);
    let first = confirmed(&dossier, "cpu.cfs-quota-throttle");
    assert!(first["share"]["point"].as_f64().unwrap() > 0.5, "{first:#}");
    let titles = steps(&dossier);
    assert!(
        titles.last().unwrap().ends_with("cpus = 0.05"),
        "{titles:?}"
    );
    // The same run again, from the store, and as text.
    let shown = product.run(["show", "--json"]).expect(0).json();
    assert_eq!(shown["findings"], dossier["findings"]);
    assert_eq!(shown["ladder"], dossier["ladder"]);
    // Includes the start-up time, which only the preceding run measured.
    assert_eq!(shown["why"], dossier["why"]);
    let text = product.run(["show"]).expect(0).stdout;
    assert_says(&text, "1. cpu.cfs-quota-throttle: confirmed");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    product.assert_nothing_left();
}

/// Work that keeps a processor busy for about this many milliseconds.
fn busy(milliseconds: u32) -> [String; 3] {
    let script = format!(
        "i=0; while [ $i -lt {} ]; do i=$((i+1)); done",
        milliseconds * 2000
    );
    ["sh".into(), "-c".into(), script]
}

fn blocks(dossier: &Value, arm: &str) -> u64 {
    let mut cells = dossier["cells"].as_array().unwrap().iter();
    let cell = cells.find(|cell| cell["arm"] == arm && cell["workload"] == "user-command");
    cell.unwrap()["n_blocks"].as_u64().unwrap()
}

/// Asks why a loop is slow on a fifth of a processor, with time for what follows the comparison.
fn asked_of_a_fifth(product: &Product) -> Started {
    let question = "why --env container:cpus=0.2 --budget 60s --json - --".split(' ');
    let work = busy(40);
    let all = question.chain(work.iter().map(String::as_str));
    Product::start(product.command(all))
}

#[test]
fn why_keeps_comparison_when_interrupted_later() {
    let product = needed!(product_with_container());
    let mut started = asked_of_a_fifth(&product);
    // The first comparison is stored as a separate run; then the suspects' run has begun.
    product.wait_for(&mut started, "SELECT id FROM run", 2);
    started.signal("INT", true);
    let ended = started.wait().expect(4);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    // On a busy machine its six blocks may not be sure yet.
    let answer = dossier["why"]["answer"].as_str().unwrap();
    assert!(answer.contains("slower"), "{ended}");
    assert!(blocks(&dossier, "container") >= 6, "{ended}");
    // It counts, with what follows it, when the answer is resumed.
    let resumed = product.dossier(["resume"]);
    assert!(
        blocks(&resumed, "container") >= 12,
        "{:#}",
        resumed["cells"]
    );
    assert_eq!(resumed["why"]["outcome"], "cost");
    product.assert_nothing_left();
}

#[test]
fn why_reports_comparison_when_next_step_fails() {
    let product = needed!(product_with_container());
    let mut started = asked_of_a_fifth(&product);
    product.wait_for(&mut started, "SELECT id FROM run", 1);
    product.change_store(
        "CREATE TRIGGER full BEFORE INSERT ON run BEGIN SELECT RAISE(ABORT, 'no more runs'); END",
    );
    let ended = started.wait().expect(0);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    let answer = dossier["why"]["answer"].as_str().unwrap();
    assert!(answer.contains("slower"), "{ended}");
    ended.complains("could not be measured");
    ended.complains("no more runs");
    product.assert_nothing_left();
}

#[test]
fn why_small_budget_goes_to_both_sides_first() {
    let product = needed!(product_with_container());
    let work = busy(30);
    let command: Vec<&str> = work.iter().map(String::as_str).collect();
    let arguments = ["--env", "container:cpus=0.5", "--budget", "12s"];
    let dossier = why(&product, &arguments, &command).expect(0).json();
    assert!(blocks(&dossier, "container") >= 6, "{:#}", dossier["why"]);
    product.assert_nothing_left();
}

#[test]
fn why_accuses_no_cause_for_command_without_cost() {
    let product = needed!(product_with_container());
    let arguments = ["--env", "container", "--budget", "15s"];
    let dossier = why(&product, &arguments, &["sleep", "0.3"])
        .expect(0)
        .json();
    assert_valid_dossier(&dossier);
    let findings = dossier["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .all(|finding| finding["status"] != "confirmed"),
        "{findings:#?}"
    );
    let answer = dossier["why"]["answer"].as_str().unwrap();
    assert!(answer.contains('%') || answer.contains('×'), "{answer}");
    product.assert_nothing_left();
}

#[test]
fn oci_runtime_needs_no_named_root() {
    let product = needed!(product_with_container());
    let command = [
        "sh",
        "-c",
        "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done",
    ];
    let world = World::new("why-oci");
    if !is_available(&world, "runc") {
        return;
    }
    let arguments = ["--env", "oci", "--budget", "9s"];
    let dossier = why(&product, &arguments, &command).expect(0).json();
    assert_valid_dossier(&dossier);
    assert_eq!(dossier["why"]["arm"], "oci");
    product.assert_nothing_left();
}

#[test]
fn seccomp_not_blamed_for_interpreter_on_new_kernel() {
    if !needs_docker() {
        return;
    }
    let product = Product::new();
    let pi = "k = s = 0\nwhile k < 60000:\n s += (1 - k % 4) / (k + 1)\n k += 2\nprint(4 * s)";
    let dossier = why(
        &product,
        &["--env", "docker", "--budget", "9s"],
        &["/usr/bin/python3", "-S", "-c", pi],
    )
    .expect(0)
    .json();
    assert_valid_dossier(&dossier);
    let release = dossier["arms"][0]["facts"]["kernel.release"]
        .as_str()
        .unwrap();
    let mut numbers = release
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(5), Some(16)) {
        skip(
            "kernel",
            "before Linux 5.16 the filter does cost an interpreter",
        );
        return;
    }
    for finding in dossier["findings"].as_array().unwrap() {
        assert_ne!(finding["cause"], "security.seccomp-ssbd", "{finding:#}");
        let advice = finding["advice"].as_str().unwrap();
        assert!(!advice.contains("unconfined"), "{finding:#}");
    }
    let answer = dossier["why"]["answer"].as_str().unwrap();
    assert_lacks(answer, "seccomp-ssbd");
    product.assert_nothing_left();
}

#[test]
fn program_that_differs_and_background_processes_are_told() {
    let product = needed!(product_with_container());
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    for name in ["outside", "inside"] {
        fs::create_dir(place(name)).unwrap();
    }
    let shell = fs::canonicalize("/bin/sh").unwrap();
    fs::copy(&shell, place("outside/tool")).unwrap();
    // The same program with a byte appended: other bytes with the same behaviour.
    fs::copy(&shell, place("inside/tool")).unwrap();
    let mut bytes = fs::read(&shell).unwrap();
    bytes.push(0);
    fs::write(place("inside/tool"), bytes).unwrap();
    let bind = format!(
        "binds={}:{}:ro",
        place("inside").display(),
        place("outside").display()
    );
    let program = place("outside/tool").display().to_string();
    let script = "setsid sleep 60 & i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done";
    let ended = why(
        &product,
        &["--env", "container", "--set", &bind, "--budget", "10s"],
        &[&program, "-c", script],
    )
    .expect(0);
    ended.complains("in the background");
    let dossier = ended.json();
    let hash = |arm: &str| {
        let arms = dossier["arms"].as_array().unwrap();
        let found = arms.iter().find(|it| it["id"] == arm).unwrap();
        let seen = found["settings"]["command.seen"].as_str().unwrap();
        let seen: Value = serde_json::from_str(seen).unwrap();
        let hash = seen["program.command.sha256"].as_str().unwrap().to_owned();
        assert_eq!(hash.len(), 64, "{seen:#}");
        hash
    };
    assert_ne!(hash("host"), hash("container"));
    product.assert_nothing_left();
}

#[test]
fn why_gives_both_sides_same_folder_env_and_stdin() {
    for env in &environments()[1..] {
        let product = Product::new();
        fs::write(product.folder().join("in.txt"), "of the folder").unwrap();
        // It fails on a side where something is missing, and writes where both sides see it.
        let script = "read line && test \"$line\" = piped && grep -q folder in.txt && \
                      test \"$GIVEN\" = this && test -z \"$SECRET\" && echo $$ >>out.txt && echo value: 7";
        let mut command = product.command(line(
            &format!("why --env {env} --budget 10s --json - --metric"),
            &[
                "value: ([0-9]+)",
                "--variable",
                "GIVEN=this",
                "--",
                "sh",
                "-c",
                script,
            ],
        ));
        command
            .env("SECRET", "x")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ended = fed(command, b"piped\nand more\n");
        let dossier = ended.expect(0).json();
        assert_valid_dossier(&dossier);
        assert_eq!(dossier["why"]["metric"], "command.picked.cost");
        let written = contents(product.folder().join("out.txt"));
        assert!(written.lines().count() >= 3, "{env}: {written}");
        let carried = dossier["why"]["carried"].to_string();
        assert!(
            carried.contains("GIVEN") && !carried.contains("SECRET"),
            "{carried}"
        );
        product.assert_nothing_left();
    }
}

fn fed(mut command: Command, input: &[u8]) -> Ended {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: lossy(&output.stdout),
        stderr: lossy(&output.stderr),
    }
}

/// Further arguments, the command, the exit status, and parts of the problem and the hint.
type Bad<'a> = (&'a [&'a str], &'a [&'a str], i32, &'a str, &'a str);

#[test]
fn why_unmeasurable_command_gets_reason_and_hint() {
    let product = needed!(product_with_container());
    let cases: [Bad<'_>; 8] = tare_model::rows! {
        (&[], &["sh", "-c", "echo broken >&2; exit 3"], 5, "fails on the host already", "status 0"),
        (&[], &["tare-no-such-program"], 2, "not on this machine", "install"),
        (&[], &["sh", "-c", "mkdir made"], 5, "when it is run again", "put things back"),
        (&[], &["sh", "-c", "[ ! -e /tare-agent ] || exit 9"], 5, "fails in `container`", "another machine"),
        (&["--metric", "took ([0-9]+)"], &["true"], 5, "finds no number", "last match"),
        (&["--metric", "("], &["true"], 2, "no regular expression", "--metric"),
        (&[], &["sh", "-c", "stty size </dev/null"], 5, "fails on the host", "terminal"),
        (&["--set", "cpuz=1"], &["true"], 2, "cpuz", ""),
    };
    for (arguments, command, code, problem, hint) in cases {
        let all: Vec<&str> = ["--env", "container"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let ended = why(&product, &all, command).expect(code);
        assert!(ended.stderr.contains(problem), "{command:?}: {ended}");
        if !hint.is_empty() {
            assert!(ended.hint().contains(hint), "{command:?}: {ended}");
        }
        assert_eq!(ended.stdout, "", "{command:?}");
    }
    product.assert_nothing_left();
}

#[test]
fn why_command_exceeding_budget_gets_budget_hint() {
    let product = needed!(product_with_container());
    product
        .tare("why --env container --budget 8s -- sleep 2", &[])
        .expect(5)
        .complains("six blocks")
        .advises("--budget");
    product
        .tare("why --env container --budget 2s -- sleep 30", &[])
        .expect(5)
        .complains("did not end within");
    product.assert_nothing_left();
}

#[test]
fn why_requires_a_valid_environment() {
    let product = Product::new();
    why(&product, &["--env", "dokcer"], &["true"])
        .expect(2)
        .advises("docker");
    why(&product, &["--env", "host"], &["true"]).expect(2);
    why(
        &product,
        &["--env", "container", "--set", "cpus"],
        &["true"],
    )
    .expect(2);
    product
        .tare("why --env container", &[])
        .expect(2)
        .complains("CMD");
}

#[test]
fn private_folder_is_shown_only_with_show_private() {
    let product = Product::new();
    let home = product.home();
    fs::create_dir(&home).unwrap();
    for place in [home.as_path(), home.parent().unwrap()] {
        let mut command = product.command(line("why --env container -- true", &[]));
        command.current_dir(place);
        product
            .finish(command)
            .expect(2)
            .complains("where Tare keeps its files")
            .advises("--show-private");
    }
    // Now it is refused for another reason.
    let arguments = ["why", "--show-private", "--env", "container", "--", "false"];
    let mut command = product.command(arguments);
    command.current_dir(&home);
    let ended = product.finish(command);
    ended.does_not_complain("where Tare keeps");
}
