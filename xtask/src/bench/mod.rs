//! `cargo xtask bench`: measures the promises of SPECIFICATION.md against the tools of the field.
//!
//! Installs nothing; the row of a missing tool says that it is not installed. Tare and the other tool run
//! interleaved, A B B A …, and the ratio is taken pair by pair, so that drift of the machine does not decide.

use std::process::ExitCode;

use anyhow::{Result, ensure};

use xtask_build::dist;
use xtask_build::shell::step;
use xtask_build::workspace::work_folder;

mod agent;
mod peers;
mod report;

/// Pairs of runs for each comparison.
const PAIRS: usize = 8;

/// One line of the result.
struct Row {
    promise: &'static str,
    bound: &'static str,
    figure: String,
    is_kept: Option<bool>,
}

impl Row {
    /// Creates the row of a promise that was checked.
    fn checked(promise: &'static str, bound: &'static str, figure: String, is_kept: bool) -> Self {
        Self {
            promise,
            bound,
            figure,
            is_kept: Some(is_kept),
        }
    }
}

/// Returns the most memory that a process has had so far, MiB; `None` once it has ended.
fn peak_mib(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024.0)
}

/// Measures everything and prints one table.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    ensure!(arguments.is_empty(), "`bench` takes no arguments");
    let file = dist::own_agent(&dist::BuildPaths::own())?;
    let folder = work_folder("bench")?;
    let mut rows = Vec::new();
    step("agent: size, memory, start, dispatch");
    rows.extend(agent::rows(&file, &folder)?);
    step("peers: STREAM, fio, iperf3, sockperf, OpenBLAS, wrk");
    rows.extend(peers::rows(&file, &folder)?);
    step("report: a million trials, and two hundred cells");
    rows.extend(report::rows(&folder)?);
    std::fs::remove_dir_all(&folder)?;
    println!("| promise | bound | today | kept |\n|---|---|---|---|");
    for row in rows {
        let kept = match row.is_kept {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "–",
        };
        println!(
            "| {} | {} | {} | {kept} |",
            row.promise, row.bound, row.figure
        );
    }
    Ok(ExitCode::SUCCESS)
}
