//! Where an arm makes something: its engine, and the folder of the user's that was given for binds.

use crate::env::prelude::*;

use super::endpoint::Named;
use super::guest::Guest;
use super::settings::{Settings, Storage};

/// A place of one arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    arm: String,
    engine: Named,
    /// Where the engine's context led when the place was made: its name may lead elsewhere by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    folder: Option<PathBuf>,
    /// A folder of ours in a container of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) guest: Option<Guest>,
}

impl Place {
    /// Inside a container of the user's.
    pub(super) fn in_container(arm: &ArmId, engine: Named, guest: Guest) -> Self {
        Self {
            arm: arm.to_string(),
            at: engine.context_address(),
            engine,
            folder: None,
            guest: Some(guest),
        }
    }

    /// Of what stands beside the arms.
    pub(super) fn beside(arm: &ArmId, engine: Named) -> Self {
        Self {
            arm: arm.to_string(),
            at: engine.context_address(),
            engine,
            folder: None,
            guest: None,
        }
    }

    pub(super) fn new(cx: &Context<'_>, arm: &ArmId, engine: Named, settings: &Settings) -> Self {
        // The run's own folder goes with the run, but for what is mounted in it.
        let own = (settings.storage == Storage::Served).then(|| cx.scratch.to_owned());
        Self {
            arm: arm.to_string(),
            at: engine.context_address(),
            engine,
            folder: settings.bind_folder.clone().or(own),
            guest: None,
        }
    }
}

impl Place {
    /// The engine: by its address where the context of then leads elsewhere, or nowhere, now.
    pub(super) fn engine(&self) -> Named {
        match &self.at {
            Some(at) if self.engine.context_address().as_ref() != Some(at) => {
                Named::Host(at.clone())
            }
            _ => self.engine.clone(),
        }
    }

    /// Removes the arm's folders, by `remove`, from the folder in which they are; says which.
    pub(super) fn remove_folders(
        &self,
        run: &str,
        remove: impl Fn(&Path) -> Result<(), EnvError>,
    ) -> Result<Vec<String>, EnvError> {
        let Some(parent) = self.folder.as_deref().filter(|parent| parent.is_dir()) else {
            return Ok(Vec::new());
        };
        let mut removed = Vec::new();
        for name in files::names(parent)? {
            if self.owns(run, &name) {
                let folder = parent.join(name);
                remove(&folder)?;
                removed.push(format!("folder {}", Path::new(&folder).display()));
            }
        }
        Ok(removed)
    }

    /// Whether a name is that of one of the arm's instances, and not of one whose arm begins alike.
    fn owns(&self, run: &str, name: &str) -> bool {
        name.strip_prefix(&format!("tare-{run}-{}-", self.arm))
            .is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_leads_elsewhere_now_is_swept_where_it_led_then() {
        let place = Place {
            arm: "far".into(),
            engine: Named::Context("tare-of-no-file".into()),
            at: Some("unix:///run/then.sock".into()),
            folder: None,
            guest: None,
        };
        assert_eq!(place.engine(), Named::Host("unix:///run/then.sock".into()));
        let usual = Place {
            engine: Named::Context("default".into()),
            at: None,
            ..place
        };
        assert_eq!(usual.engine(), Named::Context("default".into()));
    }

    #[test]
    fn only_folders_of_the_arms_own_instances_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let place = Place {
            arm: "bind".into(),
            engine: Named::Context("default".into()),
            at: None,
            folder: Some(parent.path().to_owned()),
            guest: None,
        };
        for name in [
            "tare-r1-bind-1",
            "tare-r1-bind-12",
            "tare-r1-bind-2-1",
            "tare-r1-bind-",
            "tare-r1-binder-1",
            "tare-r2-bind-1",
            "mine",
        ] {
            files::create_folder(&parent.path().join(name)).unwrap();
        }
        let removed = place
            .remove_folders("r1", |folder| Ok(files::remove_folder(folder)?))
            .unwrap();
        assert_eq!(removed.len(), 2, "{removed:?}");
        let mut left = files::names(parent.path()).unwrap();
        left.sort();
        assert_eq!(
            left,
            [
                "mine",
                "tare-r1-bind-",
                "tare-r1-bind-2-1",
                "tare-r1-binder-1",
                "tare-r2-bind-1"
            ]
        );
    }
}
