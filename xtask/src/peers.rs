//! `cargo xtask peers [-n N] [--seconds S] [--dose P,…]`: asks Tare and its usual alternatives the same question.
//!
//! Two commands run the same loop, or one of them runs P percent more iterations. Each method gets the same time:
//! `tare compare`; hyperfine, by the difference of its means against their standard deviations; all of one and then
//! all of the other, by Welch's test on their times; and whole runs of both in random order, paired, by the signed
//! rank. Without a difference every alarm is false; otherwise an alarm in the right direction is a find. `TARE` names
//! a program that is already built.
//! Limits: does not measure the machine's noise, which affects all methods alike.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tare_stats::special::t_quantile;
use tare_stats::{Stream, hodges_lehmann_paired};

use tare_model::whole_part;

use crate::flags::{Json, flags, number, tare_in};
use xtask_build::dist;
use xtask_build::shell::{Program, program, step};
use xtask_build::workspace::work_folder;

/// Iterations of the loop: some 60 ms.
const ROUNDS: f64 = 400_000.0;
const SEED: u64 = 0x7065_6572;

/// A method's answer: the relative difference with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Answer {
    ratio: f64,
    low: f64,
    high: f64,
}

impl Answer {
    fn is_slower(&self) -> bool {
        self.low > 1.0
    }

    fn is_alarm(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// A method.
type Ask = fn(&Question<'_>) -> Result<Answer>;
const WAYS: [(&str, Ask); 4] = [
    ("`tare compare`", compared),
    ("hyperfine", hyperfine),
    ("AAAA…BBBB, Welch", sequential),
    ("whole runs in blocks, signed rank", blocked),
];

/// The question.
struct Question<'a> {
    tare: &'a Path,
    folder: &'a Path,
    limit: Duration,
    /// How much longer the second command's loop is.
    dose: f64,
    seed: u64,
}

impl Question<'_> {
    /// Returns a command's words. The tag makes the two commands different and has no other effect.
    fn words(&self, is_second: bool) -> Vec<String> {
        let rounds = if is_second {
            ROUNDS * (1.0 + self.dose)
        } else {
            ROUNDS
        };
        let text = format!("BEGIN {{ while (i++ < {rounds:.0}) x += i * i; print \"done\" }}");
        let tag = format!("tag={}", u8::from(is_second));
        ["awk", "-v", &tag, &text].map(str::to_owned).to_vec()
    }

    fn quoted(&self, is_second: bool) -> String {
        quoted(&self.words(is_second))
    }

    /// Runs one of the commands once and returns its time, seconds.
    fn timed(&self, is_second: bool) -> Result<f64> {
        let words = self.words(is_second);
        let begin = Instant::now();
        let status = Command::new(&words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .status()
            .context("cannot run awk")?;
        ensure!(status.success(), "awk ended with {status}");
        Ok(begin.elapsed().as_secs_f64())
    }
}

fn compared(asked: &Question<'_>) -> Result<Answer> {
    let commands = ["compare", &asked.quoted(false), &asked.quoted(true)];
    let json = tare_in(asked.folder, asked.tare, &commands)
        .arguments(&["--budget", &format!("{}s", asked.limit.as_secs())])
        .arguments(&["--seed", &asked.seed.to_string(), "--json", "-"])
        .json()?;
    wall_of(&json)
}

/// Returns the wall time row of a comparison.
fn wall_of(json: &Value) -> Result<Answer> {
    let mut rows = json["rows"].as_array().into_iter().flatten();
    let row = rows.find(|row| row["name"] == "wall");
    let change = &row.context("the comparison has no row of wall time")?["change"];
    let of = |name: &str| change[name].as_f64().with_context(|| format!("no {name}"));
    Ok(Answer {
        ratio: 1.0 + of("point")?,
        low: 1.0 + of("low")?,
        high: 1.0 + of("high")?,
    })
}

/// Returns the ratio of hyperfine's means, ± by its standard deviations, which it prints as `1.05 ± 0.02`.
fn hyperfine(asked: &Question<'_>) -> Result<Answer> {
    let runs = asked.limit.as_secs_f64() / (asked.timed(false)? + asked.timed(true)?);
    let commands = [asked.quoted(false), asked.quoted(true)];
    let (ratio, spread) =
        hyperfine_ratio(program("hyperfine", &[]), &commands, runs, asked.folder)?;
    Ok(Answer {
        ratio,
        low: ratio - spread,
        high: ratio + spread,
    })
}

/// Joins the words of a command for hyperfine.
pub(crate) fn quoted<W: std::fmt::Display>(words: &[W]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    words.join(" ")
}

/// Runs two commands with hyperfine, each so often or ten times; returns the ratio of the means, second to first, and
/// its distance to the ends that the standard deviations give.
pub(crate) fn hyperfine_ratio(
    hyperfine: Program,
    commands: &[String; 2],
    runs: f64,
    folder: &Path,
) -> Result<(f64, f64)> {
    let file = folder.join("hyperfine.json");
    hyperfine
        .arguments(&["-N", "--style", "none", "--warmup", "1"])
        .arguments(&["--runs", &whole_part(runs.max(10.0)).to_string()])
        .arguments(&["--export-json", &file.to_string_lossy()])
        .arguments(&[&commands[0], &commands[1]])
        .output()?;
    let json: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let of = |place: usize, name: &str| {
        let value = json["results"][place][name].as_f64();
        value.with_context(|| format!("hyperfine reported no {name}"))
    };
    let ratio = of(1, "mean")? / of(0, "mean")?;
    let spread = ratio
        * f64::hypot(
            of(0, "stddev")? / of(0, "mean")?,
            of(1, "stddev")? / of(1, "mean")?,
        );
    Ok((ratio, spread))
}

/// Runs one command for half of the time, then the other.
fn sequential(asked: &Question<'_>) -> Result<Answer> {
    let all_of = |is_second| -> Result<Vec<f64>> {
        let begin = Instant::now();
        let mut times = Vec::new();
        while times.len() < 3 || begin.elapsed() < asked.limit / 2 {
            times.push(asked.timed(is_second)?.ln());
        }
        Ok(times)
    };
    let (first, second) = (all_of(false)?, all_of(true)?);
    welch(&first, &second)
}

/// Returns Welch's interval of the difference of two means of logarithms.
fn welch(first: &[f64], second: &[f64]) -> Result<Answer> {
    let part = |x: &[f64]| {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n, n - 1.0)
    };
    let ((a, a_error, a_df), (b, b_error, b_df)) = (part(first), part(second));
    let error = a_error + b_error;
    let df = error.powi(2) / (a_error.powi(2) / a_df + b_error.powi(2) / b_df);
    if !(error > 0.0 && df.is_finite()) {
        bail!("the times do not scatter");
    }
    let reach = t_quantile(0.975, df) * error.sqrt();
    Ok(Answer {
        ratio: (b - a).exp(),
        low: (b - a - reach).exp(),
        high: (b - a + reach).exp(),
    })
}

/// Runs pairs in random order.
fn blocked(asked: &Question<'_>) -> Result<Answer> {
    let mut stream = Stream::new(SEED, asked.seed, 0);
    let begin = Instant::now();
    let mut d = Vec::new();
    while d.len() < 6 || begin.elapsed() < asked.limit {
        let is_second_first = stream.below(2) == 1;
        let (one, other) = (
            asked.timed(is_second_first)?,
            asked.timed(!is_second_first)?,
        );
        let ln = (other / one).ln();
        d.push(if is_second_first { -ln } else { ln });
    }
    let found = hodges_lehmann_paired(&d, 0.95)
        .ok()
        .context("too few pairs")?;
    let interval = found.interval.exp();
    Ok(Answer {
        ratio: interval.point,
        low: interval.low,
        high: interval.high,
    })
}

/// Asks with every method and prints one table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let known = [("-n", "4"), ("--seconds", "10"), ("--dose", "0,1,2,5,10")];
    let [times, seconds, doses] = flags("peers", arguments, known)?;
    let (times, seconds): (u64, u64) = (number(&times)?, number(&seconds)?);
    ensure!(
        times > 0 && seconds > 0,
        "`-n` and `--seconds` are 1 or more"
    );
    let doses: Vec<f64> = doses.split(',').map(number).collect::<Result<_>>()?;
    let tare = dist::named_or_built()?;
    let folder = work_folder("peers")?;
    let mut answers = vec![vec![Vec::new(); doses.len()]; WAYS.len()];
    for seed in 0..times {
        for (column, dose) in doses.iter().enumerate() {
            for (row, (name, ask)) in WAYS.iter().enumerate() {
                let asked = Question {
                    tare: &tare,
                    folder: &folder,
                    limit: Duration::from_secs(seconds),
                    dose: dose / 100.0,
                    seed: SEED + seed,
                };
                match ask(&asked) {
                    Ok(answer) => {
                        step(&format!(
                            "{} of {times}, {dose} %: {name} {:.4} [{:.4}, {:.4}]",
                            seed + 1,
                            answer.ratio,
                            answer.low,
                            answer.high
                        ));
                        answers[row][column].push(answer);
                    }
                    // A method that is not installed has a row that says so.
                    Err(error) => step(&format!("{name}: {error:#}")),
                }
            }
        }
    }
    fs::remove_dir_all(&folder)?;
    println!("{seconds} s an answer, {times} answers each\n");
    print!("| way |");
    for dose in &doses {
        match *dose {
            0.0 => print!(" false alarms |"),
            dose => print!(" finds {dose} % |"),
        }
    }
    println!(
        " two answers differ by |\n|---|{}",
        "---|".repeat(doses.len() + 1)
    );
    for ((name, _), by_dose) in WAYS.iter().zip(&answers) {
        println!("{}", row(name, &doses, by_dose));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(name: &str, doses: &[f64], by_dose: &[Vec<Answer>]) -> String {
    let mut row = format!("| {name} |");
    for (dose, answers) in doses.iter().zip(by_dose) {
        let is = |answer: &&Answer| {
            if *dose > 0.0 {
                answer.is_slower()
            } else {
                answer.is_alarm()
            }
        };
        let count = answers.iter().filter(is).count();
        let _ = write!(row, " {count} of {} |", answers.len());
    }
    let distances = by_dose.iter().flat_map(|answers| {
        let pairs = answers.iter().zip(answers.iter().skip(1));
        pairs.map(|(one, next)| 100.0 * (next.ratio / one.ratio).ln().abs())
    });
    let distances: Vec<f64> = distances.collect();
    let typical = tare_stats::median(&distances);
    row + &typical.map_or_else(|| " – |".to_owned(), |it| format!(" {it:.2} % |"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(ratio: f64, half: f64) -> Answer {
        Answer {
            ratio,
            low: ratio - half,
            high: ratio + half,
        }
    }

    #[test]
    fn alarms_count_on_either_side_and_finds_on_one() {
        let none = vec![answer(1.0, 0.1), answer(1.2, 0.1), answer(0.8, 0.1)];
        let planted = vec![answer(1.05, 0.01), answer(0.9, 0.01), answer(1.01, 0.05)];
        let text = row("way", &[0.0, 5.0], &[none, planted]);
        assert!(text.starts_with("| way | 2 of 3 | 1 of 3 |"), "{text}");
        assert!(row("way", &[0.0], &[Vec::new()]).ends_with("0 of 0 | – |"));
    }

    #[test]
    fn welch_holds_the_difference_of_two_means() {
        let first: Vec<f64> = (0..20).map(|i| f64::from(i % 5) * 0.01).collect();
        let second: Vec<f64> = first.iter().map(|value| value + 0.5).collect();
        let found = welch(&first, &second).unwrap();
        assert!((found.ratio.ln() - 0.5).abs() < 1e-9 && found.is_slower());
        let same = welch(&first, &first).unwrap();
        assert!(!same.is_alarm());
        assert!(welch(&[1.0; 3], &[1.0; 3]).is_err());
    }

    #[test]
    fn second_command_does_more_and_is_another_one() {
        let asked = Question {
            tare: Path::new("tare"),
            folder: Path::new("/"),
            limit: Duration::from_secs(1),
            dose: 0.02,
            seed: 1,
        };
        assert!(asked.quoted(false).contains("< 400000)"));
        assert!(asked.quoted(true).contains("< 408000)"));
        assert!(asked.quoted(true).contains("tag=1"));
        let json =
            json!({"rows": [{"name": "wall", "change": {"point": 0.1, "low": 0.05, "high": 0.2}}]});
        assert!(wall_of(&json).unwrap().is_slower());
        assert!(wall_of(&json!({"rows": []})).is_err());
    }
}
