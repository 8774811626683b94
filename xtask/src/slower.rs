//! `cargo xtask slower [--percent P] [--budget T] [-n N] [--replay B]`: counts how often a small slowdown of one arm
//! is detected.
//!
//! Both arms are the host, with an agent whose loop and syscall do P percent more work if a variable is set: the
//! slowdown is exactly as large as planted, and everything else is `tare run` as users have it. It is found if the
//! interval of the ratio is above 1. The last line is `found K of N, interval above the truth L, below M`: for a 95 %
//! interval either is 2.5 in a hundred.
//! With `--replay` one run of `B` blocks is recorded instead, and each ten of its blocks are judged separately.
//! `TARE` names a program that is already built.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use tare_model::whole_part;

use crate::flags::{cells, flags, number, ratio, run_in, tare_in};
use xtask_build::dist;
use xtask_build::shell::{cargo, step};
use xtask_build::workspace::{target_folder, work_folder};

/// First seed; keeps these seeds apart from those of real studies.
const FIRST_SEED: u64 = 9_001;
/// The compared metrics: a loop and a syscall.
const METRICS: [&str; 2] = ["cpu.integer.time", "syscall.getppid.time"];

/// Returns the study for a slowdown in thousandths.
fn study(per_mille: u64) -> String {
    format!(
        r#"id = "slower"
title = "Work that is longer in one arm"
baseline = "host"

[design]
trial = "60ms"

[[arm]]
id = "host"

[[arm]]
id = "slower"
driver = "host"
settings.env = ["PLANTED_PER_MILLE={per_mille}"]

[[workload]]
id = "integer"
[[workload]]
id = "getppid"
"#
    )
}

/// Builds the agent whose loops can be made longer.
fn agent() -> Result<PathBuf> {
    let target = "x86_64-unknown-linux-musl";
    let folder = target_folder().join("agent");
    cargo(&[
        "build",
        "--locked",
        "--profile",
        "agent",
        "--package",
        "tare-agent",
    ])
    .arguments(&["--example", "slower_agent", "--target", target])
    .arguments(&["--target-dir", &folder.to_string_lossy()])
    .run()?;
    Ok(folder.join(target).join("agent/examples/slower_agent"))
}

/// Runs `N` comparisons and counts those that found the slowdown, and those whose interval contains it.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let known = [
        ("--percent", "1"),
        ("--budget", "15s"),
        ("-n", "24"),
        ("--replay", "0"),
    ];
    let [percent, budget, wanted, replay] = flags("slower", arguments, known)?;
    let replay: u32 = number(&replay)?;
    let wanted: usize = number(&wanted)?;
    let per_mille = (number::<f64>(&percent)? * 10.0).round();
    ensure!(
        (1.0..=10_000.0).contains(&per_mille),
        "`--percent` is from 0.1 to 1000"
    );
    let planted = 1.0 + per_mille / 1_000.0;
    let tare = dist::named_or_built()?;
    let agent = agent()?;
    let folder = work_folder("slower")?;
    let file = folder.join("slower.toml");
    fs::write(&file, study(whole_part(per_mille)))?;
    if replay > 0 {
        let tare = |words: &[&str]| tare_in(&folder, &tare, words);
        tare(&["run", &file.to_string_lossy(), "--prove", "0s"])
            .arguments(&["--blocks", &replay.to_string()])
            .arguments(&["--agent", &agent.to_string_lossy()])
            .output()?;
        let judged = tare(&["selfcheck", "--recording", "latest"]);
        let judged = judged.arguments(&["--planted", &format!("{percent}%")]);
        print!("{}", judged.output()?);
        fs::remove_dir_all(&folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for seed in FIRST_SEED.. {
        if outcomes.len() >= wanted {
            break;
        }
        let (study, agent) = (file.to_string_lossy(), agent.to_string_lossy());
        let seeded = [&*study, "--seed", &seed.to_string()];
        let asked = ["--budget", &budget, "--agent", &agent];
        let dossier = run_in(&folder, &tare, &[&seeded[..], &asked].concat())?;
        for metric in METRICS.iter().take(wanted - outcomes.len()) {
            let one = Outcome::from_dossier(&dossier, metric, planted)?;
            println!("seed {seed}: {metric} {}", one.line);
            outcomes.push(one);
        }
        step(&summary(&outcomes));
    }
    fs::remove_dir_all(&folder)?;
    println!("{}", summary(&outcomes));
    Ok(ExitCode::SUCCESS)
}

fn summary(outcomes: &[Outcome]) -> String {
    let count = |what: fn(&Outcome) -> bool| outcomes.iter().filter(|one| what(one)).count();
    let all = outcomes.len();
    let found = count(|one| one.is_found);
    let (above, below) = (count(|one| one.is_above), count(|one| one.is_below));
    format!("found {found} of {all}, interval above the truth {above}, below {below}")
}

/// The result of one comparison.
struct Outcome {
    is_found: bool,
    /// Whether the interval is above the planted slowdown.
    is_above: bool,
    /// Whether it is below.
    is_below: bool,
    line: String,
}

impl Outcome {
    fn from_dossier(dossier: &Value, metric: &str, planted: f64) -> Result<Self> {
        let cell = cells(dossier, "cells")?
            .iter()
            .find(|cell| cell["arm"] == "slower" && cell["metric"] == metric)
            .with_context(|| format!("the dossier has no cell of {metric}"))?;
        let Some([point, low, high]) = ratio(cell) else {
            return Ok(Self {
                is_found: false,
                is_above: false,
                is_below: false,
                line: format!("no interval: {}", cell["verdict"]),
            });
        };
        Ok(Self {
            is_found: low > 1.0,
            is_above: planted < low,
            is_below: high < planted,
            line: format!(
                "{point:.4} [{low:.4}, {high:.4}] in {} blocks, {}",
                cell["n_blocks"], cell["verdict"]
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interval_above_one_is_found_around_truth_holds() {
        let outcome = |low: f64, high: f64| {
            let cell = json!({"arm": "slower", "metric": METRICS[0], "verdict": "v", "n_blocks": 20,
                              "ratio": {"point": 1.04, "low": low, "high": high}});
            let outcome =
                Outcome::from_dossier(&json!({"cells": [cell]}), METRICS[0], 1.05).unwrap();
            (outcome.is_found, outcome.is_above, outcome.is_below)
        };
        assert_eq!(outcome(1.01, 1.07), (true, false, false));
        assert_eq!(outcome(0.99, 1.07), (false, false, false));
        assert_eq!(outcome(1.01, 1.04), (true, false, true));
        assert_eq!(outcome(1.06, 1.09), (true, true, false));
        let none = json!({"cells": [{"arm": "slower", "metric": METRICS[1], "ratio": null}]});
        let none = Outcome::from_dossier(&none, METRICS[1], 1.05).unwrap();
        assert!(!none.is_found && !none.is_below);
        assert!(Outcome::from_dossier(&json!({"cells": []}), METRICS[0], 1.05).is_err());
    }

    #[test]
    fn study_contains_the_planted_amount() {
        assert!(study(5).contains("PLANTED_PER_MILLE=5"));
    }
}
