//! The `docker` driver against a real engine.
//!
//! Every test uses the engine that the `docker` command would use, with a run id of its own, and checks by
//! label that nothing is left. What needs another user or another engine is done in a process or engine of
//! its own. Without an engine a test says that it was skipped, and fails if TARE_REQUIRE names `docker`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tare::cx::observer::Silent;
use tare::cx::{AgentBinary, Cancel, Context, SystemClock, SystemExec};
use tare::env::docker::{DOCKER, Docker};
use tare::env::{Availability, ChannelError, Driver, EnvError, Environment, Instance, StartMode};
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, Facts, Params, ProbeCall, Reason, RunId, Value};

mod faults;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the development commands, which use the rest of it"
)]
#[path = "../../../../xtask/src/provision/docker.rs"]
mod private_engine;

const LIMIT: Duration = Duration::from_secs(20);

/// What a context borrows from, with a run id of its own; removes what its run left in the engine.
struct Place {
    clock: SystemClock,
    cancel: Cancel,
    agent: AgentBinary,
    scratch: tempfile::TempDir,
    run: RunId,
}

fn agent_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("TARE_AGENT") {
        return Some(PathBuf::from(path));
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let musl = target.join("x86_64-unknown-linux-musl");
    ["agent", "release", "debug"]
        .into_iter()
        .map(|profile| musl.join(profile).join("tare-agent"))
        .find(|path| path.exists())
}

impl Place {
    fn new(name: &str) -> Self {
        let path = agent_path().unwrap_or_else(|| PathBuf::from("/nonexistent/tare-agent"));
        let tick = SystemTimeTick::now();
        Self {
            clock: SystemClock::default(),
            cancel: Cancel::new(),
            agent: AgentBinary {
                sha256: format!("test-{}", tick.0),
                path,
                build: String::new(),
            },
            scratch: tempfile::tempdir().unwrap(),
            run: RunId::new(format!("it-{name}-{}", tick.0)).unwrap(),
        }
    }

    fn cx(&self) -> Context<'_> {
        Context {
            exec: &SystemExec,
            clock: &self.clock,
            observer: &Silent,
            cancel: &self.cancel,
            agent: &self.agent,
            scratch: self.scratch.path(),
            run: &self.run,
        }
    }

    /// What carries this run's label in the engine, found by the driver's own sweep.
    fn leftovers(&self, driver: &Docker) -> Vec<String> {
        driver.sweep(&self.cx(), Some(self.run.as_str())).unwrap()
    }
}

/// Distinguishes runs of tests that follow one another.
struct SystemTimeTick(u128);

impl SystemTimeTick {
    fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(since.unwrap().as_nanos() % 1_000_000_000_000)
    }
}

/// Whether TARE_REQUIRE says that this must be there.
fn is_required(need: &str) -> bool {
    let required = std::env::var("TARE_REQUIRE").unwrap_or_default();
    required.split(',').any(|word| word.trim() == need)
}

/// A place, if an engine answers; else says why not, or fails where one is required.
fn place(name: &str) -> Option<Place> {
    let place = Place::new(name);
    match DOCKER.detect(&place.cx()) {
        Availability::Ready(_) => Some(place),
        Availability::Absent { why, .. } => {
            assert!(!is_required("docker"), "docker is required: {why}");
            println!("skipped: no Docker engine answers ({why})");
            None
        }
    }
}

fn arm(name: &str) -> ArmId {
    ArmId::new(name).unwrap()
}

fn environment(driver: &Docker, name: &str, settings: &Params) -> Box<dyn Environment> {
    driver.configure(arm(name), settings).unwrap()
}

fn ask(instance: &mut dyn Instance, request: &Request) -> Reply {
    let channel = instance.channel();
    channel.send(request).unwrap();
    channel.receive(LIMIT).unwrap()
}

fn hello(instance: &mut dyn Instance) {
    let reply = ask(instance, &Request::Hello { protocol: PROTOCOL });
    assert!(
        matches!(
            reply,
            Reply::Hello {
                protocol: PROTOCOL,
                ..
            }
        ),
        "{reply:?}"
    );
}

fn inner_facts(instance: &mut dyn Instance) -> Facts {
    let paths = vec![instance.workdir()];
    match ask(instance, &Request::Facts { paths }) {
        Reply::Facts { facts } => facts,
        other => panic!("{other:?}"),
    }
}

fn null_trial(instance: &mut dyn Instance, trial: u64) -> Reply {
    let request = Request::Run {
        trial,
        call: ProbeCall {
            name: "null".into(),
            args: Params::new().with("canary", false),
        },
        target_ns: 0,
        limit_ns: 5_000_000_000,
        workdir: instance.workdir(),
    };
    ask(instance, &request)
}

/// Starts, greets, hands over the instance, stops and removes, and checks that nothing is left.
fn with_instance(
    place: &Place,
    settings: &Params,
    mode: StartMode,
    look: impl FnOnce(&mut dyn Instance),
) {
    let mut environment = environment(&DOCKER, "arm", settings);
    environment.prepare(&place.cx()).unwrap();
    let mut instance = environment.start(&place.cx(), mode).unwrap();
    hello(instance.as_mut());
    look(instance.as_mut());
    instance.stop(&place.cx()).unwrap();
    environment.remove(&place.cx()).unwrap();
    environment.remove(&place.cx()).unwrap();
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(place.scratch.path()).unwrap().count(), 0);
}

fn why_absent(driver: &Docker, place: &Place) -> (String, String) {
    match driver.detect(&place.cx()) {
        Availability::Absent { why, fix } => (why, fix.unwrap_or_default()),
        Availability::Ready(facts) => panic!("{facts:?}"),
    }
}

#[test]
fn a_container_has_the_engines_default_security_and_a_working_agent() {
    let Some(place) = place("security") else {
        return;
    };
    with_instance(&place, &Params::new(), StartMode::Resident, |instance| {
        let facts = inner_facts(instance);
        assert_eq!(
            facts.get("status.Seccomp").map(String::as_str),
            Some("2"),
            "{facts:?}"
        );
        // The fourteen capabilities that Docker leaves by default.
        assert_eq!(
            facts.get("status.CapEff").map(String::as_str),
            Some("00000000a80425fb"),
            "{facts:?}"
        );
        let reply = null_trial(instance, 1);
        assert!(matches!(reply, Reply::Done { trial: 1, .. }), "{reply:?}");
    });
}

#[test]
fn an_instance_for_once_runs_the_agent_as_the_first_process() {
    let Some(place) = place("once") else { return };
    with_instance(&place, &Params::new(), StartMode::Once, |instance| {
        let reply = null_trial(instance, 1);
        assert!(matches!(reply, Reply::Done { trial: 1, .. }), "{reply:?}");
        // The first process ends with the agent, and the channel says with which status.
        assert_eq!(ask(instance, &Request::Bye), Reply::Bye);
        let error = instance.channel().receive(LIMIT).unwrap_err();
        assert!(
            matches!(&error, ChannelError::Closed(why) if why.contains("status 0")),
            "{error}"
        );
        let again = instance.channel().send(&Request::Bye).unwrap_err();
        assert!(matches!(again, ChannelError::Closed(_)), "{again}");
    });
}

#[test]
fn settings_reach_the_container() {
    let Some(place) = place("settings") else {
        return;
    };
    let settings = Params::new()
        .with("seccomp", "unconfined")
        .with("cap_drop", "ALL")
        .with("no_new_privileges", true)
        .with("cpuset", "0")
        .with("memory", "64m")
        .with("init", true)
        .with("user", "65534")
        .with("network", "none");
    with_instance(&place, &settings, StartMode::Resident, |instance| {
        let facts = inner_facts(instance);
        let fact = |name: &str| facts.get(name).map(String::as_str);
        assert_eq!(fact("status.Seccomp"), Some("0"), "{facts:?}");
        assert_eq!(fact("status.CapBnd"), Some("0000000000000000"), "{facts:?}");
        assert_eq!(fact("status.NoNewPrivs"), Some("1"), "{facts:?}");
        assert_eq!(fact("status.Cpus_allowed_list"), Some("0"), "{facts:?}");
        assert!(matches!(
            instance.address_from_host(),
            Err(Reason::NoPath(_))
        ));
        assert!(matches!(instance.host_address(), Err(Reason::NoPath(_))));
    });
}

#[test]
fn every_storage_is_of_its_kind_and_open_to_an_ordinary_user() {
    let Some(place) = place("storage") else {
        return;
    };
    for (storage, kinds) in [
        ("layer", &["overlay"][..]),
        ("volume", &["ext4", "xfs", "btrfs"]),
        ("bind", &["ext4", "xfs", "btrfs", "tmpfs"]),
        ("tmpfs", &["tmpfs"]),
    ] {
        let settings = Params::new()
            .with("storage", storage)
            .with("user", "65534:65534");
        with_instance(&place, &settings, StartMode::Resident, |instance| {
            let facts = inner_facts(instance);
            let kind = facts
                .get("mount./tare-work.fstype")
                .map_or("", String::as_str);
            assert!(kinds.contains(&kind), "{storage}: {facts:?}");
            assert_eq!(
                facts.get("uid").map(String::as_str),
                Some("65534"),
                "{facts:?}"
            );
            assert_eq!(
                mode_inside(&place, "/tare-work") & 0o777,
                0o777,
                "{storage}"
            );
        });
    }
}

/// The mode of a path in the only container of this place's run, as the engine sees it.
fn mode_inside(place: &Place, path: &str) -> u32 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = bollard::Docker::connect_with_local_defaults().unwrap();
        let options = bollard::query_parameters::ContainerArchiveInfoOptions { path: path.into() };
        let name = format!("tare-{}-arm-1", place.run);
        client
            .get_container_archive_info(&name, Some(options))
            .await
            .unwrap()
            .file_mode
    })
}

#[test]
fn the_two_ends_of_the_bridge_reach_each_other() {
    let Some(place) = place("bridge") else { return };
    with_instance(&place, &Params::new(), StartMode::Resident, |instance| {
        let inside = instance.address_from_host().unwrap();
        let outside = instance.host_address().unwrap();
        assert_ne!(inside, outside);
        // Nobody listens on that port: a refusal within the limit proves the way there and back.
        let attempt =
            std::net::TcpStream::connect_timeout(&(inside, 9).into(), Duration::from_secs(5));
        let error = attempt.unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused,
            "{error}"
        );
    });
    let settings = Params::new().with("network", "host");
    with_instance(&place, &settings, StartMode::Resident, |instance| {
        assert!(instance.address_from_host().unwrap().is_loopback());
        assert!(instance.host_address().unwrap().is_loopback());
    });
}

#[test]
fn what_the_engine_cannot_grant_is_refused_with_the_reason_and_leaves_nothing() {
    let Some(place) = place("privileged") else {
        return;
    };
    let Availability::Ready(engine) = DOCKER.detect(&place.cx()) else {
        panic!("it was there a moment ago");
    };
    let settings = Params::new().with("privileged", true);
    let lacks = engine.get("engine.capabilities_missing");
    let Some(lacks) = lacks.filter(|names| !names.is_empty()) else {
        return with_instance(&place, &settings, StartMode::Resident, |instance| {
            let facts = inner_facts(instance);
            assert_eq!(
                facts.get("status.Seccomp").map(String::as_str),
                Some("0"),
                "{facts:?}"
            );
        });
    };
    for settings in [settings, Params::new().with("cap_add", "ALL")] {
        let mut environment = environment(&DOCKER, "arm", &settings);
        environment.prepare(&place.cx()).unwrap();
        let Err(error) = environment.start(&place.cx(), StartMode::Resident) else {
            panic!("the engine gave what it does not have");
        };
        let EnvError::Absent {
            why,
            fix: Some(fix),
        } = &error
        else {
            panic!("{error:?}");
        };
        assert!(
            why.contains("unable to apply caps") && why.contains(lacks),
            "{why}"
        );
        assert!(fix.contains(lacks), "{fix}");
        environment.remove(&place.cx()).unwrap();
    }
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
    // The advice that the error gives works.
    let drop: Vec<Value> = lacks
        .split(' ')
        .map(|name| Value::Text(name.into()))
        .collect();
    let settings = Params::new()
        .with("cap_add", "ALL")
        .with("cap_drop", Value::List(drop));
    with_instance(&place, &settings, StartMode::Resident, |_| {});
}

#[test]
fn an_image_that_is_not_there_is_not_pulled() {
    let Some(place) = place("missing") else {
        return;
    };
    let settings = Params::new().with("image", "tare-test.invalid/none:1");
    let mut environment = environment(&DOCKER, "arm", &settings);
    let error = environment.prepare(&place.cx()).unwrap_err();
    let EnvError::Absent {
        why,
        fix: Some(fix),
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(why.contains("tare-test.invalid/none:1"), "{why}");
    assert_eq!(fix, "`docker pull tare-test.invalid/none:1`");
    environment.remove(&place.cx()).unwrap();
}

#[test]
fn a_runtime_that_the_engine_does_not_know_is_named_with_advice() {
    let Some(place) = place("runtime") else {
        return;
    };
    let settings = Params::new().with("runtime", "tare-none");
    let mut environment = environment(&DOCKER, "arm", &settings);
    environment.prepare(&place.cx()).unwrap();
    let Err(error) = environment.start(&place.cx(), StartMode::Once) else {
        panic!("an unknown runtime started a container");
    };
    assert!(
        matches!(&error, EnvError::Absent { fix: Some(_), .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("runtime"), "{error}");
    environment.remove(&place.cx()).unwrap();
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
}

#[test]
fn a_foreign_image_without_a_shell_gets_the_agent_copied_in() {
    let Some(place) = place("foreign") else {
        return;
    };
    // The packed image of another arm stands for a user's image: it has no shell and no C library.
    let mut packed = environment(&DOCKER, "packed", &Params::new());
    packed.prepare(&place.cx()).unwrap();
    let name = packed.describe(&place.cx())["image.name"].clone();
    for mode in [StartMode::Resident, StartMode::Once] {
        let settings = Params::new()
            .with("image", name.as_str())
            .with("user", "65534");
        let mut foreign = environment(&DOCKER, "foreign", &settings);
        foreign.prepare(&place.cx()).unwrap();
        let mut instance = foreign.start(&place.cx(), mode).unwrap();
        hello(instance.as_mut());
        assert!(matches!(
            null_trial(instance.as_mut(), 1),
            Reply::Done { .. }
        ));
        instance.stop(&place.cx()).unwrap();
        foreign.remove(&place.cx()).unwrap();
    }
    // Removing the foreign arm leaves the image, which it did not make.
    let mut instance = packed.start(&place.cx(), StartMode::Resident).unwrap();
    hello(instance.as_mut());
    instance.stop(&place.cx()).unwrap();
    packed.remove(&place.cx()).unwrap();
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
}

#[test]
fn arms_share_an_image_and_removing_one_leaves_the_other_working() {
    let Some(place) = place("share") else { return };
    let mut first = environment(&DOCKER, "first", &Params::new());
    let mut second = environment(&DOCKER, "second", &Params::new());
    first.prepare(&place.cx()).unwrap();
    first.prepare(&place.cx()).unwrap();
    second.prepare(&place.cx()).unwrap();
    let id = |environment: &dyn Environment| environment.describe(&place.cx())["image.id"].clone();
    assert_eq!(id(first.as_ref()), id(second.as_ref()));
    first.remove(&place.cx()).unwrap();
    let mut instance = second.start(&place.cx(), StartMode::Resident).unwrap();
    hello(instance.as_mut());
    // An instance that was never stopped goes with its environment.
    drop(instance);
    second.remove(&place.cx()).unwrap();
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
}

#[test]
fn a_container_that_is_killed_from_outside_is_reported_at_once() {
    let Some(place) = place("killed") else { return };
    let mut environment = environment(&DOCKER, "arm", &Params::new());
    let mut instance = environment.start(&place.cx(), StartMode::Once).unwrap();
    hello(instance.as_mut());
    // Another run of the same program removes it, as `tare clean` would.
    assert!(!place.leftovers(&DOCKER).is_empty());
    let begin = Instant::now();
    let error = instance.channel().receive(LIMIT).unwrap_err();
    assert!(matches!(error, ChannelError::Closed(_)), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    instance.stop(&place.cx()).unwrap();
    environment.remove(&place.cx()).unwrap();
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
}

#[test]
fn a_socket_that_is_not_there_is_no_engine() {
    let place = Place::new("nosocket");
    let (why, fix) = why_absent(&Docker::at("unix:///nonexistent/docker.sock"), &place);
    assert!(why.contains("unix:///nonexistent/docker.sock"), "{why}");
    assert!(!fix.is_empty());
}

#[test]
fn a_socket_that_nobody_listens_on_is_an_engine_that_does_not_run() {
    let place = Place::new("deaf");
    let path = place.scratch.path().join("docker.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let (why, _) = why_absent(&Docker::at(format!("unix://{}", path.display())), &place);
    assert!(why.contains("not running"), "{why}");
}

#[test]
fn an_engine_that_never_answers_is_given_up_within_the_limit() {
    let place = Place::new("mute");
    let path = place.scratch.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let begin = Instant::now();
    let (why, _) = why_absent(&Docker::at(format!("unix://{}", path.display())), &place);
    assert!(begin.elapsed() < Duration::from_secs(5), "{why}");
    assert!(why.contains("longer than 3 s"), "{why}");
}

#[test]
fn an_endpoint_over_ssh_is_declined_with_a_way_round() {
    let place = Place::new("ssh");
    let (why, fix) = why_absent(&Docker::at("ssh://me@elsewhere"), &place);
    assert!(why.contains("ssh") && fix.contains("-L"), "{why} / {fix}");
}

#[test]
fn an_agent_for_another_system_is_refused_before_anything_is_made() {
    let Some(mut place) = place("wrongagent") else {
        return;
    };
    let path = place.scratch.path().join("agent.exe");
    std::fs::write(&path, b"MZ\x90\0").unwrap();
    place.agent.path = path;
    let (why, fix) = why_absent(&DOCKER, &place);
    assert!(
        why.contains("agent.exe") && fix.contains("musl"),
        "{why} / {fix}"
    );
    let mut environment = environment(&DOCKER, "arm", &Params::new());
    assert!(environment.prepare(&place.cx()).is_err());
    assert_eq!(place.leftovers(&DOCKER), Vec::<String>::new());
}

#[test]
fn quotes_and_control_characters_reach_no_engine() {
    for (name, text) in [
        ("image", "x\";rm -rf /"),
        ("user", "root\n"),
        ("runtime", "\u{1b}[2J"),
        ("log_driver", "../x"),
    ] {
        let settings = Params::new().with(name, text);
        let Err(error) = DOCKER.configure(arm("arm"), &settings) else {
            panic!("{name} took {text:?}");
        };
        assert_eq!(error.setting, name);
        assert!(!error.problem.contains(['\u{1b}', '\n']), "{error:?}");
    }
}
