//! Tests runtime failures: it is no runtime, it refuses, it hangs, it is killed, Tare is killed; and odd names.

use crate::prelude::*;

use tare::env::oci::Oci;

use super::{LIMIT, configure, each_runtime, facts, is_available, look, with};
use crate::contract::a_dropped_instance_is_removed;
use crate::world::{system_mounts, with_run};

/// Writes a script that serves as a runtime; returns its path.
fn script(folder: &Path, name: &str, body: &str) -> String {
    let path = folder.join(name);
    executable(&path, format!("#!/bin/sh\n{body}\n"));
    path.display().to_string()
}

/// Returns the error of a start, after which nothing may be left.
fn start_error(world: &World, settings: &Params) -> EnvError {
    let before = Snapshot::take(world);
    let mut environment = configure(settings);
    let error = environment
        .start(&world.cx(), StartMode::Once)
        .err()
        .expect("it was started");
    environment.remove(&world.cx()).unwrap();
    before.assert_restored(world, "a refused start");
    error
}

/// Returns the parent of a process (proc_pid_stat(5)).
fn parent(pid: u32) -> u32 {
    let stat = contents(format!("/proc/{pid}/stat"));
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Whether Tare may create the namespaces that every runtime needs here.
fn may_make_namespaces(world: &World) -> bool {
    let finished = Command::new(&world.agents.host().path)
        .args(["private-mounts", "--", "/bin/true"])
        .output()
        .unwrap();
    if !finished.status.success() {
        skip("root", "only root can make mount namespaces here");
    }
    finished.status.success()
}

#[test]
fn invalid_oci_runtime_is_absent_or_refused() {
    let (_turn, world) = needed!(turn_where("noruntime", may_make_namespaces));
    for name in [
        "/no/such/runtime",
        "/etc",
        "no-such-runtime \"'\u{1b}[31m",
        "/etc/passwd",
    ] {
        let error = start_error(&world, &with(name));
        assert!(
            matches!(error, EnvError::Absent { .. }),
            "{name}: {error:?}"
        );
        assert!(!error.to_string().contains('\u{1b}'), "{error:?}");
    }
    // It succeeds and starts nothing.
    let error = start_error(&world, &with("/bin/true"));
    assert!(error.to_string().contains("status 0"), "{error}");
}

#[test]
fn oci_runtime_error_output_is_escaped() {
    let (_turn, world) = needed!(turn_where("words", may_make_namespaces));
    let own = tempfile::tempdir().unwrap();
    let body = "test \"$1\" = --version && exit 0\nprintf 'level=error \\033[31mno such luck\\n' >&2\nexit 3";
    let runtime = script(own.path(), "run'time \"x\"\n", body);
    let error = start_error(&world, &with(&runtime));
    let text = error.to_string();
    assert_says(&text, "no such luck");
    assert_says(&text, "status 3");
    assert!(!text.contains('\u{1b}') && !text.contains('\n'), "{text:?}");
    let killed = script(
        own.path(),
        "killed",
        "test \"$1\" = --version || kill -9 $$",
    );
    let error = start_error(&world, &with(&killed));
    assert!(error.to_string().contains("signal 9"), "{error}");
}

#[test]
fn hanging_oci_runtime_is_abandoned_on_interrupt() {
    let (_turn, world) = needed!(turn_where("hangs", may_make_namespaces));
    let own = tempfile::tempdir().unwrap();
    let runtime = script(
        own.path(),
        "hangs",
        "test \"$1\" = --version || exec sleep 300",
    );
    let (cancel, run) = (world.cancel.clone(), world.run.to_string());
    std::thread::spawn(move || {
        wait_until("the runtime hangs", || {
            labelled(&run)
                .values()
                .any(|command| command == "sleep 300")
        });
        cancel.request();
    });
    let error = start_error(&world, &with(&runtime));
    assert!(error.to_string().contains("interrupted"), "{error}");
}

#[test]
fn a_runtime_that_is_killed_takes_its_container_along() {
    let _turn = turn();
    for (runtime, world) in each_runtime("killed") {
        let before = Snapshot::take(&world);
        let mut environment = configure(&with(runtime));
        let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
        facts(instance.as_mut());
        let own: Vec<u32> = labelled(world.run.as_str())
            .into_iter()
            .filter(|(_, command)| {
                let program = command.split(' ').next().unwrap_or_default();
                program.ends_with(runtime) && command.contains(" run ")
            })
            .map(|(pid, _)| pid)
            .collect();
        assert_eq!(own.len(), 1, "{runtime} runs in the foreground");
        assert!(signal("KILL", own[0]));
        let answer = instance.channel().receive(LIMIT);
        let Err(ChannelError::Closed(words)) = answer else {
            panic!("{answer:?}");
        };
        assert_says(&words, "signal 9");
        environment.end(instance, &world.cx());
        before.assert_restored(&world, "a killed runtime");
        let swept = Oci.sweep(&world.cx(), world.run.as_str()).unwrap();
        assert!(swept.is_empty(), "{swept:?}");
    }
}

#[test]
fn limits_that_a_runtime_does_not_set_are_refused() {
    let _turn = turn();
    let world = World::new("nolimits");
    if is_available(&world, "crun") {
        let settings = with("crun")
            .with("runtime_args", "--cgroup-manager=disabled")
            .with("pids", 50i64);
        let error = start_error(&world, &settings);
        assert!(error.to_string().contains("cgroup"), "{error}");
    }
}

/// Checks the refusal of limits that gVisor is configured to ignore.
pub(super) fn assert_limits_of_runsc_are_refused(world: &World, runtime: &str) {
    let settings = with(runtime)
        .with("runtime_args", "--ignore-cgroups")
        .with("memory", "512m");
    let error = start_error(world, &settings);
    assert!(error.to_string().contains("do not hold"), "{error}");
}

#[test]
fn impossible_limit_is_refused_with_runtime_message() {
    let (_turn, world) = needed!(turn_where("impossible", |world| is_available(
        world, "runc"
    )));
    let error = start_error(&world, &params("cpuset = '900'"));
    assert!(error.to_string().contains("cpuset"), "{error}");
}

#[test]
fn oci_folder_may_have_quotes_and_control_characters() {
    let _turn = turn();
    let mut world = World::new("quotes");
    if !is_available(&world, "runc") {
        return;
    }
    world.folder = tempfile::Builder::new()
        .prefix("tare \"it's\", a\n\u{1b}[31m:")
        .tempdir()
        .unwrap();
    for runtime in ["runc", "crun"] {
        if is_available(&world, runtime) {
            look(&world, &with(runtime), |_, facts| {
                assert_eq!(facts["status.Seccomp"], "2");
            });
        }
    }
    let error = start_error(&world, &params("rootfs = 'overlay-host'"));
    let EnvError::Absent { why, fix } = &error else {
        panic!("{error:?}");
    };
    assert!(fix.is_some() && !why.contains('\u{1b}'), "{error:?}");
}

#[test]
fn dropped_oci_instance_is_removed_with_environment() {
    let (_turn, world) = needed!(turn_where("dropped", |world| is_available(world, "runc")));
    a_dropped_instance_is_removed(&world, || configure(&Params::new()));
}

/// Set if a test's body runs in a child process of another test.
const CHILD: &str = "TARE_TEST_CHILD";

#[test]
#[ignore = "runs in a child process of another test"]
fn child_starts_and_waits() {
    let Ok(runtime) = std::env::var(CHILD) else {
        return;
    };
    let world = World::new("orphan");
    let settings = with(&runtime).with("network", "veth");
    let mut environment = configure(&settings);
    let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    facts(instance.as_mut());
    println!("\nRUN {}", world.run);
    // Ends when it is killed, or with the test that started it.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Returns a host process with a running container, and its run.
fn host_with_container(runtime: &str, folder: &Path) -> (std::process::Child, String) {
    let mut command = child("oci::faults::child_starts_and_waits");
    with_run(command.env(CHILD, runtime).env("TMPDIR", folder))
}

/// Returns the cgroups and devices of a run that are on the host.
fn left_of(run: &str) -> Vec<String> {
    let mut left = Vec::new();
    for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        let groups = fs::read_dir(hierarchy.path()).into_iter().flatten();
        left.extend(
            groups
                .flatten()
                .map(|entry| entry.path().display().to_string())
                .filter(|path| path.contains(run)),
        );
    }
    left
}

#[test]
fn killed_host_leaves_no_oci_container() {
    let _turn = turn();
    let world = World::new("survivor");
    for runtime in ["runc", "crun"] {
        if !is_available(&world, runtime) {
            continue;
        }
        let before = system_mounts();
        let (mut child, run) = host_with_container(runtime, world.folder.path());
        assert!(!labelled(&run).is_empty() && !left_of(&run).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("its processes are gone", || labelled(&run).is_empty());
        wait_until("its cgroups are gone", || left_of(&run).is_empty());
        assert_eq!(system_mounts(), before);
        let swept = Oci.sweep(&world.cx(), &run).unwrap();
        assert!(swept.is_empty(), "{swept:?}");
    }
}

#[test]
fn cgroups_are_swept_after_host_and_supervisor_kill() {
    let (_turn, world) = needed!(turn_where("sweeper", |world| is_available(world, "runc")));
    let (mut child, run) = host_with_container("runc", world.folder.path());
    let supervisors: Vec<u32> = labelled(&run)
        .into_iter()
        .filter(|(_, command)| command.contains("private-mounts"))
        .map(|(pid, _)| pid)
        .collect();
    assert_eq!(supervisors.len(), 2, "one outside, one inside");
    // PIDs wrap around, so the lower one need not be the older.
    let is_outer = |pid: &&u32| !supervisors.contains(&parent(**pid));
    let outer: Vec<&u32> = supervisors.iter().filter(is_outer).collect();
    assert_eq!(outer.len(), 1, "one is the other's child");
    // While stopped, the host cannot notice it and clean up just before its own end.
    assert!(signal("STOP", child.id()) && signal("KILL", *outer[0]));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("its processes are gone", || labelled(&run).is_empty());
    let other = Oci.sweep(&world.cx(), "it-another-run").unwrap();
    assert!(other.is_empty(), "{other:?}");
    // The inner one may have removed them just before its own end.
    let is_left = !left_of(&run).is_empty();
    let swept = Oci.sweep(&world.cx(), &run).unwrap();
    let is_swept = swept.iter().any(|line| line.contains(&run));
    assert!(is_swept || !is_left, "{swept:?}");
    assert!(left_of(&run).is_empty());
}

#[test]
fn oci_as_ordinary_user_asks_for_root() {
    let (_turn, world) = needed!(turn_where("user", may_make_namespaces));
    let own = tempfile::tempdir().unwrap();
    fs::set_permissions(own.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let agent = own.path().join("agent");
    fs::copy(&world.agents.host().path, &agent).unwrap();
    let finished = as_nobody(&agent)
        .args(["private-mounts", "--", "/bin/true"])
        .output()
        .unwrap();
    let words = lossy(&finished.stderr);
    assert_eq!(finished.status.code(), Some(125), "{words}");
    assert_says(&words, "run as root");
}

#[test]
fn private_mounts_and_background_end_with_program() {
    let (_turn, world) = needed!(turn_where("private", may_make_namespaces));
    let before = Snapshot::take(&world);
    let folder = tempfile::tempdir().unwrap();
    let body = "mount -t tmpfs x \"$0\" && touch \"$0/inside\" && (setsid sleep 300 &) && exit 7";
    let finished = Command::new(&world.agents.host().path)
        .args(["private-mounts", "--", "/bin/sh", "-c", body])
        .arg(folder.path())
        .env("TARE_RUN", world.run.as_str())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(finished.status.code(), Some(7), "{finished:?}");
    assert!(!folder.path().join("inside").exists());
    before.assert_restored(&world, "private-mounts");
}

#[test]
fn agent_bye_ends_the_oci_runtime() {
    let (_turn, world) = needed!(turn_where("bye", |world| is_available(world, "runc")));
    let mut environment = configure(&Params::new());
    let mut instance = environment.start(&world.cx(), StartMode::Resident).unwrap();
    facts(instance.as_mut());
    instance.channel().send(&Request::Bye).unwrap();
    wait_until("its processes are gone", || {
        labelled(world.run.as_str()).is_empty()
    });
    wait_until("its cgroups are gone", || {
        left_of(world.run.as_str()).is_empty()
    });
    instance.stop(&world.cx()).unwrap();
}
