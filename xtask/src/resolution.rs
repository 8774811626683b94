//! `cargo xtask resolution [--seconds N]`: measures how narrow an answer gets for its time.
//!
//! Runs the study `quick` twice for the same time, by whole trials and by slices. For each metric it prints the
//! half-width of the 95 % interval of the ratio, scaled to a minute of wall time (a width falls with the square root
//! of time). Then it asks one question in the usual ways, for the same time each: the overhead of a loop in a
//! container of the engine, by hyperfine, by pyperf, by `docker exec` alternating with the host, and by Tare. Two
//! rounds of each: intervals that exclude each other are too narrow. The row of a missing tool says that it is not
//! installed.
//! `TARE` names a program that is already built.
//! Limits: does not measure the machine's noise; run it on an otherwise idle machine.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tare_stats::mean_paired;

use tare_model::whole_part;

use crate::flags::{Json, cells, flags, number, ratio};
use crate::peers::{hyperfine_ratio, quoted};
use crate::provision::docker::Engine;
use crate::provision::packages::has;
use crate::provision::python::PYPERF;
use xtask_build::dist;
use xtask_build::shell::{Program, program, step};
use xtask_build::workspace::{root, work_folder};

/// A loop of about 60 ms.
const LOOP: &str = "BEGIN { while (i++ < 400000) x += i * i; print x }";
/// The image and the container in which the peers are measured.
const NAME: &str = "tare-xtask-resolution";

/// Runs everything and prints two tables.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [seconds] = flags("resolution", arguments, [("--seconds", "60")])?;
    let seconds: u64 = number(&seconds)?;
    let tare = dist::named_or_built()?;
    let folder = work_folder("resolution")?;
    let engine = Engine::ensure();
    if let Err(error) = &engine {
        step(&format!("without docker: {error:#}"));
    }
    let tare = Tare {
        program: &tare,
        folder: &folder,
        seconds,
        engine: engine.as_ref().ok().map(Engine::host),
    };
    let quick = fs::read_to_string(root().join("studies/quick.toml"))?
        .replace("id = \"quick\"", "id = \"resolution\"");
    let with = |alternate: bool| {
        let design = format!("[design]\nalternate = {alternate}");
        quick.replace("[design]", &design)
    };
    step(&format!("quick by whole trials, {seconds} s"));
    let trials = tare.run(&with(false))?;
    step(&format!("quick slice by slice, {seconds} s"));
    let slices = tare.run(&with(true))?;
    println!("| metric | arm | whole trials | slices | times narrower |\n|---|---|---|---|---|");
    for ((arm, metric), (before, after)) in pairs(&trials, &slices)? {
        println!(
            "| {metric} | {arm} | ±{before:.2} % | ±{after:.2} % | {:.1} |",
            before / after
        );
    }
    let answers = peers(&tare)?;
    println!("\n| the same question | asked for | answers |\n|---|---|---|");
    for (name, told) in answers {
        println!("| {name} | {seconds} s each | {told} |");
    }
    fs::remove_dir_all(&folder)?;
    Ok(ExitCode::SUCCESS)
}

/// How Tare is run here.
struct Tare<'a> {
    program: &'a Path,
    folder: &'a Path,
    seconds: u64,
    /// The engine's address, if there is one.
    engine: Option<&'a str>,
}

impl Tare<'_> {
    /// Returns a program that finds the engine.
    fn program(&self, name: impl AsRef<OsStr>, arguments: &[&str]) -> Program {
        let program = program(name, arguments);
        match self.engine {
            Some(host) => program.variable("DOCKER_HOST", host),
            None => program,
        }
    }

    /// Runs a study and returns its dossier.
    fn run(&self, study: &str) -> Result<Value> {
        let file = self.folder.join("study.toml");
        fs::write(&file, study)?;
        self.program(self.program, &["run", &file.to_string_lossy()])
            .arguments(&["--budget", &format!("{}s", self.seconds)])
            .arguments(&["--prove", "0s", "--json", "-"])
            .variable("TARE_HOME", self.folder.join("home"))
            .json()
    }
}

/// An arm and a metric.
type Cell = (String, String);

/// Returns the half-widths of every cell that both dossiers have, per cent, scaled to a minute.
fn pairs(before: &Value, after: &Value) -> Result<Vec<(Cell, (f64, f64))>> {
    let (before, after) = (widths(before)?, widths(after)?);
    let both = before.into_iter().filter_map(|(cell, width)| {
        let (_, other) = after.iter().find(|(same, _)| *same == cell)?;
        Some((cell, (width, *other)))
    });
    Ok(both.collect())
}

fn widths(dossier: &Value) -> Result<Vec<(Cell, f64)>> {
    let wall_s = dossier["cost"]["wall_s"].as_f64().context("no wall time")?;
    let of_cell = |cell: &Value| {
        let text = |name: &str| cell[name].as_str().unwrap_or_default().to_owned();
        let [_, low, high] = ratio(cell)?;
        let half_width = (high.ln() - low.ln()) / 2.0;
        let per_minute = half_width * (wall_s / 60.0).sqrt();
        Some(((text("arm"), text("metric")), 100.0 * per_minute))
    };
    Ok(cells(dossier, "cells")?
        .iter()
        .filter_map(of_cell)
        .collect())
}

/// Measures the loop in a container of the engine against the host with each method; returns the answers.
fn peers(tare: &Tare<'_>) -> Result<Vec<(&'static str, String)>> {
    let mut rows = Vec::new();
    let study = format!(
        "id = \"peers\"\nbaseline = \"host\"\n[[arm]]\nid = \"host\"\n[[arm]]\nid = \"docker\"\nrequired = true\n\
         [[workload]]\nid = \"command\"\nparams.argv = [\"/bin/busybox\", \"awk\", '{LOOP}']\n"
    );
    if tare.engine.is_none() || !has("docker") || !Path::new("/bin/busybox").exists() {
        return Ok(vec![(
            "all",
            "no engine, none of its client, or no /bin/busybox".into(),
        )]);
    }
    let _container = Container::start(tare)?;
    let limit = Duration::from_secs(tare.seconds);
    if has("hyperfine") {
        step("hyperfine");
        rows.push(("hyperfine -N", twice(|| hyperfine(tare, limit))?));
    } else {
        rows.push(("hyperfine -N", "`hyperfine` is not installed".into()));
    }
    rows.push(match PYPERF.ensure() {
        Some(python) => {
            step("pyperf command");
            (
                "pyperf command",
                twice(|| pyperf_command(tare, &python, limit))?,
            )
        }
        None => ("pyperf command", "pyperf cannot be had".into()),
    });
    step("docker exec in turn with the host");
    rows.push((
        "`docker exec` in turn with the host, mean of ratios",
        twice(|| in_turn(tare, limit))?,
    ));
    step("tare");
    rows.push((
        "tare run, workload `command`",
        twice(|| {
            let dossier = tare.run(&study)?;
            let cell = cells(&dossier, "cells")?
                .iter()
                .find(|cell| cell["metric"] == "command.run.wall")
                .context("no cell of the loop")?;
            let Some([point, low, high]) = ratio(cell) else {
                bail!("no interval: {cell}");
            };
            Ok(format!("{point:.3} [{low:.3}, {high:.3}]"))
        })?,
    ));
    Ok(rows)
}

fn twice(mut ask: impl FnMut() -> Result<String>) -> Result<String> {
    Ok(format!("{} · {}", ask()?, ask()?))
}

/// A waiting container from an image with only busybox; removed on drop.
struct Container<'a>(&'a Tare<'a>);

impl<'a> Container<'a> {
    fn start(tare: &'a Tare<'a>) -> Result<Self> {
        let image = format!("tar -c -C / bin/busybox | docker import - {NAME}");
        tare.program("sh", &["-c", &image]).output()?;
        let made = Self(tare);
        tare.program("docker", &["run", "--detach", "--name", NAME, NAME])
            .arguments(&["/bin/busybox", "sleep", "86400"])
            .output()?;
        Ok(made)
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        let _ = self.0.program("docker", &["rm", "--force", NAME]).output();
        let _ = self.0.program("docker", &["rmi", NAME]).output();
    }
}

/// Returns the command of the loop on the host, or in the container.
fn command(is_inside: bool) -> Vec<&'static str> {
    let enter: &[&str] = if is_inside {
        &["docker", "exec", NAME]
    } else {
        &[]
    };
    [enter, &["/bin/busybox", "awk", LOOP]].concat()
}

/// Returns hyperfine's ratio of the means, ± from the standard deviations.
fn hyperfine(tare: &Tare<'_>, limit: Duration) -> Result<String> {
    // As many runs as fill the time, estimated from one of each.
    let one = Instant::now();
    for is_inside in [false, true] {
        let words = command(is_inside);
        tare.program(words[0], &words[1..]).output()?;
    }
    let runs = limit.as_secs_f64() / one.elapsed().as_secs_f64();
    let commands = [false, true].map(|is_inside| quoted(&command(is_inside)));
    let (ratio, spread) =
        hyperfine_ratio(tare.program("hyperfine", &[]), &commands, runs, tare.folder)?;
    Ok(format!("{ratio:.3} ± {spread:.3}"))
}

/// Returns pyperf's ratio of the means, ± from the standard deviations; the commands run one after the other.
fn pyperf_command(tare: &Tare<'_>, python: &Path, limit: Duration) -> Result<String> {
    /// Values of each process; each also warms up once.
    const VALUES: u32 = 3;
    let of = |is_inside: bool| -> Result<(f64, f64)> {
        let words = command(is_inside);
        let one = Instant::now();
        tare.program(words[0], &words[1..]).output()?;
        let runs = limit.as_secs_f64() / 2.0 / one.elapsed().as_secs_f64();
        let processes = whole_part((runs / f64::from(VALUES + 1)).max(2.0));
        let file = tare.folder.join("pyperf.json");
        // pyperf does not overwrite a file.
        let _ = fs::remove_file(&file);
        tare.program(
            python,
            &["-m", "pyperf", "command", "--quiet", "--loops", "1"],
        )
        .arguments(&["--processes", &processes.to_string()])
        .arguments(&["--values", &VALUES.to_string(), "--warmups", "1"])
        // pyperf's workers inherit few variables, and the command has to find the engine.
        .arguments(&["--inherit-environ", "DOCKER_HOST"])
        .arguments(&["--output", &file.to_string_lossy(), "--"])
        .arguments(&words)
        .output()?;
        let json: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
        let runs = json["benchmarks"][0]["runs"].as_array();
        let values = runs.into_iter().flatten();
        let values = values.filter_map(|run| run["values"].as_array()).flatten();
        let values: Vec<f64> = values.filter_map(Value::as_f64).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        let spread = (squares.sum::<f64>() / (count - 1.0)).sqrt() / mean;
        if mean.is_nan() || spread.is_nan() {
            bail!("pyperf reported fewer than two values");
        }
        Ok((mean, spread))
    };
    let ((outside, a), (inside, b)) = (of(false)?, of(true)?);
    let ratio = inside / outside;
    Ok(format!("{ratio:.3} ± {:.3}", ratio * f64::hypot(a, b)))
}

/// Alternates host and container, as a careful user would by hand.
fn in_turn(tare: &Tare<'_>, limit: Duration) -> Result<String> {
    let timed = |is_inside: bool| -> Result<f64> {
        let words = command(is_inside);
        let begin = Instant::now();
        tare.program(words[0], &words[1..]).output()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    let begin = Instant::now();
    let mut ratios = Vec::new();
    while begin.elapsed() < limit || ratios.len() < 3 {
        let outside = timed(false)?;
        ratios.push((timed(true)? / outside).ln());
    }
    let estimate = mean_paired(&ratios, 0.95);
    let interval = estimate.ok().context("too few pairs for an interval")?;
    let interval = interval.interval.exp();
    Ok(format!(
        "{:.3} [{:.3}, {:.3}]",
        interval.point, interval.low, interval.high
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn widths_are_per_minute_and_only_for_common_cells() {
        let dossier = |wall_s: f64, high: f64| {
            json!({"cost": {"wall_s": wall_s}, "cells": [
                {"arm": "docker", "metric": "m", "ratio": {"point": 1.0, "low": 1.0, "high": high}},
                {"arm": "docker", "metric": "none", "ratio": null}]})
        };
        let reported = pairs(&dossier(60.0, 1.1), &dossier(15.0, 1.1)).unwrap();
        let [((arm, metric), (before, after))] = &reported[..] else {
            panic!("{reported:?}");
        };
        assert_eq!((arm.as_str(), metric.as_str()), ("docker", "m"));
        assert!((before - 100.0 * 1.1f64.ln() / 2.0).abs() < 1e-9);
        assert!((before / after - 2.0).abs() < 1e-9);
    }
}
