//! What a test of an environment needs: an agent, a folder, a separate run, and a snapshot of the machine.
//!
//! The agent is that of `TARE_TEST_AGENT`, otherwise built by cargo from the current sources, statically if the
//! target is installed, so that the same file runs inside a container without libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tare::cx::observer::Silent;
use tare::cx::{Agents, Cancel, Context, SystemClock, SystemExec};
use tare::env::{Availability, Driver};
use tare::plan::Plan;
use tare::run::{AllBlocks, Registry, RunError, RunSummary, execute};
use tare::store::{Store, StoredRun};
use tare::workload::Workload;
use tare_model::{ArmId, Facts, Params, RunId, Study};

pub(crate) use crate::traces::labelled;
use crate::traces::traces;

/// A context with everything that it borrows.
pub(crate) struct World {
    pub(crate) exec: SystemExec,
    pub(crate) clock: SystemClock,
    pub(crate) observer: Silent,
    pub(crate) cancel: Cancel,
    pub(crate) agents: Agents,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) run: RunId,
    pub(crate) store: Option<PathBuf>,
}

impl World {
    /// Returns a new one; its run's name begins with `name`.
    pub(crate) fn new(name: &str) -> Self {
        Self::with_agent(name, agent())
    }

    /// Returns one with this agent.
    pub(crate) fn with_agent(name: &str, agent: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            exec: SystemExec,
            clock: SystemClock::default(),
            observer: Silent,
            cancel: Cancel::new(),
            agents: Agents::only(agent).unwrap(),
            folder: tempfile::Builder::new()
                .prefix("tare-it-")
                .tempdir()
                .unwrap(),
            run: RunId::new(format!("it-{name}-{}-{count}", std::process::id())).unwrap(),
            store: None,
        }
    }

    pub(crate) fn cx(&self) -> Context<'_> {
        Context {
            exec: &self.exec,
            clock: &self.clock,
            observer: &self.observer,
            cancel: &self.cancel,
            agent: self.agents.host(),
            agents: &self.agents,
            scratch: self.folder.path(),
            run: &self.run,
            store: self.store.as_deref(),
        }
    }
}

pub(crate) fn arm_id(name: &str) -> ArmId {
    ArmId::new(name).unwrap()
}

/// Returns a file's text.
#[track_caller]
pub(crate) fn contents(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Returns what a program printed.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns settings or parameters, written as in a study: `network = 'none', cpus = 1`.
pub(crate) fn params(text: &str) -> Params {
    let table = format!("params = {{ {text} }}");
    let mut tables: BTreeMap<String, Params> = toml::from_str(&table).unwrap();
    tables.remove("params").unwrap()
}

/// Far more than anything that is waited for takes; exceeding it means a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polls until the condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Takes an exclusive turn: for tests that compare the machine's state before and after.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns an exclusive turn and a world, if the test's requirements are met.
pub(crate) fn turn_where(
    name: &str,
    is_there: impl Fn(&World) -> bool,
) -> Option<(MutexGuard<'static, ()>, World)> {
    let turn = turn();
    let world = World::new(name);
    is_there(&world).then_some((turn, world))
}

/// Whether a driver can be used here; reports a skip if not.
pub(crate) fn is_ready(world: &World, driver: &dyn Driver, needs: &str) -> bool {
    match driver.detect(&world.cx()) {
        Availability::Ready(_) => true,
        Availability::Absent { why, .. } => {
            skip(
                needs,
                &format!("`{}` cannot be used here ({why})", driver.id()),
            );
            false
        }
    }
}

/// Carries out a study with the real drivers; returns how it ended and what was stored.
pub(crate) fn carry_out(
    cx: &Context<'_>,
    study: &Study,
    workload: &dyn Fn(&str) -> Option<&'static dyn Workload>,
) -> (Result<RunSummary, RunError>, StoredRun) {
    let driver = &tare::env::find;
    let registry = Registry { driver, workload };
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("store.db")).unwrap();
    let (plan, host) = (Plan::new(study), Facts::new());
    let result = execute(cx, &plan, &host, &registry, &mut store, &mut AllBlocks);
    (result, store.run(cx.run).unwrap())
}

/// Returns a program as an ordinary user without any rights.
pub(crate) fn as_nobody(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    command.arg(program);
    command
}

/// Returns another process of this program, which runs one of the tests that are otherwise ignored.
pub(crate) fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

/// Starts a child that prints the name of its run after `RUN`, and ends with its input.
pub(crate) fn with_run(command: &mut Command) -> (Child, String) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let run = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("RUN ").map(str::to_owned));
    (child, run.expect("the child said which run it is"))
}

/// Returns the agent: `TARE_TEST_AGENT`, otherwise built once for each test program.
pub(crate) fn agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| {
        if let Some(agent) = std::env::var_os("TARE_TEST_AGENT") {
            return PathBuf::from(agent);
        }
        let program = std::env::current_exe().unwrap();
        // The test is in `<target>/debug/deps`.
        let target = program.ancestors().nth(3).unwrap();
        let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        if cfg!(target_os = "linux") && build(target, Some(&musl)) {
            return target.join(musl).join("debug/tare-agent");
        }
        assert!(build(target, None), "the agent cannot be built");
        let name = format!("tare-agent{}", std::env::consts::EXE_SUFFIX);
        target.join("debug").join(name)
    })
}

fn build(folder: &Path, target: Option<&str>) -> bool {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "build",
        "--quiet",
        "--package",
        "tare-agent",
        "--bin",
        "tare-agent",
    ]);
    command.arg("--target-dir").arg(folder);
    command.args(target.iter().flat_map(|target| ["--target", target]));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.output().unwrap().status.success()
}

/// The reason of the last skip.
static LAST_SKIP: Mutex<String> = Mutex::new(String::new());

/// Writes a program that every user may run.
#[cfg(unix)]
pub(crate) fn executable(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::write(path, text).unwrap();
    tare_testkit::account::set_mode(path, 0o755);
}

/// Sends a signal to a process; returns whether it got it.
pub(crate) fn signal(name: &str, pid: u32) -> bool {
    let arguments = ["-s", name, "--", &pid.to_string()];
    let sent = Command::new("kill").args(arguments).output();
    sent.unwrap().status.success()
}

/// Appends the result of a driver's contract to the file that `TARE_CONTRACT_TABLE` names, for the table at the end
/// of `cargo xtask test`: the output of passing tests is not shown.
pub(crate) fn note_contract(driver: &str, what: &str) {
    let path = needed!(std::env::var_os("TARE_CONTRACT_TABLE").filter(|path| !path.is_empty()));
    let line = format!("{driver}\t{}\n", what.replace(['\n', '\t'], " "));
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap();
}

/// Appends that a driver's contract was skipped, for the last reason given.
pub(crate) fn note_skipped_contract(driver: &str) {
    let reason = LAST_SKIP
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    note_contract(driver, &format!("skipped: {reason}"));
}

/// Reports that a test cannot run here; fails instead if `TARE_REQUIRE` names what it needs.
pub(crate) fn skip(needs: &str, reason: &str) {
    crate::skip::skip(needs, reason);
    reason.clone_into(&mut LAST_SKIP.lock().unwrap_or_else(PoisonError::into_inner));
}

/// The state of the machine that an environment may change and has to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Objects of the test's own run; others may change meanwhile.
    own: BTreeSet<String>,
    system: Vec<String>,
    files: BTreeSet<PathBuf>,
}

impl Snapshot {
    /// Takes a snapshot of the machine.
    pub(crate) fn take(world: &World) -> Self {
        let mut files = BTreeSet::new();
        walk(world.folder.path(), 16, &mut |path| {
            files.insert(path.to_owned());
        });
        let runs = BTreeSet::from([world.run.to_string()]);
        Self {
            own: traces(&runs, world.folder.path()),
            system: system_mounts(),
            files,
        }
    }

    /// Waits until the machine is in this state again; otherwise fails with the difference.
    pub(crate) fn assert_restored(&self, world: &World, after: &str) {
        let begin = Instant::now();
        while Self::take(world) != *self && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(Self::take(world), *self, "left behind after {after}");
    }
}

/// Returns the system's mount points in this namespace, which no test may change.
pub(crate) fn system_mounts() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut points: Vec<String> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|point| {
            let below = |top: &str| point.starts_with(top);
            *point == "/" || below("/proc") || below("/sys") || below("/dev")
        })
        .map(str::to_owned)
        .collect();
    points.sort();
    points
}

fn walk(folder: &Path, depth: u32, visit: &mut impl FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        visit(&path);
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, depth - 1, visit);
        }
    }
}
