//! `cargo xtask planted [--own|--service] [--only NAME] [--small]`: checks `tare why` on environments with one
//! planted fault, and on clean ones.
//!
//! Each file in `fixtures/planted` is one environment. If it has a cause, `tare why` must name that cause first and
//! confirm it by switching it off; in a clean one it must find nothing. A plant whose requirements this machine lacks
//! is reported and counts as not found. The last line is `planted P of N, clean C of M`. The command succeeds if at
//! least 22 of every 24 causes were found and no clean one was accused.
//! `--own` takes `fixtures/planted/own` instead: user containers with one fault each that no cause of the catalogue
//! covers; `tare why` must name and prove that difference, and no other. At least 26 of 28. An answer whose first two
//! lines name an untested cause is wrong, and so is one that is undecided with a third of its time left.
//! `--service` takes `fixtures/planted/service`: servers in such containers, asked from outside. At least eight of
//! ten.
//! `TARE` names a program that is already built, `TARE_TEST_AGENT` its agent if none is embedded.
//! Limits: does not say why a cause was missed; the dossier of each missed one is kept next to the table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::flags::{exit_status, why};
use crate::provision::docker::Engine;
use crate::provision::packages;
use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::{root, target_folder};

mod verdict;

use verdict::{Verdict, careless, judged, seconds_of};

/// The variable with the path of the script that packs images for user containers.
const OWN_IMAGE: &str = "OWN_IMAGE";

/// Placeholder for the parent of the folder in which the command starts.
const FOLDER: &str = "{folder}";

/// One environment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    /// What is wrong with it, or that it is clean.
    what: String,
    /// The cause that must be found; none for a clean one.
    cause: Option<String>,
    /// How far it can be proved: `confirmed`, or `likely` where the command fails without it.
    #[serde(default = "confirmed")]
    status: String,
    env: String,
    /// Name of a container to ask about instead of an environment, if any.
    like: Option<String>,
    /// Its settings. Here and in the command, [`FOLDER`] stands for the parent of the working directory.
    #[serde(default)]
    set: Vec<String>,
    /// The metric to compare, if not the default.
    metric: Option<String>,
    /// A protection that is removed to measure it, if any.
    loosen: Option<String>,
    /// Time budget.
    budget: String,
    /// Words before `tare`, for what it inherits from the shell that starts it.
    #[serde(default)]
    under: Vec<String>,
    /// Further options of `tare why`.
    #[serde(default)]
    options: Vec<String>,
    command: Vec<String>,
    /// Files in its folder, by name.
    #[serde(default)]
    files: std::collections::BTreeMap<String, String>,
    /// A shell script that prepares the folder.
    before: Option<String>,
    /// A shell script that runs at the same time.
    beside: Option<String>,
    /// A shell script that undoes the other two, however the run ends.
    after: Option<String>,
    /// A shell script that succeeds if the machine can have this cause at all; it prints the reason if not.
    possible: Option<String>,
    /// Required programs.
    #[serde(default)]
    needs: Vec<String>,
    /// Whether it belongs to the small part that every change must pass.
    #[serde(default)]
    small: bool,
}

fn confirmed() -> String {
    "confirmed".to_owned()
}

/// A `tare` to ask.
#[derive(Debug)]
struct Tool {
    program: PathBuf,
    /// Its agent, if none is embedded.
    agent: Option<PathBuf>,
}

/// Runs them and prints a table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let (mut only, mut is_small, mut kind) = (None, false, Kind::Ours);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = Some(arguments.next().context("`--only` wants a name")?.clone()),
            "--small" => is_small = true,
            "--own" => kind = Kind::Own,
            "--service" => kind = Kind::Service,
            _ => bail!("usage: cargo xtask planted [--own|--service] [--only NAME] [--small]"),
        }
    }
    let mut plants = plants(kind)?;
    plants.retain(|(name, plant)| {
        only.as_ref().is_none_or(|only| only == name) && (!is_small || plant.small)
    });
    if plants.is_empty() {
        bail!("there is no such plant; see fixtures/planted");
    }
    let program = dist::named_or_built()?;
    let asked = Tool {
        program,
        agent: std::env::var_os("TARE_TEST_AGENT").map(PathBuf::from),
    };
    let engine = plants
        .iter()
        .any(|(_, plant)| plant.env == "docker")
        .then(Engine::ensure)
        .transpose()?;
    let host = engine.as_ref().map(|engine| engine.host().to_owned());
    table(&asked, host.as_deref(), &plants, 1, kind).map(exit_status)
}

/// Runs the small part, with the `tare`, agent and engine of the tests. A wrong answer is retried twice, and each
/// retry is reported: other work on the machine can hide an effect, but not always.
///
/// # Errors
/// If an answer is still wrong.
pub(crate) fn small(program: PathBuf, agent: PathBuf, host: &str) -> Result<()> {
    let mut plants = plants(Kind::Ours)?;
    plants.retain(|(_, plant)| plant.small);
    let asked = Tool {
        program,
        agent: Some(agent),
    };
    if !table(&asked, Some(host), &plants, 3, Kind::Ours)? {
        bail!("`tare why` did not find what was planted, or found what was not; see above");
    }
    Ok(())
}

/// Tries each at most `attempts` times, prints the table and returns whether enough are right.
fn table(
    asked: &Tool,
    host: Option<&str>,
    plants: &[(String, Plant)],
    attempts: u32,
    kind: Kind,
) -> Result<bool> {
    let (mut found, mut clean) = ((0, 0), (0, 0));
    for (name, plant) in plants {
        step(&format!("{name}: {}", plant.what));
        let mut is_right = false;
        for attempt in 1..=attempts {
            let begin = Instant::now();
            let verdict = tried(asked, host, name, plant)?;
            let seconds = begin.elapsed().as_secs();
            is_right = verdict.is_right;
            let word = match (is_right, attempt < attempts) {
                (true, _) => "right",
                (false, true) => "again",
                (false, false) => "WRONG",
            };
            println!("{word:<6} {name:<28} {seconds:>3} s  {}", verdict.told);
            if is_right {
                break;
            }
        }
        let count = if plant.cause.is_some() {
            &mut found
        } else {
            &mut clean
        };
        count.0 += u32::from(is_right);
        count.1 += 1;
    }
    let (word, least, of) = match kind {
        Kind::Ours => ("planted", 22, 24),
        Kind::Own => ("own", 26, 28),
        Kind::Service => ("service", 8, 10),
    };
    println!(
        "{word} {} of {}, clean {} of {}",
        found.0, found.1, clean.0, clean.1
    );
    Ok(found.0 * of >= found.1 * least && clean.0 == clean.1)
}

/// The kinds of environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Tare's own kinds, with settings.
    Ours,
    /// Users' containers.
    Own,
    /// Servers in users' containers, asked from outside.
    Service,
}

/// Returns every plant by name, planted ones first.
fn plants(kind: Kind) -> Result<Vec<(String, Plant)>> {
    let folder = root().join(match kind {
        Kind::Ours => "fixtures/planted",
        Kind::Own => "fixtures/planted/own",
        Kind::Service => "fixtures/planted/service",
    });
    let mut plants = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let plant = toml::from_str(&text).with_context(|| format!("{}", path.display()))?;
        let name = path.file_stem().unwrap_or_default();
        plants.push((name.to_string_lossy().into_owned(), plant));
    }
    plants.sort_by_key(|(name, plant): &(String, Plant)| (plant.cause.is_none(), name.clone()));
    Ok(plants)
}

/// A script that runs at the same time; killed with its process group on drop.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// A cleanup script; runs on drop.
struct After<'a> {
    script: &'a str,
    place: ScriptScope<'a>,
}

/// The folder of the scripts, and the engine that they may use.
#[derive(Clone, Copy)]
struct ScriptScope<'a> {
    folder: &'a Path,
    host: Option<&'a str>,
}

impl Drop for After<'_> {
    fn drop(&mut self) {
        match shell(self.script, self.place).status() {
            Ok(status) if status.success() => {}
            other => step(&format!(
                "`after` ended with {other:?}: look for what is left"
            )),
        }
    }
}

/// Returns a shell script in a separate session that finds the same engine as `tare`.
fn shell(script: &str, place: ScriptScope<'_>) -> Command {
    let mut command = Command::new("setsid");
    command
        .args(["sh", "-euc", script])
        .current_dir(place.folder)
        .stdin(Stdio::null())
        // Only the table goes to stdout; errors go to stderr.
        .stdout(Stdio::null())
        .env(OWN_IMAGE, root().join("fixtures/planted/own/image.sh"));
    if let Some(host) = place.host {
        command.env("DOCKER_HOST", host);
    }
    command
}

/// Returns the `tare why` command, with `FOLDER` filled in.
fn command(asked: &Tool, plant: &Plant, folder: &Path) -> Command {
    let mut command = if plant.under.is_empty() {
        Command::new(&asked.program)
    } else {
        let mut command = Command::new(&plant.under[0]);
        command.args(&plant.under[1..]).arg(&asked.program);
        command
    };
    if let Some(agent) = &asked.agent {
        command.arg("--agent").arg(agent);
    }
    command.args(["why", "--budget", &plant.budget, "--json", "-"]);
    // A user container is named by `--like`, or by the command line itself.
    match &plant.like {
        Some(name) => command.args(["--like", name]),
        None => command.args(["--env", &plant.env]),
    };
    let above = folder.display().to_string();
    let filled = |text: &String| text.replace(FOLDER, &above);
    for setting in plant.set.iter().map(filled) {
        command.args(["--set", &setting]);
    }
    for (flag, value) in [("--metric", &plant.metric), ("--loosen", &plant.loosen)] {
        command.args(value.iter().flat_map(|value| [flag, value]));
    }
    command.args(&plant.options);
    command.arg("--").args(plant.command.iter().map(filled));
    command
}

fn tried(asked: &Tool, host: Option<&str>, name: &str, plant: &Plant) -> Result<Verdict> {
    if let Some(missing) = plant.needs.iter().find(|program| !packages::has(program)) {
        return Ok(Verdict::wrong(format!(
            "not tried: `{missing}` is not here"
        )));
    }
    let folder = target_folder().join("planted").join(name);
    let _ = fs::remove_dir_all(&folder);
    let work = folder.join("work");
    fs::create_dir_all(&work)?;
    for (file, text) in &plant.files {
        fs::write(work.join(file), text)?;
    }
    let place = ScriptScope {
        folder: &work,
        host,
    };
    if let Some(script) = &plant.possible {
        let output = shell(script, place).stdout(Stdio::piped()).output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            fs::remove_dir_all(&folder)?;
            return Ok(Verdict::wrong(format!("not possible here: {why}")));
        }
    }
    let after = plant.after.as_deref().map(|script| After { script, place });
    if let Some(script) = &plant.before {
        let status = shell(script, place).status()?;
        if !status.success() {
            return Ok(Verdict::wrong(format!("`before` ended with {status}")));
        }
    }
    let beside = plant
        .beside
        .as_ref()
        .map(|script| shell(script, place).spawn())
        .transpose()?
        .map(Background);
    let command = command(asked, plant, &folder);
    let begin = Instant::now();
    let output = why(command, &folder, host)?;
    let seconds = begin.elapsed().as_secs_f64();
    drop(beside);
    drop(after);
    if !output.status.success() {
        return Ok(Verdict::wrong(format!(
            "`tare why` ended with {}",
            output.status
        )));
    }
    let dossier: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("`tare why --json -` printed no JSON")?;
    let mut verdict = judged(plant, &dossier);
    let budget = seconds_of(&plant.budget).context("a budget is so many `s` or `m`")?;
    for wrong in careless(&dossier, seconds / budget) {
        verdict.is_right = false;
        verdict.told = format!("{}, CARELESS: {wrong}", verdict.told);
    }
    if verdict.is_right {
        fs::remove_dir_all(&folder)?;
    } else {
        fs::write(folder.join("dossier.json"), &output.stdout)?;
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plant_parses_and_is_complete() {
        let [own, service, plants] =
            [Kind::Own, Kind::Service, Kind::Ours].map(|kind| plants(kind).unwrap());
        assert!(service.iter().all(|(_, plant)| !plant.options.is_empty()));
        assert!(plants.iter().any(|(_, plant)| plant.cause.is_some()));
        assert!(plants.iter().any(|(_, plant)| plant.cause.is_none()));
        assert!(plants.iter().any(|(_, plant)| plant.small));
        let n_planted = own.iter().filter(|(_, plant)| plant.cause.is_some());
        assert_eq!((n_planted.count(), own.len()), (31, 38));
        for (name, plant) in plants.into_iter().chain(own).chain(service) {
            let is_whole = !plant.command.is_empty() && !plant.what.is_empty();
            assert!(is_whole && seconds_of(&plant.budget).is_some(), "{name}");
        }
    }
}
