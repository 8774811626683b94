//! Where else a run has left something: engines other than the default one, and folders of the user's.
//!
//! Labels lead a sweep to everything in an engine that it knows of. A context named in a study and a folder
//! given for binds are known only to that study, so an arm that uses one notes it in a small file in the
//! run's folder before it makes anything, and the sweep of a dead run reads it there.
//! What it cannot see: runs whose folder somebody has removed by hand.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tare_model::ArmId;

use super::settings::Settings;
use crate::cx::files::FileError;
use crate::cx::{Context, files, vars};

const SUFFIX: &str = ".docker-places.json";

/// What one arm uses besides the default engine and the run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) arm: String,
    pub(super) context: Option<String>,
    pub(super) folder: Option<PathBuf>,
}

/// Notes what the arm uses, if it uses anything.
pub(super) fn record(cx: &Context<'_>, arm: &ArmId, settings: &Settings) -> Result<(), FileError> {
    if settings.context.is_none() && settings.bind_folder.is_none() {
        return Ok(());
    }
    let place = Place {
        arm: arm.to_string(),
        context: settings.context.clone(),
        folder: settings.bind_folder.clone(),
    };
    files::create_folder(cx.scratch)?;
    let text = serde_json::to_vec(&place).expect("two texts and a path of UTF-8 are always JSON");
    files::write(&file(cx, arm), &text)
}

/// Forgets what an arm used, when nothing of it is left.
pub(super) fn forget(cx: &Context<'_>, arm: &ArmId) -> Result<(), FileError> {
    files::remove_file(&file(cx, arm))
}

fn file(cx: &Context<'_>, arm: &ArmId) -> PathBuf {
    cx.scratch.join(format!("{arm}{SUFFIX}"))
}

/// What the arms of a run have noted; nothing where the run has no folder.
pub(super) fn of_run(cx: &Context<'_>, run: &str) -> Result<Vec<Place>, FileError> {
    let own = (cx.run.as_str() == run).then(|| cx.scratch.to_owned());
    let folder = own.or_else(|| vars::state_folder().map(|state| state.join("runs").join(run)));
    let mut places = Vec::new();
    for folder in folder.into_iter().filter(|folder| folder.is_dir()) {
        for name in files::names(&folder)? {
            if name.ends_with(SUFFIX) {
                let text = files::read(&folder.join(&name))?;
                // Half a file cannot be: it is written beside and renamed. What is no note is none of ours.
                places.extend(serde_json::from_slice::<Place>(&text));
            }
        }
    }
    Ok(places)
}

impl Place {
    /// Removes the arm's folders from the folder that was given for them; says which.
    pub(super) fn remove_folders(&self, run: &str) -> Result<Vec<String>, FileError> {
        let Some(parent) = self.folder.as_deref().filter(|parent| parent.is_dir()) else {
            return Ok(Vec::new());
        };
        let mut removed = Vec::new();
        for name in files::names(parent)? {
            if self.owns(run, &name) {
                let folder = parent.join(name);
                files::remove_folder(&folder)?;
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
    fn only_folders_of_the_arms_own_instances_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let place = Place {
            arm: "bind".into(),
            context: None,
            folder: Some(parent.path().to_owned()),
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
        let removed = place.remove_folders("r1").unwrap();
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
