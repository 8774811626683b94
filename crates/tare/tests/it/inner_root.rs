//! Tests that mounts into the built-in container land inside of it, whatever symlinks are in the path, and that it
//! has a separate session keyring. Needs root.

use crate::prelude::*;

use tare_model::launch::{Bind, Seccomp};

use crate::launcher::{output_of, roots};

#[test]
fn bind_targets_behind_links_stay_inside() {
    let (_turn, world) = needed!(roots("links"));
    let at = |name: &str| world.folder.path().join(name);
    for folder in ["outside", "volume", "bound"] {
        fs::create_dir(at(folder)).unwrap();
    }
    fs::write(at("bound/mark"), "as bound").unwrap();
    // Symlinks by the owner of the volume: absolute, and climbing out of it.
    std::os::unix::fs::symlink(at("outside"), at("volume/absolute")).unwrap();
    let climbing = Path::new("../../../../../..").join(at("outside").strip_prefix("/").unwrap());
    std::os::unix::fs::symlink(climbing, at("volume/climbing")).unwrap();
    let below_run = format!("/var/run/tare-it-{}", std::process::id());
    let targets = [
        "/volume/absolute/folder".to_owned(),
        "/volume/climbing/folder".to_owned(),
        // A symlink of the host's own userland.
        below_run.clone(),
    ];
    let script = targets
        .iter()
        .map(|target| format!("cat {target}/mark; echo; "))
        .collect::<Vec<_>>()
        .concat();
    let text = output_of(&world, &script, |spec| {
        let bind = |source: &Path, target: &str| Bind {
            source: source.display().to_string(),
            target: target.to_owned(),
            read_only: true,
        };
        spec.binds.push(bind(&at("volume"), "/volume"));
        let bound = at("bound");
        let binds = targets.iter().map(|target| bind(&bound, target));
        spec.binds.extend(binds);
    });
    assert_eq!(text.lines().collect::<Vec<_>>(), ["as bound"; 3], "{text}");
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0);
    assert!(!Path::new(&below_run).exists(), "it was made on the host");
}

#[test]
fn session_keyring_is_the_containers_own() {
    // The number of the session keyring: keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING).
    const ASK: &str = "import ctypes; print(ctypes.CDLL(None).syscall(250, 0, -3, 1))";
    const PYTHON: &str = "/usr/bin/python3";
    let (_turn, world) = needed!(roots("keyring"));
    let outside = Command::new(PYTHON).args(["-c", ASK]).output();
    let Some(outside) = outside.ok().filter(|_| cfg!(target_arch = "x86_64")) else {
        return skip("python3", "asks for the keyring by a call of x86_64");
    };
    let outside = lossy(&outside.stdout);
    if outside.trim() == "-1" {
        return skip("kernel", "it has no keyrings");
    }
    let inside = output_of(&world, &format!("{PYTHON} -c '{ASK}'"), |spec| {
        spec.seccomp = Seccomp::Off;
    });
    assert_ne!(inside.trim(), "-1");
    assert_ne!(inside, outside);
}
