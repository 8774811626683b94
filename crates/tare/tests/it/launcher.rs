//! Tests the built-in container's launcher with programs of this machine: the inside is as requested, and nothing is
//! left outside. Needs root; another test launches as an ordinary user.

use crate::prelude::*;

use std::net::SocketAddr;
use std::sync::MutexGuard;

use tare_model::launch::{
    DOCKER_CAPABILITIES, LaunchReport, LaunchSpec, LaunchState, Limits, Mounts, Namespaces,
    Network, REFUSED_STATUS, Rootfs, Seccomp, Stdio as Streams, UserNamespace,
};

mod refused_calls;

/// Returns a turn and a world if this is root.
pub(crate) fn roots(name: &str) -> Option<(MutexGuard<'static, ()>, World)> {
    turn_where(name, |_| needs_root())
}

/// Gives the world a folder that other users can reach.
pub(crate) fn lies_where_others_may_go(world: &mut World) {
    let builder = &mut tempfile::Builder::new();
    world.folder = builder.prefix("tare-it-").tempdir_in("/var/tmp").unwrap();
}

/// Docker's defaults for a shell command.
pub(crate) fn shell(world: &World, script: &str) -> LaunchSpec {
    let scratch = world.folder.path().join("instance");
    fs::create_dir_all(&scratch).unwrap();
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let run = RunId::new(world.run.as_str()).unwrap();
    let agent = world.agents.host().path.display().to_string();
    LaunchSpec {
        capabilities: Some(DOCKER_CAPABILITIES.map(str::to_owned).to_vec()),
        seccomp: Seccomp::DockerDefault,
        ..LaunchSpec::apart(run, "shell", argv, &agent, &scratch.display().to_string())
    }
}

pub(crate) fn launcher(world: &World, spec: &LaunchSpec) -> Command {
    let path = world.folder.path().join("spec.json");
    fs::write(&path, serde_json::to_vec(spec).unwrap()).unwrap();
    let mut command = Command::new(&world.agents.host().path);
    command.arg("launch").arg(path);
    command.env("TARE_RUN", world.run.as_str());
    command
}

fn launch(world: &World, spec: &LaunchSpec) -> (Output, LaunchReport) {
    let output = launcher(world, spec).output().unwrap();
    (output, report(spec))
}

pub(crate) fn report(spec: &LaunchSpec) -> LaunchReport {
    serde_json::from_slice(&fs::read(&spec.report).unwrap()).unwrap()
}

/// Returns a script's output inside, with this change to the defaults.
pub(crate) fn output_of(world: &World, script: &str, change: impl Fn(&mut LaunchSpec)) -> String {
    let mut spec = shell(world, script);
    change(&mut spec);
    let (output, report) = launch(world, &spec);
    let words = lossy(&output.stderr);
    assert!(output.status.success(), "{report:?}: {words}");
    assert_eq!(report.state, LaunchState::Ended);
    clear(world);
    lossy(&output.stdout)
}

fn clear(world: &World) {
    fs::remove_dir_all(world.folder.path().join("instance")).unwrap();
}

#[track_caller]
fn assert_nothing_stays(world: &World, before: &Snapshot, after: &str) {
    clear(world);
    fs::remove_file(world.folder.path().join("spec.json")).unwrap();
    before.assert_restored(world, after);
}

fn start(world: &World, spec: &LaunchSpec) -> Child {
    let child = launcher(world, spec)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the container runs", || {
        fs::read(&spec.report)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<LaunchReport>(&bytes).ok())
            .is_some_and(|report| report.state == LaunchState::Running)
    });
    child
}

/// Returns the lines of /proc/self/status by name.
fn status(text: &str, name: &str) -> String {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[test]
fn ssbd_is_applied_or_refused_with_reason() {
    let (_turn, world) = needed!(roots("ssbd"));
    let mut spec = shell(&world, "cat /proc/self/status");
    spec.ssbd = true;
    let (output, report) = launch(&world, &spec);
    match report.error {
        None => {
            let text = lossy(&output.stdout);
            let state = status(&text, "Speculation_Store_Bypass");
            assert_says(&state, "mitigated");
            clear(&world);
        }
        // The kernel's own status must agree that there is no choice.
        Some(error) => {
            assert_eq!(error.step, "forbid loads to pass stores", "{error:?}");
            assert!(error.hint.is_some(), "{error:?}");
            let own = contents("/proc/self/status");
            let state = status(&own, "Speculation_Store_Bypass");
            assert!(!state.starts_with("thread"), "{state}: {error:?}");
        }
    }
}

#[test]
fn the_defaults_are_dockers_capabilities_and_filter() {
    let (_turn, world) = needed!(roots("defaults"));
    let text = output_of(&world, "cat /proc/self/status", |_| {});
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        assert_eq!(status(&text, set), "00000000a80425fb", "{set}");
    }
    assert_eq!(status(&text, "CapInh"), "0000000000000000");
    assert_eq!(status(&text, "Seccomp"), "2");
    assert_eq!(status(&text, "Seccomp_filters"), "1");
    assert_eq!(status(&text, "NoNewPrivs"), "0");
}

#[test]
fn each_security_switch_changes_only_itself() {
    let (_turn, world) = needed!(roots("switches"));
    let own = contents("/proc/self/status");
    let script = "cat /proc/self/status";
    let off = output_of(&world, script, |spec| spec.seccomp = Seccomp::Off);
    assert_eq!(status(&off, "Seccomp"), status(&own, "Seccomp"));
    assert_eq!(status(&off, "CapEff"), "00000000a80425fb");
    let all = output_of(&world, script, |spec| spec.capabilities = None);
    assert_eq!(status(&all, "CapEff"), status(&own, "CapBnd"));
    assert_eq!(status(&all, "Seccomp"), "2");
    let none = output_of(&world, script, |spec| spec.capabilities = Some(Vec::new()));
    assert_eq!(status(&none, "CapBnd"), "0000000000000000");
    let tied = output_of(&world, script, |spec| spec.no_new_privs = true);
    assert_eq!(status(&tied, "NoNewPrivs"), "1");
    assert_eq!(status(&tied, "Seccomp"), "2");
}

#[test]
fn namespace_is_new_exactly_if_requested() {
    let (_turn, world) = needed!(roots("namespaces"));
    let names = ["user", "mnt", "pid", "uts", "ipc", "net", "cgroup"];
    let script = "cd /proc/self/ns; for n in user mnt pid uts ipc net cgroup; do readlink $n; done";
    let links = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let own: Vec<String> = names
        .iter()
        .map(|name| {
            let path = format!("/proc/self/ns/{name}");
            fs::read_link(path).unwrap().display().to_string()
        })
        .collect();
    // Without any of them the host's files are used unchanged.
    let bare = |spec: &mut LaunchSpec| {
        spec.namespaces = Namespaces {
            user: UserNamespace::No,
            mount: false,
            pid: false,
            uts: false,
            ipc: false,
            net: false,
            cgroup: false,
        };
        spec.rootfs = Rootfs::Host;
        spec.mounts = Mounts::all_or_none(false);
        spec.masked_paths = false;
        spec.network = Network::Host;
        spec.workdir = "/tmp".into();
    };
    assert_eq!(links(&output_of(&world, script, bare)), own);
    for (position, name) in names.iter().enumerate() {
        let inside = output_of(&world, script, |spec| {
            bare(spec);
            match *name {
                "user" => spec.namespaces.user = UserNamespace::Yes,
                "mnt" => spec.namespaces.mount = true,
                "pid" => spec.namespaces.pid = true,
                "uts" => spec.namespaces.uts = true,
                "ipc" => spec.namespaces.ipc = true,
                "net" => {
                    spec.namespaces.net = true;
                    spec.network = Network::None;
                }
                _ => spec.namespaces.cgroup = true,
            }
        });
        for (other, link) in links(&inside).iter().enumerate() {
            assert_eq!(*link != own[other], other == position, "{name}: {link}");
        }
    }
}

#[test]
fn root_is_overlay_and_writes_stay_inside() {
    let (_turn, world) = needed!(roots("root"));
    let script = "hostname; pwd; echo $$; echo inside > /tare-it-file; cat /tare-it-file; \
                  grep ' / / ' /proc/self/mountinfo; df -k /dev/shm | tail -1; touch /sys/x 2>&1; \
                  cat /proc/timer_list | wc -c; ls /sys/firmware | wc -l; \
                  echo 1 2>/dev/null > /proc/sys/kernel/panic || echo protected";
    let text = output_of(&world, script, |_| {});
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(&lines[..4], ["tare", "/tare-work", "1", "inside"], "{text}");
    assert!(lines[4].contains(" - overlay "), "{text}");
    assert!(lines[5].contains(" 65536 "), "{text}");
    assert!(lines[6].contains("Read-only file system"), "{text}");
    assert_eq!(&lines[7..], ["0", "0", "protected"], "{text}");
    assert!(!Path::new("/tare-it-file").exists());
    let bare = output_of(&world, "cat /proc/timer_list | wc -c", |spec| {
        spec.masked_paths = false;
        spec.capabilities = None;
    });
    assert_ne!(bare.trim(), "0");
}

#[test]
fn requested_limits_are_set_in_cgroups() {
    let (_turn, world) = needed!(roots("limits"));
    // Either layout, whichever this machine has.
    let script = "cd /sys/fs/cgroup; cat cpu/cpu.cfs_quota_us cpu.max cpuset/cpuset.cpus cpuset.cpus \
                  memory/memory.limit_in_bytes memory.max pids/pids.max pids.max 2>/dev/null; exit 0";
    let text = output_of(&world, script, |spec| {
        spec.limits = Limits {
            cpus: Some(0.5),
            cpuset: Some("0".into()),
            memory_bytes: Some(100 << 20),
            pids: Some(50),
        };
    });
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("50000"), "{text}");
    assert_eq!(&lines[1..], ["0", "104857600", "50"], "{text}");
}

/// The step that refuses a limit, and the limit.
type Refused = (&'static str, fn(&mut Limits));

#[test]
fn impossible_limit_is_refused_with_step_and_hint() {
    let (_turn, world) = needed!(roots("refusal"));
    let before = Snapshot::take(&world);
    let impossible: [Refused; 4] = [
        ("limit cpuset", |limits| limits.cpuset = Some("99".into())),
        ("limit memory", |limits| limits.memory_bytes = Some(1)),
        ("limit cpus", |limits| limits.cpus = Some(4096.0)),
        ("limit pids", |limits| limits.pids = Some(1)),
    ];
    for (step, ask) in impossible {
        let mut spec = shell(&world, "true");
        ask(&mut spec.limits);
        let (output, report) = launch(&world, &spec);
        assert_eq!(output.status.code(), Some(REFUSED_STATUS));
        let error = report.error.unwrap();
        assert_eq!(
            (report.state, error.step.as_str()),
            (LaunchState::Refused, step)
        );
        assert!(error.hint.is_some(), "{error}");
        clear(&world);
    }
    let mut spec = shell(&world, "true");
    spec.argv = vec!["/no/such/program".into()];
    let (output, report) = launch(&world, &spec);
    assert_eq!(output.status.code(), Some(REFUSED_STATUS));
    assert!(report.error.unwrap().step.contains("/no/such/program"));
    clear(&world);
    fs::remove_file(world.folder.path().join("spec.json")).unwrap();
    before.assert_restored(&world, "refusals");
}

#[test]
fn host_and_arm_reach_each_other_through_the_pair() {
    if !needs_root() {
        return;
    }
    if Command::new("python3").arg("-V").output().is_err() {
        return skip("python3", "python3 is not installed");
    }
    let _turn = turn();
    let world = World::new("veth");
    // Takes a connection from the host, reads a port, and connects back to the first one's address.
    let script = "exec python3 -c '\nimport socket\ns = socket.create_server((\"\", 5201))\n\
                  print(\"ready\", flush=True)\nc, peer = s.accept()\nport = int(c.recv(16))\n\
                  b = socket.create_connection((peer[0], port), 5)\nb.sendall(b\"back\")\n'";
    let spec = shell(&world, script);
    let mut child = start(&world, &spec);
    let report = report(&spec);
    let pair = report.addresses.unwrap();
    assert_eq!(pair.arm.octets()[0], 198);
    assert!(report.links[0].starts_with("tare-") && report.links[0].len() <= 15);
    let mut ready = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let listener = TcpListener::bind((pair.host, 0)).unwrap();
    let arm = SocketAddr::from((pair.arm, 5201));
    let mut there = TcpStream::connect_timeout(&arm, Duration::from_secs(5)).unwrap();
    write!(there, "{}", listener.local_addr().unwrap().port()).unwrap();
    let (mut back, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), pair.arm);
    let mut text = String::new();
    back.read_to_string(&mut text).unwrap();
    assert_eq!(text, "back");
    assert!(child.wait().unwrap().success());
    assert!(!Path::new("/sys/class/net").join(&report.links[0]).exists());
}

#[test]
fn launcher_kill_ends_contents_and_sweep_removes_rest() {
    let (_turn, world) = needed!(roots("killed"));
    let before = Snapshot::take(&world);
    let mut spec = shell(&world, "sleep 600 & sleep 600");
    for has_pids in [true, false] {
        spec.namespaces.pid = has_pids;
        fs::create_dir_all(&spec.scratch).unwrap();
        let mut child = start(&world, &spec);
        let groups = report(&spec).cgroups;
        assert!(!groups.is_empty() && groups.iter().all(|group| Path::new(group).exists()));
        child.kill().unwrap();
        child.wait().unwrap();
        if has_pids {
            wait_until("nothing runs", || labelled(world.run.as_str()).is_empty());
        }
        let agent = &world.agents.host().path;
        let arguments = ["sweep", "--run", world.run.as_str()];
        let swept = Command::new(agent).args(arguments).output().unwrap();
        let lines = lossy(&swept.stdout);
        assert!(swept.status.success(), "{lines}");
        assert!(lines.lines().count() >= groups.len(), "{lines}");
        assert_nothing_stays(&world, &before, "sweep");
    }
}

#[test]
fn launcher_cleans_up_on_parent_loss_or_termination() {
    let (_turn, world) = needed!(roots("orphan"));
    let before = Snapshot::take(&world);
    let spec = shell(&world, "sleep 600");
    // A shell in between, which is killed.
    let launcher = launcher(&world, &spec);
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "\"$0\" launch \"$1\"; exit 0"])
        .arg(launcher.get_program())
        .args(launcher.get_args().skip(1))
        .spawn()
        .unwrap();
    let state = || {
        fs::read(&spec.report)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<LaunchReport>(&bytes).ok())
            .map(|report| report.state)
    };
    wait_until("the container runs", || {
        state() == Some(LaunchState::Running)
    });
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until("the container ended", || {
        state() == Some(LaunchState::Ended)
    });
    clear(&world);

    fs::create_dir_all(&spec.scratch).unwrap();
    let mut child = start(&world, &spec);
    assert!(signal("TERM", child.id()));
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
    assert_eq!(report(&spec).state, LaunchState::Ended);
    assert_nothing_stays(&world, &before, "SIGTERM");
}

#[test]
fn relayed_streams_carry_all_bytes_and_exit_status() {
    let (_turn, world) = needed!(roots("relay"));
    let mut spec = shell(
        &world,
        "wc -c; head -c 300000 /dev/zero; echo words >&2; exit 7",
    );
    spec.stdio = Streams::Relay;
    let mut child = launcher(&world, &spec)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&vec![b'x'; 200_000]));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout.len(), "200000\n".len() + 300_000);
    assert!(output.stdout.starts_with(b"200000\n"));
    assert_eq!(output.stderr, b"words\n");
}

#[test]
fn ordinary_user_gets_a_container_or_a_reason() {
    let (_turn, mut world) = needed!(roots("rootless"));
    // A folder that user 65534 may use, with an agent that it may read.
    lies_where_others_may_go(&mut world);
    let mut spec = shell(
        &world,
        "id -u; grep CapEff /proc/self/status; pwd; touch here && echo written",
    );
    let agent = world.folder.path().join("agent");
    fs::copy(&world.agents.host().path, &agent).unwrap();
    spec.agent = agent.display().to_string();
    let spec_path = world.folder.path().join("spec.json");
    fs::write(&spec_path, serde_json::to_vec(&spec).unwrap()).unwrap();
    for path in [world.folder.path(), &agent, Path::new(&spec.scratch)] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    let output = as_nobody(&agent)
        .arg("launch")
        .arg(&spec_path)
        .env("TARE_RUN", world.run.as_str())
        .output()
        .unwrap();
    let report = report(&spec);
    let words = lossy(&output.stderr);
    if let Some(error) = &report.error {
        assert_eq!(output.status.code(), Some(REFUSED_STATUS));
        assert!(error.hint.is_some(), "{error}");
        return skip("userns", &format!("an ordinary user cannot: {error}"));
    }
    let text = lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "0", "{words}");
    assert!(lines[1].ends_with("00000000a80425fb"), "{text}");
    assert_eq!(&lines[2..], ["/tare-work", "written"], "{text}");
    assert!(report.has_user_namespace);
    assert!(
        report.missing.iter().any(|one| one.what == "veth pair"),
        "{:?}",
        report.missing
    );
    // The user can remove what the overlay left.
    let removed = as_nobody("rm")
        .arg("-r")
        .arg(&spec.scratch)
        .status()
        .unwrap();
    assert!(removed.success());
    assert!(labelled(world.run.as_str()).is_empty());
}
