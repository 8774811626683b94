//! `cargo xtask repeats [-n N] [--env A,…] [--budget T]`: checks whether an answer repeats in fresh runs.
//!
//! Runs the study `quick` N times, one after the other, and compares every two runs metric by metric: the quotient of
//! their two ratios has an interval from both (METHODOLOGY, *Two runs*), and the runs differ if it excludes 1. With
//! intervals that keep their promise one pair in twenty differs. The table counts by arm and class of metric, next to
//! the range that chance gives: pairs share their runs, so a class with one metric may have no pair that differs, or
//! one in six. `TARE` names a program that is already built.
//! Left out are metrics with the same ratio in every run, as the size of an image, which cannot differ, and sums of
//! others, which say nothing new.
//! Limits: runs on one machine since one boot say nothing about another machine or the next boot. The range takes
//! metrics for independent; those of one class are not quite, which makes it wider.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde_json::Value;
use tare_stats::{Interval, Stream, difference_of_independent, quantile};

use crate::flags::{cells, flags, number, ratio, run_in};
use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::work_folder;

/// The classes, each with how the names of its metrics begin; the first that fits.
const CLASSES: &[(&str, &[&str])] = &[
    ("loops", &["cpu.", "clock.vdso"]),
    ("calls", &["syscall.", "clock.", "fs.stat"]),
    ("files", &["fs."]),
    ("pipes", &["ipc."]),
    ("processes", &["proc."]),
    ("memory", &["mem."]),
    ("disk", &["disk."]),
    ("network", &["net."]),
    ("start-up", &["start-up."]),
];

/// Times that are sums of others of their class.
const SUMS: [&str; 2] = ["start-up.ready.time", "start-up.total.time"];

/// Returns the ratio of a cell with its interval, as logarithms.
fn ln_ratio(cell: &Value) -> Option<Interval> {
    let [point, low, high] = ratio(cell)?.map(f64::ln);
    Some(Interval::new(low, point, high, 0.95))
}

/// Whether the interval of the quotient of both excludes 1.
fn differ(one: &Interval, other: &Interval) -> bool {
    let found = difference_of_independent(one, other);
    found.low > 0.0 || found.high < 0.0
}

/// How many pairs of runs there are, and how many differ.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    differ: usize,
    of: usize,
}

impl Count {
    fn add(&mut self, ratios: &[Interval]) {
        for (place, one) in ratios.iter().enumerate() {
            for other in &ratios[place + 1..] {
                self.of += 1;
                self.differ += usize::from(differ(one, other));
            }
        }
    }

    fn text(self) -> String {
        let share = 100.0 * self.differ as f64 / self.of.max(1) as f64;
        format!("{} of {} ({share:.1} %)", self.differ, self.of)
    }
}

/// The shares of pairs that differ, between which 95 of 100 such counts lie if intervals keep their promise, by
/// simulation.
fn chance(runs: usize, metrics: usize) -> Option<(f64, f64)> {
    /// How many counts are simulated.
    const COUNTS: u64 = 2000;
    /// Half the width of an interval of 95 % in standard errors.
    const HALF: f64 = 1.96;
    let share = |index: u64| {
        let mut stream = Stream::new(1, 0, index);
        let mut count = Count::default();
        for _ in 0..metrics {
            let ratios = (0..runs).map(|_| {
                let point = stream.normal();
                Interval::new(point - HALF, point, point + HALF, 0.95)
            });
            count.add(&ratios.collect::<Vec<_>>());
        }
        count.differ as f64 / count.of.max(1) as f64
    };
    let shares: Vec<f64> = (0..COUNTS).map(share).collect();
    Some((quantile(&shares, 0.025)?, quantile(&shares, 0.975)?))
}

/// By arm and metric, the ratios of all runs.
type Ratios = BTreeMap<(String, String), Vec<Interval>>;

fn class(metric: &str) -> Option<&'static str> {
    let fits = |begins: &[&str]| begins.iter().any(|begin| metric.starts_with(begin));
    let found = CLASSES.iter().find(|(_, begins)| fits(begins));
    found.map(|(name, _)| *name)
}

/// Whether pairs of a metric say whether intervals keep their promise.
fn tells(metric: &str, ratios: &[Interval]) -> bool {
    let is_exact = |all: &[Interval]| {
        all.iter().all(|it| {
            *it == Interval {
                low: it.point,
                high: it.point,
                ..all[0]
            }
        })
    };
    !SUMS.contains(&metric) && !is_exact(ratios)
}

fn table(ratios: &Ratios) -> String {
    let mut arms: Vec<&str> = ratios.keys().map(|(arm, _)| arm.as_str()).collect();
    arms.dedup();
    let row = |name: &str, is_wanted: &dyn Fn(&str) -> bool| {
        let mut widest = (0, 0);
        let counts = arms.iter().map(|arm| {
            let mut count = Count::default();
            let of_row = ratios.iter();
            let of_row = of_row.filter(|((of, metric), _)| of == arm && is_wanted(metric));
            let of_row: Vec<&Vec<Interval>> = of_row.map(|(_, ratios)| ratios).collect();
            let runs = of_row.iter().map(|ratios| ratios.len()).max();
            widest = widest.max((of_row.len(), runs.unwrap_or(0)));
            for ratios in &of_row {
                count.add(ratios);
            }
            count.text()
        });
        let counts = counts.collect::<Vec<String>>().join(" | ");
        let (metrics, runs) = widest;
        let chance = chance(runs, metrics)
            .map(|(low, high)| format!("{:.1}–{:.1} %", 100.0 * low, 100.0 * high))
            .unwrap_or_default();
        format!("| {name} | {counts} | {chance} |")
    };
    let mut rows = vec![
        format!("| class | {} | by chance |", arms.join(" | ")),
        format!("|---|{}---|", "---|".repeat(arms.len())),
    ];
    rows.extend(
        CLASSES
            .iter()
            .map(|(name, _)| row(name, &|metric| class(metric) == Some(*name))),
    );
    rows.push(row("all", &|_| true));
    rows.join("\n")
}

/// Runs the study N times and prints the table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let known = [
        ("-n", "12"),
        ("--env", "host,container,docker"),
        ("--budget", "90s"),
    ];
    let [times, env, budget] = flags("repeats", arguments, known)?;
    let times: u64 = number(&times)?;
    ensure!(times > 1, "`-n` is 2 or more");
    let tare = dist::named_or_built()?;
    let folder = work_folder("repeats")?;
    let mut ratios = Ratios::new();
    for run in 1..=times {
        step(&format!("run {run} of {times}"));
        let asked = ["quick", "--env", &env, "--budget", &budget];
        let dossier = run_in(&folder, &tare, &asked)?;
        for cell in cells(&dossier, "cells")? {
            let text = |name: &str| cell[name].as_str().unwrap_or_default().to_owned();
            if let Some(ratio) = ln_ratio(cell) {
                let key = (text("arm"), text("metric"));
                ratios.entry(key).or_default().push(ratio);
            }
        }
    }
    for ((arm, metric), all) in &ratios {
        let mut count = Count::default();
        count.add(all);
        let points: Vec<String> = all
            .iter()
            .map(|ratio| format!("{:.4}", ratio.point.exp()))
            .collect();
        println!("{arm} {metric}: {}; {}", count.text(), points.join(" "));
    }
    ratios.retain(|(_, metric), all| tells(metric, all));
    println!(
        "pairs of {times} runs that differ at 95 %\n\n{}",
        table(&ratios)
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(point: f64, half: f64) -> Interval {
        Interval {
            point,
            low: point - half,
            high: point + half,
            level: 0.95,
        }
    }

    #[test]
    fn pairs_with_distant_estimates_differ() {
        // 0.2 is less than the half-width √2 · 0.15 of the difference, 0.3 is more.
        let mut count = Count::default();
        count.add(&[ratio(0.0, 0.15), ratio(0.2, 0.15), ratio(0.3, 0.15)]);
        assert_eq!(count, Count { differ: 1, of: 3 });
        assert_eq!(count.text(), "1 of 3 (33.3 %)");
    }

    #[test]
    fn every_class_has_its_row() {
        let names = [
            "clock.vdso.time",
            "clock.syscall.time",
            "fs.stat.time",
            "fs.create.time",
        ];
        let classes = names.map(|name| class(name).unwrap());
        assert_eq!(classes, ["loops", "calls", "calls", "files"]);
        let mut ratios = Ratios::new();
        let key = ("docker".to_owned(), "fs.create.time".to_owned());
        ratios.insert(key, vec![ratio(0.0, 0.1), ratio(1.0, 0.1)]);
        let table = table(&ratios);
        assert!(table.contains("| files | 1 of 1 (100.0 %) |"), "{table}");
        assert!(table.contains("| all | 1 of 1 (100.0 %) |"), "{table}");
    }

    #[test]
    fn sums_and_exact_ratios_tell_nothing() {
        let [size, part] = ["start-up.disk.size", "start-up.create.time"];
        assert!(!tells(size, &[ratio(0.1, 0.0), ratio(0.1, 0.0)]));
        assert!(tells(size, &[ratio(0.1, 0.0), ratio(0.2, 0.0)]));
        assert!(tells(part, &[ratio(0.1, 0.2), ratio(0.1, 0.2)]));
        assert!(!tells("start-up.total.time", &[ratio(0.1, 0.2)]));
    }

    #[test]
    fn one_metric_may_have_no_pair_that_differs() {
        let (low, high) = chance(12, 1).unwrap();
        assert!(low == 0.0 && high > 0.15, "{low} {high}");
        let (low, high) = chance(12, 30).unwrap();
        assert!(low > 0.03 && high < 0.08, "{low} {high}");
    }
}
