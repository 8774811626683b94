//! Serves a folder of this machine through a file system in user space (FUSE): every stat, open and read goes through
//! it, as when a desktop shares a folder with the machine that runs its containers.
//!
//! `bindfs` mounts the subfolder `files` at the subfolder `shown`, which containers get. It carries out one request
//! after another, and reads through the page cache even if a program asks for direct I/O. A mount outlives its
//! program, so it is looked up in the kernel's list and unmounted before the folder is removed.
//! Limits: an engine in another mount namespace is not detected from here; it is asked whether it sees a file of the
//! folder.

use crate::env::prelude::*;

use bollard::query_parameters::ContainerArchiveInfoOptions;
use tare_model::launch::RUN_VARIABLE;
use tare_model::mountinfo::Mount;

use super::super::image::WORKDIR;
use super::api::Api;
use crate::cx::Exec;

/// The FUSE program.
const PROGRAM: &str = "bindfs";
/// Keeps it in the foreground, as a child.
const FOREGROUND: &str = "-f";
/// Disables caching of attributes and entries, as when a folder is shared consistently with another system.
const NOTHING_KEPT: &str = "attr_timeout=0,entry_timeout=0,negative_timeout=0";
/// The mounts visible to this process.
const MOUNTS: &str = "/proc/self/mountinfo";
/// How long the mount may take to appear.
const SHOW_LIMIT: Duration = Duration::from_secs(10);
/// Polling interval.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A marker file, to check that an engine sees the folder.
const MARK: &str = ".tare-shown";

/// The program that serves a folder; killed when dropped.
pub(super) struct Server(Box<dyn Running>);

/// The subfolder with the files.
fn kept(folder: &Path) -> PathBuf {
    folder.join("files")
}

/// The subfolder where they are mounted.
pub(super) fn shown(folder: &Path) -> PathBuf {
    folder.join("shown")
}

/// Checks that a folder can be served here; `elsewhere` is why the engine's machine is another one, if it is.
pub(super) fn check(cx: &Context<'_>, elsewhere: Option<&str>) -> Result<(), EnvError> {
    if let Some(why) = elsewhere {
        return Err(EnvError::absent(
            format!("a folder of this machine cannot be served there: {why}"),
            "use `storage = \"volume\"`",
        ));
    }
    let absent = |why: String| {
        EnvError::absent(
            why,
            format!(
                "`sudo apt-get install {PROGRAM}`, and a kernel that gives containers and users `/dev/fuse`"
            ),
        )
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

/// Creates both subfolders and mounts one at the other.
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
        return Err(EnvError::refused(
            format!("`{PROGRAM}` does not show the folder `{}`", text(&from)),
            printable(&server.0.stderr_tail()),
        ));
    }
    Ok(server)
}

/// Checks that the engine sees the mount, by the marker in the working directory of a created container.
pub(super) fn is_seen(api: &Api, container: &str) -> Result<(), EnvError> {
    let options = ContainerArchiveInfoOptions {
        path: format!("{WORKDIR}/{MARK}"),
    };
    let request = api
        .client
        .get_container_archive_info(container, Some(options));
    let what = "look for the served folder in the container";
    let found = api.found(what, CONTROL_LIMIT, request)?;
    found.map(drop).ok_or_else(|| {
        EnvError::absent(
            "the engine does not see the folder that is served here: it has mounts of its own, or another user's are closed to it",
            "have the engine share this machine's mounts, and run as root",
        )
    })
}

/// Unmounts the folder if it is mounted, even if its program is gone; the server ends with the mount.
fn end(exec: &dyn Exec, folder: &Path) -> Result<(), EnvError> {
    let to = shown(folder);
    if !is_mounted(&to) {
        return Ok(());
    }
    let mut answer = String::new();
    let path = to.display().to_string();
    // The second is for root only, and works if the first is not installed.
    for (program, options) in [("fusermount3", "-uz"), ("umount", "-l")] {
        match exec.run(
            &CommandLine::new(program, [options.to_owned(), path.clone()]),
            b"",
            CONTROL_LIMIT,
        ) {
            Ok(_) if !is_mounted(&to) => return Ok(()),
            Ok(finished) => answer = printable(&finished.stderr_text()),
            Err(error) => answer = error.to_string(),
        }
    }
    Err(EnvError::refused(
        format!("`{path}` cannot be unmounted"),
        answer,
    ))
}

/// Unmounts and removes a folder of this machine.
pub(super) fn remove(exec: &dyn Exec, folder: &Path) -> Result<(), EnvError> {
    end(exec, folder)?;
    Ok(files::remove_folder(folder)?)
}

/// Whether something is mounted at this path.
fn is_mounted(path: &Path) -> bool {
    // Do not stat the last component: its server may be gone.
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

    /// A served folder, if `bindfs` works here.
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
    fn served_folder_shows_writes_and_removal_unmounts_it() {
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
        // A killed server leaves its mount, which cannot be read.
        let folder = above.path().join("two");
        drop(served(&folder).unwrap());
        remove(&SystemExec, &folder).unwrap();
        assert!(!folder.exists());
    }
}
