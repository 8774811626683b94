//! The contract of every driver, as one test that runs against each.
//!
//! It is the same for all, so a driver is right if it behaves like `host` from outside: it answers, it gives up what
//! hangs, it distinguishes a crash from silence, and it leaves nothing. Only the shipped probes are used, because the
//! agent under test is the shipped one.

use crate::prelude::*;

use tare_model::whole_ns;

use crate::docker::absent;
use crate::talk::{answer, assert_ends_with_its_agent, call, facts_of, once, run, trial};
use crate::world::note_contract;

/// Far more than any answer takes; exceeding it means a hang.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Checks that an instance dropped without a stop is removed with its environment.
pub(crate) fn a_dropped_instance_is_removed(
    world: &World,
    configure: impl FnOnce() -> Box<dyn Environment>,
) {
    let before = Snapshot::take(world);
    let mut environment = configure();
    drop(environment.start(&world.cx(), StartMode::Resident).unwrap());
    environment.remove(&world.cx()).unwrap();
    before.assert_restored(world, "remove");
}

/// Runs the whole contract with these settings; prints why and returns if the driver is absent.
pub(crate) fn contract(driver: &dyn Driver, settings: &Params) {
    let _turn = turn();
    let world = World::new(driver.id());
    let cx = world.cx();
    let before = Snapshot::take(&world);

    driver.detect(&cx);
    // Immediately: whatever detection started is gone when it returns.
    assert_eq!(Snapshot::take(&world), before, "left behind after detect");
    let name = shown_name(driver, settings);
    if let Availability::Absent { why, .. } = driver.detect(&cx) {
        skip(
            driver.id(),
            &format!("{} is not available: {why}", driver.id()),
        );
        return note_skipped_contract(&name);
    }
    note_contract(&name, "begun");
    an_unknown_setting_is_refused(driver);
    let arm = arm_id("contract");
    let mut environment = driver.configure(arm, settings).unwrap();
    assert_eq!(environment.arm().as_str(), "contract");
    before.assert_restored(&world, "configure");

    environment.prepare(&cx).unwrap();
    environment.prepare(&cx).unwrap();
    environment.describe(&cx);

    let mut instance = environment.start(&cx, StartMode::Resident).unwrap();
    let facts = greet(instance.as_mut(), &cx);
    assert!(facts.contains_key("machine"), "{facts:?}");
    assert!(!instance.workdir().is_empty());
    // An address and a reason are both valid, and neither call may panic.
    let _ = (instance.address_from_host(), instance.host_address());
    it_is_charged_where_it_can_be(driver, instance.as_ref());
    a_null_trial_is_done(instance.as_mut(), 1);
    a_worker_that_hangs_is_given_up_within_its_limit(instance.as_mut());
    a_null_trial_is_done(instance.as_mut(), 3);
    a_trial_can_be_cancelled(instance.as_mut());
    a_null_trial_is_done(instance.as_mut(), 5);
    instance.stop(&cx).unwrap();

    crash_is_reported_and_can_be_stopped(environment.as_mut(), &world);

    let mut once = environment.start(&cx, StartMode::Once).unwrap();
    greet(once.as_mut(), &cx);
    reports_its_disk_use(driver, once.disk_bytes(&cx));
    environment.end(once, &cx);
    environment.remove(&cx).unwrap();
    before.assert_restored(&world, "remove");
    let swept = driver.sweep(&cx, world.run.as_str()).unwrap();
    assert!(swept.is_empty(), "remove left this for sweep: {swept:?}");
    note_contract(&name, "ran");
}

/// Checks the additional duties of engine drivers: share the image that they built, put the agent into a foreign
/// image, and report a container that others removed.
pub(crate) fn engine_contract(driver: &dyn Driver, world: &World) {
    let cx = world.cx();
    let prepared = |arm: &str, settings: &Params| {
        let arm = arm_id(arm);
        let mut environment = driver.configure(arm, settings).unwrap();
        environment.prepare(&cx).unwrap();
        environment
    };
    let sweep = || driver.sweep(&cx, world.run.as_str()).unwrap();
    let mut first = prepared("first", &Params::new());
    let mut second = prepared("second", &Params::new());
    let (one, other) = (first.describe(&cx), second.describe(&cx));
    assert_eq!(one["image.id"], other["image.id"]);
    first.remove(&cx).unwrap();

    let mut once = second.start(&cx, StartMode::Once).unwrap();
    greet(once.as_mut(), &cx);
    a_null_trial_is_done(once.as_mut(), 1);
    assert_ends_with_its_agent(once.as_mut());
    once.stop(&cx).unwrap();

    // An image that is not there is not pulled.
    let name = "tare-test.invalid/none:1";
    let arm = arm_id("missing");
    let missing = driver.configure(arm, &Params::new().with("image", name));
    let mut missing = missing.unwrap();
    let (why, fix) = absent(missing.prepare(&cx).unwrap_err());
    assert_says(&why, name);
    assert_eq!(fix, format!("`{} pull {name}`", driver.id()));
    missing.remove(&cx).unwrap();

    // The packed image serves as a user's: it has no shell and no C library.
    let name = other["image.name"].as_str();
    for (mode, storage) in [(StartMode::Resident, "layer"), (StartMode::Once, "volume")] {
        let image = Params::new().with("image", name).with("storage", storage);
        let mut foreign = prepared("foreign", &image.with("user", "65534"));
        let mut instance = foreign.start(&cx, mode).unwrap();
        greet(instance.as_mut(), &cx);
        let reply = trial(instance.as_mut(), 1, "files", Params::new());
        assert!(matches!(reply, Reply::Done { .. }), "{storage}: {reply:?}");
        foreign.end(instance, &cx);
    }
    // The image still exists, and an instance that was never stopped is removed with its environment.
    greet(
        second.start(&cx, StartMode::Resident).unwrap().as_mut(),
        &cx,
    );
    second.remove(&cx).unwrap();
    assert_eq!(sweep(), [""; 0]);

    let mut environment = prepared("swept", &Params::new());
    let mut instance = environment.start(&cx, StartMode::Once).unwrap();
    greet(instance.as_mut(), &cx);
    assert!(!sweep().is_empty());
    let error = instance.channel().receive(ANSWER_LIMIT).unwrap_err();
    assert!(matches!(error, ChannelError::Closed(_)), "{error}");
    environment.end(instance, &cx);
    assert_eq!(sweep(), [""; 0]);
}

/// Returns the readers' name of the environment: a runtime or an emulator by its own name.
fn shown_name(driver: &dyn Driver, settings: &Params) -> String {
    match driver.id() {
        "oci" => {
            let runtime = settings.text("runtime").unwrap_or("runc");
            runtime.rsplit('/').next().unwrap_or(runtime).to_owned()
        }
        "vm" => "qemu".to_owned(),
        other => other.to_owned(),
    }
}

fn an_unknown_setting_is_refused(driver: &dyn Driver) {
    let settings = params("no-such-setting = 1");
    let arm = arm_id("contract");
    let error = driver.configure(arm, &settings).err();
    let error = error.expect("an unknown setting was accepted");
    assert_eq!(error.setting, "no-such-setting");
}

/// Sends Hello and Facts and returns the facts.
fn greet(instance: &mut dyn Instance, cx: &Context<'_>) -> Facts {
    let workdir = instance.workdir();
    let channel = instance.channel();
    let reply = answer(channel, &Request::Hello { protocol: PROTOCOL });
    let Reply::Hello {
        protocol,
        build,
        probes,
        ..
    } = reply
    else {
        panic!("no Hello but {reply:?}");
    };
    assert_eq!((protocol, &build), (PROTOCOL, &cx.agent.build));
    assert!(probes.iter().any(|(name, _)| name == "null"));
    facts_of(channel, vec![workdir])
}

fn a_null_trial_is_done(instance: &mut dyn Instance, trial: u64) {
    let reply = once(instance, trial, call("null", Params::new()));
    let Reply::Done { trial: about, raw } = reply else {
        panic!("not done but {reply:?}");
    };
    assert_eq!((about, raw.format.as_str()), (trial, "probe/1"));
    let report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
    assert_eq!(report.probe, "null");
    assert_eq!(report.series[0].metric, "dispatch.null.time");
}

/// If this machine's kernel accounts an instance's usage, the driver must say where, and that must exist.
fn it_is_charged_where_it_can_be(driver: &dyn Driver, instance: &dyn Instance) {
    let charged = instance.charged();
    assert_eq!(charged, instance.charged());
    match (&charged, driver.id()) {
        (Charged::Groups(folders), _) => {
            let counts = |file: &str| folders.iter().any(|folder| folder.join(file).is_file());
            assert!(counts("cpu.stat"), "{charged:?}");
            assert!(folders.iter().all(|folder| folder.is_dir()));
        }
        (Charged::Process(pid), _) => {
            assert!(Path::new(&format!("/proc/{pid}/stat")).exists());
        }
        (Charged::Nowhere, "host" | "vm" | "docker" | "container") => panic!("charged nowhere"),
        // A runtime may be configured without a cgroup; another kernel's accounting cannot be read here.
        (Charged::Nowhere, _) => {}
    }
    let is_nowhere = charged == Charged::Nowhere;
    assert_eq!(charged.processes().is_empty(), is_nowhere, "{charged:?}");
}

/// It uses at least the size of its agent, if that can be queried.
fn reports_its_disk_use(driver: &dyn Driver, bytes: Option<u64>) {
    match (bytes, driver.id()) {
        (Some(bytes), _) => assert!(bytes > 500_000, "{bytes}"),
        (None, "ssh") => {}
        (None, other) => panic!("`{other}` does not tell what disk it takes"),
    }
}

/// A trial that would take an hour.
fn endless(instance: &dyn Instance, trial: u64, limit: Duration) -> Request {
    let call = call("integer", Params::new());
    run(instance, trial, call, Duration::from_secs(3600), limit)
}

fn a_worker_that_hangs_is_given_up_within_its_limit(instance: &mut dyn Instance) {
    let limit = Duration::from_millis(300);
    let request = endless(instance, 2, limit);
    let begin = Instant::now();
    let reply = answer(instance.channel(), &request);
    let limit_ns = whole_ns(limit);
    let failure = Failure::TimedOut { limit_ns };
    assert_eq!(reply, Reply::Failed { trial: 2, failure });
    assert!(begin.elapsed() >= limit, "given up before its limit");
}

fn a_trial_can_be_cancelled(instance: &mut dyn Instance) {
    let request = endless(instance, 4, Duration::from_secs(3600));
    instance.channel().send(&request).unwrap();
    let reply = answer(instance.channel(), &Request::Cancel { trial: 4 });
    let failure = Failure::Killed { signal: 9 };
    assert_eq!(reply, Reply::Failed { trial: 4, failure });
}

fn crash_is_reported_and_can_be_stopped(environment: &mut dyn Environment, world: &World) {
    let cx = world.cx();
    let mut instance = environment.start(&cx, StartMode::Resident).unwrap();
    greet(instance.as_mut(), &cx);
    let request = endless(instance.as_ref(), 6, Duration::from_secs(3600));
    instance.channel().send(&request).unwrap();
    let agents: Vec<u32> = labelled(world.run.as_str())
        .into_iter()
        .filter(|(_, command)| command.split(' ').any(|word| word == "serve"))
        .map(|(pid, _)| pid)
        .collect();
    if agents.is_empty() {
        println!("the agent's process cannot be seen from here, so it cannot be killed");
    } else {
        for pid in agents {
            // If there are several, one may have ended with the first.
            let is_killed = signal("KILL", pid);
            assert!(is_killed || !Path::new(&format!("/proc/{pid}")).exists());
        }
        let answer = instance.channel().receive(ANSWER_LIMIT);
        assert!(
            matches!(answer, Err(ChannelError::Closed(_))),
            "a crash was answered by {answer:?}"
        );
    }
    // Whatever it returns, the instance must be gone, as the last snapshot shows.
    if let Err(error) = instance.stop(&cx) {
        println!("stop after a crash: {error}");
    }
}
