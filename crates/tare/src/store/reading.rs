//! Opens a store's file for reading without leaving a trace.
//!
//! SQLite shares a write-ahead log by an index file next to it, which even a reader would create. If there is no log,
//! nothing is being written and the file is complete; then it is opened as immutable. If there is one, a run is
//! active or was killed, and the index exists too.
//! Limits: a run that starts while a long report is read may write its log back into the file. The report then fails
//! or shows that moment; no data is harmed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{PATIENCE, SetUp, StoreError};

/// Opens an existing, non-empty file.
pub(super) fn open(path: &Path) -> Result<Connection, SetUp> {
    match std::fs::metadata(log_path(path)) {
        Err(_) => unchanging(path),
        Ok(log) => match shared(path) {
            // An empty log without an index, on a read-only disk.
            Err(_) if log.len() == 0 => unchanging(path),
            other => other,
        },
    }
}

/// Retries opening a few times: a file that another process is creating looks damaged for a moment.
pub(super) fn steadily<T>(open: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    const LOOKS: u32 = 5;
    let mut opened = open();
    for _ in 1..LOOKS {
        if !opened.as_ref().is_err_and(StoreError::may_be_torn) {
            break;
        }
        opened = open();
    }
    opened
}

/// SQLite steps between two checks of their number.
const STEPS_AT_ONCE: i32 = 1_000_000;
/// Allowed steps of any store, and additional ones per byte: a row has hundreds of bytes, takes about fifty steps,
/// and is read a few times.
const STEPS: u64 = 100_000_000;
const STEPS_A_BYTE: u64 = 500;

/// Aborts queries that take more steps than a file of this length can need: in a file from anywhere, pages may refer
/// to each other in circles. Includes the log, which may be longer than the file.
pub(super) fn bound(connection: &mut Connection, length: u64) -> rusqlite::Result<()> {
    let log = connection.path().map(|path| log_path(Path::new(path)));
    let log = log.and_then(|log| std::fs::metadata(log).ok());
    let length = length.saturating_add(log.map_or(0, |log| log.len()));
    end_after(
        connection,
        STEPS.saturating_add(length.saturating_mul(STEPS_A_BYTE)),
    )
}

/// Removes the limit on queries, because a run makes them for as long as it lasts.
pub(super) fn unbound(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.progress_handler(0, None::<fn() -> bool>)
}

fn end_after(connection: &mut Connection, steps: u64) -> rusqlite::Result<()> {
    let mut left = steps / u64::from(STEPS_AT_ONCE.unsigned_abs());
    connection.progress_handler(
        STEPS_AT_ONCE,
        Some(move || {
            left = left.saturating_sub(1);
            left == 0
        }),
    )
}

fn log_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

fn shared(path: &Path) -> Result<Connection, SetUp> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // SQLite opens nothing before the first query.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

fn unchanging(path: &Path) -> Result<Connection, SetUp> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            write!(uri, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    Ok(Connection::open_with_flags(uri + "?immutable=1", flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn an_answer_that_is_longer_than_its_file_is_ended() {
        let mut connection = Connection::open_in_memory().unwrap();
        end_after(&mut connection, 3_000_000).unwrap();
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let ended = connection.query_row(endless, [], |_| Ok(())).unwrap_err();
        assert_eq!(
            ended.sqlite_error_code(),
            Some(rusqlite::ErrorCode::OperationInterrupted)
        );
    }

    #[test]
    fn store_is_readable_while_another_process_makes_it() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            std::thread::scope(|scope| {
                let made = scope.spawn(|| Store::open(&path).map(drop));
                while !made.is_finished() {
                    match Store::open_to_read(&path) {
                        Ok(_) | Err(StoreError::Locked(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                made.join().unwrap().unwrap();
            });
        }
    }
}
