//! A folder of this machine that a program serves: every look, opening and reading goes through a file system in user
//! space, as it does where a desktop shares a folder of its system with the machine that runs its containers.
//!
//! `bindfs` shows the folder's part `files` in its part `shown`, which is what containers get. By itself it carries out
//! one request after another, and reads through the page cache also where a program asks for the device. A mount
//! outlives its program, so it is looked up in the kernel's list and taken away before the folder is removed.
//! What it cannot see: an engine with mounts of its own, which is asked whether it sees a file of the folder.

use crate::env::prelude::*;

use bollard::query_parameters::ContainerArchiveInfoOptions;
use tare_model::launch::RUN_VARIABLE;
use tare_model::mountinfo::Mount;

use super::super::image::WORKDIR;
use super::api::Api;
use super::errors::{is_missing, printable};
use crate::cx::Exec;

/// The program.
const PROGRAM: &str = "bindfs";
/// It stays in the foreground, as a child.
const FOREGROUND: &str = "-f";
/// What a look found is not kept for the next one, as where a folder is shared consistently with another system.
const NOTHING_KEPT: &str = "attr_timeout=0,entry_timeout=0,negative_timeout=0";
/// Where the kernel lists what is mounted, as this process sees it.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How long it may take until the folder is shown.
const SHOW_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks whether it is.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A file by which an engine shows that it sees the folder.
const MARK: &str = ".tare-shown";

/// The program that serves a folder; ended when dropped.
pub(super) struct Server(Box<dyn Running>);

/// The part of the folder with the files.
fn kept(folder: &Path) -> PathBuf {
    folder.join("files")
}

/// The part in which they are shown.
pub(super) fn shown(folder: &Path) -> PathBuf {
    folder.join("shown")
}

/// Says why no folder can be served here, if none can; `elsewhere` is why the engine's machine is another one.
pub(super) fn check(cx: &Context<'_>, elsewhere: Option<&str>) -> Result<(), EnvError> {
    if let Some(why) = elsewhere {
        return Err(EnvError::Absent {
            why: format!("a folder of this machine cannot be served there: {why}"),
            fix: Some("use `storage = \"volume\"`".into()),
        });
    }
    let absent = |why: String| EnvError::Absent {
        why,
        fix: Some(format!(
            "`sudo apt-get install {PROGRAM}`, and a kernel that gives containers and users `/dev/fuse`"
        )),
    };
    let version = CommandLine::new(PROGRAM, ["--version"]);
    match cx.exec.run(&version, b"", CONTROL_LIMIT) {
        Ok(_) if Path::new("/dev/fuse").exists() => Ok(()),
        Ok(_) => Err(absent("there is no `/dev/fuse` here".to_owned())),
        Err(CommandError::Missing { .. }) => Err(absent(format!(
            "`{PROGRAM}`, which serves the folder of `storage = \"served\"`, is not installed"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Makes both parts of the folder and has the one shown in the other.
pub(super) fn serve(exec: &dyn Exec, run: &str, folder: &Path) -> Result<Server, EnvError> {
    let (from, to) = (kept(folder), shown(folder));
    files::create_folder(&from)?;
    files::create_folder(&to)?;
    files::write(&from.join(MARK), b"")?;
    let text = |path: &Path| path.display().to_string();
    let options = [FOREGROUND, "-o", NOTHING_KEPT].map(str::to_owned);
    let folders = [text(&from), text(&to)];
    let command =
        CommandLine::new(PROGRAM, options.into_iter().chain(folders)).variable(RUN_VARIABLE, run);
    let mut server = Server(exec.spawn(&command)?);
    let mut waited = Duration::ZERO;
    while !is_mounted(&to) {
        let ended = server.0.wait(LOOK_AGAIN);
        if matches!(ended, Ok(None)) && waited < SHOW_LIMIT {
            waited += LOOK_AGAIN;
            continue;
        }
        return Err(EnvError::Refused {
            what: format!("`{PROGRAM}` does not show the folder `{}`", text(&from)),
            answer: printable(&server.0.stderr_tail()),
        });
    }
    Ok(server)
}

/// Asks whether the engine sees what is shown, by the mark in the working directory of a container that was made.
pub(super) fn is_seen(api: &Api, container: &str) -> Result<(), EnvError> {
    let options = ContainerArchiveInfoOptions {
        path: format!("{WORKDIR}/{MARK}"),
    };
    let request = api
        .client
        .get_container_archive_info(container, Some(options));
    match api.attempt(CONTROL_LIMIT, request) {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Err(EnvError::Absent {
            why: "the engine does not see the folder that is served here: it has mounts of its own, or another user's are closed to it".to_owned(),
            fix: Some("have the engine share this machine's mounts, and run as root".to_owned()),
        }),
        Err(error) => {
            Err(api.explain("look for the served folder in the container", CONTROL_LIMIT, &error))
        }
    }
}

/// Takes the folder's mount away, if there is one, also where its program is gone; its server ends with it.
fn end(exec: &dyn Exec, folder: &Path) -> Result<(), EnvError> {
    let to = shown(folder);
    if !is_mounted(&to) {
        return Ok(());
    }
    let mut answer = String::new();
    let path = to.display().to_string();
    // The second is for root alone, and works where the first is not installed.
    for (program, options) in [("fusermount3", "-uz"), ("umount", "-l")] {
        match exec.run(
            &CommandLine::new(program, [options.to_owned(), path.clone()]),
            b"",
            CONTROL_LIMIT,
        ) {
            Ok(_) if !is_mounted(&to) => return Ok(()),
            Ok(finished) => answer = printable(&String::from_utf8_lossy(&finished.stderr)),
            Err(error) => answer = error.to_string(),
        }
    }
    Err(EnvError::Refused {
        what: format!("`{path}` cannot be unmounted"),
        answer,
    })
}

/// Removes a folder of this machine and, before it, what shows it.
pub(super) fn remove(exec: &dyn Exec, folder: &Path) -> Result<(), EnvError> {
    end(exec, folder)?;
    Ok(files::remove_folder(folder)?)
}

/// Whether something is mounted there.
fn is_mounted(path: &Path) -> bool {
    // The last part may not be looked at: its server may be gone.
    let whole = path
        .parent()
        .and_then(|above| files::canonical(above).ok())
        .zip(path.file_name())
        .map_or_else(|| path.to_owned(), |(above, name)| above.join(name));
    let list = files::read_text(Path::new(MOUNTS)).unwrap_or_default();
    Mount::all(&list).any(|mount| Path::new(&mount.point) == whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::SystemExec;
    use crate::skip::skip;

    /// A folder that is served, where `bindfs` can do it here.
    fn served(folder: &Path) -> Option<Server> {
        match serve(&SystemExec, "served-test", folder) {
            Ok(server) => Some(server),
            Err(
                error
                @ (EnvError::Command(CommandError::Missing { .. }) | EnvError::Refused { .. }),
            ) => {
                skip("bindfs", &error.to_string());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_written_there_is_here_and_the_mount_goes_with_the_folder() {
        let above = tempfile::Builder::new()
            .prefix("tare served \"x\"")
            .tempdir()
            .unwrap();
        let folder = above.path().join("one");
        let Some(server) = served(&folder) else {
            return;
        };
        files::write(&shown(&folder).join("text"), b"words").unwrap();
        assert_eq!(files::read(&kept(&folder).join("text")).unwrap(), b"words");
        assert!(is_mounted(&shown(&folder)));
        remove(&SystemExec, &folder).unwrap();
        assert!(!is_mounted(&shown(&folder)) && !folder.exists());
        drop(server);
        // A server that was killed leaves its mount, which nobody can look into.
        let folder = above.path().join("two");
        drop(served(&folder).unwrap());
        remove(&SystemExec, &folder).unwrap();
        assert!(!folder.exists());
    }
}
