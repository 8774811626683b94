//! What a run makes outside this machine's own reach, on record until it is gone from there.
//!
//! Labels lead a sweep to everything in an engine that it knows of; which engine, whose podman and which other
//! machine it was, only the run knows. An arm notes that in a file in the run's folder before it makes anything
//! there, and a place leaves the record when nothing of the arm is there any more, so an engine that is down, or a
//! machine that cannot be reached, keeps the record, and with it the run's folder, until they are back.
//! What it cannot see: runs whose folder somebody has removed by hand.

use crate::env::prelude::*;

use serde::de::DeserializeOwned;

use crate::cx::files::FileError;

/// The places of one arm, as they stand in a file.
pub(super) struct Record<P> {
    path: PathBuf,
    pub(super) places: Vec<P>,
}

/// Notes a place of an arm, if it is not noted yet.
pub(super) fn add<P>(cx: &Context<'_>, driver: &str, arm: &ArmId, place: &P) -> Result<(), EnvError>
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

/// Forgets a place of an arm, when nothing of the arm is left there.
pub(super) fn forget<P>(
    cx: &Context<'_>,
    driver: &str,
    arm: &ArmId,
    place: &P,
) -> Result<(), EnvError>
where
    P: Serialize + DeserializeOwned + PartialEq,
{
    Ok(Record::open(cx.scratch.join(file_name(driver, arm)))?.forget(place)?)
}

/// The places of an arm.
pub(super) fn of_arm<P: DeserializeOwned>(
    cx: &Context<'_>,
    driver: &str,
    arm: &ArmId,
) -> Result<Vec<P>, EnvError> {
    Ok(Record::open(cx.scratch.join(file_name(driver, arm)))?.places)
}

/// Every record of a driver's arms in a run's folder; none where the run has no folder.
pub(super) fn of_run<P: DeserializeOwned>(
    cx: &Context<'_>,
    driver: &str,
    run: &str,
) -> Result<Vec<Record<P>>, EnvError> {
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

/// `+` is in no identifier, so no driver's records are taken for another's.
fn file_name(driver: &str, arm: &ArmId) -> String {
    format!("{driver}+{arm}.places.json")
}

fn is_record(name: &str, driver: &str) -> bool {
    name.strip_prefix(driver)
        .is_some_and(|rest| rest.starts_with('+') && rest.ends_with(".places.json"))
}

impl<P> Record<P> {
    /// The error that a place of this record could not be swept, with the way to give it up.
    pub(super) fn kept(&self, place: &str, reason: &dyn std::fmt::Display) -> EnvError {
        EnvError::Refused {
            what: format!("removing what a run left {place}"),
            answer: format!("{reason}; to give it up, remove `{}`", self.path.display()),
        }
    }
}

impl<P: DeserializeOwned> Record<P> {
    fn open(path: PathBuf) -> Result<Self, EnvError> {
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
            // Not taken for none: something may be left where it led.
            Err(error) => Err(EnvError::Refused {
                what: "reading where a run has made something".to_owned(),
                answer: format!(
                    "its record `{}` cannot be used ({error}); to give it up, remove that file",
                    path.display()
                ),
            }),
        }
    }
}

impl<P: Serialize + PartialEq> Record<P> {
    /// Forgets a place from which everything is gone.
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
