//! What a test of an environment needs: an agent, a folder, a run of its own, and a look at the machine.
//!
//! The agent is built by cargo from the present sources, statically where the target is installed, so that
//! a test never meets an old one and the same file runs inside a container without libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tare::cx::observer::Silent;
use tare::cx::{Agents, Cancel, Context, SystemClock, SystemExec};
use tare_model::RunId;

/// A context with everything that it borrows.
pub(crate) struct World {
    pub(crate) exec: SystemExec,
    pub(crate) clock: SystemClock,
    pub(crate) observer: Silent,
    pub(crate) cancel: Cancel,
    pub(crate) agents: Agents,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) run: RunId,
}

impl World {
    /// A new one; its run's name begins with `name`.
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            exec: SystemExec,
            clock: SystemClock::default(),
            observer: Silent,
            cancel: Cancel::new(),
            agents: Agents::only(agent()).unwrap(),
            folder: tempfile::Builder::new()
                .prefix("tare-it-")
                .tempdir()
                .unwrap(),
            run: RunId::new(format!("it-{name}-{}-{count}", std::process::id())).unwrap(),
        }
    }

    /// The context.
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
        }
    }
}

/// A turn of one's own: for tests that look at what the machine holds before and after.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The agent of the present sources, built once for each test program.
pub(crate) fn agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| {
        let program = std::env::current_exe().unwrap();
        // The test lies in `<target>/debug/deps`.
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

/// Why the last test that was skipped was.
static LAST_SKIP: Mutex<String> = Mutex::new(String::new());

/// Notes what became of a driver's contract in the file that `TARE_CONTRACT_TABLE` names, for the table at the
/// end of `cargo xtask test`: what passing tests print is not passed on.
pub(crate) fn note_contract(driver: &str, what: &str) {
    let Some(path) = std::env::var_os("TARE_CONTRACT_TABLE").filter(|path| !path.is_empty()) else {
        return;
    };
    let line = format!("{driver}\t{}\n", what.replace(['\n', '\t'], " "));
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap();
}

/// Notes that a driver's contract was skipped, for the reason that was given last.
pub(crate) fn note_skipped_contract(driver: &str) {
    let reason = LAST_SKIP
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    note_contract(driver, &format!("skipped: {reason}"));
}

/// Says that a test cannot run here; fails instead if `TARE_REQUIRE` names what it needs.
pub(crate) fn skip(needs: &str, reason: &str) {
    let required = std::env::var("TARE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|name| name.trim() == needs),
        "`{needs}` is required here, but {reason}"
    );
    reason.clone_into(&mut LAST_SKIP.lock().unwrap_or_else(PoisonError::into_inner));
    // Past the capture of passing tests, so that the reason is read.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Processes that carry the run's label, with their command lines.
pub(crate) fn labelled(run: &str) -> BTreeMap<u32, String> {
    let label = format!("TARE_RUN={run}");
    let mut found = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return found;
    };
    for entry in entries.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == label.as_bytes())
        {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.insert(pid, command.trim().to_owned());
        }
    }
    found
}

/// What of the machine an environment may change and has to put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    processes: BTreeMap<u32, String>,
    mounts: Vec<String>,
    interfaces: BTreeSet<String>,
    groups: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Snapshot {
    /// Looks at the machine.
    pub(crate) fn take(world: &World) -> Self {
        let mut groups = BTreeSet::new();
        walk(Path::new("/sys/fs/cgroup"), 5, &mut |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name.starts_with("tare") && !is_anothers(&name) {
                groups.insert(path.to_owned());
            }
        });
        let mut files = BTreeSet::new();
        walk(world.folder.path(), 16, &mut |path| {
            files.insert(path.to_owned());
        });
        Self {
            processes: labelled(world.run.as_str()),
            mounts: mounts(),
            interfaces: interfaces(),
            groups,
            files,
        }
    }

    /// Waits until the machine is as it was here, at most five seconds; else says what is different.
    pub(crate) fn assert_restored(&self, world: &World, after: &str) {
        for _ in 0..100 {
            if Self::take(world) == *self {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_eq!(Self::take(world), *self, "left behind after {after}");
    }
}

/// Mount points of this namespace, but those that engines keep for containers of other people.
pub(crate) fn mounts() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut points: Vec<String> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|point| !is_an_engines(point))
        .map(str::to_owned)
        .collect();
    points.sort();
    points
}

/// Whether a mount point is one that a Docker engine makes for a container, wherever it keeps its data: other
/// tests start containers meanwhile.
fn is_an_engines(point: &str) -> bool {
    let is_network = point.rsplit_once("/netns/").is_some_and(|(_, name)| {
        name == "default" || (name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let prefixes = ["/var/lib/docker/", "/run/docker/", "/var/lib/containers/"];
    is_network
        || point.contains("/overlay2/")
        || point.ends_with("/mounts/shm")
        || prefixes.iter().any(|prefix| point.starts_with(prefix))
}

/// Whether a label names a run of another process of these tests, or of somebody who measures meanwhile: this
/// process's runs have its number in them.
fn is_anothers(label: &str) -> bool {
    let own = format!("-{}-", std::process::id());
    !label.contains(&own)
}

/// Network interfaces, but those that engines name at random for containers of other people, and those that
/// carry the label of somebody else's run.
fn interfaces() -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir("/sys/class/net") else {
        return BTreeSet::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with("veth") && !name.starts_with("br-"))
        .filter(|name| {
            let alias = std::fs::read_to_string(format!("/sys/class/net/{name}/ifalias"));
            // Without a label it cannot be told whose it is: another's may just be in the making.
            let run = alias.unwrap_or_default();
            !(name.starts_with("tare-") && is_anothers(&run))
        })
        .collect()
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
