//! Tests the `podman` driver against a real podman.
//!
//! Rootless podman is tested as the user that runs the tests; if that is root, as an ordinary user: `tare-test` if it
//! exists, otherwise a user that is created and later removed with all its files. Rootful podman runs in separate
//! namespaces, with which its bridge and its mounts disappear. Without podman a test is reported as skipped.

use crate::prelude::*;

use std::sync::MutexGuard;

use tare::cx::{CommandError, Exec, Finished, Running, SystemExec};
use tare::env::podman::{PODMAN, Podman};
use tare_model::Value;

use crate::contract::{contract, engine_contract};
use crate::docker::absent;
use crate::talk::{assert_reached, trial};

mod hostile;
mod user_container;
use tare_testkit::account::{self, Account};

/// A world and the podman under test. The account is dropped after the world, and the turn last.
pub(crate) struct PodmanWorld {
    pub(crate) world: World,
    pub(crate) driver: Podman,
    account: Account,
    _turn: MutexGuard<'static, ()>,
}

/// Starting containers takes a whole machine.
static TURN: Mutex<()> = Mutex::new(());

/// Returns a place if rootless podman works; otherwise reports a skip, or fails if it is required.
pub(crate) fn place(name: &str) -> Option<PodmanWorld> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let account = match Account::take() {
        Ok(account) => account,
        Err(why) => {
            skip("podman", &why);
            return None;
        }
    };
    let driver = account.name().map_or(PODMAN.clone(), Podman::of_user);
    let world = World::new(name);
    match detect(&driver, &world) {
        Availability::Ready(_) => Some(PodmanWorld {
            world,
            driver,
            account,
            _turn: turn,
        }),
        Availability::Absent { why, .. } => {
            skip(
                "podman",
                &format!("rootless podman does not work here ({why})"),
            );
            None
        }
    }
}

/// Retries detection, because a busy machine can exceed its time limit; a success is cached.
fn detect(driver: &Podman, world: &World) -> Availability {
    static FOUND: OnceLock<Facts> = OnceLock::new();
    if let Some(facts) = FOUND.get() {
        return Availability::Ready(facts.clone());
    }
    let mut found = driver.detect(&world.cx());
    for _ in 0..5 {
        match &found {
            Availability::Absent { why, .. } if why.contains("were over") => println!("{why}"),
            _ => break,
        }
        found = driver.detect(&world.cx());
    }
    if let Availability::Ready(facts) = &found {
        FOUND.get_or_init(|| facts.clone());
    }
    found
}

impl PodmanWorld {
    fn environment(&self, name: &str, settings: &Params) -> Box<dyn Environment> {
        let arm = arm_id(name);
        self.driver.configure(arm, settings).unwrap()
    }

    /// Returns an environment and an instance of it whose agent answers.
    fn started(
        &self,
        name: &str,
        settings: &Params,
        mode: StartMode,
    ) -> (Box<dyn Environment>, Box<dyn Instance>) {
        let mut environment = self.environment(name, settings);
        let instance = environment.greeted(&self.world.cx(), mode);
        (environment, instance)
    }

    /// Returns the objects with this run's label, found by the driver's own sweep.
    fn leftovers(&self) -> Vec<String> {
        let run = self.world.run.as_str();
        self.driver.sweep(&self.world.cx(), run).unwrap()
    }

    /// Starts, greets, hands over the instance, stops and removes, and checks that nothing is left.
    fn with_instance(
        &self,
        settings: &Params,
        mode: StartMode,
        look: impl FnOnce(&mut dyn Instance, &Facts),
    ) {
        let cx = self.world.cx();
        let mut environment = self.environment("arm", settings);
        environment.prepare(&cx).unwrap();
        let facts = environment.describe(&cx);
        let mut instance = environment.greeted(&cx, mode);
        look(instance.as_mut(), &facts);
        environment.end(instance, &cx);
        environment.remove(&cx).unwrap();
        self.assert_nothing_is_left();
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!(self.leftovers(), [""; 0]);
        let folder = self.world.folder.path();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
        wait_until("its monitors are gone", || {
            monitors(self.world.run.as_str()).is_empty()
        });
    }

    fn refusal(&self, settings: &Params) -> EnvError {
        let cx = self.world.cx();
        let mut environment = self.environment("arm", settings);
        let error = environment.prepare(&cx).expect_err("it was prepared");
        environment.remove(&cx).unwrap();
        self.assert_nothing_is_left();
        error
    }
}

/// Returns processes whose command line names this run: podman, and conmon, which stays while a container runs.
fn monitors(run: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let commands = entries.filter_map(|entry| {
        let bytes = fs::read(entry.path().join("cmdline")).ok()?;
        Some(lossy(&bytes).replace('\0', " "))
    });
    commands
        .filter(|command| command.contains(&format!("tare-{run}-")))
        .collect()
}

#[test]
fn rootless_podman_keeps_the_contract_of_drivers() {
    let Some(place) = place("contract") else {
        return note_skipped_contract("podman");
    };
    contract(&place.driver, &Params::new());
}

#[test]
fn podman_keeps_the_contract_of_engines() {
    let place = needed!(place("images"));
    engine_contract(&place.driver, &place.world);
    place.assert_nothing_is_left();
}

#[test]
fn podman_container_has_default_security_facts_and_usage() {
    let place = needed!(place("security"));
    place.with_instance(&Params::new(), StartMode::Resident, |instance, facts| {
        let inner = inner_facts(instance);
        assert_eq!(
            inner.get("status.Seccomp").map(String::as_str),
            Some("2"),
            "{inner:?}"
        );
        assert!(matches!(
            trial(instance, 1, "null", Params::new()),
            Reply::Done { .. }
        ));
        for name in [
            "engine.version",
            "engine.storage_driver",
            "engine.runtime",
            "engine.runtime.version",
            "engine.network_mode",
            "engine.cgroup_version",
            "engine.cgroup_driver",
            "image.id",
            "agent.sha256",
        ] {
            assert!(facts.contains_key(name), "{name}: {facts:?}");
        }
        assert_eq!(facts["engine.rootless"], "true");
        if let Some(chosen) = facts.get("engine.runtime.chosen") {
            assert_says(chosen, "hybrid");
            assert_eq!(facts["engine.runtime"], "runc");
            assert!(
                facts["engine.runtime.version"].contains("runc"),
                "{facts:?}"
            );
        }
        // Also if an ordinary user's containers have no separate cgroups.
        let charged = instance.charged();
        assert!(charged.memory_bytes() > Some(0), "{charged:?}");
        // The host has no route into it, and reports that instead of an address that does not answer.
        for end in [instance.address_from_host(), instance.host_address()] {
            assert!(matches!(end, Err(Reason::NoPath(why)) if why.contains("rootless")));
        }
    });
}

#[test]
fn settings_reach_the_container() {
    let place = needed!(place("settings"));
    let settings = params(
        "seccomp = 'unconfined', cap_drop = 'ALL', no_new_privileges = true, \
ulimits = 'nofile=512:1024', user = '65534', log_driver = 'none', \
network = 'none'",
    );
    for mode in [StartMode::Resident, StartMode::Once] {
        place.with_instance(&settings, mode, |instance, facts| {
            let inner = inner_facts(instance);
            let inner = |name: &str| inner.get(name).map(String::as_str);
            assert_eq!(inner("status.Seccomp"), Some("0"));
            assert_eq!(inner("status.CapBnd"), Some("0000000000000000"));
            assert_eq!(inner("status.NoNewPrivs"), Some("1"));
            assert_eq!(inner("uid"), Some("65534"));
            assert_eq!(facts["engine.network_mode"], "none");
            assert_eq!(facts["engine.log_driver"], "none");
            assert_eq!(facts["asked.ulimit"], "nofile=512:1024");
            assert!(matches!(
                instance.address_from_host(),
                Err(Reason::NoPath(why)) if why.contains("none")
            ));
        });
    }
}

#[test]
fn podman_host_network_uses_loopback_addresses() {
    let place = needed!(place("hostnet"));
    let settings = params("network = 'host'");
    place.with_instance(&settings, StartMode::Resident, |instance, facts| {
        assert!(instance.address_from_host().unwrap().is_loopback());
        assert!(instance.host_address().unwrap().is_loopback());
        assert_eq!(facts["engine.network_mode"], "host");
    });
}

#[test]
fn every_storage_has_its_kind_and_is_open_to_user() {
    let mut place = needed!(place("storage"));
    // The engine binds a folder whatever its name.
    place.world.folder = tempfile::Builder::new()
        .prefix("tare it \"quoted\" 'too',\n")
        .tempdir()
        .unwrap();
    account::set_mode(place.world.folder.path(), 0o711);
    // What an ordinary user may write, root may too.
    for storage in ["layer", "volume", "bind", "tmpfs"] {
        let user = "65534:65534";
        let settings = Params::new().with("storage", storage).with("user", user);
        place.with_instance(&settings, StartMode::Resident, |instance, _| {
            let facts = inner_facts(instance);
            let kind = facts.get("mount./tare-work.fstype");
            let kind = kind.unwrap_or_else(|| panic!("{storage}: {facts:?}"));
            assert_eq!(kind == "tmpfs", storage == "tmpfs", "{storage}: {kind}");
            let reply = trial(instance, 1, "files", Params::new());
            assert!(matches!(reply, Reply::Done { .. }), "{storage}: {reply:?}");
            // Podman makes what it mounts there.
            let written = instance.written(&place.world.cx());
            assert!(written.contains("/etc"), "{storage}: {written:?}");
        });
    }
}

#[test]
fn podman_folder_unreachable_for_user_is_refused() {
    let mut place = needed!(place("closed"));
    if place.account.name().is_none() {
        return skip("root", "an ordinary user comes to every folder of its own");
    }
    // Tare's own folders let the user pass; Tare must not open the folders above them.
    let closed = tempfile::tempdir().unwrap();
    account::set_mode(closed.path(), 0o700);
    let runs = closed.path().join("state/runs");
    fs::create_dir_all(&runs).unwrap();
    place.world.folder = tempfile::tempdir_in(&runs).unwrap();
    let settings = params("storage = 'bind'");
    let error = place.refusal(&settings);
    let EnvError::Denied {
        what,
        fix: Some(fix),
    } = error
    else {
        panic!("{error:?}");
    };
    assert_says(&what, "cannot come to");
    assert_says(&fix, "TARE_HOME");
}

#[test]
fn limits_that_podman_would_ignore_are_refused() {
    let place = needed!(place("limits"));
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        return skip("cgroup1", "limits may work with cgroups of version 2");
    }
    for (name, value) in [
        ("memory", Value::Text("64m".into())),
        ("cpus", Value::Float(0.5)),
        ("cpuset", Value::Text("0".into())),
    ] {
        let (why, fix) = absent(place.refusal(&Params::new().with(name, value)));
        assert_says(&why, name);
        assert_says(&why, "version 2");
        assert!(!fix.is_empty());
    }
}

#[test]
fn podman_names_missing_runtime_user_or_profile() {
    let place = needed!(place("wrong"));
    for (name, value, word) in [
        ("runtime", "tare-none", "runtime"),
        ("runtime", "/nonexistent/runc", "runtime"),
        ("user", "tare-none", "user"),
        ("seccomp", "/nonexistent/profile.json", "seccomp"),
        ("ulimits", "nofile=1048576000", "limits"),
    ] {
        let (why, fix) = absent(place.refusal(&Params::new().with(name, value)));
        assert!(why.contains(word), "{value}: {why}");
        assert!(!fix.is_empty());
    }
}

#[test]
fn podman_leftovers_and_processes_of_run_are_swept() {
    let place = needed!(place("killed"));
    let cx = place.world.cx();
    let settings = params("storage = 'volume'");
    let (environment, instance) = place.started("arm", &settings, StartMode::Resident);
    // A container whose command is killed survives because conmon holds it, as after `kill -9` of everything.
    drop(instance);
    drop(environment);
    let run = place.world.run.as_str();
    // Without the name of the tests' user: the sweep finds it by its storage.
    let swept = PODMAN.sweep(&cx, run).unwrap();
    for kind in ["container", "volume", "image"] {
        let is_kind = |line: &&String| line.starts_with(&format!("podman {kind} "));
        assert_eq!(swept.iter().filter(is_kind).count(), 1, "{swept:?}");
    }
    place.assert_nothing_is_left();
}

/// Replaces each command by another.
struct Instead<F>(F);

impl<F: Fn(&CommandLine) -> CommandLine + Send + Sync> Exec for Instead<F> {
    fn run(
        &self,
        command: &CommandLine,
        input: &[u8],
        limit: Duration,
    ) -> Result<Finished, CommandError> {
        match SystemExec.run(&(self.0)(command), input, limit) {
            Err(CommandError::Missing { .. }) => Err(CommandError::Missing {
                program: command.program.clone(),
            }),
            other => other,
        }
    }

    fn spawn(&self, command: &CommandLine) -> Result<Box<dyn Running>, CommandError> {
        SystemExec.spawn(&(self.0)(command))
    }
}

/// Returns the same command as if podman were not installed.
fn without_podman(command: &CommandLine) -> CommandLine {
    let mut command = command.clone();
    let words = std::iter::once(&mut command.program).chain(&mut command.arguments);
    for word in words.filter(|word| **word == "podman") {
        word.push_str("-is-not-installed");
    }
    command
}

#[test]
fn missing_podman_is_reported_with_install_command() {
    let world = World::new("notinstalled");
    let exec = Instead(without_podman);
    let mut cx = world.cx();
    cx.exec = &exec;
    let mut drivers = vec![PODMAN.clone()];
    let account = Account::take();
    if let Some(name) = account.as_ref().ok().and_then(Account::name) {
        drivers.push(Podman::of_user(name));
    }
    for driver in drivers {
        let Availability::Absent { why, fix } = driver.detect(&cx) else {
            panic!("it was found");
        };
        assert_eq!(why, "podman is not installed");
        assert!(fix.unwrap().contains("apt-get install podman uidmap"));
    }
}

#[test]
fn podman_user_that_does_not_exist_is_named() {
    let world = World::new("nouser");
    let settings = params("as = 'tare-no-such-user'");
    let arm = arm_id("arm");
    let environment = PODMAN.configure(arm, &settings).unwrap();
    let Some(Availability::Absent { why, fix }) = environment.detect(&world.cx()) else {
        panic!("it was found");
    };
    assert_says(&why, "no user `tare-no-such-user`");
    assert!(fix.unwrap().contains("useradd"));
}

/// Set in the process that runs in separate namespaces.
const INSIDE: &str = "TARE_TEST_PODMAN_INSIDE";

#[test]
fn rootful_podman_works_or_gives_working_advice() {
    if !account::is_root() {
        return skip("root", "only root has rootful podman");
    }
    if std::env::var_os(INSIDE).is_none() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        return again_in_namespaces_of_its_own(
            "podman::rootful_podman_works_or_gives_working_advice",
        );
    }
    let world = World::new("rootful");
    let cx = world.cx();
    let mut settings = Params::new();
    match detect(&PODMAN, &world) {
        Availability::Ready(facts) => assert_eq!(facts["engine.rootless"], "false"),
        Availability::Absent { why, fix } => {
            let fix = fix.unwrap_or_else(|| panic!("no advice for: {why}"));
            if !why.contains("CAP_SYS_RESOURCE") {
                return skip(
                    "podman",
                    &format!("rootful podman does not work here: {why}"),
                );
            }
            assert!(!account::holds_capability(24), "{why}");
            assert_says(&why, "limits");
            assert_says(&why, "not permitted");
            assert_says(&fix, "as = ");
            assert_says(&fix, "`runtime = \"runc\"`");
            // The rest of the advice.
            assert_says(&fix, "ulimits = [\"nofile=1024\", \"nproc=1024\"]");
            settings = settings.with("ulimits", "nofile=1024, nproc=1024");
        }
    }
    let arm = arm_id("arm");
    let mut environment = PODMAN.configure(arm, &settings).unwrap();
    if !settings.0.is_empty() {
        let found = environment.detect(&cx);
        assert!(matches!(found, Some(Availability::Ready(_))), "{found:?}");
    }
    environment.prepare(&cx).unwrap();
    let mut instance = environment.greeted(&cx, StartMode::Resident);
    assert!(matches!(
        trial(instance.as_mut(), 1, "null", Params::new()),
        Reply::Done { .. }
    ));
    // Both ends of the bridge are real: a port without a listener refuses.
    let inside = instance.address_from_host().unwrap();
    assert_reached(inside);
    TcpListener::bind((instance.host_address().unwrap(), 0)).unwrap();
    environment.end(instance, &cx);
    let swept = PODMAN.sweep(&cx, world.run.as_str()).unwrap();
    assert_eq!(swept, [""; 0]);
}

/// Runs one test of this program again with separate mounts and network interfaces.
fn again_in_namespaces_of_its_own(test: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--propagation", "private", "--"])
        .arg(program)
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = lossy(&output.stdout);
    let errors = lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    for line in text.lines().filter(|line| line.starts_with("skipped:")) {
        println!("{line}");
    }
    assert_says(&text, "1 passed");
}
