//! `cargo xtask gate`: counts how often `tare gate` fails without cause, and which planted slowdowns it finds.
//!
//! Each pair is two shell scripts of the same loop; the head's does `--planted` per cent more iterations. The pair is
//! gated by Tare (`--ask compare`: compared), and then measured by hyperfine, base first, whose times are judged in
//! three usual ways. `--hyperfine 0` skips hyperfine. A slowdown is proven beyond `--margin`, so the margin has to be
//! smaller than the slowdown to be found. `--load 1` keeps a processor busy during the first half of the budget.
//! Every pair is a line of `pairs.csv` in the work folder, and the table includes all its lines, so a few pairs at a
//! time add up. `TARE` names a program that is already built.
//! Limits: one kind of work, on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tare_stats::mann_whitney::MannWhitney;
use tare_stats::special::t_upper;

use crate::flags::{flags, number};
use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::work_folder;

/// First seed; keeps these seeds apart from those of real comparisons.
const FIRST_SEED: u64 = 11_001;
/// Iterations of the base's loop: some tens of milliseconds.
const TURNS: u64 = 100_000;
/// Relative slowdown from which the usual script is red.
const THRESHOLD: f64 = 0.05;
/// Relative difference that the script with a t-test regards as noise.
const NOISE: f64 = 0.01;
/// One-sided level of the usual tests.
const LEVEL: f64 = 0.025;
const HEADS: &str = "| asked | planted | pairs | red | inconclusive | hyperfine: mean +5 % | Mann–Whitney 5 % | t-test 5 %, +1 % |";

/// Returns whether the answer was red, and whether it was inconclusive.
fn judge(status: Option<i32>, comparison: &Value) -> Result<[bool; 2]> {
    let decision = &comparison["decision"];
    let (is_red, is_gate) = (decision == "slower", comparison["gate"] == true);
    match status {
        Some(0 | 1) if decision.is_null() => bail!("Tare wrote no comparison"),
        Some(1) if is_gate && is_red => Ok([true, false]),
        Some(0) if !(is_gate && is_red) => Ok([is_red, decision == "inconclusive"]),
        other => bail!("Tare ended with {other:?} and decided {decision}"),
    }
}

fn asked(
    tare: &Path,
    folder: &Path,
    [ask, budget, margin]: [&str; 3],
    seed: u64,
) -> Result<[bool; 2]> {
    let seed = seed.to_string();
    let output = Command::new(tare)
        .args([
            ask, "--json", "-", "--budget", budget, "--margin", margin, "--seed", &seed,
        ])
        .args(["sh base.sh", "sh head.sh"])
        .current_dir(folder)
        .env("TARE_HOME", folder.join("home"))
        .stdin(Stdio::null())
        .output()
        .context("cannot run Tare")?;
    let comparison = serde_json::from_slice(&output.stdout).unwrap_or_default();
    judge(output.status.code(), &comparison)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns whether the usual scripts are red: by the mean, by ranks, by a t-test.
fn usual(base: &[f64], head: &[f64]) -> [bool; 3] {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let error = |of: &[f64]| {
        let squares: f64 = of.iter().map(|it| (it - mean(of)).powi(2)).sum();
        squares / (of.len() * (of.len() - 1)) as f64
    };
    let more = mean(head) / mean(base) - 1.0;
    let pairs = base.iter().flat_map(|b| head.iter().map(move |h| h > b));
    let above = pairs.filter(|it| *it).count();
    let ranks = MannWhitney::new(base.len(), head.len());
    let by_rank = above > 0 && 1.0 - ranks.cdf(above - 1) < LEVEL;
    let t = (mean(head) - mean(base)) / (error(base) + error(head)).sqrt();
    let freedom = (base.len() + head.len() - 2) as f64;
    [
        more > THRESHOLD,
        by_rank,
        more > NOISE && t_upper(t, freedom) < LEVEL,
    ]
}

/// Returns the times that hyperfine measures, base then head; `None` without hyperfine.
fn hyperfine(folder: &Path) -> Result<Option<[Vec<f64>; 2]>> {
    let mut all = [Vec::new(), Vec::new()];
    for (times, script) in all.iter_mut().zip(["sh base.sh", "sh head.sh"]) {
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
        let mut found: Value = serde_json::from_slice(&fs::read(&file)?)?;
        *times = serde_json::from_value(found["results"][0]["times"].take())?;
        ensure!(times.len() > 1, "hyperfine wrote no times");
    }
    Ok(Some(all))
}

fn plant(folder: &Path, percent: u64) -> Result<()> {
    for (name, turns) in [("base", TURNS), ("head", TURNS + TURNS * percent / 100)] {
        let text = format!("# {name}\ni=0; while [ $i -lt {turns} ]; do i=$((i+1)); done\n");
        fs::write(folder.join(format!("{name}.sh")), text)?;
    }
    Ok(())
}

/// Returns the table of all pairs in a file: the question, and 0, 1 or – for each method.
fn table(lines: &str) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<Vec<&str>>> = BTreeMap::new();
    for line in lines.lines() {
        let mut words = line.split(',');
        if let (Some(asked), Some(planted)) = (words.next(), words.next()) {
            groups
                .entry((asked, planted))
                .or_default()
                .push(words.collect());
        }
    }
    let row = |((asked, planted), pairs): ((&str, &str), Vec<Vec<&str>>)| {
        let reds = (0..5).map(|column| {
            let of = |word| {
                pairs
                    .iter()
                    .filter(|it| it.get(column) == Some(&word))
                    .count()
            };
            let is_known = of("0") + of("1") > 0;
            if is_known {
                of("1").to_string()
            } else {
                "–".to_owned()
            }
        });
        let reds: Vec<String> = reds.collect();
        format!(
            "| {asked} | {planted} % | {} | {} |\n",
            pairs.len(),
            reds.join(" | ")
        )
    };
    let rows: String = groups.into_iter().map(row).collect();
    format!("{HEADS}\n|---|---|---|---|---|---|---|---|\n{rows}")
}

/// Keeps a processor busy for half of the budget.
fn loaded(budget: &str) -> Result<std::process::Child> {
    let seconds: f64 = number(budget.trim_end_matches('s'))?;
    let half = (seconds / 2.0).to_string();
    let spawned = Command::new("timeout")
        .args([&half, "sh", "-c", "while :; do :; done"])
        .spawn();
    spawned.context("cannot run `timeout`")
}

/// Asks about `N` pairs of each planted size.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let known = [
        ("-n", "20"),
        ("--budget", "120s"),
        ("--margin", "0.5%"),
        ("--planted", "0,1,2,3,5"),
        ("--ask", "gate"),
        ("--load", "0"),
        ("--hyperfine", "1"),
    ];
    let [wanted, budget, margin, planted, ask, load, has_peer] = flags("gate", arguments, known)?;
    let (wanted, has_load): (u64, bool) = (number(&wanted)?, load == "1");
    let planted: Vec<u64> = planted.split(',').map(number).collect::<Result<_>>()?;
    let tare = dist::named_or_built()?;
    let folder = work_folder("gate")?;
    let file = folder.join("pairs.csv");
    let done = fs::read_to_string(&file)
        .unwrap_or_default()
        .lines()
        .count() as u64;
    let mut pairs = fs::File::options().create(true).append(true).open(&file)?;
    for turn in 0..wanted {
        for (place, percent) in (0..).zip(&planted) {
            plant(&folder, *percent)?;
            let seed = FIRST_SEED + done + turn * planted.len() as u64 + place;
            let load = has_load.then(|| loaded(&budget)).transpose()?;
            let found = asked(&tare, &folder, [&ask, &budget, &margin], seed);
            if let Some(mut load) = load {
                load.wait()?;
            }
            let times = if has_peer == "0" {
                None
            } else {
                hyperfine(&folder)?
            };
            let others = times.map(|[base, head]| usual(&base, &head));
            let others = others.map_or([None; 3], |it| it.map(Some));
            let words = found?.map(Some).into_iter().chain(others);
            let words: Vec<&str> = words
                .map(|it| it.map_or("–", |it| if it { "1" } else { "0" }))
                .collect();
            let kind = if has_load { " half loaded" } else { "" };
            let line = format!(
                "{ask} {budget} {margin}{kind},{percent},{}",
                words.join(",")
            );
            step(&line);
            writeln!(pairs, "{line}")?;
        }
    }
    print!("{}", table(&fs::read_to_string(&file)?));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn status_and_decision_must_agree() {
        let of = |gate: bool, decision: &str| json!({"gate": gate, "decision": decision});
        assert_eq!(judge(Some(1), &of(true, "slower")).unwrap(), [true, false]);
        assert_eq!(judge(Some(0), &of(false, "slower")).unwrap(), [true, false]);
        assert_eq!(
            judge(Some(0), &of(true, "inconclusive")).unwrap(),
            [false, true]
        );
        assert_eq!(judge(Some(0), &of(true, "same")).unwrap(), [false, false]);
        for (status, decision) in [
            (Some(0), "slower"),
            (Some(1), "same"),
            (Some(5), "same"),
            (None, "same"),
        ] {
            assert!(judge(status, &of(true, decision)).is_err());
        }
        assert!(judge(Some(0), &Value::Null).is_err());
    }

    #[test]
    fn usual_scripts_are_red_from_their_size_on() {
        let times = |more: f64| {
            (0..20)
                .map(|it| more * (1.0 + f64::from(it % 5) / 1_000.0))
                .collect::<Vec<_>>()
        };
        let against = |more: f64| usual(&times(1.0), &times(more));
        assert_eq!(against(1.0), [false; 3]);
        assert_eq!(against(1.006), [false, true, false]);
        assert_eq!(against(1.02), [false, true, true]);
        assert_eq!(against(1.08), [true; 3]);
    }

    #[test]
    fn table_counts_the_pairs_of_each_group() {
        let text = table("gate 9s,0,0,1,1,0,0\ngate 9s,0,1,0,0,0,0\ngate 9s,2,1,0,–,–,–\n");
        assert!(
            text.contains("| gate 9s | 0 % | 2 | 1 | 1 | 1 | 0 | 0 |"),
            "{text}"
        );
        assert!(
            text.contains("| gate 9s | 2 % | 1 | 1 | 0 | – | – | – |"),
            "{text}"
        );
    }

    #[test]
    fn planted_head_takes_so_many_turns_more() {
        let folder = tempfile::tempdir().unwrap();
        plant(folder.path(), 3).unwrap();
        let head = fs::read_to_string(folder.path().join("head.sh")).unwrap();
        assert!(head.contains(" 103000 "), "{head}");
    }
}
