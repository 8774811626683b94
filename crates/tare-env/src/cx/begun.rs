//! Which runs this user has begun, by their plans.
//!
//! A plan says which commands are run, so going on with a run executes what stands in a store. A store may have come
//! from anywhere; a file in the state folder, which only its user can write, says which plans did not.
//! What it cannot see: runs begun with another state folder.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use tare_model::RunId;

use super::files::{self, FileError};

fn file(state: &Path) -> PathBuf {
    state.join("begun")
}

fn line(run: &RunId, plan_sha256: &str) -> String {
    format!("{run} {plan_sha256}")
}

/// Notes that a run of this plan is about to be begun here.
pub fn note(state: &Path, run: &RunId, plan_sha256: &str) -> Result<(), FileError> {
    let path = file(state);
    let mut file = files::open_file(&path, true)?.expect("it is made where there is none");
    let text = format!("{}\n", line(run, plan_sha256));
    let written = file
        .lock()
        .and_then(|()| file.seek(SeekFrom::End(0)))
        .and_then(|_| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all());
    written.map_err(|source| FileError {
        action: "write",
        path,
        source,
    })
}

/// Whether a run of this plan was begun here.
pub fn is_noted(state: &Path, run: &RunId, plan_sha256: &str) -> Result<bool, FileError> {
    let path = file(state);
    let Some(mut file) = files::open_file(&path, false)? else {
        return Ok(false);
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|source| FileError {
        action: "read",
        path,
        source,
    })?;
    let wanted = line(run, plan_sha256);
    Ok(text.lines().any(|line| line == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_was_begun_here_with_this_very_plan_is_known() {
        let state = tempfile::tempdir().unwrap();
        let runs = ["a", "b"].map(|name| RunId::new(name).unwrap());
        assert!(!is_noted(state.path(), &runs[0], "1f").unwrap());
        note(state.path(), &runs[0], "1f").unwrap();
        note(state.path(), &runs[1], "2e").unwrap();
        assert!(is_noted(state.path(), &runs[0], "1f").unwrap());
        assert!(is_noted(state.path(), &runs[1], "2e").unwrap());
        assert!(!is_noted(state.path(), &runs[0], "2e").unwrap());
        assert!(!is_noted(state.path(), &runs[0], "1").unwrap());
    }
}
