//! What was read of a long run, kept beside the store, so that its next report need not read a million trials again.
//!
//! It can be deleted at any time and is never believed: it counts only where this very build wrote it, of the file,
//! the run and the trials that are there now, and where its bytes are whole; anything else is as if it were not there.
//! Only for a store in Tare's own folder, which is its user's alone; a store elsewhere is looked at without a trace.
//! What it cannot see: bytes that were changed, with their sum, by somebody who may write to that folder; the store could have
//! been changed as well.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use tare_model::RunId;

use super::home::Place;
use crate::analyze::{Analysis, RunHead};
use crate::cx::files;
use crate::store::{Store, StoredRun};
use crate::workload;

/// Trials from which on reading them takes about a second, and more than keeping what was read.
const WORTH_KEEPING: u32 = 50_000;

/// How the file begins: what it is, and the sources that the program which wrote it was built from.
const BEGINNING: &str = concat!("tare readings ", env!("TARE_SOURCES"), "\n");

/// The place for what is read of one run.
pub(super) struct KeptReadings {
    pub(super) file: PathBuf,
    run: RunId,
    /// Of the run's trials before they were read.
    identity: [u8; 32],
}

impl KeptReadings {
    /// Where there is such a place, and the run is long.
    pub(super) fn of(store: &Store, stored: &StoredRun) -> Option<Self> {
        if stored.n_trials < WORTH_KEEPING {
            return None;
        }
        let state = Place::existing_state_folder().ok()??;
        let folder = store.path().parent()?;
        let is_own = files::canonical(folder).ok()? == files::canonical(&state).ok()?;
        is_own.then(|| Self::below(&state, store, &stored.id))?
    }

    /// The place below this folder, of whichever run; `None` while its trials have no identity.
    pub(super) fn below(state: &Path, store: &Store, run: &RunId) -> Option<Self> {
        Some(Self {
            file: state.join("readings").join(run.as_str()),
            run: run.clone(),
            identity: store.identity(run).ok()??,
        })
    }

    fn heading(&self) -> Vec<u8> {
        [BEGINNING.as_bytes(), &self.identity].concat()
    }

    /// What was kept, if it is of these trials and whole.
    pub(super) fn read<'a>(&self, head: &'a RunHead) -> Option<Analysis<'a>> {
        let mut file = files::open_file(&self.file, false).ok()??;
        let mut heading = self.heading();
        let length = file.metadata().ok()?.len();
        let length = length.checked_sub(heading.len() as u64)?;
        let own = heading.clone();
        file.read_exact(&mut heading).ok()?;
        if heading != own {
            return None;
        }
        Analysis::read(head, &workload::find, file, length).ok()
    }

    /// Whether the trials are those that were there before.
    pub(super) fn are_of(&self, store: &Store) -> bool {
        matches!(store.identity(&self.run), Ok(Some(now)) if now == self.identity)
    }

    /// Keeps what was read. Where it cannot be kept, it is not.
    pub(super) fn write(&self, analysis: &Analysis<'_>) {
        let folder = self.file.parent().map(files::create_folder);
        if matches!(folder, Some(Ok(()))) {
            let _ = files::write_working_with(&self.file, |file| {
                file.write_all(&self.heading())?;
                analysis.write(file)
            });
        }
    }
}
