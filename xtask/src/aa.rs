//! `cargo xtask aa [-n N]`: counts false alarms of `tare run` when equal environments are compared.
//!
//! Five arms: the host, its A/A control A′, a third equal arm, and two clones of the built-in container. A′ is
//! compared with the host, the third arm with both, and one clone with the other: loops, syscalls, files, a disk and
//! a network, each over ten fresh blocks. An alarm is a 95 % interval that excludes "no difference", whatever its
//! size; chance alone gives 2.5 in a hundred on each side. The last line is `alarms (slower + faster) K + L of N
//! host, …`. `TARE` names a program that is already built.
//! Limits: says nothing about differences between machines.

use std::fs;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::flags::{Json, cells, flags, number, ratio, tare_in};
use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::work_folder;

/// First seed; keeps these seeds apart from those of real studies.
const FIRST_SEED: u64 = 7_001;

const STUDY: &str = r#"id = "aa"
title = "Equals"
baseline = "host"

[design]
trial = "20ms"
blocks_min = 10
blocks_max = 10

[[arm]]
id = "host"

[[arm]]
id = "third"
driver = "host"
required = true

[[arm]]
id = "one"
driver = "container"
required = true

[[arm]]
id = "two"
driver = "container"
required = true

[[workload]]
id = "integer"
[[workload]]
id = "float"
[[workload]]
id = "getppid"
[[workload]]
id = "clock"
[[workload]]
id = "stat"
[[workload]]
id = "pipe"
[[workload]]
id = "files"
[[workload]]
id = "fsync"
[[workload]]
id = "random-access"
[[workload]]
id = "tcp-round-trip"
"#;

/// Number of alarms among comparisons.
#[derive(Default)]
struct Count {
    slower: u64,
    faster: u64,
    of: u64,
}

impl Count {
    /// Counts the cells that have an interval, up to `wanted`, and prints those with an alarm.
    fn add<'v>(&mut self, seed: u64, cells: impl Iterator<Item = &'v Value>, wanted: u64) {
        for cell in cells {
            let Some([point, low, high]) = ratio(cell) else {
                continue;
            };
            if self.of == wanted {
                return;
            }
            self.of += 1;
            self.slower += u64::from(low > 1.0);
            self.faster += u64::from(high < 1.0);
            if low > 1.0 || high < 1.0 {
                println!(
                    "seed {seed}: {} {} {point:.4} [{low:.4}, {high:.4}] {}",
                    cell["arm"], cell["metric"], cell["verdict"]
                );
            }
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} + {} of {}", self.slower, self.faster, self.of)
    }
}

/// Runs `N` comparisons of each kind (100 by default) and counts the alarms.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [wanted] = flags("aa", arguments, [("-n", "100")])?;
    let wanted: u64 = number(&wanted)?;
    let tare = dist::named_or_built()?;
    let folder = work_folder("aa")?;
    let study = folder.join("aa.toml");
    fs::write(&study, STUDY)?;
    let [mut host, mut third, mut clone] = [(); 3].map(|()| Count::default());
    let mut seed = FIRST_SEED;
    while host.of.min(third.of).min(clone.of) < wanted {
        let tare = |words: &[&str]| {
            tare_in(&folder, &tare, words)
                .arguments(&["--store", &folder.join("store.sqlite").to_string_lossy()])
        };
        let study = study.to_string_lossy();
        let run = tare(&["run", &study, "--prove", "0s", "--json", "-"]);
        let dossier = run.arguments(&["--seed", &seed.to_string()]).json()?;
        host.add(seed, cells(&dossier, "aa")?.iter(), wanted);
        let of_third = cells(&dossier, "cells")?.iter();
        third.add(seed, of_third.filter(|cell| cell["arm"] == "third"), wanted);
        let against = tare(&["show", "latest", "--against", "one", "--json"]).json()?;
        let of_two = cells(&against, "cells")?.iter();
        clone.add(seed, of_two.filter(|cell| cell["arm"] == "two"), wanted);
        step(&format!(
            "{host} host, {third} third arm, {clone} clone so far"
        ));
        seed += 1;
    }
    fs::remove_dir_all(&folder)?;
    println!("alarms (slower + faster) {host} host, {third} third arm, {clone} clone");
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn aa_alarm_is_interval_excluding_one() {
        let cell = |low: f64, high: f64| json!({"ratio": {"point": 1.0, "low": low, "high": high}});
        let all = [
            cell(0.99, 1.01),
            cell(1.001, 1.01),
            json!({ "ratio": null }),
            cell(0.9, 0.99),
            cell(1.1, 1.2),
        ];
        let mut count = Count::default();
        count.add(1, all.iter(), 3);
        assert_eq!((count.slower, count.faster, count.of), (1, 1, 3));
        assert_eq!(count.to_string(), "1 + 1 of 3");
    }
}
