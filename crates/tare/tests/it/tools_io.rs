//! Tests the real fio, Iozone, iperf3, ping and netcat through whole studies on the host, in the built-in container
//! and, if an engine answers, in Docker.
//!
//! Checks only that they are measured and which remarks are made, never the speed. A tool that is not installed is
//! skipped with its name, or fails the test if required (`TARE_REQUIRE=fio`).

use crate::prelude::*;

use crate::product::environments;

/// Blocks of each study: the tests check that something is measured, not how much.
const BLOCKS: &str = "1";

/// Whether the tool is on the search path; reports a skip if not.
fn has(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    if !is_there {
        skip(tool, &format!("`{tool}` is not installed"));
    }
    is_there
}

/// A workload with these parameters.
fn workload(id: &str, params: &str) -> String {
    format!("[[workload]]\nid = \"{id}\"\nparams = {{ {params} }}\n")
}

/// Runs a study of `workloads` in `arms` and returns its dossier.
fn run(arms: &[&str], workloads: &str) -> Value {
    run_and_show(arms, workloads).0
}

/// Like `run`, and also returns the output of `tare show` in one line.
fn run_and_show(arms: &[&str], workloads: &str) -> (Value, String) {
    let product = Product::new();
    let mut study = "id = \"tools\"\n[design]\ntrial = \"20ms\"\n".to_owned();
    for arm in arms {
        study.extend(["[[arm]]\nid = \"", arm, "\"\n"]);
    }
    study.push_str(workloads);
    let file = product.file("study.toml", study);
    let arguments = ["run", &file, "--blocks", BLOCKS, "--json", "-"];
    let dossier = product.run(arguments).expect(0).json();
    assert_valid_dossier(&dossier);
    let shown = product.run(["show"]).expect(0).stdout;
    println!("{shown}");
    product.assert_nothing_left();
    let words: Vec<&str> = shown.split_whitespace().collect();
    (dossier, words.join(" "))
}

/// Returns the text of this name in each element of a list.
pub(crate) fn texts<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let list = list.as_array().unwrap().iter();
    list.filter_map(|one| one[name].as_str()).collect()
}

/// Returns the cells of one metric.
fn cells<'a>(dossier: &'a Value, metric: &str) -> Vec<&'a Value> {
    let cells = dossier["cells"].as_array().unwrap();
    cells
        .iter()
        .filter(|cell| cell["metric"] == metric)
        .collect()
}

/// Asserts that every arm except the baseline has this many cells of the metric, each with a value on both sides. No
/// network joins two built-in containers, so they have no path from one to the other.
#[track_caller]
fn assert_measured(dossier: &Value, arms: &[&str], metric: &str, cells_of_an_arm: usize) {
    for arm in &arms[1..] {
        let is_between =
            |cell: &Value| cell["path"] == "arm→arm" || cell["path"] == "node-1→node-2";
        let has_path = |cell: &&Value| *arm != "container" || !is_between(cell);
        let of_arm: Vec<&Value> = cells(dossier, metric)
            .into_iter()
            .filter(|cell| cell["arm"] == *arm)
            .collect();
        assert_eq!(
            of_arm.len(),
            cells_of_an_arm,
            "{arm} {metric}: {:#}",
            dossier["failures"]
        );
        for cell in of_arm.into_iter().filter(has_path) {
            for side in ["base", "env"] {
                let point = cell[side]["point"].as_f64();
                assert!(point.is_some_and(|value| value > 0.0), "{side}: {cell:#}");
            }
        }
    }
    if arms.len() == 1 {
        let failures = dossier["failures"].as_array().unwrap();
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

/// Returns the detail of a cell's flag.
fn flag<'a>(cell: &'a Value, id: &str) -> Option<&'a str> {
    let mut flags = cell["flags"].as_array().unwrap().iter();
    flags.find(|flag| flag["id"] == id)?["detail"].as_str()
}

#[test]
fn fio_is_measured_wherever_it_runs() {
    if !has("fio") {
        return;
    }
    let arms = environments();
    // Docker's default seccomp profile blocks io_uring.
    let params = "rw = \"randrw\", ioengine = \"psync\", size = \"4m\", runtime = \"200ms\"";
    let dossier = run(&arms, &workload("fio", params));
    for kind in ["read", "write"] {
        for what in ["-p99.time", ".rate", ".throughput", ".time"] {
            assert_measured(&dossier, &arms, &format!("disk.fio-{kind}{what}"), 1);
        }
    }
    for cell in cells(&dossier, "disk.fio-read.rate") {
        assert!(flag(cell, "shallow-queue").is_none(), "{cell:#}");
        // 200 steps of a millisecond.
        assert!(flag(cell, "short-interval").is_some(), "{cell:#}");
    }
}

#[test]
fn fio_synchronous_engine_is_labelled_effective_depth() {
    if !has("fio") {
        return;
    }
    if !needs_container() {
        return;
    }
    let (dossier, shown) = run_and_show(
        &["host", "container"],
        &workload(
            "fio",
            "ioengine = \"libaio\", direct = 0, iodepth = 32, size = \"4m\", runtime = \"100ms\"",
        ),
    );
    let cells = cells(&dossier, "disk.fio-read.rate");
    assert_eq!(cells.len(), 1, "{:#}", dossier["failures"]);
    let reported = flag(cells[0], "shallow-queue").unwrap();
    assert_says(reported, "effective depth about 1 of 32");
    assert!(reported.starts_with("in 1 of 1 trials"), "{reported}");
    // The baseline and its A/A control.
    assert_says(reported, "baseline, in 2 of 2 trials");
    assert_says(&shown, "effective depth about 1 of 32");
}

#[test]
fn fio_tmpfs_file_is_labelled_cached_and_queueless() {
    if !has("fio") {
        return;
    }
    let memory = Path::new("/dev/shm");
    let is_memory = Command::new("stat")
        .args(["-f", "-c", "%T", "/dev/shm"])
        .output()
        .is_ok_and(|output| output.stdout == b"tmpfs\n");
    if !is_memory {
        return skip("tmpfs", "there is no file system in memory at /dev/shm");
    }
    let home = tempfile::Builder::new()
        .prefix("tare-product-")
        .tempdir_in(memory)
        .unwrap();
    let product = Product::new();
    let file = product.file(
        "study.toml",
        "id = \"tools\"\n[[arm]]\nid = \"host\"\n[[arm]]\nid = \"again\"\ndriver = \"host\"\n\
         [[workload]]\nid = \"fio\"\nparams = { ioengine = \"libaio\", direct = 1, iodepth = 16, \
         size = \"4m\", runtime = \"100ms\" }\n",
    );
    let mut command = product.command(["run", &file, "--blocks", BLOCKS, "--json", "-"]);
    command.env("TARE_HOME", home.path());
    let dossier = product.finish(command).expect(0).json();
    let cells = cells(&dossier, "disk.fio-read.rate");
    assert_eq!(cells.len(), 1, "{:#}", dossier["failures"]);
    if cells[0]["n_blocks"] == 0 {
        // Before Linux 6.6 a file on tmpfs cannot be opened with O_DIRECT.
        let failures = dossier["failures"].to_string();
        assert_says(&failures, "Invalid argument");
        return skip("tmpfs", "files in memory cannot be opened with O_DIRECT");
    }
    let cached = flag(cells[0], "page-cache").unwrap();
    assert_says(cached, "the device saw 0");
    let depth = flag(cells[0], "shallow-queue").unwrap();
    assert_says(depth, "effective depth about 1 of 16");
}

#[test]
fn iozone_results_are_labelled_cached_and_short() {
    if !has("iozone") {
        return;
    }
    let arms = environments();
    let params = "tests = \"random\", size = \"2m\", record = \"64k\", direct = 0, fsync = 0";
    let dossier = run(&arms, &workload("iozone", params));
    for test in ["write", "rewrite", "random-read", "random-write"] {
        let metric = format!("disk.iozone-{test}.throughput");
        assert_measured(&dossier, &arms, &metric, 1);
    }
    for cell in cells(&dossier, "disk.iozone-write.throughput") {
        assert!(flag(cell, "page-cache").is_some(), "{cell:#}");
    }
    let params = "size = \"64k\", record = \"64k\", direct = 0, fsync = 0";
    let (dossier, shown) = run_and_show(&arms, &workload("iozone", params));
    for cell in cells(&dossier, "disk.iozone-reread.throughput") {
        let cached = flag(cell, "page-cache").unwrap();
        assert_says(cached, "the device saw 0");
        // The number of steps depends on the machine; one is possible.
        let short = flag(cell, "short-interval").unwrap();
        assert_says(short, "timer step");
    }
    assert_says(&shown, "but the page cache");
    assert_says(&shown, "timer step");
}

/// One workload over each of these paths.
fn over(id: &str, params: &str, paths: &[&str]) -> String {
    let of = |path: &&str| {
        format!("[[workload]]\nid = \"{id}\"\npath = \"{path}\"\nparams = {{ {params} }}\n")
    };
    paths.iter().map(of).collect::<Vec<_>>().concat()
}

const DIRECT: [&str; 5] = [
    "loopback",
    "host→arm",
    "arm→host",
    "arm→arm",
    "node-1→node-2",
];

#[test]
fn iperf3_is_measured_on_every_path_both_directions() {
    if !has("iperf3") {
        return;
    }
    let arms = environments();
    let mut workloads = over("iperf3", "duration = 1", &DIRECT);
    workloads.push_str(&over("iperf3", "reverse = 1, streams = 2", &["host→arm"]));
    let dossier = run(&arms, &workloads);
    assert_measured(&dossier, &arms, "net.iperf3.throughput", 6);
}

#[test]
fn ping_and_netcat_are_measured_on_addressed_paths() {
    for (tool, workload, count, metric) in [
        ("ping", "ping", 5, "net.ping.time"),
        ("nc", "netcat", 8, "net.netcat.throughput"),
    ] {
        if has(tool) {
            let arms = environments();
            let params = format!("count = {count}");
            let dossier = run(&arms, &over(workload, &params, &DIRECT));
            assert_measured(&dossier, &arms, metric, 5);
        }
    }
}

#[test]
fn other_netcat_variant_is_reported_as_not_openbsd() {
    let product = Product::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("nc");
    let script = "#!/bin/sh\nif [ \"$1\" = -h ]; then echo '[v1.10-47]' >&2; exit 0; fi\n\
                  echo \"nc: invalid option -- 'N'\" >&2; exit 1\n";
    executable(&other, script);
    let file = product.file(
        "study.toml",
        format!(
            "id = \"tools\"\n[[arm]]\nid = \"host\"\n[[arm]]\nid = \"again\"\ndriver = \"host\"\n{}",
            over("netcat", "count = 1", &["loopback"])
        ),
    );
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = product.command(["run", &file, "--blocks", BLOCKS, "--json", "-"]);
    command.env("PATH", path);
    let dossier = product.finish(command).json();
    let reasons = texts(&dossier["failures"], "reason");
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("not the netcat of OpenBSD: [v1.10-47]")),
        "{reasons:?}"
    );
}
