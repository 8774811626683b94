//! A folder on another machine, on record until it is removed there.
//!
//! The name consists of the run, the arm and a number, so nothing has to be searched. After a `kill -9` the guard on
//! the other machine removes the folder; the record is for when it could not.

use crate::env::prelude::*;

use super::settings::{Settings, is_plain};

/// The location of a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FolderRecord {
    settings: Params,
    pub(super) name: String,
}

/// Returns the name of the folders of an arm's `number`th connection. `+` is in no identifier, so no run's name is a
/// prefix of another's.
pub(super) fn folder_name(run: &RunId, arm: &ArmId, number: u32) -> String {
    format!("tare-{run}+{arm}+{number}")
}

impl FolderRecord {
    pub(super) fn new(settings: &Settings, name: &str) -> Self {
        Self {
            settings: settings.params(),
            name: name.to_owned(),
        }
    }

    /// Returns the host of a folder of `run`; checked again, because it was read from a file.
    pub(super) fn checked(&self, run: &str) -> Option<Settings> {
        let is_fine = self.name.starts_with(&format!("tare-{run}+"))
            && is_plain(&self.name)
            && !self.name.contains('/');
        Settings::read(&self.settings).ok().filter(|_| is_fine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> FolderRecord {
        FolderRecord {
            settings: Params::new().with("host", "h").with("port", 22i64),
            name: name.into(),
        }
    }

    #[test]
    fn place_is_restored_only_for_its_run() {
        let (run, arm) = (RunId::new("r-1").unwrap(), ArmId::new("a").unwrap());
        let settings = Settings::read(&place("").settings).unwrap();
        let place = FolderRecord::new(&settings, &folder_name(&run, &arm, 1));
        assert_eq!(place.checked("r-1"), Some(settings));
        assert_eq!(place.checked("r"), None);
    }

    #[test]
    fn a_place_with_a_foreign_name_is_not_acted_upon() {
        assert!(place("tare-r+a+1").checked("r").is_some());
        for name in ["/etc", "tare-r+/../..", "tare-r+a b", "tare-r+$x", "home"] {
            assert_eq!(place(name).checked("r"), None, "{name}");
        }
    }
}
