//! `cargo xtask aa [-n N]`: live comparisons of the host with itself, through the whole of `tare run`.
//!
//! Every comparison is one metric of the A′ arm over ten fresh blocks. An alarm is an interval of 95 % that
//! excludes "no difference", whatever its size. The last line is `alarms K of N`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::dist;
use crate::shell::{how_many, program, step};
use crate::workspace::target_folder;

/// Workloads with one metric each.
const WORKLOADS: [&str; 5] = ["integer", "chase", "getppid", "float", "pipe"];
/// Seeds begin here, so that they are not those of anybody's studies.
const FIRST_SEED: u64 = 7_001;

/// Runs `N` comparisons (100 by default) and counts the alarms.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let wanted = how_many("aa", arguments, 100)? as usize;
    let tare = dist::dist()?;
    let store = target_folder().join("aa.sqlite");
    let (mut n_done, mut n_alarms, mut seed) = (0, 0, FIRST_SEED);
    while n_done < wanted {
        let workloads = WORKLOADS[..WORKLOADS.len().min(wanted - n_done)].join(",");
        let seed_text = seed.to_string();
        let dossier = program(
            &tare,
            &[
                "run",
                "quick",
                "--env",
                "host",
                "--workload",
                &workloads,
                "--blocks",
                "10",
                "--budget",
                "10m",
                "--seed",
                &seed_text,
                "--json",
                "-",
            ],
        )
        .arguments(&["--store", &store.to_string_lossy()])
        .json()?;
        for cell in dossier["aa"]
            .as_array()
            .context("the dossier has no `aa`")?
        {
            let (low, high) = (
                cell["ratio"]["low"].as_f64(),
                cell["ratio"]["high"].as_f64(),
            );
            let (Some(low), Some(high)) = (low, high) else {
                bail!("{} has no interval: {cell}", cell["metric"]);
            };
            n_done += 1;
            if low > 1.0 || high < 1.0 {
                n_alarms += 1;
                println!(
                    "seed {seed}: {} {:.4} [{low:.4}, {high:.4}] {}",
                    cell["metric"], cell["ratio"]["point"], cell["verdict"]
                );
            }
        }
        step(&format!("{n_done} of {wanted}, {n_alarms} alarms so far"));
        seed += 1;
    }
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", store.display()));
    }
    println!("alarms {n_alarms} of {n_done}");
    Ok(ExitCode::SUCCESS)
}
