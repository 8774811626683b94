//! The report of a long run: `tare show` over a store of a million trials.
//!
//! The store is a short real run over again with noise of its own (`examples/many_trials.rs`).
//! What it cannot see: a store that is not in the page cache.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Row;
use crate::dist;
use crate::shell::{cargo, program};

const TRIALS: u32 = 1_000_000;
/// Longest report, seconds, and most memory, MiB.
const BOUND: (f64, f64) = (5.0, 512.0);

pub(super) fn rows(folder: &Path) -> Result<Vec<Row>> {
    let tare = dist::named_or_built()?;
    // A home, because what is read of a long run is kept beside a store in Tare's own folder only.
    let home = folder.join("home");
    std::fs::create_dir_all(&home)?;
    let (short, long) = (folder.join("short.sqlite"), home.join("store.sqlite"));
    let (short_name, long_name) = (short.to_string_lossy(), long.to_string_lossy());
    program(&tare, &["run", "quick", "--env", "host,container"])
        .arguments(&["--workload", "integer,getppid,pipe,stat,chase"])
        .arguments(&["--blocks", "10", "--store", &short_name])
        .output()?;
    cargo(&["run", "--quiet", "--release", "--package", "tare"])
        .arguments(&["--example", "many_trials", "--"])
        .arguments(&[&short_name, &long_name, &TRIALS.to_string()])
        .run()?;
    let first = report(&tare, &home)?;
    let again = report(&tare, &home)?;
    let row = |promise, (seconds, peak_mib): (f64, f64)| Row {
        promise,
        bound: "≤ 5 s, ≤ 512 MiB",
        figure: format!("{seconds:.1} s, {peak_mib:.0} MiB"),
        is_kept: Some(seconds <= BOUND.0 && peak_mib <= BOUND.1),
    };
    Ok(vec![
        row("report over 10⁶ trials, the first time", first),
        row("the same again, from what was kept of the first", again),
    ])
}

/// How long a report took, seconds, and the most memory that it had, MiB.
fn report(tare: &Path, home: &Path) -> Result<(f64, f64)> {
    let begin = Instant::now();
    let mut child = Command::new(tare)
        .args(["show", "latest"])
        .env("TARE_HOME", home)
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run `tare show`")?;
    // The kernel keeps the peak only as long as the process lives.
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0.0;
    let ended = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        peak_kib = now.unwrap_or(0.0).max(peak_kib);
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    ensure!(ended.success(), "`tare show` ended with {ended}");
    Ok((begin.elapsed().as_secs_f64(), peak_kib / 1024.0))
}
