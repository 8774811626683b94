//! Records the places outside this machine's control in which a run creates something, until it is removed there.
//!
//! By labels, a sweep finds everything in a known engine; only the run knows which engine, whose podman or which
//! other machine it used. An arm records that in a file in the run's folder before it creates anything there. A place
//! is removed from the record once nothing of the arm is left there, so an engine that is down or a machine that
//! cannot be reached keeps the record, and with it the run's folder, until it is back.
//! Limits: runs whose folder was removed by hand have no record.

use crate::env::prelude::*;

use serde::de::DeserializeOwned;

use crate::cx::files::FileError;

/// The recorded places of one arm, and their file.
pub(super) struct Record<P> {
    path: PathBuf,
    pub(super) places: Vec<P>,
}

/// Records a place of an arm, if it is not recorded yet.
pub(super) fn add<P>(cx: &Context<'_>, driver: &str, arm: &ArmId, place: &P) -> Result<()>
where
    P: Serialize + DeserializeOwned + PartialEq + Clone,
{
    files::create_folder(cx.scratch)?;
    let mut record = Record::open(cx.scratch.join(file_name(driver, arm)))?;
    if record.places.contains(place) {
        return Ok(());
    }
    record.places.push(place.clone());
    Ok(record.write()?)
}

/// Removes a place of an arm from the record, once nothing of the arm is left there.
pub(super) fn forget<P>(cx: &Context<'_>, driver: &str, arm: &ArmId, place: &P) -> Result<()>
where
    P: Serialize + DeserializeOwned + PartialEq,
{
    Ok(Record::open(cx.scratch.join(file_name(driver, arm)))?.forget(place)?)
}

/// Returns the places of an arm.
pub(super) fn of_arm<P: DeserializeOwned>(
    cx: &Context<'_>,
    driver: &str,
    arm: &ArmId,
) -> Result<Vec<P>> {
    Ok(Record::open(cx.scratch.join(file_name(driver, arm)))?.places)
}

/// Returns all records of a driver's arms in a run's folder; empty if the run has no folder.
pub(super) fn of_run<P: DeserializeOwned>(
    cx: &Context<'_>,
    driver: &str,
    run: &str,
) -> Result<Vec<Record<P>>> {
    let own = (cx.run.as_str() == run).then(|| cx.scratch.to_owned());
    let folder = own.or_else(|| vars::state_folder().map(|state| state.join("runs").join(run)));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        return Ok(Vec::new());
    };
    let mut names = files::names(&folder)?;
    names.retain(|name| is_record(name, driver));
    names.sort();
    names
        .into_iter()
        .map(|name| Record::open(folder.join(name)))
        .collect()
}

/// Returns a record's file name. `+` is in no identifier, so drivers cannot confuse their records.
fn file_name(driver: &str, arm: &ArmId) -> String {
    format!("{driver}+{arm}.places.json")
}

fn is_record(name: &str, driver: &str) -> bool {
    name.strip_prefix(driver)
        .is_some_and(|rest| rest.starts_with('+') && rest.ends_with(".places.json"))
}

impl<P> Record<P> {
    /// Returns the error that a place of this record could not be swept, with how to give it up.
    pub(super) fn kept(&self, place: &str, reason: &dyn std::fmt::Display) -> EnvError {
        EnvError::refused(
            format!("removing what a run left {place}"),
            format!("{reason}; to give it up, remove `{}`", self.path.display()),
        )
    }
}

impl<P: DeserializeOwned> Record<P> {
    fn open(path: PathBuf) -> Result<Self> {
        let text = match files::read(&path) {
            Ok(text) => text,
            Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self {
                    path,
                    places: Vec::new(),
                });
            }
            Err(error) => return Err(error.into()),
        };
        match serde_json::from_slice(&text) {
            Ok(places) => Ok(Self { path, places }),
            // Not treated as empty: something may be left in the recorded places.
            Err(error) => Err(EnvError::refused(
                "reading where a run has made something",
                format!(
                    "its record `{}` cannot be used ({error}); to give it up, remove that file",
                    path.display()
                ),
            )),
        }
    }
}

impl<P: Serialize + PartialEq> Record<P> {
    /// Removes a place from which everything is gone.
    pub(super) fn forget(&mut self, place: &P) -> Result<(), FileError> {
        self.places.retain(|known| known != place);
        if self.places.is_empty() {
            return files::remove(&self.path);
        }
        self.write()
    }

    fn write(&self) -> Result<(), FileError> {
        let text = serde_json::to_vec(&self.places).expect("texts and paths of UTF-8 are JSON");
        files::write(Path::new(&self.path), &text)
    }
}
