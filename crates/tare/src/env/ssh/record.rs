//! What was made on other machines, remembered in the run's folder until it is gone from there.
//!
//! One small file an arm, written before the connection: where to go and the names of the folders, which
//! are made of the run, the arm and a number, so that nothing has to be searched for. After a `kill -9` the
//! guard on the other machine removes the folders by itself; this is for when it could not.
//! What it cannot see: a record in a run's folder that was removed by hand.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tare_model::{ArmId, Params, RunId};

use super::settings::{Settings, is_plain};
use crate::cx::files::{self, FileError};

/// One arm's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    settings: Params,
    names: Vec<String>,
}

/// The name of an arm's folders of its `number`th connection. `+` is in no identifier, so no run's name is
/// the beginning of another's.
pub(super) fn folder_name(run: &RunId, arm: &ArmId, number: u32) -> String {
    format!("tare-{run}+{arm}+{number}")
}

fn path(scratch: &Path, arm: &ArmId) -> PathBuf {
    scratch.join(format!("ssh-{arm}.json"))
}

impl Record {
    /// Remembers one more folder of this arm.
    pub(super) fn add(
        scratch: &Path,
        arm: &ArmId,
        settings: &Settings,
        name: &str,
    ) -> Result<(), FileError> {
        let path = path(scratch, arm);
        let mut names = read(&path).map_or_else(Vec::new, |record| record.names);
        names.push(name.to_owned());
        let record = Self {
            settings: settings.params(),
            names,
        };
        let bytes = serde_json::to_vec(&record).expect("texts and numbers are always JSON");
        files::create_folder(scratch)?;
        files::write(&path, &bytes)
    }

    /// Forgets a folder that is gone.
    pub(super) fn forget(scratch: &Path, arm: &ArmId, name: &str) -> Result<(), FileError> {
        let path = path(scratch, arm);
        let Some(mut record) = read(&path) else {
            return Ok(());
        };
        record.names.retain(|known| known != name);
        if record.names.is_empty() {
            return files::remove(&path);
        }
        let bytes = serde_json::to_vec(&record).expect("texts and numbers are always JSON");
        files::write(&path, &bytes)
    }

    /// Names that this arm left.
    pub(super) fn left(scratch: &Path, arm: &ArmId) -> Vec<String> {
        read(&path(scratch, arm)).map_or_else(Vec::new, |record| record.names)
    }

    /// Every record in this folder, with its file; `None` for one that cannot be read.
    pub(super) fn all(scratch: &Path) -> Result<Vec<(PathBuf, Option<Self>)>, FileError> {
        if !scratch.is_dir() {
            return Ok(Vec::new());
        }
        let mut names = files::names(scratch)?;
        names.sort();
        let records = names
            .into_iter()
            .filter(|name| {
                let rest = name.strip_prefix("ssh-");
                rest.is_some_and(|rest| rest.strip_suffix(".json").is_some())
            })
            .map(|name| {
                let path = scratch.join(name);
                let record = read(&path);
                (path, record)
            });
        Ok(records.collect())
    }

    /// Where to go and which folders of `run` to remove there: checked again, for it was read from a file.
    pub(super) fn checked(&self, run: &str) -> Option<(Settings, Vec<String>)> {
        let settings = Settings::parse(&self.settings).ok()?;
        let start = format!("tare-{run}+");
        let is_fine =
            |name: &String| name.starts_with(&start) && is_plain(name) && !name.contains('/');
        self.names
            .iter()
            .all(is_fine)
            .then(|| (settings, self.names.clone()))
    }
}

fn read(path: &Path) -> Option<Record> {
    serde_json::from_slice(&files::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lasts_until_the_last_folder_is_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let arm = ArmId::new("a").unwrap();
        let run = RunId::new("r-1").unwrap();
        let params = Params::new().with("host", "h").with("port", 22i64);
        let settings = Settings::parse(&params).unwrap();
        let names = [1, 2].map(|number| folder_name(&run, &arm, number));
        for name in &names {
            Record::add(scratch.path(), &arm, &settings, name).unwrap();
        }
        let all = Record::all(scratch.path()).unwrap();
        let (found, folders) = all[0].1.as_ref().unwrap().checked("r-1").unwrap();
        assert_eq!((found, folders.as_slice()), (settings, &names[..]));
        // Another run's record, or one that somebody changed, is not acted upon.
        assert_eq!(all[0].1.as_ref().unwrap().checked("r"), None);
        Record::forget(scratch.path(), &arm, &names[0]).unwrap();
        assert_eq!(Record::left(scratch.path(), &arm), [names[1].clone()]);
        Record::forget(scratch.path(), &arm, &names[1]).unwrap();
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_record_with_a_foreign_name_is_not_acted_upon() {
        let record = |name: &str| Record {
            settings: Params::new().with("host", "h"),
            names: vec![name.into()],
        };
        assert!(record("tare-r+a+1").checked("r").is_some());
        for name in ["/etc", "tare-r+/../..", "tare-r+a b", "tare-r+$x", "home"] {
            assert_eq!(record(name).checked("r"), None, "{name}");
        }
    }
}
