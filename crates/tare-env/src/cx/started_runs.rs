//! Records which runs this user has started, by their plans.
//!
//! A plan contains the commands to run, so resuming a run executes what is in a store. A store may have come from
//! anywhere; a file in the state folder, which only its user can write, lists the plans that were started here.
//! Limits: runs started with another state folder are unknown.

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

/// Records that a run of this plan is about to start here.
pub fn note(state: &Path, run: &RunId, plan_sha256: &str) -> Result<(), FileError> {
    let path = file(state);
    let mut file = files::open_file(&path, true)?.expect("it is made where there is none");
    let text = format!("{}\n", line(run, plan_sha256));
    let written = file
        .lock()
        .and_then(|()| file.seek(SeekFrom::End(0)))
        .and_then(|_| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all());
    written.map_err(files::error("write", &path))
}

/// Whether a run of this plan was started here.
pub fn is_noted(state: &Path, run: &RunId, plan_sha256: &str) -> Result<bool, FileError> {
    let path = file(state);
    let Some(mut file) = files::open_file(&path, false)? else {
        return Ok(false);
    };
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    read.map_err(files::error("read", &path))?;
    let wanted = line(run, plan_sha256);
    Ok(text.lines().any(|line| line == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_run_started_here_with_same_plan_is_known() {
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
