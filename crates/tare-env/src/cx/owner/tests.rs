//! Tests of run ownership in real folders: marks, locks, links, and folders that are left alone.

use std::fs;

use super::*;

fn run(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(everything(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn run_is_alive_while_owner_lives_then_dead() {
    let state = tempfile::tempdir().unwrap();
    let owner = Owner::acquire(state.path(), &run("a")).unwrap();
    assert!(dead_runs(state.path()).unwrap().is_empty());
    assert!(Owner::take_dead(state.path(), &run("a")).unwrap().is_none());
    assert!(matches!(
        Owner::acquire(state.path(), &run("a")),
        Err(OwnerError::Busy(_))
    ));
    drop(owner);
    assert_eq!(dead_runs(state.path()).unwrap(), [run("a")]);
    let again = Owner::acquire(state.path(), &run("a")).unwrap();
    drop(again);
    let taken = Owner::take_dead(state.path(), &run("a")).unwrap().unwrap();
    // While a dead run is cleaned up, it cannot be resumed.
    assert!(matches!(
        Owner::acquire(state.path(), &run("a")),
        Err(OwnerError::Busy(_))
    ));
    taken.remove().unwrap();
    assert!(dead_runs(state.path()).unwrap().is_empty());
}

#[test]
fn owner_removes_its_folder_recursively() {
    let state = tempfile::tempdir().unwrap();
    let owner = Owner::acquire(state.path(), &run("b")).unwrap();
    files::write(&owner.folder().join("file"), b"x").unwrap();
    files::create_folder(&owner.folder().join("zz/deep/er")).unwrap();
    let folder = owner.folder().to_owned();
    owner.remove().unwrap();
    assert!(!folder.exists());
}

#[cfg(unix)]
#[test]
fn last_run_closes_the_way_through_again() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let [one, other] = ["a", "b"].map(|name| Owner::acquire(&state, &run(name)).unwrap());
    let runs = state.join("runs");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let_through(one.folder()).unwrap();
    assert_eq!([mode(&state), mode(&runs)], [0o711; 2]);
    one.remove().unwrap();
    // The other run may still need it.
    assert_eq!([mode(&state), mode(&runs)], [0o711; 2]);
    other.remove().unwrap();
    assert_eq!([mode(&state), mode(&runs)], [0o700; 2]);
}

#[test]
fn looking_up_dead_runs_creates_no_files() {
    let state = tempfile::tempdir().unwrap();
    assert!(dead_runs(state.path()).unwrap().is_empty());
    assert!(Owner::take_dead(state.path(), &run("a")).unwrap().is_none());
    assert_eq!(everything(state.path()), Vec::<PathBuf>::new());
    // Folders of another program that happen to have these names.
    files::create_folder(&state.path().join("runs/one/data")).unwrap();
    files::create_folder(&state.path().join("runs/empty")).unwrap();
    let before = everything(state.path());
    assert!(dead_runs(state.path()).unwrap().is_empty());
    assert!(
        Owner::take_dead(state.path(), &run("one"))
            .unwrap()
            .is_none()
    );
    assert_eq!(everything(state.path()), before);
}

#[test]
fn a_folder_without_the_mark_is_never_a_dead_run() {
    let state = tempfile::tempdir().unwrap();
    drop(Owner::acquire(state.path(), &run("real")).unwrap());
    let runs = state.path().join("runs");
    for (name, text) in [
        ("foreign", ""),
        ("similar", "This folder is a run of Tare"),
        ("longer", &format!("{MARK}x")),
    ] {
        files::create_folder(&runs.join(name)).unwrap();
        fs::write(runs.join(name).join(LOCK), text).unwrap();
        fs::write(runs.join(name).join("data"), "precious").unwrap();
        assert!(
            Owner::take_dead(state.path(), &run(name))
                .unwrap()
                .is_none(),
            "{name}"
        );
        let refused = Owner::acquire(state.path(), &run(name)).unwrap_err();
        assert!(matches!(refused, OwnerError::NotTares(_)), "{refused}");
        assert_eq!(fs::read(runs.join(name).join("data")).unwrap(), b"precious");
    }
    assert_eq!(dead_runs(state.path()).unwrap(), [run("real")]);
}

#[test]
fn folder_with_truncated_mark_can_be_acquired() {
    let state = tempfile::tempdir().unwrap();
    let folder = folder(state.path(), &run("cut"));
    files::create_folder(&folder).unwrap();
    fs::write(folder.join(LOCK), &MARK[..9]).unwrap();
    assert!(dead_runs(state.path()).unwrap().is_empty());
    drop(Owner::acquire(state.path(), &run("cut")).unwrap());
    assert_eq!(dead_runs(state.path()).unwrap(), [run("cut")]);
}

#[test]
#[cfg(unix)]
fn links_to_in_or_out_of_a_run_are_not_followed() {
    use std::os::unix::fs::symlink;
    let state = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join(LOCK), MARK).unwrap();
    fs::write(elsewhere.path().join("data"), "precious").unwrap();
    let owner = Owner::acquire(state.path(), &run("real")).unwrap();
    let runs = state.path().join("runs");
    symlink(elsewhere.path(), runs.join("link")).unwrap();
    files::create_folder(&runs.join("inner")).unwrap();
    symlink(elsewhere.path().join(LOCK), runs.join("inner").join(LOCK)).unwrap();
    assert!(dead_runs(state.path()).unwrap().is_empty());
    for name in ["link", "inner"] {
        let refused = Owner::acquire(state.path(), &run(name)).unwrap_err();
        assert!(
            matches!(refused, OwnerError::NotTares(_)),
            "{name}: {refused}"
        );
    }
    symlink(elsewhere.path(), owner.folder().join("out")).unwrap();
    owner.remove().unwrap();
    assert!(elsewhere.path().join("data").exists());
}

#[test]
#[cfg(unix)]
fn run_folder_is_accessible_only_to_the_user() {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::tempdir().unwrap();
    let state = above.path().join("state");
    let owner = Owner::acquire(&state, &run("a")).unwrap();
    files::write(&owner.folder().join("record"), b"x").unwrap();
    files::write_working(&owner.folder().join("stdin"), b"x").unwrap();
    for path in everything(above.path()) {
        let found = fs::metadata(&path).unwrap();
        let mode = found.permissions().mode() & 0o777;
        let wanted = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{}", path.display());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn folder_with_non_utf8_file_name_is_not_claimed() {
    use std::os::unix::ffi::OsStrExt as _;
    let state = tempfile::tempdir().unwrap();
    let run = RunId::new("r1").unwrap();
    let folder = folder(state.path(), &run);
    std::fs::create_dir_all(&folder).unwrap();
    let odd = folder.join(std::ffi::OsStr::from_bytes(b"\xffprecious"));
    std::fs::write(&odd, "precious").unwrap();
    let refused = Owner::acquire(state.path(), &run).unwrap_err();
    assert!(matches!(refused, OwnerError::NotTares(_)), "{refused}");
    assert_eq!(std::fs::read(&odd).unwrap(), b"precious");
}
