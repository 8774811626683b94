//! What tells the trials of a run from any others, so that what was read from them once can be taken up again.
//!
//! The file itself, by number, size and times of the file system, of which the time of the last change cannot be set
//! by anybody; the run's study; how many trials there are; and some of them whole, because a file system's times have
//! steps. What it cannot see: a file system that keeps no such times, and a store in memory: they have no identity.

use std::path::Path;

use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};
use tare_model::RunId;

use super::{Store, StoreError, reading};

/// Trials that are looked at whole.
const LOOKED_AT: i64 = 32;

impl Store {
    /// A hash of what a run's trials are; `None` where that cannot be told for sure: while the file is written to, and
    /// where it is none.
    pub fn identity(&self, run: &RunId) -> Result<Option<[u8; 32]>, StoreError> {
        let Some(file) = file_as_it_is(self.path()).filter(|_| self.is_file) else {
            return Ok(None);
        };
        let number = self.number(run)?;
        let mut hash = Sha256::new();
        hash.update(file);
        self.read(|connection| {
            let mut add = |query: &str, values: &[i64]| -> rusqlite::Result<()> {
                let mut query = connection.prepare(query)?;
                let n_columns = query.column_count();
                let mut rows = query.query(rusqlite::params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    for column in 0..n_columns {
                        add_value(&mut hash, row.get_ref(column)?);
                    }
                }
                Ok(())
            };
            add("SELECT * FROM run WHERE number = ?1", &[number])?;
            // Apart from each other, because then the index gives its ends without being gone through.
            let of_trials = |what: &str| format!("SELECT {what}(sequence) FROM trial WHERE run = ?1");
            add(&of_trials("count"), &[number])?;
            let end = |what: &str| {
                let found = connection.query_row(&of_trials(what), [number], |row| row.get(0));
                found.map(|found: Option<i64>| found.unwrap_or(0))
            };
            let (least, most) = (end("min")?, end("max")?);
            add("SELECT ?1, ?2", &[least, most])?;
            for step in 0..LOOKED_AT {
                let at = least + (most - least) * step / (LOOKED_AT - 1);
                add(
                    "SELECT * FROM trial WHERE run = ?1 AND sequence >= ?2 ORDER BY sequence LIMIT 1",
                    &[number, at],
                )?;
            }
            Ok(())
        })?;
        Ok(Some(hash.finalize().into()))
    }
}

/// With kind and length, so that no two rows give the same bytes.
fn add_value(hash: &mut Sha256, value: ValueRef<'_>) {
    let number;
    let (kind, bytes): (u8, &[u8]) = match value {
        ValueRef::Null => (0, &[]),
        ValueRef::Integer(value) => {
            number = value.to_le_bytes();
            (1, &number)
        }
        ValueRef::Real(value) => {
            number = value.to_le_bytes();
            (2, &number)
        }
        ValueRef::Text(text) => (3, text),
        ValueRef::Blob(blob) => (4, blob),
    };
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// The file's number, size and times; `None` while there is a log beside it.
#[cfg(unix)]
fn file_as_it_is(path: &Path) -> Option<Vec<u8>> {
    use std::os::unix::fs::MetadataExt;
    if reading::has_log(path) {
        return None;
    }
    let found = std::fs::metadata(path).ok()?;
    let numbers = [
        found.dev().cast_signed(),
        found.ino().cast_signed(),
        found.size().cast_signed(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ];
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
    Some(bytes.collect())
}

#[cfg(not(unix))]
fn file_as_it_is(path: &Path) -> Option<Vec<u8>> {
    let _ = reading::has_log(path);
    None
}
