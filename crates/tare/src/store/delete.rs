//! Deletes a run from a store.
//!
//! Results are never changed, but a run may contain private output of its commands. So a run can be deleted as a
//! whole: its rows are overwritten in the file, and the file is rewritten without them.
//! Limits: copies of the file, bundles and backups keep the run.

use tare_model::RunId;

use super::extract::OF_A_RUN;
use super::{Store, StoreError, classify, schema};

impl Store {
    /// Deletes a run. Refused while any run is being written to this store.
    ///
    /// # Errors
    /// The run does not exist, a run is being written, or the file cannot be written.
    pub fn delete(&mut self, run: &RunId) -> Result<(), StoreError> {
        let number = self.number(run)?;
        let _lock = self.taken()?;
        let failed = |error: rusqlite::Error| classify(&self.path, "delete from", &error);
        let connection = &mut self.connection;
        // Otherwise freed pages keep the text.
        connection
            .pragma_update(None, "secure_delete", true)
            .map_err(failed)?;
        let tables: Vec<&str> = OF_A_RUN.iter().copied().chain(["run"]).collect();
        schema::while_removable(connection, &tables, |connection| {
            // Referring tables first.
            for table in OF_A_RUN.iter().rev() {
                connection.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [number])?;
            }
            connection.execute("DELETE FROM run WHERE number = ?1", [number])?;
            Ok(())
        })
        .map_err(failed)?;
        // The write-ahead log still has the old pages.
        connection
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use tare_model::StoppedBy;

    use super::super::tests::{end, place, plan, printed, records, start};
    use super::*;

    /// Stores a run of one trial whose command printed `text`.
    fn run_that_printed(store: &mut Store, id: &str, text: &str) {
        let plan = plan();
        store.begin(&start(id), &plan).unwrap();
        let mut record = records(&plan).remove(0);
        record.outcome = printed(text.repeat(1_000).into_bytes());
        store.append(&record).unwrap();
        store.finish(&end(StoppedBy::Blocks)).unwrap();
    }

    /// Whether a text occurs in any of the store's files.
    fn holds(folder: &std::path::Path, text: &str) -> bool {
        std::fs::read_dir(folder).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        })
    }

    #[test]
    fn deleted_run_leaves_no_byte_and_others_stay() {
        let place = place();
        let (path, folder) = (&place.path, place.path.parent().unwrap());
        let (kept, gone) = (start("kept").id, start("gone").id);
        let mut store = Store::open(path).unwrap();
        run_that_printed(&mut store, "kept", "harmless-text ");
        run_that_printed(&mut store, "gone", "password-in-output ");
        let before = store.run(&kept).unwrap();
        drop(store);
        assert!(holds(folder, "password-in-output"));
        let mut store = Store::open(path).unwrap();
        store.delete(&gone).unwrap();
        assert!(!holds(folder, "password-in-output"));
        assert!(store.run(&gone).is_err());
        assert_eq!(store.run(&kept).unwrap(), before);
        // Rows are protected again.
        let removed = store.connection.execute("DELETE FROM trial", []);
        assert!(removed.is_err());
        drop(store);
        assert_eq!(
            Store::open_to_read(path).unwrap().run(&kept).unwrap(),
            before
        );
    }

    #[test]
    fn run_at_work_keeps_others_from_being_deleted() {
        let path = &place().path;
        let mut store = Store::open(path).unwrap();
        run_that_printed(&mut store, "done", "text");
        let _lock = super::super::RunLock::take(path).unwrap();
        let refused = Store::open(path).unwrap().delete(&start("done").id);
        assert!(
            matches!(refused, Err(StoreError::InUse { .. })),
            "{refused:?}"
        );
    }
}
