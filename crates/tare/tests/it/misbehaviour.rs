//! Tests workers that hang, are killed or write garbage: they are recorded as failures, and the run continues.

use crate::prelude::*;

use crate::product::{Started, broken_agent};
use crate::traces::is_computing;

/// Three blocks of short trials of one workload, each given up after two seconds.
fn study(workload: &str) -> String {
    format!(
        r#"id = "mine"
design = {{ trial = "20ms", limit = "2s", blocks_min = 3, blocks_max = 3 }}
arm = [{{ id = "host" }}]
workload = [{{ id = "{workload}" }}, {{ id = "integer" }}]
"#
    )
}

/// Returns the failures of a workload, all arms and kinds together: number of trials, kinds, reasons.
fn failures(dossier: &Value, workload: &str) -> (u64, Vec<String>, Vec<String>) {
    let rows = dossier["failures"].as_array().unwrap();
    let of = rows.iter().filter(|row| row["workload"] == workload);
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let mut found = (0, Vec::new(), Vec::new());
    for row in of {
        found.0 += row["trials"].as_u64().unwrap();
        found.1.push(text(row, "kind"));
        found.2.push(text(row, "reason"));
    }
    found
}

fn measure(workload: &str) -> (Product, Value) {
    let product = Product::with_agent(broken_agent());
    product.file("study.toml", study(workload));
    let dossier = product.dossier(["run", "study.toml"]);
    assert_valid_dossier(&dossier);
    product.assert_nothing_left();
    (product, dossier)
}

#[test]
fn hanging_aborting_or_garbled_workers_are_recorded() {
    for (workload, reason) in [
        ("getppid", "no answer within"),
        ("stat", "signal 6"),
        ("pipe", ""),
        ("clock", "last words"),
    ] {
        let (product, dossier) = measure(workload);
        assert_eq!(dossier["stopped_by"], "blocks", "{workload}: {dossier:#}");
        // Two arms, three blocks, and the other workload is measured normally.
        let (count, kinds, reasons) = failures(&dossier, workload);
        assert_eq!(count, 6, "{workload}: {dossier:#}");
        assert!(kinds.iter().all(|kind| kind == "failed"), "{kinds:?}");
        assert!(
            reasons.iter().all(|text| text.contains(reason)),
            "{workload}: {reasons:?}"
        );
        assert_eq!(failures(&dossier, "integer").0, 0, "{dossier:#}");
        let stored = product.stored("SELECT kind FROM trial WHERE workload_index = 1");
        assert_eq!(stored, ["completed"; 6], "{workload}");
        let table = product.run(["show"]).expect(0).stdout;
        assert_says(&table, "Not measured");
        assert!(!table.contains('\u{1b}'), "{table:?}");
    }
}

/// Starts the study with other settings of its trials and waits for `stored` trials; returns it with its run's name.
fn at_work(product: &Product, trials: &str, stored: usize) -> (Started, String) {
    let of_all = "trial = \"20ms\", limit = \"2s\"";
    let text = study("getppid");
    assert!(text.contains(of_all));
    let text = text.replace(of_all, trials);
    product.file("study.toml", text);
    let mut started = Product::start(product.command(line("run study.toml --json -", &[])));
    product.wait_for_trials(&mut started, stored);
    (started, product.runs().into_iter().next().unwrap())
}

#[test]
fn worker_killed_from_outside_is_one_failure() {
    let product = Product::new();
    let (started, run) = at_work(&product, "alternate = false, trial = \"400ms\"", 1);
    wait_until("the next trial is on its way", || is_computing(&run));
    let workers = labelled(&run)
        .into_iter()
        .filter(|(_, command)| command.contains("worker"));
    let mut n_killed = 0;
    for (pid, _) in workers {
        n_killed += usize::from(signal("KILL", pid));
    }
    assert!(n_killed >= 1);
    let dossier = started.wait().expect(0).json();
    assert_valid_dossier(&dossier);
    let kinds = product.stored("SELECT kind FROM trial");
    assert_eq!(kinds.len(), 12);
    let n_failed = kinds.iter().filter(|kind| *kind == "failed").count();
    // The one that measured; a spare that is gone is replaced before it is needed.
    assert_eq!(n_failed, 1, "{kinds:?}");
    let reason = dossier["failures"][0]["reason"].as_str().unwrap();
    assert_says(reason, "signal 9");
    product.assert_nothing_left();
}

#[test]
fn worker_dying_in_or_holding_turn_fails_one_block() {
    for (workload, reasons) in [
        ("float", &["signal 6", "ended because another"][..]),
        (
            "chase",
            &["no answer within", "ended because another", "kept its turn"],
        ),
    ] {
        let (product, dossier) = measure(workload);
        assert_eq!(dossier["stopped_by"], "blocks", "{workload}: {dossier:#}");
        let (count, _, told) = failures(&dossier, workload);
        assert_eq!(count, 6, "{workload}: {dossier:#}");
        assert!(
            told.iter()
                .all(|text| reasons.iter().any(|reason| text.contains(reason))),
            "{workload}: {told:?}"
        );
        assert_eq!(failures(&dossier, "integer").0, 0, "{dossier:#}");
        let stored = product.stored("SELECT kind FROM trial WHERE workload_index = 1");
        assert_eq!(stored, ["completed"; 6], "{workload}");
    }
}

#[test]
fn slices_of_all_arms_are_stored_despite_killed_block() {
    let product = Product::new();
    let (started, run) = at_work(&product, "trial = \"400ms\"", 2);
    // The workers of the next block, running or waiting for it.
    let killed = labelled(&run)
        .into_iter()
        .filter(|(_, command)| command.contains("worker"))
        .filter(|(pid, _)| signal("KILL", *pid))
        .count();
    assert!(killed >= 1);
    let dossier = started.wait().expect(0).json();
    assert_valid_dossier(&dossier);
    let stored = product.stored(
        "SELECT kind FROM trial WHERE stdout IS NULL OR instr(CAST(stdout AS TEXT), '\"sliced\"') > 0",
    );
    assert_eq!(
        stored.len(),
        12,
        "every report tells how its slices were taken"
    );
    let n_failed = stored.iter().filter(|kind| *kind == "failed").count();
    assert!(n_failed <= 2, "{stored:?}");
    product.assert_nothing_left();
}

#[test]
fn worker_stopped_from_outside_loses_only_its_block() {
    let product = Product::new();
    let (started, run) = at_work(&product, "trial = \"300ms\", limit = \"10s\"", 2);
    let mut stopped = 0;
    wait_until("a worker has its turn", || {
        let workers = labelled(&run)
            .into_iter()
            .filter(|(pid, command)| command.contains("worker") && is_running(*pid));
        stopped += workers.filter(|(pid, _)| signal("STOP", *pid)).count();
        stopped > 0
    });
    let dossier = started.wait().expect(0).json();
    assert_valid_dossier(&dossier);
    assert_eq!(dossier["stopped_by"], "blocks", "{dossier:#}");
    let kinds = product.stored("SELECT kind FROM trial");
    assert_eq!(kinds.len(), 12);
    let n_failed = kinds.iter().filter(|kind| *kind == "failed").count();
    assert!((1..=2 * stopped).contains(&n_failed), "{kinds:?}");
    for row in dossier["failures"].as_array().unwrap() {
        let reason = row["reason"].as_str().unwrap();
        let known = ["no answer within", "ended because another", "kept its turn"];
        assert!(known.iter().any(|known| reason.contains(known)), "{reason}");
    }
    product.assert_nothing_left();
}

/// Returns the peak memory of a process, bytes.
fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[test]
fn command_that_floods_its_workers_pipes_ends_at_once() {
    let product = Product::new();
    // Every file that the worker has open, including the pipe from which the agent reads frames.
    let flood = "for f in /proc/$PPID/fd/*; do (exec yes > $f) & (exec yes > $f) & done; sleep 60";
    product.file(
        "study.toml",
        format!(
            "id = \"flood\"\n[design]\nblocks_min = 1\nblocks_max = 1\nlimit = \"100s\"\n\
             [[arm]]\nid = \"host\"\n[[workload]]\nid = \"command\"\n\
             [workload.params]\nargv = [\"/bin/sh\", \"-c\", '{flood}']\n"
        ),
    );
    let mut started = Product::start(product.command(line("run study.toml --json -", &[])));
    let mut peak = 0;
    while started.is_running() {
        let of_runs = product.runs().into_iter().flat_map(|run| labelled(&run));
        let agents = of_runs.filter(|(_, command)| command.contains("serve"));
        peak = agents.map(|(pid, _)| peak_bytes(pid)).fold(peak, u64::max);
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = started.wait();
    assert!(ended.code.is_some(), "{ended}");
    let failed = product.stored("SELECT kind FROM trial WHERE kind = 'failed'");
    assert!(!failed.is_empty(), "{ended}");
    // A frame's length limits what is kept, not the amount written.
    assert!(peak < 64 << 20, "{peak} bytes");
    product.assert_nothing_left();
}

/// Whether a process is on a processor or waits for one (proc_pid_stat(5)).
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('R'))
}
