//! Tests engine failures: no permission, an engine that dies or freezes, a host that dies.
//!
//! A user without permission and a host that dies are child processes of this test program; an engine that dies is a
//! separate one next to the real one, with all its state in a temporary folder.

use crate::prelude::*;

use tare::cx::owner::{self, Owner};
use tare::cx::vars;
use tare::env::docker::Docker;

use super::private_engine::{Engine, Network};
use super::{LIMIT, environment, null_trial, why_absent, world};
use crate::world::with_run;

/// Set if a test's body runs in a child process of another test.
const CHILD: &str = "TARE_TEST_CHILD";

/// Whether this is such a process; otherwise the body has nothing to test.
fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Returns a child that runs the body `name`, with its files in `folder`.
fn body(name: &str, folder: &Path) -> Command {
    let mut command = child(&format!("docker::faults::{name}"));
    command
        .env(CHILD, "1")
        .env("TMPDIR", folder)
        .env("TARE_HOME", folder.join("state"))
        .current_dir("/");
    command
}

#[test]
#[ignore = "runs in a child process of another test"]
fn child_owns_a_run_until_it_is_killed() {
    if !is_child() {
        return;
    }
    let world = World::new("orphan");
    let owner = Owner::acquire(&vars::state_folder().unwrap(), &world.run).unwrap();
    let cx = Context {
        scratch: owner.folder(),
        ..world.cx()
    };
    let settings = params("network = 'none', storage = 'volume'");
    let mut environment = environment(&DOCKER, "arm", &settings);
    let _instance = environment.greeted(&cx, StartMode::Resident);
    println!("\nRUN {}", world.run);
    // Ends when it is killed, or with the test that started it.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
#[ignore = "runs in a child process of another test"]
fn child_sweeps() {
    if !is_child() {
        return;
    }
    let world = World::new("sweeper");
    for run in owner::dead_runs(&vars::state_folder().unwrap()).unwrap() {
        for line in DOCKER.sweep(&world.cx(), run.as_str()).unwrap() {
            println!("\nREMOVED {line}");
        }
    }
}

#[test]
fn docker_sweep_removes_killed_run_but_not_living() {
    let Some(world) = world("sweep") else { return };
    let folder = world.folder.path();
    let own = || with_run(&mut body("child_owns_a_run_until_it_is_killed", folder));
    let (mut living, living_run) = own();
    let (mut dead, dead_run) = own();
    dead.kill().unwrap();
    dead.wait().unwrap();

    let output = body("child_sweeps", folder).output().unwrap();
    living.kill().unwrap();
    living.wait().unwrap();
    let text = lossy(&output.stdout);
    let removed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("REMOVED docker "))
        .collect();
    let of = |run: &str| removed.iter().filter(|line| line.contains(run)).count();
    assert_eq!(of(&dead_run), 3, "container, volume, image: {text}");
    assert_eq!(of(&living_run), 0, "{removed:?}");

    let sweep = |run: &str| DOCKER.sweep(&world.cx(), run).unwrap();
    assert_eq!(sweep(&dead_run), [""; 0]);
    let removed = sweep(&living_run);
    assert_eq!(removed.len(), 3, "it was all there: {removed:?}");
}

/// Starts a separate engine next to the real one, if possible.
fn engine(world: &World) -> Option<Engine> {
    if !is_root() {
        skip("root", "only root can start an engine of its own");
        return None;
    }
    let engine = match Engine::start(Network::Private) {
        Ok(engine) => engine,
        Err(error) => {
            skip(
                "docker",
                &format!("no engine of our own could be started ({error:#})"),
            );
            return None;
        }
    };
    let availability = Docker::with_host(engine.host()).detect(&world.cx());
    assert!(
        matches!(availability, Availability::Ready(_)),
        "{availability:?}"
    );
    Some(engine)
}

#[test]
fn frozen_or_dead_engine_is_error_in_bounded_time() {
    let world = needed!(world("dying"));
    let mut engine = needed!(engine(&world));
    let driver = Docker::with_host(engine.host());
    let settings = params("network = 'none'");
    let mut environment = environment(&driver, "arm", &settings);
    let mut instance = environment.resident(&world);
    assert!(matches!(
        null_trial(instance.as_mut(), 1),
        Reply::Done { .. }
    ));

    // Frozen: nothing answers, everything is given up, and afterwards the engine continues.
    let pid = engine.pid().unwrap();
    assert!(signal("STOP", pid));
    // The signal is pending until each thread handles it.
    let threads = format!("/proc/{pid}/task");
    wait_until("every thread of the engine stands still", || {
        let mut threads = fs::read_dir(&threads).unwrap();
        threads.all(|thread| {
            let status = thread.map(|it| fs::read_to_string(it.path().join("status")));
            // A thread that has ended does nothing more.
            match status {
                Ok(Ok(text)) => text.contains("State:\tT"),
                ended => ended.is_ok(),
            }
        })
    });
    instance
        .channel()
        .send(&Request::Hello { protocol: PROTOCOL })
        .unwrap();
    let error = instance
        .channel()
        .receive(Duration::from_millis(500))
        .unwrap_err();
    assert!(matches!(error, ChannelError::Timeout(_)), "{error}");
    let (why, _) = why_absent(&driver, &world);
    assert_says(&why, "longer than 3 s");
    assert!(signal("CONT", pid));
    assert!(matches!(
        instance.channel().receive(LIMIT),
        Ok(Reply::Hello { .. })
    ));
    inner_facts(instance.as_mut());

    // Dead: the stream ends, and every call says so.
    engine.kill().unwrap();
    let error = instance.channel().receive(LIMIT).unwrap_err();
    assert!(
        matches!(&error, ChannelError::Closed(why) if why.contains("engine does not answer")),
        "{error}"
    );
    assert!(environment.start(&world.cx(), StartMode::Once).is_err());
    assert!(instance.stop(&world.cx()).is_err());
    assert!(environment.remove(&world.cx()).is_err());
    let run = world.run.as_str();
    assert!(driver.sweep(&world.cx(), run).is_err());
    let (why, _) = why_absent(&driver, &world);
    assert_says(&why, "not running");
}

#[test]
fn engine_restart_mid_run_is_reported_and_cleaned_up() {
    let world = needed!(world("restarted"));
    let mut engine = needed!(engine(&world));
    let product = Product::new();
    let with_engine = |arguments: &[&str]| {
        let mut command = product.command(arguments);
        command.env("DOCKER_HOST", engine.host());
        command
    };
    let work = ["--workload", "getppid", "--blocks", "40", "--json", "-"];
    let run = [&["run", "--env", "docker:network=none"], &work[..]].concat();
    let mut started = Product::start(with_engine(&run));
    let clean = with_engine(&["clean"]);
    let host = engine.host().to_owned();
    product.wait_for_trials(&mut started, 6);
    engine.restart(Network::Private).unwrap();
    let ended = started.wait();
    ended.does_not_complain("panicked");
    assert!(ended.code.is_some(), "{ended}");
    let kinds = product.stored("SELECT kind FROM trial ORDER BY sequence");
    assert_eq!(kinds[..6], ["completed"; 6], "{ended}");
    // The engine stopped its containers: a trial failed, or the arm was given up between two.
    let is_told = ended.stderr.contains("`docker` was given up");
    assert!(
        is_told || kinds.iter().any(|kind| kind != "completed"),
        "{ended}"
    );
    product.finish(clean).expect(0);
    for list in [
        &["ps", "-aq"][..],
        &["volume", "ls", "-q"],
        &["image", "ls", "-aq"],
    ] {
        let output = Command::new("docker")
            .args(["--host", &host])
            .args(list)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(lossy(&output.stdout), "", "{list:?}");
    }
    product.assert_nothing_left();
}
