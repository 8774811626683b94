//! `cargo xtask planted [--own|--service] [--only NAME] [--small]`: environments that are made worse in one known way, and some that
//! are not.
//!
//! Each file in `fixtures/planted` is one. Of one with a cause, `tare why` must name that cause first and confirm
//! it by switching it off; of a clean one it must find nothing. What a plant needs and this machine has not is
//! told, and counts as not found. The last line is `planted P of N, clean C of M`; it succeeds if at least 22 of
//! every 24 causes were found and no clean one was accused.
//! With `--own` it is those of `fixtures/planted/own`: containers as people make them, with one thing wrong each that
//! no cause of the catalogue is about; `tare why` must name and prove the one difference, and no other. At least 26 of
//! 28. An answer whose first two lines name a cause that was not tested is wrong, and so is one that is undecided with a
//! third of its time left.
//! With `--service` it is those of `fixtures/planted/service`: servers in such containers, asked from outside. At least
//! eight of ten.
//! `TARE` names a program that is built already, `TARE_TEST_AGENT` its agent if it carries none.
//! What it cannot see: why a cause was missed; the dossier of each is kept beside the table if it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::dist;
use crate::provision::docker::Engine;
use crate::provision::packages;
use crate::shell::{step, why};
use crate::workspace::{root, target_folder};

mod verdict;

use verdict::{Verdict, careless, judged, seconds_of};

/// Where the script is that packs images for containers of the user's own, for scripts.
const OWN_IMAGE: &str = "OWN_IMAGE";

/// Stands for the folder above the one in which the command is started.
const FOLDER: &str = "{folder}";

/// One environment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    /// What is wrong with it, or that nothing is.
    what: String,
    /// The cause that must be found; none for a clean one.
    cause: Option<String>,
    /// How far it can be proved: `confirmed`, or `likely` where the command fails without it.
    #[serde(default = "confirmed")]
    status: String,
    /// The environment.
    env: String,
    /// A container that is asked about by its name, instead of an environment.
    like: Option<String>,
    /// Its settings; [`FOLDER`] stands for the folder above the working directory, here and in the command.
    #[serde(default)]
    set: Vec<String>,
    /// What is compared.
    metric: Option<String>,
    /// A protection that is removed to measure it.
    loosen: Option<String>,
    /// Time for it.
    budget: String,
    /// Words before `tare`, for what it inherits from the shell that it is started from.
    #[serde(default)]
    under: Vec<String>,
    /// Further options of `tare why`.
    #[serde(default)]
    options: Vec<String>,
    /// The command.
    command: Vec<String>,
    /// Files in its folder, by name.
    #[serde(default)]
    files: std::collections::BTreeMap<String, String>,
    /// A script of the shell that prepares the folder.
    before: Option<String>,
    /// A script of the shell that runs meanwhile.
    beside: Option<String>,
    /// A script of the shell that takes back what the other two did, however it ends.
    after: Option<String>,
    /// A script of the shell that succeeds where the machine can have this cause at all; what it prints says why
    /// not.
    possible: Option<String>,
    /// Programs that must be here.
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
struct Asked {
    program: PathBuf,
    /// Its agent, if it carries none.
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
    let asked = Asked {
        program,
        agent: std::env::var_os("TARE_TEST_AGENT").map(PathBuf::from),
    };
    let engine = plants
        .iter()
        .any(|(_, plant)| plant.env == "docker")
        .then(Engine::ensure)
        .transpose()?;
    let host = engine.as_ref().map(|engine| engine.host().to_owned());
    Ok(if table(&asked, host.as_deref(), &plants, 1, kind)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The small part, for the tests: a `tare` that was built with them, its agent and their engine. One that is not
/// right is asked twice more, and that is told: other work on the machine can hide an effect, but not always.
///
/// # Errors
/// What is wrong in the end.
pub(crate) fn small(program: PathBuf, agent: PathBuf, host: &str) -> Result<()> {
    let mut plants = plants(Kind::Ours)?;
    plants.retain(|(_, plant)| plant.small);
    let asked = Asked {
        program,
        agent: Some(agent),
    };
    if !table(&asked, Some(host), &plants, 3, Kind::Ours)? {
        bail!("`tare why` did not find what was planted, or found what was not; see above");
    }
    Ok(())
}

/// Tries each at most so often and prints the table; whether it is good enough.
fn table(
    asked: &Asked,
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

/// Whose environments they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Tare's own kinds, with settings.
    Ours,
    /// Containers as users have them.
    Own,
    /// Servers in such containers, asked from outside.
    Service,
}

/// Every plant by name, planted ones first.
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

/// A script that runs meanwhile; ended with its group when dropped.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.0.wait();
    }
}

/// A script that takes back what was done; run when dropped.
struct After<'a> {
    script: &'a str,
    place: Place<'a>,
}

/// Where scripts run, and the engine that they may use.
#[derive(Clone, Copy)]
struct Place<'a> {
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

/// A script of the shell in a session of its own, which finds the engine where `tare` does.
fn shell(script: &str, place: Place<'_>) -> Command {
    let mut command = Command::new("setsid");
    command
        .args(["sh", "-euc", script])
        .current_dir(place.folder)
        .stdin(Stdio::null())
        // The table is all that is printed; what goes wrong is told on the other stream.
        .stdout(Stdio::null())
        .env(OWN_IMAGE, root().join("fixtures/planted/own/image.sh"));
    if let Some(host) = place.host {
        command.env("DOCKER_HOST", host);
    }
    command
}

/// The question, with the folder above the working directory filled in.
fn command(asked: &Asked, plant: &Plant, folder: &Path) -> Command {
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
    // A container of the user's is named by itself, or by the line that is the command.
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

fn tried(asked: &Asked, host: Option<&str>, name: &str, plant: &Plant) -> Result<Verdict> {
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
    let place = Place {
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
        .map(Beside);
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
    fn every_plant_can_be_read_and_names_what_it_needs() {
        let [own, service, plants] =
            [Kind::Own, Kind::Service, Kind::Ours].map(|kind| plants(kind).unwrap());
        assert!(service.iter().all(|(_, plant)| !plant.options.is_empty()));
        assert!(plants.iter().any(|(_, plant)| plant.cause.is_some()));
        assert!(plants.iter().any(|(_, plant)| plant.cause.is_none()));
        assert!(plants.iter().any(|(_, plant)| plant.small));
        let n_planted = own.iter().filter(|(_, plant)| plant.cause.is_some());
        assert_eq!((n_planted.count(), own.len()), (26, 33));
        for (name, plant) in plants.into_iter().chain(own).chain(service) {
            let is_whole = !plant.command.is_empty() && !plant.what.is_empty();
            assert!(is_whole && seconds_of(&plant.budget).is_some(), "{name}");
        }
    }
}
