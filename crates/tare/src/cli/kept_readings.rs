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
use crate::cx::files::{self, FileError};
use crate::store::{Store, StoredRun};
use crate::workload;

/// Trials from which on reading them takes about a second, and more than keeping what was read.
const WORTH_KEEPING: u32 = 50_000;

/// What every such file begins with, whichever build wrote it.
const MARK: &str = "tare readings ";
/// How the file begins: what it is, and the sources that the program which wrote it was built from.
const BEGINNING: &str = concat!("tare readings ", env!("TARE_SOURCES"), "\n");
/// Where they lie in the state folder.
const FOLDER: &str = "readings";

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
            file: state.join(FOLDER).join(run.as_str()),
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

/// Removes what was kept and is of no use any more: what another build wrote or half of which was written, and that of
/// runs that are not `known`. Says how many; what does not say that it is such a file stays.
pub(super) fn remove_useless(state: &Path, known: &[RunId]) -> Result<usize, FileError> {
    let folder = state.join(FOLDER);
    if !matches!(files::kind(&folder), Ok(files::Kind::Folder { .. })) {
        return Ok(0);
    }
    let mut n_removed = 0;
    for name in files::names(&folder)? {
        let path = folder.join(&name);
        let Ok(Some(file)) = files::open_file(&path, false) else {
            continue;
        };
        let mut begin = Vec::new();
        let read = file.take(BEGINNING.len() as u64).read_to_end(&mut begin);
        let is_kept = read.is_ok() && begin.starts_with(MARK.as_bytes());
        let is_known = known.iter().any(|run| run.as_str() == name);
        if is_kept && !(is_known && begin == BEGINNING.as_bytes()) {
            files::remove(&path)?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_that_it_was_kept_and_is_read_no_more_is_removed() {
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().join(FOLDER);
        files::create_folder(&folder).unwrap();
        let put =
            |name: &str, text: &str| files::write(&folder.join(name), text.as_bytes()).unwrap();
        put("r1", &format!("{BEGINNING}bytes"));
        put("r2", &format!("{BEGINNING}bytes"));
        put("r3", "tare readings of-another-build\nbytes");
        put("r1.part", &BEGINNING[..20]);
        put("notes", "somebody's own");
        let known = ["r1", "r3"].map(|name| RunId::new(name).unwrap());
        assert_eq!(remove_useless(state.path(), &known).unwrap(), 3);
        let mut left = files::names(&folder).unwrap();
        left.sort();
        assert_eq!(left, ["notes", "r1"]);
        assert_eq!(remove_useless(&folder, &known).unwrap(), 0);
    }
}
