//! What `tare why` shows of this machine inside, asked in a process of its own with another user or another home.

use crate::prelude::*;

use tare::why::carry::{Wish, carried};

use crate::attack::of_this_program;
use crate::launcher::is_root;

/// The program that a child carries.
const PROGRAM: &str = "TARE_TEST_CARRIED";

/// A variable that it asks for, where an image of its user's holds the program.
const VARIABLE: &str = "TARE_TEST_CARRIED_VARIABLE";

/// A folder with nothing in it.
pub(crate) const EMPTY: &str = "/tare-test-nothing";

#[test]
#[ignore = "runs in a child process of another test"]
fn child_carries() {
    let Ok(program) = std::env::var(PROGRAM) else {
        return;
    };
    let variable = std::env::var(VARIABLE).ok();
    let wish = Wish {
        argv: vec![program],
        has_own_image: variable.is_some(),
        variables: variable.into_iter().collect(),
        empty: EMPTY.into(),
        ..Wish::default()
    };
    let carried = match carried(&wish) {
        Ok(carried) => carried,
        Err(trouble) => {
            println!("\nrefused {trouble}");
            return;
        }
    };
    println!();
    for (what, lines) in [
        ("userland", &carried.userland),
        ("instead", &carried.instead),
        ("own", &carried.own),
        ("told", &carried.notes),
    ] {
        for line in lines {
            println!("{what} {line}");
        }
    }
    for name in carried.call.variables.keys() {
        println!("variable {name}");
    }
}

/// What a child said that began in this folder.
fn said(command: &mut Command, folder: &Path) -> Vec<String> {
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// The userland that an ordinary user has shown, with this variable naming a private place.
pub(crate) fn userland_of_a_user(variable: &str, place: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let mut command = of_this_program("carried::child_carries", false);
    command
        .env(PROGRAM, "/bin/sh")
        .env("TARE_HOME", "/tmp/tare-test-no-state")
        .env(variable, place);
    let said = said(&mut command, folder.path());
    assert!(
        !said.iter().any(|line| line.starts_with("refused")),
        "{said:#?}"
    );
    let lines = said
        .iter()
        .filter_map(|line| line.strip_prefix("userland "));
    lines.map(str::to_owned).collect()
}

/// A folder of root's in the userland that nobody else may look into.
pub(crate) fn closed_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/opt").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

#[test]
fn what_an_ordinary_user_cannot_look_into_is_covered_as_a_whole() {
    if !is_root() {
        return;
    }
    // In the userland, and closed to the user, but not to root in a container of Docker's.
    let closed = closed_folder();
    let key = closed.path().join("key");
    fs::write(&key, "secret").unwrap();
    let userland = userland_of_a_user("KUBECONFIG", &key);
    let cover = format!("{EMPTY}:{}:ro", closed.path().display());
    assert!(userland.contains(&cover), "{userland:#?}");
    assert!(
        userland.contains(&"/opt:/opt:ro".to_owned()),
        "{userland:#?}"
    );
    // A key that can be looked at is covered by itself.
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let userland = userland_of_a_user("KUBECONFIG", &key);
    let cover = format!("/dev/null:{}:ro", key.display());
    assert!(userland.contains(&cover), "{userland:#?}");
}

#[test]
fn of_a_home_nothing_is_shown_for_the_hosts_program_beside_an_image() {
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("home");
    let work = place.path().join("work");
    for folder in [&home, &work] {
        fs::create_dir(folder).unwrap();
    }
    for folder in [&home, &work] {
        fs::copy("/bin/true", folder.join("tool")).unwrap();
    }
    let instead = |program: &Path| {
        let mut command = of_this_program("carried::child_carries", true);
        command
            .env(PROGRAM, program)
            .env(VARIABLE, "HOMEBREW_X=1")
            .env("HOME", &home)
            .env("TARE_HOME", place.path().join("state"));
        said(&mut command, &work)
    };
    let of_home = instead(&home.join("tool"));
    assert!(
        !of_home.iter().any(|line| line.starts_with("instead ")),
        "{of_home:#?}"
    );
    let is_told = |line: &String| line.starts_with("told the host's own program is not tried");
    assert!(of_home.iter().any(is_told), "{of_home:#?}");
    let elsewhere = instead(&work.join("tool"));
    let shown = format!("instead {0}:{0}:ro", work.display());
    assert!(elsewhere.contains(&shown), "{elsewhere:#?}");
    // Nothing but the variable that was asked for, whatever another name begins with.
    let variables = elsewhere
        .iter()
        .filter(|line| line.starts_with("variable "));
    assert_eq!(variables.collect::<Vec<_>>(), ["variable HOMEBREW_X"]);
}
