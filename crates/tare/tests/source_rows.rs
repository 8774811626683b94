//! Every row of the published tables that the built-in studies repeat has a workload here that can be run.
//!
//! The tables of the comparison of containers of two systems (2019) have rows named after calls of a runtime; beside
//! each stands the metric that is its counterpart below a runtime. The tests of Danilova and Sergeev (2024) have
//! parameters; beside each stand those that give theirs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use tare::workload;
use tare_model::{Params, Value};

/// Category, row, metric.
const CONTAINERS_OF_TWO_SYSTEMS: &[(&str, &str, &str)] = &[
    ("File System", "Get Current Directory", "fs.getcwd.time"),
    ("File System", "Directory Exists", "fs.stat.time"),
    ("File System", "Get Logical Drives", "fs.mount-list.time"),
    ("File System", "Create Directory", "fs.mkdir.time"),
    ("File System", "File Exists", "fs.stat-path.time"),
    ("File System", "Delete File", "fs.unlink.time"),
    (
        "Networking",
        "Send Async Then Receive",
        "net.tcp.send-receive.time",
    ),
    (
        "Networking",
        "Receive and Send Async",
        "net.tcp.receive-send.time",
    ),
    (
        "Networking",
        "Send Async Then Receive SocketAsyncEventArgs",
        "net.tcp.send-receive.time",
    ),
    (
        "Networking",
        "Receive and Send Async SocketAsyncEventArgs",
        "net.tcp.receive-send.time",
    ),
    (
        "Memory Allocation",
        "Memory Allocation - Medium load",
        "mem.allocate.time",
    ),
    (
        "Memory Allocation",
        "Memory Allocation - Heavy load",
        "mem.allocate-large.time",
    ),
    ("OS", "Lock with Mutex", "lock.contended.time"),
    ("OS", "Get current Cultureinfo", "environment.locale.time"),
    ("OS", "Get Current Date", "clock.local-date.time"),
    ("OS", "Get Current Date UTC", "clock.utc-date.time"),
    ("OS", "Get one Environment Variable", "environment.get.time"),
    ("OS", "Get all Environment Variable", "environment.all.time"),
    ("OS", "Random Int", "random.integer.time"),
    ("OS", "Random Bytes", "random.bytes.time"),
    ("OS", "Schedule Timer - Short", "timer.short.time"),
    ("OS", "Schedule Timer - Long", "timer.long.time"),
    (
        "Multitasking",
        "Empty Async Method Invocation",
        "task.call.time",
    ),
    (
        "Multitasking",
        "Single Yield Method Invocation",
        "thread.yield.time",
    ),
    ("Multitasking", "MultiTasking with lock", "lock.read.time"),
    (
        "Multitasking",
        "Concurrent Insertions To Dictionary",
        "task.insert.time",
    ),
    (
        "Multitasking",
        "Running Multiple Tasks Synchronously",
        "task.run.time",
    ),
    ("CPU", "Regex Match", "cpu.regex.time"),
    ("CPU", "Regex Match - Heavy", "cpu.regex-heavy.time"),
    (
        "CPU",
        "Regex Match - Heavy - Multithreaded",
        "cpu.regex-threads.time",
    ),
];

#[test]
fn every_row_of_the_six_tables_has_a_metric() {
    let known: BTreeSet<&str> = workload::WORKLOADS
        .iter()
        .flat_map(|workload| workload.metrics())
        .map(|metric| metric.id)
        .collect();
    for (category, row, metric) in CONTAINERS_OF_TWO_SYSTEMS {
        assert!(known.contains(metric), "{category}: {row}: {metric}");
    }
    let categories: BTreeSet<&str> = CONTAINERS_OF_TWO_SYSTEMS
        .iter()
        .map(|(category, _, _)| *category)
        .collect();
    assert_eq!(categories.len(), 6);
    let rows: BTreeSet<_> = CONTAINERS_OF_TWO_SYSTEMS
        .iter()
        .map(|(_, row, _)| *row)
        .collect();
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
    for (test, id, metric, params) in [
        (
            "large matrices",
            "blas-matrices",
            "blas.matrices.time",
            &matrices(8_000, 1)[..],
        ),
        (
            "small matrices",
            "blas-matrices",
            "blas.matrices.time",
            &matrices(500, 8),
        ),
        (
            "encryption of 80 000 characters",
            "des",
            "cpu.des.time",
            none,
        ),
        (
            "writing a large file",
            "python-files",
            "python.files-write.time",
            &write(8_000_000, 1),
        ),
        (
            "writing small files",
            "python-files",
            "python.files-write.time",
            &write(800_000, 10),
        ),
        (
            "reading a large file",
            "python-files",
            "python.files-read.time",
            &read(12_464, 1, "whole"),
        ),
        (
            "reading small files",
            "python-files",
            "python.files-read.time",
            &read(1_247, 10, "lines"),
        ),
    ] {
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
