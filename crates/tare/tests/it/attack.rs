//! What somebody inside would try first, tried in each kind of environment: devices of the host's, its secrets,
//! the kernel's switches and doors, the engine's socket, another run's files. All of it has to be denied.

use std::collections::BTreeMap;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use tare_model::launch::{LaunchSpec, Rootfs};

use crate::launcher::{is_root, launcher, report, shell};
use crate::world::{World, skip, turn};

/// The attacker. For x86_64: it makes system calls by number.
const SCRIPT: &str = include_str!("attack.py");

/// What must stay the host's, planted in a folder of the test's own.
struct Planted {
    _socket: UnixListener,
    hidden: Vec<String>,
    targets: Vec<String>,
}

fn plant(folder: &Path) -> Planted {
    let home = folder.join("home-of-tare");
    let other = home.join("runs/another-run");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("spec.json"), "secret").unwrap();
    std::fs::write(home.join("store.sqlite"), "secret").unwrap();
    let key = folder.join("key");
    std::fs::write(&key, "secret").unwrap();
    let engine = folder.join("engine.sock");
    let text = |path: &Path| path.display().to_string();
    Planted {
        _socket: UnixListener::bind(&engine).unwrap(),
        targets: vec![
            format!("store={}", text(&home.join("store.sqlite"))),
            format!("another-run={}", text(&other)),
            format!("key={}", text(&key)),
            format!("engine={}", text(&engine)),
            "shadow=/etc/shadow".into(),
            "root=/root".into(),
            "ssh=/etc/ssh/ssh_host_ed25519_key".into(),
        ],
        hidden: [&home, &key, &engine]
            .into_iter()
            .map(|path| text(path))
            .chain(["/etc/shadow", "/root", "/etc/ssh"].map(str::to_owned))
            .collect(),
    }
}

/// Whether the attacker can be started here; says why not.
fn has_attacker() -> bool {
    if !cfg!(target_arch = "x86_64") {
        skip("python3", "the attacker knows the calls of x86_64");
        return false;
    }
    let has_python = Command::new("python3").arg("-V").output().is_ok();
    if !has_python {
        skip("python3", "python3 is not installed");
    }
    has_python
}

fn assert_denied(output: &str) {
    let outcomes: BTreeMap<&str, &str> = output
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert!(outcomes.len() >= 13, "{output}");
    for (name, outcome) in outcomes {
        assert!(outcome.starts_with("denied"), "{name} {outcome}\n{output}");
    }
}

/// The built-in container around the attacker, with the planted secrets hidden.
fn attacked(world: &World, planted: &Planted, change: impl Fn(&mut LaunchSpec)) -> LaunchSpec {
    let script = world.folder.path().join("attack.py");
    std::fs::write(&script, SCRIPT).unwrap();
    let mut spec = shell(world, "");
    spec.argv = ["/usr/bin/env", "python3"]
        .into_iter()
        .map(str::to_owned)
        .chain([script.display().to_string(), "/tare-work".into()])
        .chain(planted.targets.iter().cloned())
        .collect();
    spec.hidden.clone_from(&planted.hidden);
    change(&mut spec);
    spec
}

#[test]
fn nothing_of_the_hosts_is_reached_from_the_container_of_root() {
    if !is_root() || !has_attacker() {
        return;
    }
    let _turn = turn();
    let world = World::new("attack");
    let planted = plant(world.folder.path());
    let changes: [fn(&mut LaunchSpec); 3] = [
        |_| {},
        // Without control groups there are no device rules.
        |spec| spec.cgroup = false,
        |spec| {
            spec.rootfs = Rootfs::Host;
            spec.workdir = format!("{}/files", spec.scratch);
            let place = spec.workdir.clone();
            spec.argv[3].clone_from(&place);
        },
    ];
    for change in changes {
        let spec = attacked(&world, &planted, change);
        let output = launcher(&world, &spec).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {words}", report(&spec));
        assert_denied(&text);
        let report = report(&spec);
        assert_eq!(report.device_rules.is_some(), spec.cgroup);
        let is_told = report.missing.iter().any(|one| one.what == "CAP_MKNOD");
        assert_eq!(is_told, !spec.cgroup, "{:?}", report.missing);
        std::fs::remove_dir_all(&spec.scratch).unwrap();
    }
}

#[test]
fn nothing_of_the_users_is_reached_from_the_container_of_an_ordinary_user() {
    if !is_root() || !has_attacker() {
        return;
    }
    let _turn = turn();
    let mut world = World::new("attack-user");
    world.folder = tempfile::Builder::new()
        .prefix("tare-it-")
        .tempdir_in("/var/tmp")
        .unwrap();
    let planted = plant(world.folder.path());
    let agent = world.folder.path().join("agent");
    std::fs::copy(&world.agents.host().path, &agent).unwrap();
    let spec = attacked(&world, &planted, |spec| {
        spec.agent = agent.display().to_string();
    });
    let command = launcher(&world, &spec);
    let own = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(world.folder.path())
        .status()
        .unwrap();
    assert!(own.success());
    chown(world.folder.path(), Some(65534), Some(65534)).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&agent)
        .args(command.get_args())
        .output()
        .unwrap();
    if let Some(error) = report(&spec).error {
        return skip("userns", &format!("an ordinary user cannot: {error}"));
    }
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {words}", report(&spec));
    assert_denied(&String::from_utf8_lossy(&output.stdout));
}
