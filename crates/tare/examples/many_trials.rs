//! Writes a store with a run of as many trials as are asked for, to measure how long its report takes.
//!
//! `cargo run --release -p tare --example many_trials -- SOURCE TARGET TRIALS`. The run is the newest one of the
//! store `SOURCE` over again, block after block; each report's values are multiplied by noise of its own, so that
//! the sizes of everything are real and hardly two values equal.
//! What it cannot see: runs of other shapes; few cells with many blocks each is what a long run looks like.

use std::path::Path;

use tare::plan::Plan;
use tare::store::{RunStart, SessionEnd, Store, TrialRecord};
use tare_model::outcome::Bytes;
use tare_model::{Outcome, ProbeReport, RunId, StoppedBy, Trial, whole_count};
use tare_stats::Stream;

/// Standard deviation of the noise on the ln scale.
const NOISE: f64 = 0.02;

#[allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own that writes and prints"
)]
fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, wanted] = &arguments[..] else {
        anyhow::bail!("usage: many_trials SOURCE TARGET TRIALS");
    };
    let wanted: usize = wanted.parse()?;
    let source = Store::open(Path::new(source))?;
    let stored = source.run(&source.resolve("latest")?)?;
    let n_blocks = 1 + stored
        .records
        .iter()
        .map(|record| record.trial.block)
        .max()
        .unwrap_or(0);
    let mut study = stored.study.clone();
    let n_copies = whole_count(wanted.div_ceil(stored.records.len().max(1)));
    study.blocks_max = n_blocks * n_copies;
    let mut store = Store::open(Path::new(target))?;
    let start = RunStart {
        id: RunId::new("many-trials")?,
        started_unix_ns: stored.started_unix_ns,
        agent_sha256: stored.agent_sha256.clone(),
        agent_build: stored.agent_build.clone(),
        host: stored.host.clone(),
    };
    store.begin(&start, &Plan::new(&study))?;
    for arm in &stored.arms {
        store.arm(arm)?;
    }
    for launch in &stored.launches {
        store.launch(launch)?;
    }
    let mut sequence = 0;
    for copy in 0..n_copies {
        for record in &stored.records {
            store.append(&TrialRecord {
                trial: Trial {
                    sequence,
                    block: record.trial.block + copy * n_blocks,
                    ..record.trial.clone()
                },
                outcome: noisy(&record.outcome, sequence)?,
                ..record.clone()
            })?;
            sequence += 1;
        }
    }
    store.finish(&SessionEnd {
        ended_unix_ns: stored.started_unix_ns,
        wall_ns: stored.wall_ns * u64::from(n_copies),
        stopped_by: StoppedBy::Blocks,
        reason: None,
    })?;
    println!("{sequence} trials");
    Ok(())
}

/// The same report with other values; what is no report of a probe stays as it is.
fn noisy(outcome: &Outcome, number: u32) -> anyhow::Result<Outcome> {
    let Outcome::Completed(raw) = outcome else {
        return Ok(outcome.clone());
    };
    let Ok(mut report) = serde_json::from_slice::<ProbeReport>(&raw.stdout.0) else {
        return Ok(outcome.clone());
    };
    let mut noise = Stream::new(1, u64::from(number), 0);
    let factor = (NOISE * noise.normal()).exp();
    for series in &mut report.series {
        for value in &mut series.values {
            *value *= factor;
        }
    }
    let mut raw = raw.clone();
    raw.stdout = Bytes(serde_json::to_vec(&report)?);
    Ok(Outcome::Completed(raw))
}
