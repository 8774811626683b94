//! Runs the built program in a separate home, as users and scripts do.
//!
//! Every call has a limit, takes the agent from `TARE_TEST_AGENT` (otherwise one built from the current sources), and
//! inherits none of the caller's settings. Leftovers of a home's runs are searched for without the program.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_testkit::example::example;

pub(crate) use crate::ended::Ended;
use crate::schema::Checker;
pub(crate) use crate::traces::has_docker;
use crate::traces::{docker_objects, traces};
use crate::world::{executable, lossy, skip};

/// Far more than any call takes; exceeding it means a hang.
const LIMIT: Duration = Duration::from_secs(300);

/// Held for reading by tests that tolerate noise, and for writing by one that does not.
static QUIET: RwLock<()> = RwLock::new(());

/// A test's share of the machine, for as long as its product lives.
enum Share {
    Together(#[allow(dead_code, reason = "held for its lock")] RwLockReadGuard<'static, ()>),
    Alone(#[allow(dead_code, reason = "held for its lock")] RwLockWriteGuard<'static, ()>),
    Any,
}

/// The program with a home.
pub(crate) struct Product {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
    agent: PathBuf,
    _share: Share,
}

/// A running call.
pub(crate) struct Started {
    pub(crate) child: Child,
    output: tempfile::TempDir,
}

impl Started {
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal: to the process, or to its whole group as a terminal does.
    pub(crate) fn signal(&self, name: &str, to_group: bool) {
        let pid = i64::from(self.child.id());
        let target = if to_group { -pid } else { pid };
        let sent = Command::new("kill")
            .args(["-s", name, "--", &target.to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn wait(mut self) -> Ended {
        let status = self.wait_for_status();
        let read = |name: &str| {
            let bytes = fs::read(self.output.path().join(name)).unwrap();
            lossy(&bytes)
        };
        Ended {
            code: status.code(),
            stdout: read("stdout"),
            stderr: read("stderr"),
        }
    }

    fn wait_for_status(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            if begin.elapsed() > LIMIT {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                let stderr = fs::read_to_string(self.output.path().join("stderr"));
                panic!("still at work after {LIMIT:?}: {stderr:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Needed after a failed assertion; otherwise the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn new_folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("tare-product-")
        .tempdir()
        .unwrap()
}

/// A study with a second plain process as an arm, so that there is a table everywhere; `more` is a line about it.
pub(crate) fn two_hosts(more: &str, workloads: &[&str]) -> String {
    let rows = workloads
        .iter()
        .map(|id| format!("[[workload]]\nid = \"{id}\"\n"));
    let arms = "[[arm]]\nid = \"host\"\n[[arm]]\nid = \"again\"\ndriver = \"host\"\n";
    let design = "[design]\ntrial = \"20ms\"\nblocks_min = 7\nblocks_max = 7\n";
    let head = format!("id = \"two-hosts\"\n{more}\n{design}{arms}");
    head + &rows.collect::<String>()
}

/// Splits a command line into arguments.
pub(crate) fn words(line: &'static str) -> &'static [&'static str] {
    line.split(' ').collect::<Vec<_>>().leak()
}

/// The same for any line, with further arguments as they are, since they may hold blanks.
pub(crate) fn line<'a>(words: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    words.split(' ').chain(rest.iter().copied()).collect()
}

impl Product {
    pub(crate) fn new() -> Self {
        Self::with_agent(agent())
    }

    /// Returns one that runs while no other test of the product runs.
    pub(crate) fn alone() -> Self {
        let lock = QUIET.write().unwrap_or_else(PoisonError::into_inner);
        Self::sharing(agent(), Share::Alone(lock))
    }

    pub(crate) fn with_agent(agent: &Path) -> Self {
        let lock = QUIET.read().unwrap_or_else(PoisonError::into_inner);
        Self::sharing(agent, Share::Together(lock))
    }

    fn sharing(agent: &Path, share: Share) -> Self {
        Self {
            _share: share,
            folder: new_folder(),
            home: new_folder(),
            agent: agent.to_owned(),
        }
    }

    /// Returns a folder for the test's files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns `TARE_HOME`.
    pub(crate) fn home(&self) -> PathBuf {
        self.home.path().join("home")
    }

    /// Returns the default store.
    pub(crate) fn store(&self) -> PathBuf {
        self.home().join("store.sqlite")
    }

    /// Writes a file of the test.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    /// Writes a program of the test.
    pub(crate) fn program(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        executable(&path, text);
        path.display().to_string()
    }

    /// Returns the command with these arguments.
    pub(crate) fn command<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tare"));
        // First, because what follows `--` is no argument of the program.
        command.arg("--agent").arg(&self.agent).args(arguments);
        self.set_variables(&mut command);
        command
    }

    /// Returns a command as the last arguments of another program.
    pub(crate) fn under(&self, outer: &str, arguments: &[&str], inner: &Command) -> Command {
        let mut command = Command::new(outer);
        command.args(arguments).arg(inner.get_program());
        command.args(inner.get_args());
        self.set_variables(&mut command);
        command
    }

    /// Gives a command this home and removes the caller's settings.
    pub(crate) fn set_variables(&self, command: &mut Command) {
        command.env("TARE_HOME", self.home()).env("COLUMNS", "100");
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "TARE_RUN", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8");
        command.current_dir(self.folder.path());
    }

    /// Runs it to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        self.finish(self.command(arguments))
    }

    /// Runs a command line and further arguments to its end.
    pub(crate) fn tare(&self, words: &str, rest: &[&str]) -> Ended {
        self.run(line(words, rest))
    }

    /// Returns the dossier of a command that succeeds.
    pub(crate) fn dossier<const N: usize>(&self, arguments: [&str; N]) -> Value {
        let arguments = arguments.into_iter().chain(["--json", "-"]);
        self.run(arguments).expect(0).json()
    }

    /// Runs a command to its end, within the limit.
    #[allow(
        clippy::unused_self,
        reason = "a command that was made for this home belongs to it"
    )]
    pub(crate) fn finish(&self, command: Command) -> Ended {
        Self::start(command).wait()
    }

    /// Starts a command in a separate process group, as a shell does.
    pub(crate) fn start(mut command: Command) -> Started {
        let output = tempfile::tempdir().unwrap();
        let file = |name: &str| fs::File::create(output.path().join(name)).unwrap();
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        Started { child, output }
    }

    /// Returns every run that this home knows: stored, or with a folder.
    pub(crate) fn runs(&self) -> BTreeSet<String> {
        let mut runs: BTreeSet<String> = self.stored("SELECT id FROM run").into_iter().collect();
        for entry in fs::read_dir(self.home().join("runs")).into_iter().flatten() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name != ".lock" {
                runs.insert(name);
            }
        }
        runs
    }

    /// Returns the first column of a query to the store, as text; empty without a store.
    pub(crate) fn stored(&self, question: &str) -> Vec<String> {
        stored(&self.store(), question)
    }

    /// Returns the number of stored trials.
    pub(crate) fn n_trials(&self) -> usize {
        self.stored("SELECT sequence FROM trial").len()
    }

    /// Waits until this many trials are stored.
    pub(crate) fn wait_for_trials(&self, started: &mut Started, count: usize) {
        self.wait_for(started, "SELECT sequence FROM trial", count);
    }

    /// Waits until a query to the store has this many rows.
    pub(crate) fn wait_for(&self, started: &mut Started, question: &str, count: usize) {
        let begin = Instant::now();
        while self.stored(question).len() < count {
            assert!(
                started.is_running(),
                "it ended before {count} of {question}"
            );
            assert!(
                begin.elapsed() < LIMIT,
                "no {count} of {question} within {LIMIT:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Changes the store, as a fault would.
    pub(crate) fn change_store(&self, statement: &str) {
        let store = rusqlite::Connection::open(self.store()).unwrap();
        store.busy_timeout(LIMIT).unwrap();
        store.execute_batch(statement).unwrap();
    }

    /// Returns everything that this home's runs left on the machine, one line each; retries for up to half a minute.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let runs = self.runs();
        let begin = Instant::now();
        loop {
            let left = self.look(&runs);
            if left.is_empty() || begin.elapsed() > Duration::from_secs(30) {
                return left;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.left_behind(), [""; 0]);
    }

    /// Returns what these runs currently have on the machine.
    pub(crate) fn look(&self, runs: &BTreeSet<String>) -> Vec<String> {
        let mut left: Vec<String> = traces(runs, self.folder.path()).into_iter().collect();
        for run in runs {
            if self.home().join("runs").join(run).exists() {
                left.push(format!("folder of {run}"));
            }
        }
        for run in runs {
            left.extend(docker_objects(run));
        }
        left
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // Only needed after a failed assertion.
        if std::thread::panicking() {
            let _ = self.command(["clean"]).output();
        }
    }
}

/// Returns the first column of a query to a store, as text.
pub(crate) fn stored(store: &Path, question: &str) -> Vec<String> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(connection) = rusqlite::Connection::open_with_flags(store, flags) else {
        return Vec::new();
    };
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    let Ok(mut statement) = connection.prepare(question) else {
        // The tables do not exist yet.
        return Vec::new();
    };
    let rows = statement.query_map([], |row| {
        Ok(match row.get_ref(0)? {
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            rusqlite::types::ValueRef::Text(text) => lossy(text),
            other => format!("{other:?}"),
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Returns the environments that are available here, the host first; reports a skip for the others.
pub(crate) fn environments() -> Vec<&'static str> {
    let mut here = vec!["host"];
    here.extend(needs_container().then_some("container"));
    here.extend(needs_docker().then_some("docker"));
    here
}

/// Whether containers can be made here; reports a skip if not.
pub(crate) fn needs_container() -> bool {
    is_met(has_container(), "root", "no container can be made here")
}

/// Whether an engine answers; reports a skip if not.
pub(crate) fn needs_docker() -> bool {
    is_met(has_docker(), "docker", "no Docker engine answers")
}

/// Whether this is root; reports a skip if not.
pub(crate) fn needs_root() -> bool {
    is_met(is_root(), "root", "only root can do this")
}

fn is_met(is_met: bool, needs: &str, reason: &str) -> bool {
    if !is_met {
        skip(needs, reason);
    }
    is_met
}

/// Whether the program says that it can create the built-in container here.
pub(crate) fn has_container() -> bool {
    static ANSWERS: OnceLock<bool> = OnceLock::new();
    *ANSWERS.get_or_init(|| {
        // Called by tests that already hold the lock.
        let product = Product::sharing(agent(), Share::Any);
        let doctor = product.run(["doctor", "--json"]).expect(0).json();
        let environments = doctor["environments"].as_array().unwrap();
        environments
            .iter()
            .any(|environment| environment["id"] == "container" && environment["ready"] == true)
    })
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// Returns a shell script in a separate mount namespace, which ends with the shell. The script's arguments are
/// `first`, then the inner command.
pub(crate) fn with_own_mounts(script: &str, first: &[&Path], inner: &Command) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]);
    command.args(["sh", "-c", script, "sh"]);
    command.args(first);
    command.arg(inner.get_program()).args(inner.get_args());
    command
}

/// Returns the shipped agent: `TARE_TEST_AGENT`, otherwise built as for shipping.
pub(crate) fn agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| {
        if let Some(agent) = std::env::var_os("TARE_TEST_AGENT") {
            return PathBuf::from(agent);
        }
        let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        let folder = target_folder().join("agent");
        let output = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "tare-agent"])
            .args(["--bin", "tare-agent", "--profile", "agent", "--target"])
            .args([&musl, "--target-dir"])
            .arg(&folder)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output();
        if output.unwrap().status.success() {
            return folder.join(musl).join("agent/tare-agent");
        }
        crate::world::agent().to_owned()
    })
}

/// An agent whose `getppid` hangs, `stat` aborts, `pipe` writes garbage and `clock` ends without a report.
pub(crate) fn broken_agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| example("broken_agent", target_folder()))
}

fn target_folder() -> &'static Path {
    let program = Path::new(env!("CARGO_BIN_EXE_tare"));
    program.ancestors().nth(2).unwrap()
}

/// Returns the only cell of an arm and a metric.
#[track_caller]
pub(crate) fn cell<'a>(dossier: &'a Value, arm: &str, metric: &str) -> &'a Value {
    let cells = dossier["cells"].as_array().unwrap();
    let is_it = |cell: &&Value| cell["arm"] == arm && cell["metric"] == metric;
    let mut found = cells.iter().filter(is_it);
    let cell = found.next();
    let cell = cell.unwrap_or_else(|| panic!("no {metric} of {arm}: {dossier:#}"));
    assert!(found.next().is_none(), "{metric} of {arm} is there twice");
    cell
}

/// Asserts that a dossier is valid.
#[track_caller]
pub(crate) fn assert_valid_dossier(dossier: &Value) {
    if let Err(error) = Checker::of_dossier().check(dossier) {
        panic!("{error}\n{dossier:#}");
    }
}
