//! A folder on another machine, as it stands on record until it is gone from there.
//!
//! The name is made of the run, the arm and a number, so that nothing has to be searched for. After a `kill -9` the
//! guard on the other machine removes the folder by itself; the record is for when it could not.

use crate::env::prelude::*;

use super::settings::{Settings, is_plain};

/// Where a folder was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Place {
    settings: Params,
    pub(super) name: String,
}

/// The name of an arm's folders of its `number`th connection. `+` is in no identifier, so no run's name is
/// the beginning of another's.
pub(super) fn folder_name(run: &RunId, arm: &ArmId, number: u32) -> String {
    format!("tare-{run}+{arm}+{number}")
}

impl Place {
    pub(super) fn new(settings: &Settings, name: &str) -> Self {
        Self {
            settings: settings.params(),
            name: name.to_owned(),
        }
    }

    /// Where to go to remove a folder of `run`: checked again, for it was read from a file.
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

    fn place(name: &str) -> Place {
        Place {
            settings: Params::new().with("host", "h").with("port", 22i64),
            name: name.into(),
        }
    }

    #[test]
    fn a_place_leads_back_to_where_it_was_made_for_its_own_run_only() {
        let (run, arm) = (RunId::new("r-1").unwrap(), ArmId::new("a").unwrap());
        let settings = Settings::read(&place("").settings).unwrap();
        let place = Place::new(&settings, &folder_name(&run, &arm, 1));
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
