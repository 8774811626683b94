//! The ordinary user that rootless podman is tested as, where the tests run as root.
//!
//! It is made when the first test asks for it and removed when the last test that holds it ends, with what
//! podman keeps for a user: its home with the storage, the folder for running containers, the lock in shared
//! memory and the process that holds its namespace.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The name of a user that is there for tests already, and the beginning of the name of one that is made.
const NAME: &str = "tare-test";

/// How many tests hold the user.
static HOLDERS: Mutex<u32> = Mutex::new(0);

/// A hold on the user.
pub struct Account {
    /// `None` where the tests' own user is an ordinary one.
    name: Option<String>,
    is_made: bool,
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    status("Uid:").split_whitespace().nth(1) == Some("0")
}

/// Whether the tests hold the capability of this number.
pub fn holds_capability(number: u32) -> bool {
    u64::from_str_radix(&status("CapEff:"), 16).unwrap() & (1 << number) != 0
}

fn status(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let text = lines.find_map(|line| line.strip_prefix(field)).unwrap();
    text.trim().to_owned()
}

fn succeeds(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let words = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program} {arguments:?}: {}", words.trim()))
    }
}

impl Account {
    /// Takes hold of the user; why there is none is an error.
    pub fn take() -> Result<Self, String> {
        succeeds("podman", &["--version"])?;
        if !is_root() {
            return Ok(Self {
                name: None,
                is_made: false,
            });
        }
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        if succeeds("id", &["-u", NAME]).is_ok() {
            return Ok(Self {
                name: Some(NAME.to_owned()),
                is_made: false,
            });
        }
        let name = format!("{NAME}-{}", std::process::id());
        if *holders == 0 {
            make(&name)?;
        }
        *holders += 1;
        Ok(Self {
            name: Some(name),
            is_made: true,
        })
    }

    /// Its name; `None` where the tests' own user is an ordinary one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Opens a folder to the user, or closes it.
pub fn set_mode(folder: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn make(name: &str) -> Result<(), String> {
    succeeds("useradd", &["--create-home", "--shell", "/bin/sh", name])?;
    let has_range = |file: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .any(|line| line.starts_with(&format!("{name}:")))
    };
    // Where useradd gives no ranges of its own, these are far above those of others.
    for (file, option) in [
        ("/etc/subuid", "--add-subuids"),
        ("/etc/subgid", "--add-subgids"),
    ] {
        if !has_range(file) {
            succeeds("usermod", &[option, "1500000000-1500065535", name])?;
        }
    }
    Ok(())
}

/// What `podman` prints for this user; for the caller's own without one.
pub fn podman(name: Option<&str>, arguments: &[&str]) -> Result<String, String> {
    let Some(name) = name else {
        return succeeds("podman", arguments);
    };
    let user = format!("--reuid={name}");
    let group = format!("--regid={name}");
    let home = format!("HOME=/home/{name}");
    let path = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    let begin = [
        &user,
        &group,
        "--init-groups",
        "env",
        "-i",
        "-C",
        "/",
        &home,
        path,
        "podman",
    ];
    succeeds("setpriv", &[&begin[..], arguments].concat())
}

/// Removes the user with everything that podman keeps for it.
fn remove(name: &str) -> Result<(), String> {
    let uid = succeeds("id", &["-u", name])?;
    // Ends the process that holds the user's namespace; no container is left by now.
    let migrated = podman(Some(name), &["system", "migrate"]);
    let mut removed = Err(String::new());
    for _ in 0..50 {
        removed = succeeds("userdel", &["--remove", name]);
        if removed.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for folder in [
        format!("/tmp/podman-run-{uid}"),
        format!("/tmp/containers-user-{uid}"),
        format!("/tmp/storage-run-{uid}"),
    ] {
        let _ = std::fs::remove_dir_all(folder);
    }
    let _ = std::fs::remove_file(format!("/dev/shm/libpod_rootless_lock_{uid}"));
    migrated.and(removed).map(|_| ())
}

impl Drop for Account {
    fn drop(&mut self) {
        if !self.is_made {
            return;
        }
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        *holders -= 1;
        if *holders == 0
            && let Some(name) = &self.name
            && let Err(error) = remove(name)
            && !std::thread::panicking()
        {
            panic!("the test's user cannot be removed: {error}");
        }
    }
}
