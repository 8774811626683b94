//! What goes wrong around an engine: no permission, an engine that dies or freezes, a host that dies.
//!
//! A user without permission and a host that dies are child processes of this test's own program; an engine
//! that dies is one of our own beside the real one, with all its state in a temporary folder.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::private_engine::{Engine, Network};
use super::{LIMIT, Place, ask, environment, hello, is_required, null_trial, place, why_absent};
use tare::env::docker::{DOCKER, Docker};
use tare::env::{Availability, ChannelError, Driver, StartMode};
use tare_model::Params;
use tare_model::wire::{PROTOCOL, Reply, Request};

/// Set for tests that are only bodies for the child processes of others.
const CHILD: &str = "TARE_TEST_CHILD";

fn child(name: &str) -> [String; 4] {
    let path = format!("docker::faults::{name}");
    [
        "--exact".into(),
        path,
        "--ignored".into(),
        "--nocapture".into(),
    ]
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout == b"0\n"
}

#[test]
#[ignore = "runs in a child process of another test"]
fn child_detects() {
    assert!(
        std::env::var_os(CHILD).is_some(),
        "not meant to be run by itself"
    );
    let place = Place::new("child");
    let (why, fix) = why_absent(&DOCKER, &place);
    println!("\nWHY {why}\nFIX {fix}");
}

#[test]
fn a_user_who_may_not_use_the_socket_is_told_what_helps() {
    let Some(place) = place("denied") else { return };
    if !is_root() {
        assert!(!is_required("root"), "root is required");
        println!("skipped: only root can become another user");
        return;
    }
    // The program is copied to where every user may read it.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(&program)
        .args(child("child_detects"))
        .env(CHILD, "1")
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    assert!(output.status.success(), "{text}");
    assert!(
        line("WHY ").unwrap().contains("permission denied"),
        "{text}"
    );
    assert!(
        line("FIX ").unwrap().contains("usermod -aG docker"),
        "{text}"
    );
    assert!(place.leftovers(&DOCKER).is_empty());
}

#[test]
#[ignore = "runs in a child process of another test"]
fn child_starts_an_instance_and_waits_to_be_killed() {
    assert!(
        std::env::var_os(CHILD).is_some(),
        "not meant to be run by itself"
    );
    let place = Place::new("orphan");
    let settings = Params::new()
        .with("network", "none")
        .with("storage", "volume");
    let mut environment = environment(&DOCKER, "arm", &settings);
    let mut instance = environment.start(&place.cx(), StartMode::Resident).unwrap();
    hello(instance.as_mut());
    println!("\nRUN {}", place.run);
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn what_a_killed_run_left_is_swept_and_a_living_run_is_not_touched() {
    let Some(living) = place("living") else {
        return;
    };
    let settings = Params::new().with("network", "none");
    let mut environment = environment(&DOCKER, "arm", &settings);
    let mut instance = environment
        .start(&living.cx(), StartMode::Resident)
        .unwrap();
    let mut orphan = Command::new(std::env::current_exe().unwrap())
        .args(child("child_starts_an_instance_and_waits_to_be_killed"))
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(orphan.stdout.take().unwrap()).lines();
    let run = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("RUN ").map(str::to_owned));
    orphan.kill().unwrap();
    orphan.wait().unwrap();
    let run = run.expect("the child said which run it is");

    let removed = DOCKER.sweep(&living.cx(), None).unwrap();
    for kind in ["container", "volume", "image"] {
        let start = format!("docker {kind} ");
        let is_there = |line: &&String| line.starts_with(&start) && line.contains(&run);
        assert!(
            removed.iter().any(|line| is_there(&line)),
            "{kind}: {removed:?}"
        );
    }
    assert!(
        !removed
            .iter()
            .any(|line| line.contains(living.run.as_str())),
        "{removed:?}"
    );
    assert_eq!(
        DOCKER.sweep(&living.cx(), Some(&run)).unwrap(),
        Vec::<String>::new()
    );

    hello(instance.as_mut());
    instance.stop(&living.cx()).unwrap();
    environment.remove(&living.cx()).unwrap();
}

/// An engine of our own beside the real one, if one can be started.
fn engine(place: &Place) -> Option<Engine> {
    if !is_root() {
        assert!(!is_required("root"), "root is required");
        println!("skipped: only root can start an engine of its own");
        return None;
    }
    let engine = match Engine::start(Network::Private) {
        Ok(engine) => engine,
        Err(error) => {
            assert!(!is_required("docker"), "docker is required: {error:#}");
            println!("skipped: no engine of our own could be started ({error:#})");
            return None;
        }
    };
    let availability = Docker::at(engine.host()).detect(&place.cx());
    assert!(
        matches!(availability, Availability::Ready(_)),
        "{availability:?}"
    );
    Some(engine)
}

#[test]
fn an_engine_that_freezes_or_dies_is_an_error_in_bounded_time() {
    let Some(place) = place("dying") else { return };
    let Some(mut engine) = engine(&place) else {
        return;
    };
    let driver = Docker::at(engine.host());
    let settings = Params::new().with("network", "none");
    let mut environment = environment(&driver, "arm", &settings);
    let mut instance = environment.start(&place.cx(), StartMode::Resident).unwrap();
    hello(instance.as_mut());
    assert!(matches!(
        null_trial(instance.as_mut(), 1),
        Reply::Done { .. }
    ));

    // Frozen: nothing answers, everything is given up, and afterwards it goes on.
    let signal = |name: &str| {
        let pid = engine.pid().unwrap().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    };
    signal("-STOP");
    let begin = Instant::now();
    instance
        .channel()
        .send(&Request::Hello { protocol: PROTOCOL })
        .unwrap();
    let error = instance
        .channel()
        .receive(Duration::from_millis(500))
        .unwrap_err();
    assert!(matches!(error, ChannelError::Timeout(_)), "{error}");
    let (why, _) = why_absent(&driver, &place);
    assert!(why.contains("longer than 3 s"), "{why}");
    assert!(begin.elapsed() < Duration::from_secs(8));
    signal("-CONT");
    assert!(matches!(
        instance.channel().receive(LIMIT),
        Ok(Reply::Hello { .. })
    ));
    let reply = ask(instance.as_mut(), &Request::Facts { paths: vec![] });
    assert!(matches!(reply, Reply::Facts { .. }), "{reply:?}");

    // Dead: the stream ends, and every call says so.
    engine.kill().unwrap();
    let begin = Instant::now();
    let error = instance.channel().receive(LIMIT).unwrap_err();
    assert!(
        matches!(&error, ChannelError::Closed(why) if why.contains("engine does not answer")),
        "{error}"
    );
    assert!(environment.start(&place.cx(), StartMode::Once).is_err());
    assert!(instance.stop(&place.cx()).is_err());
    assert!(environment.remove(&place.cx()).is_err());
    assert!(driver.sweep(&place.cx(), None).is_err());
    let (why, _) = why_absent(&driver, &place);
    assert!(why.contains("not running"), "{why}");
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
}
