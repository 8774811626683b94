//! Opening a store's file to read it, without a trace.
//!
//! SQLite shares a write-ahead log by an index beside it, which even a reader would make. Where there is no log,
//! nobody is writing and the file holds everything: then it is read as one that does not change. Where there is
//! one, a run is going on or was killed, and its index is there too.
//! What it cannot see: a run that begins while a long report is read and writes its log back into the file. The
//! report then fails or is that of the moment; nothing is harmed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::{PATIENCE, SetUp, StoreError};

/// Opens the file, which is there and not empty.
pub(super) fn open(path: &Path) -> Result<Connection, SetUp> {
    match std::fs::metadata(log_path(path)) {
        Err(_) => unchanging(path),
        Ok(log) => match shared(path) {
            // An empty log without its index, on a disk that cannot be written.
            Err(_) if log.len() == 0 => unchanging(path),
            other => other,
        },
    }
}

/// What opens a file: a few times, because one that another process is just making looks damaged, and a moment later it
/// does not.
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

/// Steps of SQLite between two looks at how many there were.
const STEPS_AT_ONCE: i32 = 1_000_000;
/// Steps that any store may take, and those for each of its bytes: a row has hundreds of bytes, takes some fifty steps,
/// and is read a few times.
const STEPS: u64 = 100_000_000;
const STEPS_A_BYTE: u64 = 500;

/// Ends questions whose answers would be longer than a file of this length can hold: pages may name each other in
/// circles, and a file may come from anywhere. Counts the log too, which may be longer than the file.
pub(super) fn bound(connection: &mut Connection, length: u64) -> rusqlite::Result<()> {
    let log = connection.path().map(|path| log_path(Path::new(path)));
    let log = log.and_then(|log| std::fs::metadata(log).ok());
    let length = length.saturating_add(log.map_or(0, |log| log.len()));
    end_after(
        connection,
        STEPS.saturating_add(length.saturating_mul(STEPS_A_BYTE)),
    )
}

/// Lets questions take what they take: a run asks as long as it lasts.
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
    // Nothing is opened before the first question.
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
