//! `cargo xtask gate [-n N] [--budget T]`: how often `tare gate` is red for nothing, and which planted slowdowns it finds.
//!
//! Each pair is two shell scripts of the same loop; the head's takes 0, 1, 2, 3 or 5 % more turns. The pair is gated by
//! Tare, and at the same time of the same machine by hyperfine with the base first and the head after it, red from 5 %
//! on as many scripts have it. The last lines are a table. `TARE` names a program that is built already.
//! Limits: one kind of work, on the machine that it runs on.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::dist;
use crate::shell::{flags, number, step};
use crate::workspace::work_folder;

/// Seeds begin here, so that they are not those of anybody's comparisons.
const FIRST_SEED: u64 = 11_001;
/// Planted slowdowns, per cent.
const PLANTED: [u64; 5] = [0, 1, 2, 3, 5];
/// Turns of the base's loop: some tens of milliseconds.
const TURNS: u64 = 100_000;
/// From so much more on, as a fraction, the usual script is red.
const THRESHOLD: f64 = 0.05;

/// What was said of the pairs of one size.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    pairs: u64,
    red: u64,
    open: u64,
    by_mean: Option<u64>,
}

impl Counts {
    fn row(&self, percent: u64) -> String {
        let by_mean = self.by_mean.map_or("–".to_owned(), |red| red.to_string());
        format!(
            "| {percent} % | {} | {} | {} | {by_mean} |",
            self.pairs, self.red, self.open
        )
    }
}

/// Whether the gate was red, or open, by its exit status and what it wrote.
fn said(status: Option<i32>, comparison: &Value) -> Result<(bool, bool)> {
    match status {
        Some(1) => Ok((true, false)),
        Some(0) => Ok((false, comparison["decision"] == "inconclusive")),
        other => bail!("`tare gate` ended with {other:?}"),
    }
}

fn gate(tare: &Path, folder: &Path, budget: &str, seed: u64) -> Result<(bool, bool)> {
    let output = Command::new(tare)
        .args([
            "gate",
            "--json",
            "-",
            "--budget",
            budget,
            "--seed",
            &seed.to_string(),
        ])
        .args(["sh base.sh", "sh head.sh"])
        .current_dir(folder)
        .env("TARE_HOME", folder.join("home"))
        .stdin(Stdio::null())
        .output()
        .context("cannot run `tare gate`")?;
    let comparison = serde_json::from_slice(&output.stdout).unwrap_or_default();
    said(output.status.code(), &comparison)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Whether hyperfine's mean of the head is so much above that of the base; `None` without hyperfine.
fn hyperfine(folder: &Path) -> Result<Option<bool>> {
    let mut means = Vec::new();
    for script in ["sh base.sh", "sh head.sh"] {
        let file = folder.join("hyperfine.json");
        let ended = Command::new("hyperfine")
            .args(["-N", "--style", "none", "--warmup", "1", "--export-json"])
            .arg(&file)
            .arg(script)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !ended.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let found: Value = serde_json::from_slice(&fs::read(&file)?)?;
        let mean = found["results"][0]["mean"].as_f64();
        means.push(mean.context("hyperfine wrote no mean")?);
    }
    Ok(Some(means[1] > means[0] * (1.0 + THRESHOLD)))
}

fn plant(folder: &Path, percent: u64) -> Result<()> {
    for (name, turns) in [("base", TURNS), ("head", TURNS + TURNS * percent / 100)] {
        let text = format!("# {name}\ni=0; while [ $i -lt {turns} ]; do i=$((i+1)); done\n");
        fs::write(folder.join(format!("{name}.sh")), text)?;
    }
    Ok(())
}

/// Gates `N` pairs of each size (20 by default) with a budget of `T`.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [wanted, budget] = flags("gate", arguments, [("-n", "20"), ("--budget", "120s")])?;
    let wanted: u64 = number(&wanted)?;
    let tare = dist::named_or_built()?;
    let folder = work_folder("gate")?;
    let mut counts = [Counts::default(); PLANTED.len()];
    for turn in 0..wanted {
        for (place, percent) in PLANTED.iter().enumerate() {
            plant(&folder, *percent)?;
            let seed = FIRST_SEED + turn * PLANTED.len() as u64 + place as u64;
            let (red, open) = gate(&tare, &folder, &budget, seed)?;
            let by_mean = hyperfine(&folder)?;
            let of = &mut counts[place];
            of.pairs += 1;
            of.red += u64::from(red);
            of.open += u64::from(open);
            of.by_mean = by_mean.map(|red| of.by_mean.unwrap_or(0) + u64::from(red));
            step(&format!(
                "{percent} %: {} of {} red, {} inconclusive",
                of.red, of.pairs, of.open
            ));
        }
    }
    fs::remove_dir_all(&folder)?;
    println!(
        "| planted | pairs | red by `tare gate` | inconclusive | red by hyperfine, base then head, 5 % |"
    );
    println!("|---|---|---|---|---|");
    for (percent, counts) in PLANTED.iter().zip(counts) {
        println!("{}", counts.row(*percent));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_status_one_is_red_and_failures_are_errors() {
        let open = json!({"decision": "inconclusive"});
        assert_eq!(said(Some(1), &open).unwrap(), (true, false));
        assert_eq!(said(Some(0), &open).unwrap(), (false, true));
        assert_eq!(
            said(Some(0), &json!({"decision": "same"})).unwrap(),
            (false, false)
        );
        for failed in [Some(5), None] {
            assert!(said(failed, &open).is_err());
        }
    }

    #[test]
    fn planted_head_takes_so_many_turns_more() {
        let folder = tempfile::tempdir().unwrap();
        plant(folder.path(), 3).unwrap();
        let head = fs::read_to_string(folder.path().join("head.sh")).unwrap();
        assert!(head.contains(" 103000 "), "{head}");
    }
}
