//! The schema of a store, and migration from older formats.
//!
//! Each step of [`STEPS`] raises `PRAGMA user_version` by one and is never edited once released; the version of a
//! store says which steps it still needs. Tables are STRICT, so that text cannot get into a column of numbers.
//! Triggers refuse every change of a row: results are only added. Limits: the contents of JSON columns are checked
//! when they are read.

use std::collections::BTreeMap;

use rusqlite::{Connection, TransactionBehavior};
use tare_model::whole_count;

/// Marks the file as Tare's in SQLite's header field: `Tare` as bytes.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"Tare");

/// One step per version; step `i` migrates from version `i` to version `i + 1`.
pub(super) const STEPS: &[&str] = &[VERSION_1, VERSION_2];

const VERSION_1: &str = "
CREATE TABLE run (
    number          INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE,
    tare            TEXT    NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    study           TEXT    NOT NULL,
    plan_sha256     TEXT    NOT NULL,
    agent_sha256    TEXT    NOT NULL,
    agent_build     TEXT    NOT NULL,
    host            TEXT    NOT NULL
) STRICT;
CREATE TABLE session (
    run             INTEGER NOT NULL REFERENCES run (number),
    session         INTEGER NOT NULL,
    tare            TEXT    NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    PRIMARY KEY (run, session)
) STRICT;
CREATE TABLE session_end (
    run           INTEGER NOT NULL,
    session       INTEGER NOT NULL,
    ended_unix_ns INTEGER NOT NULL,
    wall_ns       INTEGER NOT NULL,
    stopped_by    TEXT    NOT NULL,
    reason        TEXT,
    PRIMARY KEY (run, session),
    FOREIGN KEY (run, session) REFERENCES session (run, session)
) STRICT;
CREATE TABLE arm (
    number    INTEGER PRIMARY KEY,
    run       INTEGER NOT NULL REFERENCES run (number),
    arm       TEXT    NOT NULL,
    driver    TEXT    NOT NULL,
    available INTEGER NOT NULL CHECK (available IN (0, 1)),
    reason    TEXT,
    fix       TEXT,
    facts     TEXT    NOT NULL
) STRICT;
CREATE INDEX arm_by_run ON arm (run);
CREATE TABLE launch (
    number          INTEGER PRIMARY KEY,
    run             INTEGER NOT NULL REFERENCES run (number),
    arm             TEXT    NOT NULL,
    launch          INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    facts           TEXT    NOT NULL
) STRICT;
CREATE INDEX launch_by_run ON launch (run);
CREATE TABLE trial (
    run             INTEGER NOT NULL REFERENCES run (number),
    sequence        INTEGER NOT NULL,
    session         INTEGER NOT NULL,
    block           INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    launch          INTEGER NOT NULL,
    workload_index  INTEGER NOT NULL,
    cell            TEXT    NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    host_elapsed_ns INTEGER NOT NULL,
    kind            TEXT    NOT NULL CHECK (kind IN ('completed', 'unavailable', 'failed')),
    detail          TEXT,
    format          TEXT,
    stdout          BLOB,
    stderr          BLOB,
    exit            TEXT,
    PRIMARY KEY (run, sequence)
) STRICT;
CREATE TABLE workload_end (
    run            INTEGER NOT NULL REFERENCES run (number),
    workload_index INTEGER NOT NULL,
    after_blocks   INTEGER NOT NULL,
    PRIMARY KEY (run, workload_index)
) STRICT;
CREATE TABLE remark (
    number  INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL REFERENCES run (number),
    unix_ns INTEGER NOT NULL,
    text    TEXT    NOT NULL
) STRICT;
CREATE INDEX remark_by_run ON remark (run);
";

/// The arm's resource use during the trial, as counted by the host's kernel: a JSON object of numbers.
const VERSION_2: &str = "ALTER TABLE trial ADD COLUMN charged TEXT;";

/// Columns missing in older versions, as views that shadow their tables: index `i` for version `i + 1`.
pub(super) const AS_NEWEST: &[&str] =
    &["CREATE TEMP VIEW trial AS SELECT *, NULL AS charged FROM main.trial;"];

/// Makes an older store readable like one of the newest version, without changing it.
pub(super) fn read_as_newest(connection: &Connection, version: u32) -> rusqlite::Result<()> {
    match AS_NEWEST.get(version as usize - 1) {
        Some(views) => connection.execute_batch(views),
        None => Ok(()),
    }
}

/// The format version that this build reads and writes.
pub(super) fn known_version() -> u32 {
    whole_count(STEPS.len())
}

/// The format version of an open store; 0 for an empty file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Returns the first schema entry that a store of this version does not have and that SQLite would execute on reading
/// or writing, or that replaces one of its tables: views, triggers, and tables with another definition. Other entries
/// are harmless, because they are never read.
pub(super) fn foreign(connection: &Connection, version: u32) -> rusqlite::Result<Option<String>> {
    let mut fresh = Connection::open_in_memory()?;
    migrate(&mut fresh, STEPS.get(..version as usize).unwrap_or(STEPS))?;
    let own: BTreeMap<String, Entry> = entries(&fresh)?.into_iter().collect();
    let is_harmless = |(name, entry): &(String, Entry)| match own.get(name) {
        Some(known) => known == entry,
        None => matches!(entry.kind.as_str(), "table" | "index"),
    };
    let mut entries = entries(connection)?.into_iter();
    let found = entries.find(|entry| !is_harmless(entry));
    Ok(found.map(|(name, entry)| format!("{} `{}`", entry.kind, name.escape_debug())))
}

/// An entry of a file's schema.
#[derive(PartialEq, Eq)]
struct Entry {
    kind: String,
    text: String,
}

/// Entries by lower-case name, because SQLite ignores case. White space is normalized, because versions of SQLite may
/// format the same text differently.
fn entries(connection: &Connection) -> rusqlite::Result<Vec<(String, Entry)>> {
    let query = "SELECT name, type, coalesce(sql, '') FROM main.sqlite_schema";
    let mut query = connection.prepare(query)?;
    let rows = query.query_map([], |row| {
        let (name, kind, text): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok((name.to_lowercase(), Entry { kind, text }))
    })?;
    rows.collect()
}

/// Runs the steps that the store still needs, all or none.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    if version(connection)? as usize >= steps.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again: another process may have been faster.
    let present = version(&transaction)? as usize;
    for (index, step) in steps.iter().enumerate().skip(present) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", whole_count(index + 1))?;
    }
    refuse_changes(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()
}

/// Allows `work` to remove rows of these tables, in a transaction that keeps all of it or nothing.
pub(super) fn while_removable(
    connection: &mut Connection,
    tables: &[&str],
    work: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for table in tables {
        transaction.execute_batch(&format!("DROP TRIGGER IF EXISTS no_DELETE_of_{table}"))?;
    }
    work(&transaction)?;
    refuse_changes(&transaction)?;
    transaction.commit()
}

/// Adds triggers to every table, so that rows can be added and read, but never changed or removed.
fn refuse_changes(connection: &Connection) -> rusqlite::Result<()> {
    let tables: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for table in tables {
        for action in ["UPDATE", "DELETE"] {
            connection.execute_batch(&format!(
                "CREATE TRIGGER IF NOT EXISTS no_{action}_of_{table} BEFORE {action} ON {table}
                 BEGIN SELECT RAISE(ABORT, 'a store is only added to'); END;"
            ))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_a_run() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        connection
            .execute(
                "INSERT INTO run VALUES (1, 'r', '0.1.0', 5, '{}', 'p', 'a', 'b', '{}')",
                [],
            )
            .unwrap();
        connection
    }

    #[test]
    fn an_older_store_is_migrated_and_keeps_its_rows() {
        let mut connection = with_a_run();
        let later: Vec<&str> = STEPS
            .iter()
            .copied()
            .chain(["ALTER TABLE run ADD COLUMN later TEXT; CREATE TABLE new (a INTEGER) STRICT;"])
            .collect();
        migrate(&mut connection, &later).unwrap();
        assert_eq!(version(&connection).unwrap() as usize, later.len());
        let row: (String, Option<String>) = connection
            .query_row("SELECT id, later FROM run", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(row, ("r".to_owned(), None));
        connection
            .execute("INSERT INTO new VALUES (1)", [])
            .unwrap();
        assert!(connection.execute("DELETE FROM new", []).is_err());
    }

    #[test]
    fn a_step_that_fails_leaves_the_store_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = [
            VERSION_1,
            "CREATE TABLE fine (a INTEGER); CREATE TABL broken",
        ];
        assert!(migrate(&mut connection, &steps).is_err());
        assert_eq!(version(&connection).unwrap(), 0);
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 0);
    }

    #[test]
    fn a_stored_row_can_be_neither_changed_nor_removed() {
        let connection = with_a_run();
        for statement in ["UPDATE run SET id = 'x'", "DELETE FROM run"] {
            let refused = connection.execute(statement, []).unwrap_err();
            assert!(refused.to_string().contains("only added to"), "{refused}");
        }
    }

    #[test]
    fn store_with_active_or_shadow_schema_is_refused() {
        use crate::store::{Store, StoreError};
        let folder = tempfile::tempdir().unwrap();
        let refused = |statements: &str| {
            let path = folder.path().join("store.db");
            let _ = std::fs::remove_file(&path);
            drop(Store::open(&path).unwrap());
            let connection = Connection::open(&path).unwrap();
            connection.execute_batch(statements).unwrap();
            connection
                .pragma_update(None, "journal_mode", "DELETE")
                .unwrap();
            drop(connection);
            let bytes = std::fs::read(&path).unwrap();
            let shown = [
                Store::open_to_read(&path).map(drop),
                Store::from_bytes(&bytes, &path).map(drop),
                Store::open(&path).map(drop),
            ];
            let is_foreign =
                |told: &Result<(), StoreError>| matches!(told, Err(StoreError::Foreign { .. }));
            assert!(
                shown.iter().all(is_foreign) || shown.iter().all(Result::is_ok),
                "{statements}: {shown:?}"
            );
            shown.iter().all(is_foreign)
        };
        for statements in [
            "CREATE VIEW mine AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT * FROM n",
            "CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END",
            "DROP TRIGGER no_DELETE_of_run; CREATE TRIGGER no_DELETE_of_run AFTER INSERT ON run BEGIN SELECT 1; END",
            "DROP TABLE remark; CREATE VIEW Remark AS SELECT 1 AS run, 2 AS unix_ns, 'x' AS text",
            "DROP TABLE remark; CREATE TABLE Remark (number INTEGER PRIMARY KEY, run INTEGER, unix_ns INTEGER, \
             text TEXT AS (zeroblob(1000000000)))",
        ] {
            assert!(refused(statements), "{statements}");
        }
        assert!(!refused(
            "CREATE TABLE mine (a INTEGER); CREATE INDEX mine_a ON mine (a)"
        ));
    }
}
