//! `cargo xtask faults`: kills runs at random moments, in every environment that works here, and checks what `tare
//! clean` leaves.
//!
//! Each kill is SIGKILL to Tare alone, between its start and some seconds of measuring. Afterwards stored trials must
//! still be stored, nothing of the run may remain, and foreign objects, planted under similar names, must still
//! exist. The moments come from a seed, which is printed; what each kill hits depends on the machine's speed. Two
//! cases run at a time, because a kill mostly waits.
//! Limits: no power cuts, no other machines, and nothing that only a longer run would do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::flags::{exit_status, number};
use crate::locked;
use crate::traces::{docker_objects, traces};
use xtask_build::dist;
use xtask_build::shell::{step, strs};

mod foreign;
mod place;

use tare_testkit::{account, ssh_server as server};

use foreign::{FOREIGN, Foreign};
use place::PreparedCase;

/// How many cases run at a time.
const LANES: usize = 2;

/// How long killed or removed objects may take to disappear.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time limit of a command that only reads or removes.
const LIMIT: Duration = Duration::from_secs(120);

/// The result of the kills of one case.
#[derive(Debug, Default)]
struct Outcome {
    n_kills: u32,
    lost: u64,
    left: Vec<String>,
    touched: Vec<String>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.n_kills += other.n_kills;
        self.lost += other.lost;
        self.left.extend(other.left);
        self.touched.extend(other.touched);
    }

    fn row(&self, name: &str) -> String {
        let (left, touched) = (self.left.len(), self.touched.len());
        let (n_kills, lost) = (self.n_kills, self.lost);
        format!("{name:<10} {n_kills:>5} {lost:>11} {left:>11} {touched:>15}")
    }
}

/// The `tare` that is killed.
struct Killed {
    program: PathBuf,
    agent: Option<PathBuf>,
    folder: PathBuf,
}

/// The arguments of the command line.
struct FaultOptions {
    n_kills: u32,
    only: Option<String>,
    seed: u64,
}

fn asked(arguments: &[String]) -> Result<FaultOptions> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let mut asked = FaultOptions {
        n_kills: 200,
        only: None,
        seed: since.as_secs(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("`{argument}` wants a value"))
        };
        match argument.as_str() {
            "-n" => asked.n_kills = number(value()?)?,
            "--only" => asked.only = Some(value()?.clone()),
            "--seed" => asked.seed = number::<u64>(value()?)?,
            _ => bail!("usage: cargo xtask faults [-n N] [--only NAME] [--seed N]"),
        }
    }
    Ok(asked)
}

/// Kills this many runs, spread over the cases, and prints a table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let FaultOptions {
        n_kills,
        only,
        seed,
    } = asked(arguments)?;
    println!("seed {seed}");
    let program = dist::named_or_built()?;
    let (mut ready, mut absent) = (Vec::new(), Vec::new());
    let doctor = doctor(&program)?;
    for case in place::CASES {
        if only.as_ref().is_some_and(|only| only != case.name) {
            continue;
        }
        match place::prepared(case, &doctor) {
            Ok(place) => ready.push((case, place)),
            Err(why) => absent.push((case.name, why)),
        }
    }
    ensure!(
        !ready.is_empty(),
        "no case can run here: {absent:?}; there are: {}",
        place::case_names()
    );
    let foreign = Foreign::plant()?;
    let n_cases = u32::try_from(ready.len())?;
    let shares: Vec<_> = (0..n_cases)
        .map(|at| n_kills / n_cases + u32::from(at < n_kills % n_cases))
        .collect();
    let waiting = Mutex::new(ready.iter().zip(shares).zip(1..));
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let lane = || -> Result<()> {
            loop {
                let next = locked(&waiting).next();
                let Some((((case, place), n_kills), number)) = next else {
                    return Ok(());
                };
                step(&format!("{}: {n_kills} kills", case.name));
                let mut moments = Moments::new(seed, number);
                let mut all = Outcome::default();
                for _ in 0..n_kills {
                    let after = moments.next(case.latest);
                    let one = killed(&program, place, &foreign, after)
                        .with_context(|| format!("{}, after {after:?}", case.name))?;
                    for line in one.left.iter().chain(&one.touched) {
                        println!("{}, after {} ms: {line}", case.name, after.as_millis());
                    }
                    all.add(one);
                }
                locked(&done).push((number, case.name, all));
            }
        };
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let mut ended = lanes.into_iter().map(|lane| lane.join().expect("no panic"));
        ended.try_for_each(|ended| ended)
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, ..)| *number);
    Ok(table(done, &absent))
}

/// Prints the results and returns the exit status of the command.
fn table(done: Vec<(u64, &str, Outcome)>, absent: &[(&str, String)]) -> ExitCode {
    println!(
        "{:<10} {:>5} {:>11} {:>11} {:>15}",
        "", "kills", "lost trials", "left behind", "foreign touched"
    );
    let mut total = Outcome::default();
    for (_, name, outcome) in done {
        println!("{}", outcome.row(name));
        total.add(outcome);
    }
    for (name, why) in absent {
        println!("{name:<10} {:>5} {why}", "-");
    }
    println!("{}", total.row("all"));
    exit_status(total.lost == 0 && total.left.is_empty() && total.touched.is_empty())
}

/// Kill times from a xorshift generator (Marsaglia 2003).
struct Moments(u64);

impl Moments {
    fn new(seed: u64, case: u64) -> Self {
        let mixed = (seed ^ case << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed | 1)
    }

    fn next(&mut self, latest: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(self.0 % u64::try_from(latest.as_millis()).unwrap_or(1))
    }
}

/// Returns the output of `tare doctor` on this machine.
fn doctor(program: &Path) -> Result<Value> {
    let tare = Killed::new(program)?;
    Ok(serde_json::from_str(
        &tare.output_of(&["doctor", "--json"])?,
    )?)
}

/// Kills one run, cleans up and checks for leftovers.
fn killed(
    program: &Path,
    place: &PreparedCase,
    foreign: &Foreign,
    after: Duration,
) -> Result<Outcome> {
    let tare = Killed::new(program)?;
    let file = Foreign::file(&tare.home())?;
    if let Some(study) = &place.study {
        std::fs::write(tare.work().join(place::STUDY), study)?;
    }
    let line = strs(&place.line);
    let errors = tare.folder.join("stderr");
    let mut child = tare
        .command(&line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&errors)?)
        .spawn()?;
    std::thread::sleep(after);
    let before = tare.stored()?;
    if let Some(status) = child.try_wait()? {
        let words = std::fs::read_to_string(errors)?;
        ensure!(status.success(), "ended by itself, {status}: {words}");
    }
    child.kill()?;
    child.wait()?;
    let runs = tare.runs();
    let cleaned = tare.output_of(&["clean"]);
    let left = || -> BTreeSet<String> {
        let engine = runs.iter().flat_map(|run| docker_objects(run));
        let elsewhere = runs.iter().flat_map(|run| place.left(run));
        let folders = tare
            .runs()
            .into_iter()
            .map(|run| format!("folder of run {run}"));
        traces(&runs, &tare.home())
            .into_iter()
            .chain(engine)
            .chain(elsewhere)
            .chain(folders)
            .collect()
    };
    let begin = Instant::now();
    let mut found = left();
    while !found.is_empty() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
        found = left();
    }
    found.extend(cleaned.err().map(|error| error.to_string()));
    Ok(Outcome {
        n_kills: 1,
        lost: before.saturating_sub(tare.stored()?),
        left: found.into_iter().collect(),
        touched: foreign.missing(&file),
    })
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Killed {
    fn new(program: &Path) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // On a disk, because an overlay uses it as its upper layer.
        let name = format!("tare-faults-{}-{number}", std::process::id());
        let folder = Path::new("/var/tmp").join(name);
        std::fs::create_dir(&folder)?;
        let tare = Self {
            program: program.to_owned(),
            agent: std::env::var_os("TARE_TEST_AGENT").map(PathBuf::from),
            folder,
        };
        std::fs::create_dir_all(tare.home().join("runs"))?;
        std::fs::create_dir(tare.work())?;
        Ok(tare)
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// The working directory of Tare.
    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(agent) = &self.agent {
            command.arg("--agent").arg(agent);
        }
        command
            .args(line)
            .env("TARE_HOME", self.home())
            .current_dir(self.work());
        command
    }

    /// Returns the output of a command that must succeed.
    fn output_of(&self, line: &[&str]) -> Result<String> {
        let inner = self.command(line);
        let output = Command::new("timeout")
            .arg(LIMIT.as_secs().to_string())
            .arg(inner.get_program())
            .args(inner.get_args())
            .env("TARE_HOME", self.home())
            .current_dir(self.work())
            .output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`tare {}`: {words}",
            line.join(" ")
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the number of stored trials.
    fn stored(&self) -> Result<u64> {
        let runs: Value = serde_json::from_str(&self.output_of(&["runs", "--json"])?)?;
        let rows = runs.as_array().context("runs are no list")?;
        Ok(rows.iter().filter_map(|row| row["trials"].as_u64()).sum())
    }

    /// Returns the runs that have a folder here.
    fn runs(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.home().join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| !name.starts_with('.') && name != FOREIGN)
            .collect()
    }
}
