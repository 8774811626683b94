//! Tests which of this machine's files `tare why` makes visible inside, in a separate process with another user or
//! home.

use crate::prelude::*;

use tare::why::carry::{CarryRequest, carried};

use crate::attack::of_this_program;

/// The variable that names the child's program.
const PROGRAM: &str = "TARE_TEST_CARRIED";

/// A variable that the child asks for if the user's image holds the program.
const VARIABLE: &str = "TARE_TEST_CARRIED_VARIABLE";

/// An empty folder.
pub(crate) const EMPTY: &str = "/tare-test-nothing";

#[test]
#[ignore = "runs in a child process of another test"]
fn child_carries() {
    let Ok(program) = std::env::var(PROGRAM) else {
        return;
    };
    let variable = std::env::var(VARIABLE).ok();
    let wish = CarryRequest {
        argv: vec![program],
        has_own_image: variable.is_some(),
        variables: variable.into_iter().collect(),
        empty: EMPTY.into(),
        ..CarryRequest::default()
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

/// Returns the output of a child that starts in this folder.
fn output_of(command: &mut Command, folder: &Path) -> Vec<String> {
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

/// Returns the mounted userland of an ordinary user, with this variable naming a private place.
pub(crate) fn userland_of_a_user(variable: &str, place: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let mut command = of_this_program("carried::child_carries", false);
    command
        .env(PROGRAM, "/bin/sh")
        .env("TARE_HOME", "/tmp/tare-test-no-state")
        .env(variable, place);
    let shown = output_of(&mut command, folder.path());
    assert!(
        !shown.iter().any(|line| line.starts_with("refused")),
        "{shown:#?}"
    );
    let lines = shown
        .iter()
        .filter_map(|line| line.strip_prefix("userland "));
    lines.map(str::to_owned).collect()
}

/// Creates a folder in the userland that only root may read.
pub(crate) fn closed_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/opt").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

#[test]
fn folder_closed_to_user_is_covered_as_a_whole() {
    if !needs_root() {
        return;
    }
    // In the userland, and closed to the user, but not to root in a Docker container.
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
    // A readable key is covered individually.
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let userland = userland_of_a_user("KUBECONFIG", &key);
    let cover = format!("/dev/null:{}:ro", key.display());
    assert!(userland.contains(&cover), "{userland:#?}");
}

#[test]
fn host_program_with_image_exposes_no_home() {
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
        output_of(&mut command, &work)
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
    // Only the requested variable, not others with the same prefix.
    let variables = elsewhere
        .iter()
        .filter(|line| line.starts_with("variable "));
    assert_eq!(variables.collect::<Vec<_>>(), ["variable HOMEBREW_X"]);
}
