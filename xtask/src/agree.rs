//! `cargo xtask agree [-n N] [--budget T] [--env X] [--other Y] [--workload W,…]`: checks whether an environment's
//! ratio depends on which other arms take part.
//!
//! Measures the same workloads in four compositions: host, A/A and X; with Y added; with a second copy of X; and by
//! whole trials. Each composition runs `N` times, one after the other. A ratio agrees with that of the first
//! composition if two one-sided tests at 5 % show it to be within 0.5 % (loops, calls) or 2 % (anything else). It
//! differs if its difference exceeds two standard errors and it does not agree. `TARE` names a program that is
//! already built.

use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::flags::{cells, exit_status, flags, number, ratio, run_in};
use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::work_folder;

/// The probes of `quick` that can be sliced, except those that need devices.
const WORKLOADS: &str = "integer,float,chase,matrix,triad,random-access,touch,getppid,clock,stat,pipe,spawn,files,tcp-round-trip";
/// Normal quantiles: for a 95 % interval, and for a one-sided test at 5 %.
const Z95: f64 = 1.96;
const Z_ONE_SIDED: f64 = 1.645;
const WORDS: [&str; 3] = ["agrees", "DIFFERS", "open"];
const NAMES: [&str; 4] = ["host, X", "+ Y", "+ X′", "whole trials"];

/// A ratio on the log scale with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    ln: f64,
    error: f64,
}

impl Estimate {
    fn from_cell(cell: &Value) -> Option<Self> {
        let [point, low, high] = ratio(cell)?;
        Some(Self {
            ln: point.ln(),
            error: (high / low).ln() / (2.0 * Z95),
        })
    }

    /// Returns the mean of several runs. Its error is the larger of the error within the runs and their scatter.
    fn mean(all: &[Self]) -> Option<Self> {
        let n = all.len() as f64;
        let ln = all.iter().map(|one| one.ln).sum::<f64>() / n;
        let within = all.iter().map(|one| one.error.powi(2)).sum::<f64>() / n;
        let between = all.iter().map(|one| (one.ln - ln).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        (!all.is_empty()).then(|| Self {
            ln,
            error: (f64::max(within, between) / n).sqrt(),
        })
    }

    fn text(self) -> String {
        let [low, high] = [-Z95, Z95].map(|z| (self.ln + z * self.error).exp());
        format!("{:.4} [{low:.4}, {high:.4}]", self.ln.exp())
    }

    /// Returns which of `WORDS` is true of the comparison with `first`.
    fn against(self, first: Self, tolerance: f64) -> usize {
        let apart = (self.ln - first.ln).abs();
        let error = f64::hypot(self.error, first.error);
        if apart + Z_ONE_SIDED * error < tolerance.ln_1p() {
            0
        } else if apart > Z95 * error {
            1
        } else {
            2
        }
    }
}

fn tolerance(metric: &str) -> f64 {
    let is_fine = ["cpu.", "syscall.", "clock."]
        .iter()
        .any(|it| metric.starts_with(it));
    if is_fine { 0.005 } else { 0.02 }
}

/// Returns the study of the host and these arms.
fn study(arms: &[(&str, &str)], workloads: &str, slices: bool) -> String {
    let mut text = format!(
        "id = \"agree\"\ntitle = \"Does a ratio depend on the other arms?\"\nbaseline = \"host\"\n\n[design]\ntrial = \"60ms\"\nblocks_min = 8\nalternate = {slices}\n\n[[arm]]\nid = \"host\"\n"
    );
    for (id, driver) in arms {
        let _ = write!(
            text,
            "\n[[arm]]\nid = \"{id}\"\ndriver = \"{driver}\"\nrequired = true\n"
        );
    }
    for workload in workloads.split(',') {
        let _ = write!(text, "\n[[workload]]\nid = \"{workload}\"\n");
        if workload.starts_with("tcp-") {
            text.push_str("path = \"host→arm\"\n");
        }
        if workload == "matrix" {
            text.push_str("params = { size = \"small\" }\n");
        }
    }
    text
}

/// For each metric, the estimates of every composition.
type Table = Vec<(String, [Vec<Estimate>; 4])>;

fn add(table: &mut Table, composition: usize, dossier: &Value) -> Result<()> {
    let cells = cells(dossier, "cells")?;
    for cell in cells.iter().filter(|cell| cell["arm"] == "x") {
        let metric = cell["metric"].as_str().unwrap_or_default();
        let Some(estimate) = Estimate::from_cell(cell) else {
            continue;
        };
        let known = table.iter().position(|(known, _)| known == metric);
        let place = known.unwrap_or_else(|| {
            table.push((metric.to_owned(), Default::default()));
            table.len() - 1
        });
        table[place].1[composition].push(estimate);
    }
    Ok(())
}

/// Returns the rows of the table, and how many estimates agree, differ and are inconclusive.
fn rows(table: &Table) -> (Vec<String>, [usize; 3]) {
    let mut counts = [0; 3];
    let row = |(metric, by_composition): &(String, [Vec<Estimate>; 4])| {
        let means: Vec<Option<Estimate>> = by_composition
            .iter()
            .map(|all| Estimate::mean(all))
            .collect();
        let mut row = format!("| {metric}");
        for (place, mean) in means.iter().enumerate() {
            let text = match (mean, means[0]) {
                (None, _) => "–".to_owned(),
                (Some(mean), Some(first)) if place > 0 => {
                    let word = mean.against(first, tolerance(metric));
                    counts[word] += 1;
                    format!("{} {}", mean.text(), WORDS[word])
                }
                (Some(mean), _) => mean.text(),
            };
            row.push_str(" | ");
            row.push_str(&text);
        }
        row + " |"
    };
    (table.iter().map(row).collect(), counts)
}

/// Runs the four compositions and prints one table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let known = [
        ("-n", "2"),
        ("--budget", "30s"),
        ("--env", "container"),
        ("--other", "docker"),
        ("--workload", WORKLOADS),
    ];
    let [rounds, budget, env, other, workloads] = flags("agree", arguments, known)?;
    let rounds: u64 = number(&rounds)?;
    ensure!(rounds > 0, "`-n` is 1 or more");
    let tare = dist::named_or_built()?;
    let folder = work_folder("agree")?;
    let x = ("x", env.as_str());
    let compositions = [
        study(&[x], &workloads, true),
        study(&[x, ("y", &other)], &workloads, true),
        study(&[x, ("x2", &env)], &workloads, true),
        study(&[x], &workloads, false),
    ];
    let mut table = Table::new();
    for round in 0..rounds {
        for (place, study) in compositions.iter().enumerate() {
            step(&format!(
                "round {} of {rounds}: {}",
                round + 1,
                NAMES[place]
            ));
            let file = folder.join("agree.toml");
            fs::write(&file, study)?;
            let asked = [&*file.to_string_lossy(), "--budget", &budget];
            let dossier = run_in(&folder, &tare, &asked)?;
            add(&mut table, place, &dossier)?;
        }
    }
    let (rows, [agree, differ, open]) = rows(&table);
    println!("X = {env}, Y = {other}: ratio of X to the host");
    println!("| metric | {} |\n|---|---|---|---|---|", NAMES.join(" | "));
    for row in rows {
        println!("{row}");
    }
    fs::remove_dir_all(&folder)?;
    println!("{agree} agree, {differ} differ, {open} open");
    Ok(exit_status(differ == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dossier(point: f64, half: f64) -> Value {
        json!({"cells": [
            {"arm": "x", "metric": "cpu.integer.time", "ratio": {"point": point, "low": point - half, "high": point + half}},
            {"arm": "x", "metric": "no.ratio", "ratio": null},
            {"arm": "y", "metric": "cpu.integer.time", "ratio": {"point": 9.0, "low": 8.0, "high": 10.0}}]})
    }

    #[test]
    fn compositions_agree_differ_or_stay_open() {
        let mut table = Table::new();
        for (place, (point, half)) in [(1.0, 0.001), (1.001, 0.001), (1.02, 0.001), (1.02, 0.05)]
            .into_iter()
            .enumerate()
        {
            add(&mut table, place, &dossier(point, half)).unwrap();
            add(&mut table, place, &dossier(point, half)).unwrap();
        }
        let (rows, counts) = rows(&table);
        assert_eq!((rows.len(), counts), (1, [1, 1, 1]), "{rows:?}");
        assert!(add(&mut table, 0, &json!({})).is_err());
    }

    #[test]
    fn runs_that_scatter_widen_their_mean() {
        let one = |ln| Estimate { ln, error: 0.001 };
        let calm = Estimate::mean(&[one(0.1), one(0.1)]).unwrap();
        let wild = Estimate::mean(&[one(0.0), one(0.2)]).unwrap();
        assert!((calm.ln - 0.1).abs() < 1e-12 && (wild.ln - 0.1).abs() < 1e-12);
        assert!(wild.error > 50.0 * calm.error, "{wild:?}");
        assert_eq!(Estimate::mean(&[]), None);
    }

    #[test]
    fn study_has_its_arms_and_workloads() {
        let text = study(&[("x", "container"), ("x2", "container")], WORKLOADS, false);
        let study: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(study["arm"].as_array().unwrap().len(), 3);
        assert_eq!(study["workload"].as_array().unwrap().len(), 14);
        assert_eq!(study["design"]["alternate"].as_bool(), Some(false));
    }
}
