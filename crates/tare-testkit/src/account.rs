//! The unprivileged user that rootless podman is tested as, if the tests run as root.
//!
//! The user is created when the first test needs it and removed when the last test that holds it ends, along with
//! what podman keeps for a user: its home with the storage, the folder for running containers, the lock in shared
//! memory and the process that holds its namespace.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Name of an existing user for tests, and prefix of the name of a created one.
const NAME: &str = "tare-test";

/// Number of tests that hold the user.
static HOLDERS: Mutex<u32> = Mutex::new(0);

/// A test's hold on the user.
pub struct Account {
    /// `None` if the tests' own user is unprivileged.
    name: Option<String>,
    is_made: bool,
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    status("Uid:").split_whitespace().nth(1) == Some("0")
}

/// Whether the tests have the capability with this number.
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
    /// Acquires the user; the error says why there is none.
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

    /// Returns its name; `None` if the tests' own user is unprivileged.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Sets a folder's mode, to open it to the user or to close it.
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
    // If useradd assigns no ranges, these are far above those of other users.
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

/// Runs `podman` as this user, or as the caller's without one, and returns its output.
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

/// Removes the user and everything that podman keeps for it.
fn remove(name: &str) -> Result<(), String> {
    let uid = succeeds("id", &["-u", name])?;
    // Ends the process that holds the user's namespace; no container is left at this point.
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
