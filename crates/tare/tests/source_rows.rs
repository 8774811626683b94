//! Every row of the published tables that the built-in studies repeat has a workload here that can be run.
//!
//! The tables of the comparison of containers of two systems (2019) have rows named after calls of a runtime; beside
//! each stands the metric that is its counterpart below a runtime. The tests of Danilova and Sergeev (2024) have
//! parameters; beside each stand those that give theirs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use tare::workload;
use tare_model::{Params, Value};

/// A category, its rows, and of each the metric.
type Category = (&'static str, &'static [(&'static str, &'static str)]);

const CONTAINERS_OF_TWO_SYSTEMS: &[Category] = &[
    (
        "File System",
        &[
            ("Get Current Directory", "fs.getcwd.time"),
            ("Directory Exists", "fs.stat.time"),
            ("Get Logical Drives", "fs.mount-list.time"),
            ("Create Directory", "fs.mkdir.time"),
            ("File Exists", "fs.stat-path.time"),
            ("Delete File", "fs.unlink.time"),
        ],
    ),
    (
        "Networking",
        &[
            ("Send Async Then Receive", "net.tcp.send-receive.time"),
            ("Receive and Send Async", "net.tcp.receive-send.time"),
            (
                "Send Async Then Receive SocketAsyncEventArgs",
                "net.tcp.send-receive.time",
            ),
            (
                "Receive and Send Async SocketAsyncEventArgs",
                "net.tcp.receive-send.time",
            ),
        ],
    ),
    (
        "Memory Allocation",
        &[
            ("Memory Allocation - Medium load", "mem.allocate.time"),
            ("Memory Allocation - Heavy load", "mem.allocate-large.time"),
        ],
    ),
    (
        "OS",
        &[
            ("Lock with Mutex", "lock.contended.time"),
            ("Get current Cultureinfo", "environment.locale.time"),
            ("Get Current Date", "clock.local-date.time"),
            ("Get Current Date UTC", "clock.utc-date.time"),
            ("Get one Environment Variable", "environment.get.time"),
            ("Get all Environment Variable", "environment.all.time"),
            ("Random Int", "random.integer.time"),
            ("Random Bytes", "random.bytes.time"),
            ("Schedule Timer - Short", "timer.short.time"),
            ("Schedule Timer - Long", "timer.long.time"),
        ],
    ),
    (
        "Multitasking",
        &[
            ("Empty Async Method Invocation", "task.call.time"),
            ("Single Yield Method Invocation", "thread.yield.time"),
            ("MultiTasking with lock", "lock.read.time"),
            ("Concurrent Insertions To Dictionary", "task.insert.time"),
            ("Running Multiple Tasks Synchronously", "task.run.time"),
        ],
    ),
    (
        "CPU",
        &[
            ("Regex Match", "cpu.regex.time"),
            ("Regex Match - Heavy", "cpu.regex-heavy.time"),
            (
                "Regex Match - Heavy - Multithreaded",
                "cpu.regex-threads.time",
            ),
        ],
    ),
];

#[test]
fn every_row_of_the_six_tables_has_a_metric() {
    let known: BTreeSet<&str> = workload::WORKLOADS
        .iter()
        .flat_map(|workload| workload.metrics())
        .map(|metric| metric.id)
        .collect();
    let mut rows = BTreeSet::new();
    for (category, of_category) in CONTAINERS_OF_TWO_SYSTEMS {
        for (row, metric) in *of_category {
            assert!(known.contains(metric), "{category}: {row}: {metric}");
            rows.insert(*row);
        }
    }
    let categories = CONTAINERS_OF_TWO_SYSTEMS.iter().map(|it| it.0);
    assert_eq!(categories.collect::<BTreeSet<_>>().len(), 6);
    assert_eq!(rows.len(), 30);
}

#[test]
fn the_seven_tests_of_memory_and_disk_can_be_run_with_their_own_parameters() {
    let none: &[(&str, Value)] = &[];
    let matrices = |size: i64, pairs: i64| [("size", size.into()), ("pairs", pairs.into())];
    let write = |lines: i64, files: i64| {
        [
            ("what", "write".into()),
            ("lines", lines.into()),
            ("line_bytes", 31i64.into()),
            ("files", files.into()),
        ]
    };
    let read = |kib: i64, files: i64, how: &str| {
        [
            ("what", "read".into()),
            ("kib", kib.into()),
            ("files", files.into()),
            ("how", how.into()),
        ]
    };
    for (test, id, metric, params) in tare_model::rows! {
        ("large matrices", "blas-matrices", "blas.matrices.time", &matrices(8_000, 1)[..]),
        ("small matrices", "blas-matrices", "blas.matrices.time", &matrices(500, 8)),
        ("encryption of 80 000 characters", "des", "cpu.des.time", none),
        ("writing a large file", "python-files", "python.files-write.time", &write(8_000_000, 1)),
        ("writing small files", "python-files", "python.files-write.time", &write(800_000, 10)),
        ("reading a large file", "python-files", "python.files-read.time", &read(12_464, 1, "whole")),
        ("reading small files", "python-files", "python.files-read.time", &read(1_247, 10, "lines")),
    } {
        let workload = workload::find(id).unwrap();
        assert!(
            workload.metrics().iter().any(|it| it.id == metric),
            "{test}"
        );
        let params = params.iter().fold(Params::new(), |all, (name, value)| {
            all.with(name, value.clone())
        });
        workload
            .recipe(&params, None)
            .unwrap_or_else(|error| panic!("{test}: {error}"));
    }
}
