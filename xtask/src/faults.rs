//! `cargo xtask faults`: runs that are killed at random moments, in every environment that can be had here, and what
//! `tare clean` then leaves.
//!
//! Each kill is SIGKILL to Tare alone, at a moment between its first breath and some seconds of measuring. What was
//! stored before must still be stored, nothing of the run may stay, and what is not Tare's, planted beside it under
//! other names, must be there afterwards. The moments come from a seed, which is printed; the machine's own speed decides
//! what each of them meets.
//! What it cannot see: runs over ssh, for which a machine would have to be named, a power cut, and what only a longer run would do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::dist;
use crate::shell::{number, step};
use crate::traces::{docker_objects, has_docker, labelled, traces};

/// Where runs are killed: a name, and the arguments.
const CASES: &[(&str, &[&str])] = &tare_model::rows! {
    ("host", &["run", "--env", "host", "--workload", "getppid", "--workload", "integer", "--blocks", "400"]),
    ("container", &["run", "--env", "container", "--workload", "getppid", "--workload", "integer", "--blocks", "400"]),
    ("docker", &["run", "--env", "docker", "--workload", "getppid", "--workload", "integer", "--blocks", "400"]),
    ("podman", &["run", "--env", "podman", "--workload", "getppid", "--workload", "integer", "--blocks", "400"]),
    ("oci", &["run", "--env", "oci", "--workload", "getppid", "--workload", "integer", "--blocks", "400"]),
    ("vm", &["run", "--env", "vm", "--workload", "getppid", "--workload", "integer", "--blocks", "400"]),
    ("why", &["why", "--env", "container", "--budget", "60s", "--", "sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"]),
};

/// The latest moment of a kill.
const LATEST: Duration = Duration::from_secs(8);

/// How long what was killed, or is removed, may take to be gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a command that only looks or removes may take.
const LIMIT: Duration = Duration::from_secs(120);

/// What became of one kill.
#[derive(Debug, Default)]
struct Outcome {
    lost: u64,
    left: Vec<String>,
    touched: Vec<String>,
}

/// The `tare` that is killed.
struct Killed {
    program: PathBuf,
    agent: Option<PathBuf>,
    folder: PathBuf,
}

/// Kills so many runs and prints a table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let (mut n_kills, mut only, mut seed) = (20_u32, None, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("`{argument}` wants a value"))
        };
        match argument.as_str() {
            "-n" => n_kills = number(value()?)?,
            "--only" => only = Some(value()?.clone()),
            "--seed" => seed = Some(number::<u64>(value()?)?),
            _ => bail!("usage: cargo xtask faults [-n N] [--only NAME] [--seed N]"),
        }
    }
    let cases: Vec<_> = CASES
        .iter()
        .filter(|(name, _)| only.as_ref().is_none_or(|only| only == name))
        .collect();
    ensure!(!cases.is_empty(), "there is no such case: {}", names());
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = seed.unwrap_or(since.as_secs());
    println!("seed {seed}");
    let mut moments = Moments(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let program = dist::named_or_built()?;
    let mut is_good = true;
    let mut rows = vec![format!(
        "{:<10} {:>5} {:>11} {:>11} {:>15}",
        "", "kills", "lost trials", "left behind", "foreign touched"
    )];
    for (name, line) in cases {
        if let Some(why) = why_not(&program, name)? {
            rows.push(format!("{name:<10} {:>5} {why}", "-"));
            continue;
        }
        step(&format!("{name}: {n_kills} kills"));
        let mut all = Outcome::default();
        for _ in 0..n_kills {
            let after = moments.next();
            let one = killed(&program, line, after)?;
            for line in one.left.iter().chain(&one.touched) {
                println!("{name}, after {} ms: {line}", after.as_millis());
            }
            all.lost += one.lost;
            all.left.extend(one.left);
            all.touched.extend(one.touched);
        }
        let (left, touched) = (all.left.len(), all.touched.len());
        is_good &= all.lost == 0 && left == 0 && touched == 0;
        rows.push(format!(
            "{name:<10} {n_kills:>5} {:>11} {left:>11} {touched:>15}",
            all.lost
        ));
    }
    for row in rows {
        println!("{row}");
    }
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn names() -> String {
    let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Moments of a xorshift generator (Marsaglia 2003).
struct Moments(u64);

impl Moments {
    fn next(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_millis(self.0 % u64::try_from(LATEST.as_millis()).unwrap_or(1))
    }
}

/// Why an environment cannot be had here, as `tare doctor` says.
fn why_not(program: &Path, name: &str) -> Result<Option<String>> {
    let tare = Killed::new(program)?;
    let doctor: Value = serde_json::from_str(&tare.said(&["doctor", "--json"])?)?;
    let wanted = if name == "why" { "container" } else { name };
    let rows = doctor["environments"]
        .as_array()
        .context("doctor lists no environments")?;
    let row = rows.iter().find(|row| row["id"] == wanted);
    Ok(match row {
        Some(row) if row["ready"] == true => None,
        Some(row) => Some(format!(
            "not here: {}",
            row["why"].as_str().unwrap_or("no reason given")
        )),
        None => Some("not known to this `tare`".to_owned()),
    })
}

/// Kills one run, cleans, and looks.
fn killed(program: &Path, line: &[&str], after: Duration) -> Result<Outcome> {
    let tare = Killed::new(program)?;
    let foreign = Foreign::plant(&tare)?;
    let mut child = tare
        .command(line)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(after);
    let before = tare.stored()?;
    if let Some(status) = child.try_wait()? {
        ensure!(
            status.success(),
            "`tare {}` ended by itself: {status}",
            line.join(" ")
        );
    }
    child.kill()?;
    child.wait()?;
    let runs = tare.runs();
    tare.said(&["clean"])?;
    let left = || -> BTreeSet<String> {
        let engine = runs.iter().flat_map(|run| docker_objects(run));
        let folders = tare
            .runs()
            .into_iter()
            .map(|run| format!("folder of run {run}"));
        traces(&runs, &tare.home())
            .into_iter()
            .chain(engine)
            .chain(folders)
            .collect()
    };
    let begin = Instant::now();
    while !left().is_empty() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Outcome {
        lost: before.saturating_sub(tare.stored()?),
        left: left().into_iter().collect(),
        touched: foreign.missing(),
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
        // On a disk, which an overlay takes as its upper layer.
        let name = format!("tare-faults-{}-{number}", std::process::id());
        let folder = Path::new("/var/tmp").join(name);
        std::fs::create_dir(&folder)?;
        let tare = Self {
            program: program.to_owned(),
            agent: std::env::var_os("TARE_TEST_AGENT").map(PathBuf::from),
            folder,
        };
        std::fs::create_dir_all(tare.home().join("runs"))?;
        Ok(tare)
    }

    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(agent) = &self.agent {
            command.arg("--agent").arg(agent);
        }
        command
            .args(line)
            .env("TARE_HOME", self.home())
            .current_dir(&self.folder);
        command
    }

    /// What a command that must end well prints.
    fn said(&self, line: &[&str]) -> Result<String> {
        let mut command = Command::new("timeout");
        let inner = self.command(line);
        command
            .arg(LIMIT.as_secs().to_string())
            .arg(inner.get_program())
            .args(inner.get_args());
        command
            .env("TARE_HOME", self.home())
            .current_dir(&self.folder);
        let output = command.output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`tare {}`: {words}",
            line.join(" ")
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// How many trials are stored.
    fn stored(&self) -> Result<u64> {
        let runs: Value = serde_json::from_str(&self.said(&["runs", "--json"])?)?;
        let rows = runs.as_array().context("runs are no list")?;
        Ok(rows.iter().filter_map(|row| row["trials"].as_u64()).sum())
    }

    /// The runs that have a folder here.
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

/// What is not Tare's, or another's run: the name of a folder without a mark, a process's label, a container's.
const FOREIGN: &str = "not-tares";

/// Things that look like Tare's and are not this run's.
struct Foreign {
    file: PathBuf,
    process: Child,
    container: Option<String>,
}

impl Foreign {
    fn plant(tare: &Killed) -> Result<Self> {
        let folder = tare.home().join("runs").join(FOREIGN);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("precious");
        std::fs::write(&file, "precious")?;
        let process = Command::new("sleep")
            .arg("600")
            .env("TARE_RUN", FOREIGN)
            .spawn()?;
        let container = has_docker()
            .then(|| made(&format!("faults-{}", process.id())))
            .transpose()?;
        Ok(Self {
            file,
            process,
            container,
        })
    }

    /// What is not there any more.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.file.exists() {
            missing.push(format!("`{}` was removed", self.file.display()));
        }
        if !labelled(FOREIGN).contains_key(&self.process.id()) {
            missing.push("a process of another run was ended".to_owned());
        }
        if let Some(name) = &self.container
            && !docker(&["inspect", name]).is_ok_and(|output| output.status.success())
        {
            missing.push(format!("the container `{name}` was removed"));
        }
        missing
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(name) = &self.container {
            let _ = docker(&["rm", "-f", name]);
            let _ = docker(&["image", "rm", name]);
        }
    }
}

fn docker(arguments: &[&str]) -> std::io::Result<std::process::Output> {
    Command::new("docker").args(arguments).output()
}

/// A container of another run's, never started, from an empty image.
fn made(name: &str) -> Result<String> {
    let label = format!("tare.run={FOREIGN}");
    let import = format!("tar -c --files-from /dev/null | docker import - {name}:latest");
    let imported = Command::new("sh").args(["-c", &import]).output()?;
    ensure!(imported.status.success(), "{imported:?}");
    let image = format!("{name}:latest");
    let created = docker(&[
        "create", "--name", name, "--label", &label, &image, "nothing",
    ])?;
    ensure!(created.status.success(), "{created:?}");
    Ok(name.to_owned())
}
