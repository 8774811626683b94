//! Tests a user whose storage and folders are meant to block or exhaust the cleanup after a run: pipes without a
//! writer, links to endless files, and a podman that answers without end. None of it is read or waited for.

use crate::prelude::*;

use std::os::unix::fs::symlink;

use super::{Instead, PODMAN, place};

/// Far more than checking and removing takes, and less than any limit for an answer that never comes.
const AT_ONCE: Duration = Duration::from_secs(45);

/// Leaves a named pipe, a link to an endless file, and a link to the root.
fn plant(folder: &Path) {
    let pipe = folder.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    symlink("/dev/zero", folder.join("endless")).unwrap();
    symlink("/", folder.join("everything")).unwrap();
}

#[test]
fn pipes_and_endless_leftovers_are_removed_unread() {
    let place = needed!(place("hostile"));
    let cx = place.world.cx();
    let settings = params("storage = 'bind'");
    let (mut environment, instance) = place.started("arm", &settings, StartMode::Resident);
    drop(instance);
    // The user can fill the folder that the container shares with the host.
    let scratch = place.world.folder.path().to_owned();
    let mut folders: Vec<_> = fs::read_dir(&scratch)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.path())
        .collect();
    folders.retain(|folder| folder.to_string_lossy().contains("tare-"));
    assert!(!folders.is_empty());
    for folder in &folders {
        plant(folder);
    }
    let begin = Instant::now();
    environment.remove(&cx).unwrap();
    drop(environment);
    PODMAN.sweep(&cx, place.world.run.as_str()).unwrap();
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    assert!(Path::new("/etc").exists());
    place.assert_nothing_is_left();
}

/// Returns the same command with a `podman` that prints without end.
fn endless(command: &CommandLine) -> CommandLine {
    let mut command = command.clone();
    let words: Vec<&String> = std::iter::once(&command.program)
        .chain(&command.arguments)
        .collect();
    let Some(at) = words.iter().position(|word| **word == "podman") else {
        return command;
    };
    if at == 0 {
        command.program = "cat".into();
        command.arguments = vec!["/dev/zero".into()];
    } else {
        command.arguments.truncate(at - 1);
        command.arguments.extend(["cat".into(), "/dev/zero".into()]);
    }
    command
}

#[test]
fn endless_podman_answer_is_cut_off_and_record_stays() {
    let place = needed!(place("endless"));
    let cx = place.world.cx();
    let mut environment = place.environment("arm", &Params::new());
    environment.prepare(&cx).unwrap();
    let exec = Instead(endless);
    let mut without_end = place.world.cx();
    without_end.exec = &exec;
    let begin = Instant::now();
    let error = place
        .driver
        .sweep(&without_end, place.world.run.as_str())
        .unwrap_err();
    assert!(error.to_string().contains("printed more"), "{error}");
    assert!(begin.elapsed() < AT_ONCE, "{:?}", begin.elapsed());
    // The real one still finds and removes everything.
    environment.remove(&cx).unwrap();
    place.assert_nothing_is_left();
}
