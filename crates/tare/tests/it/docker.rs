//! Tests the `docker` driver against a real engine.
//!
//! Every test uses the engine that the `docker` command would use, with a separate run id, and checks by label that
//! nothing is left. Tests that need another user or engine run in a separate process or engine. Without an engine a
//! test is reported as skipped, and fails if TARE_REQUIRE names `docker`.

use crate::prelude::*;

use tare::env::docker::Docker;
use tare_model::Value;
use tare_testkit::docker as private_engine;

use crate::contract::{contract, engine_contract};
pub(crate) use crate::talk::{LIMIT, null_trial};

mod faults;

/// Returns a world if an engine answers; otherwise reports a skip, or fails if an engine is required.
pub(crate) fn world(name: &str) -> Option<World> {
    let world = World::new(name);
    is_ready(&world, &DOCKER, "docker").then_some(world)
}

/// Returns the driver's facts about the engine that answered for this world.
pub(crate) fn engine_facts(world: &World) -> Facts {
    match DOCKER.detect(&world.cx()) {
        Availability::Ready(facts) => facts,
        Availability::Absent { why, .. } => panic!("it was there a moment ago: {why}"),
    }
}

/// Returns why something is not available, and the advice.
pub(crate) fn absent(error: EnvError) -> (String, String) {
    match error {
        EnvError::Absent {
            why,
            fix: Some(fix),
        } => (why, fix),
        other => panic!("{other:?}"),
    }
}

/// Returns the engine's objects with this run's label, found by the driver's own sweep.
pub(crate) fn leftovers(world: &World, driver: &Docker) -> Vec<String> {
    driver.sweep(&world.cx(), world.run.as_str()).unwrap()
}

/// Stops and removes, and checks that the engine has nothing of the run.
#[track_caller]
pub(crate) fn end(
    world: &World,
    instance: Box<dyn Instance>,
    mut environment: Box<dyn Environment>,
) {
    instance.stop(&world.cx()).unwrap();
    remove(world, environment.as_mut());
}

/// Removes the environment, and checks that the engine has nothing of the run.
#[track_caller]
pub(crate) fn remove(world: &World, environment: &mut dyn Environment) {
    environment.remove(&world.cx()).unwrap();
    assert_eq!(leftovers(world, &DOCKER), [""; 0]);
}

pub(crate) fn environment(driver: &Docker, name: &str, settings: &Params) -> Box<dyn Environment> {
    driver.configure(arm_id(name), settings).unwrap()
}

/// Starts, greets, hands over the instance, stops and removes, and checks that nothing is left.
pub(crate) fn with_instance(
    world: &World,
    settings: &Params,
    mode: StartMode,
    look: impl FnOnce(&mut dyn Instance),
) {
    let mut environment = environment(&DOCKER, "arm", settings);
    environment.prepare(&world.cx()).unwrap();
    let mut instance = environment.greeted(&world.cx(), mode);
    look(instance.as_mut());
    environment.end(instance, &world.cx());
    remove(world, environment.as_mut());
    assert_eq!(fs::read_dir(world.folder.path()).unwrap().count(), 0);
}

fn why_absent(driver: &Docker, world: &World) -> (String, String) {
    match driver.detect(&world.cx()) {
        Availability::Absent { why, fix } => (why, fix.unwrap_or_default()),
        Availability::Ready(facts) => panic!("{facts:?}"),
    }
}

#[test]
fn docker_keeps_the_contract_of_drivers() {
    contract(&DOCKER, &Params::new());
}

#[test]
fn docker_keeps_the_contract_of_engines() {
    engine_contract(&DOCKER, &needed!(world("images")));
}

#[test]
fn every_storage_has_its_kind_and_is_open_to_user() {
    let world = needed!(world("storage"));
    for (storage, kinds) in [
        ("layer", &["overlay"][..]),
        ("volume", &["ext4", "xfs", "btrfs"]),
        ("bind", &["ext4", "xfs", "btrfs", "tmpfs"]),
        ("tmpfs", &["tmpfs"]),
    ] {
        assert_open(&world, storage, kinds);
    }
}

/// Asserts that the storage is of one of these kinds, and that an ordinary user may write to it.
pub(crate) fn assert_open(world: &World, storage: &str, kinds: &[&str]) {
    let settings = Params::new()
        .with("storage", storage)
        .with("user", "65534:65534");
    with_instance(world, &settings, StartMode::Resident, |instance| {
        let facts = inner_facts(instance);
        let fact = |name: &str| facts.get(name).map_or("", String::as_str);
        let kind = fact("mount./tare-work.fstype");
        assert!(kinds.contains(&kind), "{storage}: {facts:?}");
        assert_eq!(fact("uid"), "65534", "{facts:?}");
        assert_eq!(mode_inside(world, "/tare-work") & 0o777, 0o777, "{storage}");
    });
}

/// Whether the engine can mount a folder that a program here serves; reports a skip if not.
pub(crate) fn can_serve(world: &World) -> bool {
    let settings = params("storage = 'served'");
    let mut tried = environment(&DOCKER, "tried", &settings);
    let started = tried.start(&world.cx(), StartMode::Resident);
    let why = match started {
        Ok(instance) => {
            instance.stop(&world.cx()).unwrap();
            None
        }
        Err(EnvError::Absent { why, .. }) => Some(why),
        Err(error) => panic!("{error}"),
    };
    tried.remove(&world.cx()).unwrap();
    if let Some(why) = &why {
        crate::world::skip("bindfs", why);
    }
    why.is_none()
}

/// Queries this machine's engine.
pub(crate) fn of_engine<T>(ask: impl AsyncFnOnce(bollard::Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(ask(bollard::Docker::connect_with_local_defaults().unwrap()))
}

/// Returns the mode of a path in the only container of this world's run, as the engine sees it.
fn mode_inside(world: &World, path: &str) -> u32 {
    let options = bollard::query_parameters::ContainerArchiveInfoOptions { path: path.into() };
    let name = format!("tare-{}-arm-1", world.run);
    of_engine(async |client| {
        let found = client.get_container_archive_info(&name, Some(options));
        found.await.unwrap().file_mode
    })
}

#[test]
fn ungrantable_privilege_is_refused_and_cleaned_up() {
    let world = needed!(world("privileged"));
    let engine = engine_facts(&world);
    let settings = params("privileged = true");
    let lacks = engine.get("engine.capabilities_missing");
    let Some(lacks) = lacks.filter(|names| !names.is_empty()) else {
        return with_instance(&world, &settings, StartMode::Resident, |instance| {
            let facts = inner_facts(instance);
            assert_eq!(facts["status.Seccomp"], "0", "{facts:?}");
        });
    };
    for settings in [settings, params("cap_add = 'ALL'")] {
        let mut environment = environment(&DOCKER, "arm", &settings);
        environment.prepare(&world.cx()).unwrap();
        let Err(error) = environment.start(&world.cx(), StartMode::Resident) else {
            panic!("the engine gave what it does not have");
        };
        let (why, fix) = absent(error);
        assert_says(&why, "unable to apply caps");
        assert_says(&why, lacks);
        assert_says(&fix, lacks);
        environment.remove(&world.cx()).unwrap();
    }
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
    // The error's advice works.
    let drop: Vec<Value> = lacks
        .split(' ')
        .map(|name| Value::Text(name.into()))
        .collect();
    let settings = params("cap_add = 'ALL'").with("cap_drop", Value::List(drop));
    with_instance(&world, &settings, StartMode::Resident, |_| {});
}

#[test]
fn missing_deaf_or_silent_socket_is_absent_with_reason() {
    let world = World::new("sockets");
    let place = |name: &str| world.folder.path().join(name);
    drop(UnixListener::bind(place("deaf")).unwrap());
    let _listener = UnixListener::bind(place("mute")).unwrap();
    let missing = format!("unix://{}", place("none").display());
    for (name, says) in [
        ("none", missing.as_str()),
        ("deaf", "not running"),
        ("mute", "longer than 3 s"),
    ] {
        let host = format!("unix://{}", place(name).display());
        let (why, fix) = why_absent(&Docker::with_host(host), &world);
        assert!(why.contains(says), "{name}: {why}");
        assert!(!fix.is_empty() || name != "none");
    }
}

#[test]
fn foreign_system_agent_is_refused_before_setup() {
    let mut world = needed!(world("wrongagent"));
    let path = world.folder.path().join("agent.exe");
    let build = "<tare-agent-build 0.1.0-00-o3-x86_64-pc-windows-gnu>";
    fs::write(&path, build).unwrap();
    world.agents = Agents::only(&path).unwrap();
    let (why, fix) = why_absent(&DOCKER, &world);
    assert_says(&why, "static Linux agent");
    assert_says(&fix, "-unknown-linux-musl");
    let mut environment = environment(&DOCKER, "arm", &Params::new());
    assert!(environment.prepare(&world.cx()).is_err());
    assert!(environment.start(&world.cx(), StartMode::Once).is_err());
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
}
