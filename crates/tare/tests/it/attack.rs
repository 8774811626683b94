//! Runs an attacker's first attempts in each kind of environment: the host's devices, its secrets, the kernel's
//! switches and interfaces, the engine's socket, another run's files. All of it must be denied.

use crate::prelude::*;

use std::os::unix::fs::chown;

use tare::env::FileRequest;
use tare::env::container::Container;
use tare::env::oci::Oci;
use tare::workload::{command_output, python_tool};
use tare_model::Value;
use tare_model::launch::{DockerRelease, LaunchSpec, Rootfs};

use crate::carried::{EMPTY, closed_folder};
use crate::launcher::{launcher, lies_where_others_may_go, report, roots, shell};
use crate::product::with_own_mounts;

/// The attacker, for x86_64: it makes syscalls by number.
const SCRIPT: &str = include_str!("attack.py");

/// Its interpreter, not a shim in a home.
const PYTHON: &str = "/usr/bin/python3";

/// A store in a place that the user chose.
const STORE: &str = "elsewhere.sqlite";

/// Objects of the host that must stay private, planted in the test's folder.
struct Planted {
    _socket: UnixListener,
    hidden: Vec<String>,
    targets: Vec<String>,
}

fn plant(folder: &Path) -> Planted {
    let home = folder.join("home-of-tare");
    let other = home.join("runs/another-run");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("spec.json"), "secret").unwrap();
    fs::write(home.join("store.sqlite"), "secret").unwrap();
    let key = folder.join("key");
    fs::write(&key, "secret").unwrap();
    let user = folder.join("home-of-user");
    fs::create_dir(&user).unwrap();
    fs::write(user.join(".netrc"), "secret").unwrap();
    let elsewhere = folder.join(STORE);
    fs::write(&elsewhere, "secret").unwrap();
    let engine = folder.join("engine.sock");
    let text = |path: &Path| path.display().to_string();
    Planted {
        _socket: UnixListener::bind(&engine).unwrap(),
        targets: vec![
            format!("store={}", text(&home.join("store.sqlite"))),
            format!("another-run={}", text(&other)),
            format!("key={}", text(&key)),
            format!("home={}", text(&user.join(".netrc"))),
            format!("store-elsewhere={}", text(&elsewhere)),
            format!("engine={}", text(&engine)),
            "shadow=/etc/shadow".into(),
            "root=/root".into(),
            "ssh=/etc/ssh/ssh_host_ed25519_key".into(),
            "backups=/var/backups".into(),
        ],
        hidden: [&home, &key, &user, &elsewhere, &engine]
            .into_iter()
            .map(|path| text(path))
            .chain(["/etc/shadow", "/root", "/etc/ssh", "/var/backups"].map(str::to_owned))
            .collect(),
    }
}

/// Whether the attacker can run here; reports a skip if not.
fn has_attacker() -> bool {
    if !cfg!(target_arch = "x86_64") {
        skip("python3", "the attacker knows the calls of x86_64");
        return false;
    }
    let has_python = Command::new(PYTHON).arg("-V").output().is_ok();
    if !has_python {
        skip("python3", &format!("there is no `{PYTHON}`"));
    }
    has_python
}

fn assert_denied(output: &str) {
    assert_denied_but(output, &[]);
}

/// Asserts that all was denied except what this environment's defaults allow.
fn assert_denied_but(output: &str, allowed: &[&str]) {
    let outcomes: BTreeMap<&str, &str> = output
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert!(outcomes.len() >= 13, "{output}");
    for (name, outcome) in outcomes {
        let is_denied = outcome.starts_with("denied") || allowed.contains(&name);
        assert!(is_denied, "{name} {outcome}\n{output}");
    }
}

/// Returns the built-in container with the attacker, with the planted secrets hidden.
fn attacked(world: &World, planted: &Planted, change: impl Fn(&mut LaunchSpec)) -> LaunchSpec {
    let script = world.folder.path().join("attack.py");
    fs::write(&script, SCRIPT).unwrap();
    let mut spec = shell(world, "");
    spec.argv = ["/usr/bin/env", PYTHON]
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
fn container_of_root_cannot_reach_host() {
    let (_turn, world) = needed!(turn_where("attack", |_| needs_root() && has_attacker()));
    let planted = plant(world.folder.path());
    let changes: [fn(&mut LaunchSpec); 3] = [
        |_| {},
        // Without cgroups there are no device rules.
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
        let text = lossy(&output.stdout);
        let words = lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {words}", report(&spec));
        assert_denied(&text);
        let report = report(&spec);
        assert_eq!(report.device_rules.is_some(), spec.cgroup);
        let is_told = report.missing.iter().any(|one| one.what == "CAP_MKNOD");
        assert_eq!(is_told, !spec.cgroup, "{:?}", report.missing);
        fs::remove_dir_all(&spec.scratch).unwrap();
    }
}

#[test]
fn container_of_user_cannot_reach_user_data() {
    let (_turn, mut world) = needed!(turn_where("attack-user", |_| needs_root() && has_attacker()));
    lies_where_others_may_go(&mut world);
    let planted = plant(world.folder.path());
    let agent = world.folder.path().join("agent");
    fs::copy(&world.agents.host().path, &agent).unwrap();
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
    let output = as_nobody(&agent).args(command.get_args()).output().unwrap();
    if let Some(error) = report(&spec).error {
        return skip("userns", &format!("an ordinary user cannot: {error}"));
    }
    let words = lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {words}", report(&spec));
    assert_denied(&lossy(&output.stdout));
}

/// Returns the attacker's output in an instance of this environment, which has its interpreter like any tool.
fn printed_inside(
    driver: &dyn Driver,
    world: &World,
    settings: &Params,
    targets: &[String],
) -> String {
    let cx = world.cx();
    let arm = arm_id("arm");
    let mut environment = driver.configure(arm, settings).unwrap();
    let python = Params::new().with("python", PYTHON);
    let tool = python_tool::tool(&python, "ctypes, os, socket, stat, sys");
    let tells = [tool.program.clone()].into_iter();
    environment.provide(&FileRequest {
        programs: vec![tool.program.clone()],
        told_by: vec![tells.chain(tool.files_told_by).collect()],
        ..FileRequest::default()
    });
    environment.prepare(&cx).unwrap();
    let mut instance = environment.resident(world);
    let arguments = ["attack.py".to_owned(), "{folder}".to_owned()];
    let arguments = arguments.into_iter().chain(targets.iter().cloned());
    let call = CommandCall::new(&tool.program, arguments).with_file("attack.py", SCRIPT);
    let reply = crate::talk::once(instance.as_mut(), 1, call.to_probe());
    environment.end(instance, &cx);
    let Reply::Done { raw, .. } = reply else {
        panic!("{reply:?}");
    };
    let report = command_output::report(&raw).unwrap();
    String::from_utf8(report.stdout.0).unwrap()
}

#[test]
fn docker_container_cannot_reach_host() {
    let world = needed!(crate::docker::world("attack"));
    if !has_attacker() {
        return;
    }
    let facts = crate::docker::engine_facts(&world);
    let allowed: &[&str] = match DockerRelease::of_engine(&facts["engine.version"]) {
        DockerRelease::V20 => &["io_uring", "vsock"],
        _ => &[],
    };
    let planted = plant(world.folder.path());
    let output = printed_inside(&DOCKER, &world, &Params::new(), &planted.targets);
    assert_denied_but(&output, allowed);
}

#[test]
fn why_userland_in_docker_cannot_reach_host() {
    if !needs_root() || !has_attacker() {
        return;
    }
    let world = needed!(crate::docker::world("attack-userland"));
    let closed = closed_folder();
    let key = closed.path().join("key");
    fs::write(&key, "secret").unwrap();
    // The engine is root for every client.
    let userland = crate::carried::userland_of_a_user("KUBECONFIG", &key);
    let empty = tempfile::tempdir().unwrap();
    let nothing = empty.path().display().to_string();
    let binds = userland
        .iter()
        .map(|bind| Value::Text(bind.replace(EMPTY, &nothing)));
    let settings = Params::new().with("binds", Value::List(binds.collect()));
    let targets = [
        format!("key={}", key.display()),
        "shadow=/etc/shadow".into(),
        "ssl=/etc/ssl/private".into(),
        "sudoers=/etc/sudoers.d".into(),
        "ssh=/etc/ssh/ssh_host_ed25519_key".into(),
        // A readable file, to show that there is something to protect.
        "shown=/etc/passwd".into(),
    ];
    let output = printed_inside(&DOCKER, &world, &settings, &targets);
    assert_says(&output, "shown DONE");
    let defaults = ["io_uring", "vsock", "shown"];
    assert_denied_but(&output, &defaults);
}

#[test]
fn rootless_podman_container_cannot_reach_host() {
    if !has_attacker() {
        return;
    }
    let place = needed!(crate::podman::place("attack"));
    let folder = tempfile::tempdir().unwrap();
    let planted = plant(folder.path());
    let output = printed_inside(
        &place.driver,
        &place.world,
        &Params::new(),
        &planted.targets,
    );
    // Its defaults allow user namespaces and every socket family.
    assert_denied_but(&output, &["unshare", "vsock"]);
}

#[test]
fn a_mask_that_cannot_be_laid_is_a_refusal() {
    let (_turn, world) = needed!(roots("no-mask"));
    let mut spec = shell(&world, "echo started");
    // The machine's own `/sys` is masked, and a link to itself cannot be resolved.
    (spec.mounts.sys, spec.cgroup) = (false, false);
    let script = "mount -t tmpfs none /sys && ln -s firmware /sys/firmware || exit 99; exec \"$@\"";
    let output = with_own_mounts(script, &[], &launcher(&world, &spec)).output();
    let output = output.unwrap();
    if output.status.code() == Some(99) {
        return skip("root", "nothing can be mounted here");
    }
    let refusal = report(&spec).error.unwrap();
    assert_says(&refusal.step, "mask `/sys/firmware`");
    assert!(refusal.hint.unwrap().contains("masked_paths"));
    assert_eq!(lossy(&output.stdout), "");
}

/// Names the runtime, or the built-in container, for a test body that runs in a child process of another test.
const CHILD: &str = "TARE_TEST_ATTACKED";

/// The child's targets, one a line.
const TARGETS: &str = "TARE_TEST_TARGETS";

/// The file of the child's agent.
const AGENT: &str = "TARE_TEST_ATTACKED_AGENT";

/// What the child prints if the environment is not available.
const NOT_HERE: &str = "not here: ";

#[test]
#[ignore = "runs in a child process of another test"]
fn child_is_attacked() {
    let (Ok(kind), Ok(targets)) = (std::env::var(CHILD), std::env::var(TARGETS)) else {
        return;
    };
    let agent = std::env::var(AGENT).unwrap();
    let mut world = World::with_agent("attacked", Path::new(&agent));
    // Relative, as a user would type it.
    world.store = Some(STORE.into());
    let (driver, settings): (&dyn Driver, _) = if kind == "container" {
        (&Container, Params::new())
    } else {
        (&Oci, Params::new().with("runtime", kind))
    };
    if let Availability::Absent { why, .. } = driver.detect(&world.cx()) {
        println!("\n{NOT_HERE}{why}");
        return;
    }
    let targets: Vec<String> = targets.lines().map(str::to_owned).collect();
    let open = settings.clone().with("private_paths", false);
    let output = printed_inside(driver, &world, &open, &targets);
    for name in ["home", "store", "store-elsewhere", "another-run"] {
        let is_seen = output.contains(&format!("{name} DONE"));
        assert!(is_seen, "nothing to protect: {name}\n{output}");
    }
    assert_denied(&printed_inside(driver, &world, &settings, &targets));
}

/// Attacks this kind of environment with its defaults, as root or as an ordinary user. Private objects are where a
/// user may put them: a home that is itself on the search path, a state folder and a store named relative to the
/// working directory, an engine's socket named by a variable.
fn assert_denied_by_default(kind: &str, is_root: bool) {
    // On the root's file system; otherwise an overlay over it does not contain it.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let planted = plant(folder.path());
    // The key has no known place.
    let of_store = |target: &&String| !target.starts_with("key=");
    let targets = planted.targets.iter().filter(of_store);
    // Programs of the search path are visible, even those in a home.
    let targets: Vec<_> = targets
        .map(|target| target.replace("root=/root", "root=/root/.profile"))
        .collect();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::copy(crate::world::agent(), at("agent")).unwrap();
    let mut command = of_this_program("attack::child_is_attacked", is_root);
    let path = std::env::var("PATH").unwrap();
    command
        .current_dir(folder.path())
        .env(CHILD, kind)
        .env(TARGETS, targets.join("\n"))
        .env(AGENT, at("agent"))
        .env("TMPDIR", folder.path())
        .env("TARE_HOME", "home-of-tare")
        .env("HOME", at("home-of-user"))
        .env("PATH", format!("{path}:{}", at("home-of-user")))
        .env("CONTAINER_HOST", format!("unix://{}", at("engine.sock")))
        // No engine: the newest list.
        .env("DOCKER_HOST", format!("unix://{}", at("nobody.sock")));
    if !is_root {
        let own = Command::new("chown")
            .args(["-R", NOBODY])
            .arg(folder.path())
            .status();
        assert!(own.unwrap().success());
    }
    let output = command.output().unwrap();
    let stdout_text = lossy(&output.stdout);
    let words = lossy(&output.stderr);
    if let Some(why) = stdout_text
        .lines()
        .find_map(|line| line.strip_prefix(NOT_HERE))
    {
        return skip(if is_root { "container" } else { "userns" }, why);
    }
    assert!(
        output.status.success() && stdout_text.contains("1 passed"),
        "{kind}: {stdout_text}{words}"
    );
}

/// An ordinary user without any rights.
const NOBODY: &str = "65534:65534";

/// Returns a test of this program as a separate process, as root or as an ordinary user.
pub(crate) fn of_this_program(test: &str, is_root: bool) -> Command {
    let own = child(test);
    if is_root {
        return own;
    }
    // Passed as an open file: an ordinary user may not reach its path.
    let mut command = as_nobody("/proc/self/fd/0");
    command.stdin(fs::File::open(own.get_program()).unwrap());
    command.args(own.get_args());
    command
}

#[test]
fn runtime_container_cannot_reach_host() {
    if !needs_root() || !has_attacker() {
        return;
    }
    let _turn = turn();
    for runtime in ["runc", "crun"] {
        let world = World::new("attack-runtime");
        if crate::oci::is_available(&world, runtime) {
            assert_denied_by_default(runtime, true);
        }
    }
}

#[test]
fn built_in_container_default_reaches_no_host() {
    if !needs_root() || !has_attacker() {
        return;
    }
    let _turn = turn();
    for is_root in [true, false] {
        assert_denied_by_default("container", is_root);
    }
}
