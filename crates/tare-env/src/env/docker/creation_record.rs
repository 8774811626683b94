//! Records where an arm creates something: its engine, and the user's folder for bind mounts.

use crate::env::prelude::*;

use super::DOCKER;
use super::api::Api;
use super::endpoint::EngineName;
use super::guest::Guest;
use super::settings::{Settings, Storage};
use crate::env::record;

/// A place where one arm creates something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreationRecord {
    arm: String,
    engine: EngineName,
    /// The address behind the engine's context at that time; the context may have changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    folder: Option<PathBuf>,
    /// Tare's folder in a user's container, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) guest: Option<Guest>,
}

impl CreationRecord {
    /// A place inside a user's container.
    pub(super) fn in_container(arm: &ArmId, engine: EngineName, guest: Guest) -> Self {
        Self {
            guest: Some(guest),
            ..Self::in_engine(arm, engine)
        }
    }

    /// Puts objects that are created in this engine in addition to the arms on the run's record, as an arm of this
    /// name.
    pub(super) fn add(cx: &Context<'_>, api: &Api, name: &str) -> Result<(ArmId, Self), EnvError> {
        let arm = ArmId::new(name).expect("the callers' constants are names");
        let place = Self::in_engine(&arm, api.named.clone());
        record::add(cx, DOCKER.id(), &arm, &place)?;
        Ok((arm, place))
    }

    /// The record of objects that are created in this engine.
    fn in_engine(arm: &ArmId, engine: EngineName) -> Self {
        Self {
            arm: arm.to_string(),
            at: engine.context_address(),
            engine,
            folder: None,
            guest: None,
        }
    }

    pub(super) fn new(
        cx: &Context<'_>,
        arm: &ArmId,
        engine: EngineName,
        settings: &Settings,
    ) -> Self {
        // The run's folder is removed with the run, except for mounts in it.
        let own = (settings.storage == Storage::Served).then(|| cx.scratch.to_owned());
        Self {
            folder: settings.bind_folder.clone().or(own),
            ..Self::in_engine(arm, engine)
        }
    }

    /// The engine; by its address if the context has changed or is gone.
    pub(super) fn engine(&self) -> EngineName {
        match &self.at {
            Some(at) if self.engine.context_address().as_ref() != Some(at) => {
                EngineName::Host(at.clone())
            }
            _ => self.engine.clone(),
        }
    }

    /// Removes the arm's folders by `remove` and returns their names.
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

    /// Whether a name is that of one of the arm's instances, rather than of an arm with the same prefix.
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

    fn usual(arm: &str) -> CreationRecord {
        let usual = EngineName::Context("default".into());
        CreationRecord::in_engine(&ArmId::new(arm).unwrap(), usual)
    }

    #[test]
    fn changed_context_is_swept_at_its_original_address() {
        let place = CreationRecord {
            engine: EngineName::Context("tare-of-no-file".into()),
            at: Some("unix:///run/then.sock".into()),
            ..usual("far")
        };
        assert_eq!(
            place.engine(),
            EngineName::Host("unix:///run/then.sock".into())
        );
        assert_eq!(usual("far").engine(), EngineName::Context("default".into()));
    }

    #[test]
    fn only_folders_of_the_arms_own_instances_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let place = CreationRecord {
            folder: Some(parent.path().to_owned()),
            ..usual("bind")
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
