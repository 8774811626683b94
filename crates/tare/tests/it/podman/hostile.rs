//! A user whose storage and folders were made to hold up or exhaust whoever cleans up after a run: pipes that nobody
//! writes to, links to files without end, and a podman that answers without end. Nothing of it is read or waited for.

use crate::prelude::*;

use std::os::unix::fs::symlink;

use super::{Instead, PODMAN, place};

/// Far more than looking and removing takes, and less than any limit on waiting for somebody who never answers.
const AT_ONCE: Duration = Duration::from_secs(45);

/// Leaves a pipe, an endless file and a folder of both.
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
fn pipes_and_endless_files_in_what_a_user_left_are_removed_unread() {
    let place = needed!(place("hostile"));
    let cx = place.world.cx();
    let settings = Params::new().with("storage", "bind");
    let (mut environment, instance) = place.started("arm", &settings, StartMode::Resident);
    drop(instance);
    // The folder that the container shares with the host is the user's to fill.
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

/// The same command where `podman` prints without end.
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
fn a_podman_that_answers_without_end_is_cut_off_and_the_record_of_the_run_stays() {
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
    // The real one still finds and removes what there is.
    environment.remove(&cx).unwrap();
    place.assert_nothing_is_left();
}
