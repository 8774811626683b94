//! Tests of the store with real files: contents, refusals, locks, a full file.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tare_model::outcome::{Bytes, Exit};
use tare_model::{ArmId, Facts, Failure, Outcome, RawOutput, Reason, RunId, StoppedBy};

use super::*;
use crate::testing::study;

pub(super) struct TestStore {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
}

pub(super) fn place() -> TestStore {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("below").join("store.db");
    TestStore {
        _folder: folder,
        path,
    }
}

pub(super) fn start(id: &str) -> RunStart {
    RunStart {
        id: RunId::new(id).unwrap(),
        started_unix_ns: 1_000,
        agent_sha256: "a5".into(),
        agent_build: "b1".into(),
        host: Facts::from([("kernel.release".into(), "6.18".into())]),
    }
}

pub(super) fn plan() -> Plan {
    Plan::new(&study(3, 2, 1))
}

/// The name of the run that `begun` begins.
fn run_1() -> RunId {
    start("run-1").id
}

/// Opens a store and begins the run.
fn begun(path: &Path, plan: &Plan) -> Store {
    let mut store = Store::open(path).unwrap();
    store.begin(&start("run-1"), plan).unwrap();
    store
}

pub(super) fn printed(stdout: Vec<u8>) -> Outcome {
    Outcome::Completed(RawOutput {
        format: "probe/1".into(),
        stdout: Bytes(stdout),
        stderr: Bytes(b"a warning\n".to_vec()),
        exit: Exit::Code(0),
    })
}

fn outcome(index: usize) -> Outcome {
    match index % 3 {
        0 => printed(vec![0xff, 0, b'x', u8::try_from(index).unwrap()]),
        1 => Outcome::Unavailable(Reason::BlockedSyscall("io_uring_setup".into())),
        _ => Outcome::Failed(Failure::TimedOut { limit_ns: 7 }),
    }
}

pub(super) fn records(plan: &Plan) -> Vec<TrialRecord> {
    plan.block(0)
        .into_iter()
        .enumerate()
        .map(|(index, trial)| TrialRecord {
            trial,
            started_unix_ns: 2_000 + i64::try_from(index).unwrap(),
            host_elapsed_ns: 500,
            outcome: outcome(index),
            charged: (0..index % 2)
                .map(|_| ("charged_cpu_ns".to_owned(), 2.5e6))
                .collect(),
        })
        .collect()
}

pub(super) fn end(stopped_by: StoppedBy) -> SessionEnd {
    SessionEnd {
        ended_unix_ns: 9_000,
        wall_ns: 8_000,
        stopped_by,
        reason: None,
    }
}

#[test]
fn a_run_is_read_back_as_it_was_stored() {
    let place = place();
    let plan = plan();
    let run = run_1();
    let arm = |available, reason: Option<&str>| ArmRecord {
        arm: ArmId::new("arm-2").unwrap(),
        driver: "fake".into(),
        available,
        reason: reason.map(str::to_owned),
        fix: None,
        facts: Facts::from([("engine.version".into(), "20.10".into())]),
    };
    let launch = LaunchRecord {
        arm: PEER.into(),
        launch: 1,
        started_unix_ns: 3,
        facts: Facts::from([("os".into(), "linux".into())]),
    };
    let remark = Remark {
        unix_ns: 4,
        text: "arm-2 was started again".into(),
    };
    let workload_end = WorkloadEnd {
        workload_index: 1,
        after_blocks: 10,
    };
    {
        let mut store = begun(&place.path, &plan);
        store.arm(&arm(true, None)).unwrap();
        store.arm(&arm(false, Some("it died"))).unwrap();
        store.launch(&launch).unwrap();
        store.remark(&remark).unwrap();
        store.end_workload(workload_end).unwrap();
        // Out of order on purpose: reading follows the plan's order.
        for record in records(&plan).iter().rev() {
            store.append(record).unwrap();
        }
        store.finish(&end(StoppedBy::Precision)).unwrap();
    }
    let stored = Store::open(&place.path).unwrap().run(&run).unwrap();
    assert_eq!(
        stored,
        StoredRun {
            id: run,
            tare: env!("CARGO_PKG_VERSION").into(),
            started_unix_ns: 1_000,
            study: plan.study().clone(),
            plan_sha256: plan.sha256().into(),
            agent_sha256: "a5".into(),
            agent_build: "b1".into(),
            host: start("run-1").host,
            arms: vec![arm(false, Some("it died"))],
            launches: vec![launch],
            n_trials: tare_model::whole_count(records(&plan).len()),
            records: records(&plan),
            workload_ends: vec![workload_end],
            remarks: vec![remark],
            sessions: stored.sessions.clone(),
            stopped_by: Some(StoppedBy::Precision),
            failure: None,
            wall_ns: 8_000,
        }
    );
}

#[test]
fn newer_store_is_refused_naming_both_versions() {
    let place = place();
    drop(Store::open(&place.path).unwrap());
    let connection = Connection::open(&place.path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = std::fs::read(&place.path).unwrap();
    let refused = Store::open(&place.path).unwrap_err();
    assert!(matches!(
        refused,
        StoreError::Newer {
            found: 99,
            known: 2,
            ..
        }
    ));
    let text = refused.to_string();
    assert!(
        text.contains("format 99") && text.contains("up to 2"),
        "{text}"
    );
    assert!(refused.hint().unwrap().contains("--store"), "{text}");
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
}

#[test]
fn a_file_of_another_program_is_refused_untouched() {
    let place = place();
    std::fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    std::fs::write(&place.path, "a letter, and a rather long one\n".repeat(50)).unwrap();
    assert!(matches!(
        Store::open(&place.path),
        Err(StoreError::NotAStore(_))
    ));
    std::fs::remove_file(&place.path).unwrap();
    let connection = Connection::open(&place.path).unwrap();
    connection.execute_batch("CREATE TABLE theirs (a)").unwrap();
    drop(connection);
    let before = std::fs::read(&place.path).unwrap();
    assert!(matches!(
        Store::open(&place.path),
        Err(StoreError::NotAStore(_))
    ));
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
}

#[test]
fn store_with_overwritten_pages_is_damaged() {
    let place = place();
    let end = end(StoppedBy::Blocks);
    begun(&place.path, &plan()).finish(&end).unwrap();
    let mut bytes = std::fs::read(&place.path).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(&place.path, bytes).unwrap();
    let damaged = Store::open(&place.path).and_then(|store| store.runs());
    assert!(
        matches!(damaged, Err(StoreError::Corrupt { .. })),
        "{damaged:?}"
    );
}

#[test]
fn concurrent_run_is_refused_naming_first() {
    let place = place();
    let mut first = begun(&place.path, &plan());
    let mut second = Store::open(&place.path).unwrap();
    let refused = second.begin(&start("run-2"), &plan()).unwrap_err();
    if cfg!(unix) {
        assert!(
            matches!(refused, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()),
            "{refused:?}"
        );
    }
    assert!(matches!(
        second.resume(&run_1(), 5),
        Err(StoreError::InUse { .. })
    ));
    // Reading is always possible.
    assert_eq!(second.runs().unwrap().len(), 1);
    first.finish(&end(StoppedBy::Blocks)).unwrap();
    second.begin(&start("run-2"), &plan()).unwrap();
}

#[test]
fn store_locked_by_other_process_is_reported() {
    let place = place();
    let mut store = Store::open(&place.path).unwrap();
    store
        .connection
        .busy_timeout(Duration::from_millis(20))
        .unwrap();
    let other = Connection::open(&place.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.begin(&start("run-1"), &plan()).unwrap_err();
    assert!(matches!(refused, StoreError::Locked(_)), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    store.begin(&start("run-1"), &plan()).unwrap();
}

#[test]
fn full_disk_error_keeps_stored_records() {
    let place = place();
    let plan = plan();
    let mut store = begun(&place.path, &plan);
    let pages: i64 = store
        .connection
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    store
        .connection
        .pragma_update_and_check(None, "max_page_count", pages + 20, |row| {
            row.get::<_, i64>(0)
        })
        .unwrap();
    let mut kept = Vec::new();
    let refused = loop {
        let mut record = records(&plan)[0].clone();
        record.trial.sequence = tare_model::whole_count(kept.len());
        record.outcome = printed(vec![b'x'; 5_000]);
        match store.append(&record) {
            Ok(()) => kept.push(record),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused:?}");
    assert!(refused.hint().unwrap().contains("tare resume"), "{refused}");
    assert!(!kept.is_empty());
    drop(store);
    let store = Store::open(&place.path).unwrap();
    assert_eq!(store.run(&run_1()).unwrap().records, kept);
}

#[test]
fn a_trial_is_stored_once_only() {
    let place = place();
    let plan = plan();
    let mut store = begun(&place.path, &plan);
    let record = &records(&plan)[0];
    store.append(record).unwrap();
    assert!(matches!(
        store.append(record),
        Err(StoreError::TrialExists { sequence: 0, .. })
    ));
    store.finish(&end(StoppedBy::Blocks)).unwrap();
    assert!(matches!(
        store.begin(&start("run-1"), &plan),
        Err(StoreError::RunExists(id)) if id == "run-1"
    ));
}

#[test]
fn run_resolves_by_name_prefix_or_latest() {
    let place = place();
    let mut store = Store::open(&place.path).unwrap();
    assert!(matches!(store.resolve("latest"), Err(StoreError::Empty(_))));
    assert_eq!(store.latest_unfinished().unwrap(), None);
    for (id, stopped_by) in [
        ("quick-aa", StoppedBy::Interrupted),
        ("quick-ab", StoppedBy::Blocks),
        ("quick", StoppedBy::Budget),
    ] {
        store.begin(&start(id), &plan()).unwrap();
        store.finish(&end(stopped_by)).unwrap();
    }
    let found = |text| store.resolve(text).map(|run| run.to_string());
    assert_eq!(found("latest").unwrap(), "quick");
    assert_eq!(found("quick").unwrap(), "quick");
    assert_eq!(found("quick-ab").unwrap(), "quick-ab");
    assert!(matches!(found("quick-a"), Err(StoreError::Ambiguous { fits, .. }) if fits.len() == 2));
    assert!(matches!(
        found("quikc-aa"),
        Err(StoreError::NoSuchRun { near: Some(near), .. }) if near == "quick-aa"
    ));
    assert!(matches!(
        found("zebra"),
        Err(StoreError::NoSuchRun { near: None, .. })
    ));
    assert_eq!(
        store.latest_unfinished().unwrap().unwrap().as_str(),
        "quick-aa"
    );
    let names: Vec<String> = store
        .runs()
        .unwrap()
        .into_iter()
        .map(|run| run.id.to_string())
        .collect();
    assert_eq!(names, ["quick", "quick-ab", "quick-aa"]);
}

#[test]
fn resumed_run_sums_sessions_including_killed() {
    let place = place();
    let plan = plan();
    let run = run_1();
    let all = records(&plan);
    // Dropped without an end, as after `kill -9`.
    begun(&place.path, &plan).append(&all[0]).unwrap();
    let mut store = Store::open(&place.path).unwrap();
    let broken = store.run(&run).unwrap();
    // The run began at 1 000; its trial began at 2 000 and took 500.
    assert_eq!((broken.stopped_by, broken.wall_ns), (None, 1_500));
    assert_eq!(store.latest_unfinished().unwrap(), Some(run.clone()));
    store.resume(&run, 50_000).unwrap();
    store.append(&all[1]).unwrap();
    store.finish(&end(StoppedBy::Blocks)).unwrap();
    let resumed = store.run(&run).unwrap();
    let sessions = resumed.sessions.iter();
    let shown: Vec<_> = sessions.map(|it| (it.first_block, it.stopped_by)).collect();
    assert_eq!(shown, [(Some(0), None), (Some(0), Some(StoppedBy::Blocks))]);
    assert_eq!(resumed.wall_ns, 1_500 + 8_000);
    assert_eq!(resumed.records, all[..2]);
}

/// Reads all files of a folder.
fn contents(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

/// A store with all trials of a run that has not ended.
fn unfinished(path: &Path) -> Store {
    let plan = plan();
    let mut store = begun(path, &plan);
    for record in records(&plan) {
        store.append(&record).unwrap();
    }
    store
}

fn fill(path: &Path) {
    let end = end(StoppedBy::Blocks);
    unfinished(path).finish(&end).unwrap();
}

#[test]
fn reading_store_leaves_no_trace() {
    let place = place();
    let folder = place.path.parent().unwrap();
    // A missing store is not created.
    let none = Store::open_to_read(&place.path).unwrap();
    assert!(none.runs().unwrap().is_empty());
    assert!(!folder.exists());
    fill(&place.path);
    let before = contents(folder);
    let store = Store::open_to_read(&place.path).unwrap();
    assert_eq!(store.run(&run_1()).unwrap().records, records(&plan()));
    drop(store);
    assert_eq!(contents(folder), before);
}

#[test]
fn reading_store_after_kill_leaves_no_trace() {
    let place = place();
    let _store = unfinished(&place.path);
    // As left by `kill -9`: with its log, and no process using it.
    let folder = place.path.parent().unwrap();
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in contents(folder) {
        std::fs::write(copy.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    let before = contents(copy.path());
    assert!(
        before
            .keys()
            .any(|path| path.to_string_lossy().ends_with("-wal"))
    );
    let reader = Store::open_to_read(&copy.path().join("store.db")).unwrap();
    assert_eq!(
        reader.runs().unwrap()[0].n_trials as usize,
        records(&plan()).len()
    );
    drop(reader);
    let names = |contents: &std::collections::BTreeMap<PathBuf, Vec<u8>>| {
        contents.keys().cloned().collect::<Vec<_>>()
    };
    let after = contents(copy.path());
    assert_eq!(names(&after), names(&before));
    let file = copy.path().join("store.db");
    assert_eq!(after[&file], before[&file]);
}

#[test]
fn read_only_store_refuses_writes() {
    let place = place();
    fill(&place.path);
    let mut store = Store::open_to_read(&place.path).unwrap();
    assert!(store.begin(&start("run-2"), &plan()).is_err());
}

#[test]
fn an_older_store_is_read_as_it_is() {
    let place = place();
    fill(&place.path);
    let connection = Connection::open(&place.path).unwrap();
    connection
        .execute_batch("ALTER TABLE trial DROP COLUMN charged; PRAGMA user_version = 1;")
        .unwrap();
    drop(connection);
    let before = std::fs::read(&place.path).unwrap();
    let store = Store::open_to_read(&place.path).unwrap();
    let run = store.run(&run_1()).unwrap();
    assert_eq!(run.records.len(), records(&plan()).len());
    assert!(run.records.iter().all(|record| record.charged.is_empty()));
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
}

#[test]
fn every_older_version_can_be_read() {
    assert_eq!(schema::AS_NEWEST.len() + 1, schema::STEPS.len());
}

#[test]
#[cfg(unix)]
fn store_and_lock_are_private_and_follow_no_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = place();
    fill(&place.path);
    for path in contents(place.path.parent().unwrap()).into_keys() {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", path.display());
    }
    // In a folder where another user may create files, there may be a symbolic link.
    let victim = place.path.with_file_name("victim");
    std::fs::write(&victim, "precious").unwrap();
    let mut store = Store::open(&place.path).unwrap();
    std::fs::remove_file(lock::lock_path(&place.path)).unwrap();
    symlink(&victim, lock::lock_path(&place.path)).unwrap();
    assert!(store.begin(&start("run-2"), &plan()).is_err());
    let linked = place.path.with_file_name("linked.db");
    symlink(&victim, &linked).unwrap();
    assert!(Store::open(&linked).is_err());
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
}
