//! `cargo xtask slower [-n N]`: how often a processor loop that is 5 % longer in one arm is found out in a minute.
//!
//! Both arms are the host; the loop's length comes from a variable that each arm sets for itself, so the slowdown
//! is exactly as large as planted, and everything else is `tare run` as users have it. It is found where the
//! interval of the ratio lies above 1. The last line is `found K of N`.
//! `TARE` names a program that is built already.
//! What it cannot see: the start of the interpreter is as long in both arms, which takes a little from the 5 %.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::dist;
use crate::shell::{how_many, program, step};
use crate::workspace::target_folder;

/// Seeds begin here, so that they are not those of anybody's studies.
const FIRST_SEED: u64 = 9_001;

const STUDY: &str = r#"id = "slower"
title = "A loop that is longer in one arm"
baseline = "host"

[design]
budget = "60s"

[[arm]]
id = "host"
settings.env = ["ROUNDS=1000000"]

[[arm]]
id = "slower"
driver = "host"
settings.env = ["ROUNDS=1050000"]

[[workload]]
id = "command"
params.argv = ["awk", "BEGIN { n = ENVIRON[\"ROUNDS\"]; for (i = 0; i < n; i++) s += i * i % 7; print s > \"/dev/null\" }"]
"#;

/// Runs `N` comparisons (20 by default) and counts those in which the slowdown was found.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let wanted = how_many("slower", arguments, 20)?;
    let tare = dist::named_or_built()?;
    let folder = target_folder().join("slower");
    fs::create_dir_all(&folder)?;
    let study = folder.join("slower.toml");
    fs::write(&study, STUDY)?;
    let mut n_found = 0;
    for seed in FIRST_SEED..FIRST_SEED + wanted {
        let dossier = program(&tare, &["run"])
            .arguments(&[&study.to_string_lossy(), "--seed", &seed.to_string()])
            .arguments(&["--json", "-"])
            .variable("TARE_HOME", &folder)
            .json()?;
        let told = told(&dossier)?;
        n_found += u64::from(told.is_found);
        println!("seed {seed}: {}", told.line);
        step(&format!("{n_found} found of {}", seed + 1 - FIRST_SEED));
    }
    fs::remove_dir_all(&folder)?;
    println!("found {n_found} of {wanted}");
    Ok(ExitCode::SUCCESS)
}

/// What came of one comparison.
struct Told {
    is_found: bool,
    line: String,
}

fn told(dossier: &Value) -> Result<Told> {
    let cells = dossier["cells"].as_array();
    let cell = cells
        .into_iter()
        .flatten()
        .find(|cell| cell["arm"] == "slower" && cell["metric"] == "command.run.wall")
        .context("the dossier has no cell of the loop")?;
    let ratio = |name: &str| cell["ratio"][name].as_f64();
    let (Some(point), Some(low), Some(high)) = (ratio("point"), ratio("low"), ratio("high")) else {
        return Ok(Told {
            is_found: false,
            line: format!("no interval: {}", cell["verdict"]),
        });
    };
    Ok(Told {
        is_found: low > 1.0,
        line: format!(
            "{point:.3} [{low:.3}, {high:.3}] in {} blocks, {}",
            cell["n_blocks"], cell["verdict"]
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_interval_above_one_is_a_find() {
        let found = |low: f64, high: f64| {
            let cell = json!({"arm": "slower", "metric": "command.run.wall", "verdict": "v", "n_blocks": 20,
                              "ratio": {"point": 1.04, "low": low, "high": high}});
            told(&json!({"cells": [cell]})).unwrap().is_found
        };
        assert!(found(1.01, 1.07));
        assert!(!found(0.99, 1.07));
        let undecided =
            json!({"cells": [{"arm": "slower", "metric": "command.run.wall", "ratio": null}]});
        assert!(!told(&undecided).unwrap().is_found);
        assert!(told(&json!({"cells": []})).is_err());
    }
}
