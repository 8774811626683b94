//! Extracts runs of a store into a new store, which is published with a result.
//!
//! The new store is built in memory and returned as the bytes of an SQLite file, so no temporary files are left;
//! reading works likewise. Rows are copied unchanged; columns missing in an older store are filled in as for reading.
//! Limits: whether the runs belong together is not checked.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, MAIN_DB, params_from_iter};
use tare_model::outcome::Bytes;
use tare_model::{CellKey, RawOutput, RunId};

use super::{SetUp, Store, StoreError, classify, empty};

/// Tables whose rows belong to a run; referenced tables first.
pub(super) const OF_A_RUN: &[&str] = &tare_model::rows! {
    "session", "session_end", "arm", "launch", "trial", "workload_end", "remark",
};

/// Returns the replacement of a trial's output, if any, given its workload.
type Changed<'a> = dyn FnMut(&str, &RawOutput) -> Option<RawOutput> + 'a;

impl Store {
    /// Returns a store with only these runs, as the bytes of its file. `changed` gets each trial's workload and
    /// output, and may return a replacement.
    pub fn extract(
        &self,
        runs: &[RunId],
        mut changed: impl FnMut(&str, &RawOutput) -> Option<RawOutput>,
    ) -> Result<Vec<u8>, StoreError> {
        let mut target = empty().map_err(|error| error.with_path(&self.path))?;
        for run in runs {
            let number = self.number(run)?;
            copied(&self.connection, &target, number, &mut changed)
                .map_err(|error| classify(&self.path, "copy", &error))?;
        }
        let bytes = target
            .serialize(MAIN_DB)
            .map_err(|error| classify(&self.path, "copy", &error))?;
        Ok(bytes.to_vec())
    }

    /// Opens a store from the bytes of its file, to be read. Errors name it `from`.
    pub fn from_bytes(bytes: &[u8], from: &Path) -> Result<Self, StoreError> {
        let opened = || -> Result<Connection, SetUp> {
            let mut connection = Connection::open_in_memory()?;
            connection.deserialize_read_exact(MAIN_DB, bytes, bytes.len(), true)?;
            Self::set_up_to_read(connection, from, bytes.len() as u64)
        };
        let connection = opened().map_err(|error| error.with_path(from))?;
        Ok(Self::over(connection, from))
    }
}

/// Replaces the output in a row of a trial. This happens before writing, because a file keeps overwritten data.
fn change(names: &[String], values: &mut [Value], changed: &mut Changed<'_>) {
    let at = |name: &str| names.iter().position(|known| known == name);
    let text = |name: &str| match &values[at(name)?] {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    let blob = |name: &str| match &values[at(name)?] {
        Value::Blob(bytes) => Some(Bytes(bytes.clone())),
        _ => None,
    };
    let mut less = || {
        let cell: CellKey = serde_json::from_str(&text("cell")?).ok()?;
        let raw = RawOutput {
            format: text("format")?,
            stdout: blob("stdout")?,
            stderr: blob("stderr")?,
            exit: serde_json::from_str(&text("exit")?).ok()?,
        };
        changed(cell.workload.as_str(), &raw)
    };
    let Some(less) = less() else { return };
    for (name, Bytes(bytes)) in [("stdout", less.stdout), ("stderr", less.stderr)] {
        if let Some(at) = at(name) {
            values[at] = Value::Blob(bytes);
        }
    }
}

fn copied(
    source: &Connection,
    target: &Connection,
    number: i64,
    changed: &mut Changed<'_>,
) -> rusqlite::Result<()> {
    rows(source, target, "run", "number", number, changed)?;
    for table in OF_A_RUN {
        rows(source, target, table, "run", number, changed)?;
    }
    Ok(())
}

/// Copies the rows of a table whose `column` is `number`.
fn rows(
    source: &Connection,
    target: &Connection,
    table: &str,
    column: &str,
    number: i64,
    changed: &mut Changed<'_>,
) -> rusqlite::Result<()> {
    let mut select = source.prepare(&format!("SELECT * FROM {table} WHERE {column} = ?1"))?;
    let names: Vec<String> = select.column_names().map(str::to_owned).collect();
    let places: Vec<String> = (1..=names.len()).map(|place| format!("?{place}")).collect();
    let mut insert = target.prepare(&format!(
        "INSERT INTO {table} ({}) VALUES ({})",
        names.join(", "),
        places.join(", ")
    ))?;
    let mut found = select.query([number])?;
    while let Some(row) = found.next()? {
        let mut values: Vec<Value> = (0..names.len())
            .map(|place| row.get(place))
            .collect::<rusqlite::Result<_>>()?;
        if table == "trial" {
            change(&names, &mut values, changed);
        }
        insert.execute(params_from_iter(values))?;
    }
    Ok(())
}
