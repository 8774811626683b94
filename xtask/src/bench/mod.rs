//! `cargo xtask bench`: what SPECIFICATION.md promises, measured beside the tools of the field.
//!
//! Installs nothing. A tool that is not here makes its row say so. Tare and the other tool run in turn,
//! A B B A …, and the ratio is taken pair by pair, so that a machine that drifts does not decide.

use anyhow::Result;

use crate::dist;
use crate::shell::step;

mod agent;
mod peers;

/// Pairs of runs for each comparison.
const PAIRS: usize = 8;

/// One line of the result.
struct Row {
    promise: &'static str,
    bound: &'static str,
    figure: String,
    is_kept: Option<bool>,
}

/// Measures everything and prints one table.
#[allow(clippy::print_stdout, reason = "the table is this command's data")]
pub(crate) fn run() -> Result<()> {
    let file = dist::agent()?;
    let folder = crate::shell::root().join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    step("agent: size, memory, start, dispatch");
    rows.extend(agent::rows(&file, &folder)?);
    step("peers: STREAM, fio, iperf3");
    rows.extend(peers::rows(&file, &folder)?);
    std::fs::remove_dir_all(&folder)?;
    println!("| promise | bound | today | kept |\n|---|---|---|---|");
    for row in rows {
        let kept = match row.is_kept {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "not measured",
        };
        println!("| {} | {} | {} | {kept} |", row.promise, row.bound, row.figure);
    }
    Ok(())
}
