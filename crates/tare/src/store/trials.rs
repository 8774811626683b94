//! Reads a run's trials one by one, with one reader or several in parallel.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use tare_model::outcome::{Bytes, Exit};
use tare_model::trial::CellKey;
use tare_model::{Failure, Outcome, RawOutput, RunId, Trial};

use super::read::{parsed, unreadable};
use super::{Store, StoreError, TrialRecord};

/// Trials per part, which take a few milliseconds to read.
const PART: u32 = 1_024;

/// Sequence numbers of trials that are read together.
pub type Part = RangeInclusive<u32>;

/// A run's trials in parts, which readers on several threads can read in parallel. Rows are only added, so each
/// reader finds all of them.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    run: RunId,
    /// The parts, in the plan's order.
    pub all: Vec<Part>,
}

impl Parts {
    /// Opens a reader with a separate connection.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        let store = Store::open_to_read(&self.path)?;
        Ok(Reader {
            run: store.number(&self.run)?,
            store,
            records: Records::default(),
        })
    }
}

/// A reader of the trials of one run.
#[derive(Debug)]
pub struct Reader {
    store: Store,
    run: i64,
    records: Records,
}

impl Reader {
    /// Calls `visit` with every trial of a part in the plan's order, one in memory at a time.
    pub fn each(&mut self, part: &Part, visit: impl FnMut(&TrialRecord)) -> Result<(), StoreError> {
        let (run, records) = (self.run, &mut self.records);
        self.store
            .read(|connection| records.each(connection, run, part, visit))
    }
}

impl Store {
    /// Calls `visit` with every trial of a run in the plan's order, one in memory at a time.
    pub fn each_record(
        &self,
        run: &RunId,
        visit: impl FnMut(&TrialRecord),
    ) -> Result<(), StoreError> {
        let run = self.number(run)?;
        self.read(|connection| {
            let mut records = Records::default();
            records.each(connection, run, &(0..=u32::MAX), visit)
        })
    }

    /// Returns the trials of a run in parts; `None` if it is short, or only this connection can read it.
    pub fn parts(&self, run: &RunId) -> Result<Option<Parts>, StoreError> {
        let number = self.number(run)?;
        let most = "SELECT max(sequence) FROM trial WHERE run = ?1";
        let most: Option<u32> = self.read(|it| it.query_row(most, [number], |row| row.get(0)))?;
        let Some(most) = most.filter(|most| self.has_readers && *most >= PART) else {
            return Ok(None);
        };
        let starts = (0..=most).step_by(PART as usize);
        let parts = starts.map(|start| start..=most.min(start.saturating_add(PART - 1)));
        Ok(Some(Parts {
            path: self.path.clone(),
            run: run.clone(),
            all: parts.collect(),
        }))
    }
}

const TRIALS: &str = "
SELECT sequence, block, position, launch, workload_index, cell, started_unix_ns, host_elapsed_ns,
       kind, detail, format, stdout, stderr, exit, charged
  FROM trial WHERE run = ?1 AND sequence BETWEEN ?2 AND ?3 ORDER BY sequence";

/// The records that rows are read into, one per cell: data shared by a cell's trials is parsed once, and their bytes
/// reuse the same memory.
#[derive(Debug, Default)]
struct Records {
    /// Records with the stored text of their cell.
    by_cell: Vec<(Vec<u8>, TrialRecord)>,
    /// Index tried first for the next row: blocks have their cells in nearly the same order.
    next: usize,
    /// The last exit with its JSON; most trials end like the one before.
    exit: Option<(Vec<u8>, Exit)>,
}

impl Records {
    /// Most records kept; a store with more different cells than that hardly repeats them.
    const MOST: usize = 512;

    /// Returns the index of the record for a row's cell.
    fn place(&mut self, row: &Row<'_>) -> rusqlite::Result<usize> {
        let cell = row.get_ref(5)?.as_bytes()?;
        let is_its = |(own, _): &(Vec<u8>, TrialRecord)| own == cell;
        if self.by_cell.get(self.next).is_some_and(is_its) {
            return Ok(self.next);
        }
        if let Some(place) = self.by_cell.iter().position(is_its) {
            return Ok(place);
        }
        if self.by_cell.len() >= Self::MOST {
            self.by_cell.clear();
        }
        self.by_cell.push((cell.to_owned(), blank(parsed(row, 5)?)));
        Ok(self.by_cell.len() - 1)
    }

    fn each(
        &mut self,
        connection: &Connection,
        run: i64,
        part: &Part,
        mut visit: impl FnMut(&TrialRecord),
    ) -> rusqlite::Result<()> {
        let mut query = connection.prepare_cached(TRIALS)?;
        let mut rows = query.query((run, *part.start(), *part.end()))?;
        while let Some(row) = rows.next()? {
            visit(self.read(row)?);
        }
        Ok(())
    }

    /// The record of a row, valid until the next one.
    fn read(&mut self, row: &Row<'_>) -> rusqlite::Result<&TrialRecord> {
        let place = self.place(row)?;
        self.next = (place + 1) % self.by_cell.len();
        let record = &mut self.by_cell[place].1;
        let trial = &mut record.trial;
        trial.sequence = row.get(0)?;
        trial.block = row.get(1)?;
        trial.position = row.get(2)?;
        trial.launch = row.get(3)?;
        trial.workload_index = row.get(4)?;
        record.started_unix_ns = row.get(6)?;
        let host_elapsed_ns: i64 = row.get(7)?;
        record.host_elapsed_ns = u64::try_from(host_elapsed_ns).unwrap_or(0);
        match row.get_ref(8)?.as_bytes()? {
            b"completed" => {
                let exit = match (row.get_ref(13)?.as_bytes()?, &self.exit) {
                    (text, Some((known, exit))) if text == known => *exit,
                    (text, _) => self.exit.insert((text.to_owned(), parsed(row, 13)?)).1,
                };
                completed(&mut record.outcome, row, exit)?;
            }
            b"unavailable" => record.outcome = Outcome::Unavailable(parsed(row, 9)?),
            b"failed" => record.outcome = Outcome::Failed(parsed(row, 9)?),
            kind => return Err(unreadable(8, format!("`{}`", kind.escape_ascii()))),
        }
        match row.get_ref(14)? {
            ValueRef::Null => record.charged.clear(),
            text => read_numbers(&mut record.charged, text.as_str()?)
                .map_err(|error| unreadable(14, error.to_string()))?,
        }
        Ok(record)
    }
}

/// Numbers by name, read into those of the previous trial, which usually has the same names.
struct Numbers<'m>(&'m mut BTreeMap<String, f64>);

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("numbers by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        #[derive(serde::Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        // JSON has no NaN, so a value that is still NaN afterwards was not named again.
        self.0.values_mut().for_each(|value| *value = f64::NAN);
        while let Some((Name(name), value)) = map.next_entry()? {
            match self.0.get_mut(&*name) {
                Some(known) => *known = value,
                None => drop(self.0.insert(name.into_owned(), value)),
            }
        }
        self.0.retain(|_, value| !value.is_nan());
        Ok(())
    }
}

fn read_numbers(into: &mut BTreeMap<String, f64>, text: &str) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Numbers(into))?;
    json.end()
}

/// An empty record of this cell.
fn blank(cell: CellKey) -> TrialRecord {
    TrialRecord {
        trial: Trial {
            sequence: 0,
            block: 0,
            position: 0,
            launch: 0,
            workload_index: 0,
            cell,
        },
        started_unix_ns: 0,
        host_elapsed_ns: 0,
        outcome: Outcome::Failed(Failure::Lost(String::new())),
        charged: BTreeMap::new(),
    }
}

/// Stores a row's output, reusing the memory of the previous one if possible.
fn completed(outcome: &mut Outcome, row: &Row<'_>, exit: Exit) -> rusqlite::Result<()> {
    let mut raw = match std::mem::replace(outcome, Outcome::Failed(Failure::Lost(String::new()))) {
        Outcome::Completed(raw) => raw,
        _ => RawOutput {
            format: String::new(),
            stdout: Bytes::default(),
            stderr: Bytes::default(),
            exit,
        },
    };
    let format = row.get_ref(10)?;
    if format.as_bytes()? != raw.format.as_bytes() {
        format.as_str()?.clone_into(&mut raw.format);
    }
    for (bytes, column) in [(&mut raw.stdout.0, 11), (&mut raw.stderr.0, 12)] {
        bytes.clear();
        bytes.extend_from_slice(row.get_ref(column)?.as_blob()?);
    }
    raw.exit = exit;
    *outcome = Outcome::Completed(raw);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_numbers_drops_values_of_previous_row() {
        let mut numbers = BTreeMap::new();
        for text in [
            r#"{"a":1,"b":2.5}"#,
            r#"{"b":3,"c":0}"#,
            "{}",
            r#"{"a":-1}"#,
        ] {
            read_numbers(&mut numbers, text).unwrap();
            let alone: BTreeMap<String, f64> = serde_json::from_str(text).unwrap();
            assert_eq!(numbers, alone);
        }
        for text in ["", "[]", r#"{"a":null}"#, r#"{"a":1}x"#, r#"{"a":"1"}"#] {
            assert!(read_numbers(&mut numbers, text).is_err(), "{text}");
        }
    }
}
