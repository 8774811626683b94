//! Runs one probe in this process and prints its figures: `probe NAME [MS] [KEY=VALUE…] [--json]`.
//!
//! For looking at a kernel by hand; with `--json` it prints a report in the format `probe/1`, as a worker
//! would leave it, but without the counters of a trial. What it cannot see: anything that the agent adds.
#![allow(
    clippy::print_stdout,
    reason = "printing figures is what this program is for"
)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use tare_agent::meter::Meter;
use tare_agent::probe;
use tare_model::{Params, ProbeReport, Value, whole_ns};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    // The probe `spawn` starts its own file with this word.
    if words == ["true"] {
        return ExitCode::SUCCESS;
    }
    let json = words.iter().any(|word| word == "--json");
    words.retain(|word| word != "--json");
    let Some(found) = words.first().and_then(|name| probe::find(name)) else {
        let names: Vec<&str> = probe::PROBES.iter().map(|probe| probe.name).collect();
        println!(
            "probe NAME [MS] [KEY=VALUE…] [--json]; names: {}",
            names.join(" ")
        );
        return ExitCode::from(2);
    };
    let mut target_ms = 80;
    let mut params = Params::new();
    for word in &words[1..] {
        if let Some((key, value)) = word.split_once('=') {
            let value = value
                .parse::<i64>()
                .map_or_else(|_| Value::from(value), Value::from);
            params = params.with(key, value);
        } else if let Ok(number) = word.parse() {
            target_ms = number;
        }
    }
    let before_ns = canary_ns();
    let begin = Instant::now();
    let mut meter = Meter::new(target_ms * 1_000_000, &std::env::temp_dir());
    if let Err(error) = (found.run)(&mut meter, &params) {
        println!("{}: {error:?}", found.name);
        return ExitCode::FAILURE;
    }
    let elapsed_ns = whole_ns(begin.elapsed());
    let unavailable = meter.take_unavailable();
    let (series, checksum, timer) = meter.finish();
    let report = ProbeReport {
        probe: found.name.to_owned(),
        revision: found.revision,
        series,
        unavailable,
        checksum: checksum.map(|sum| format!("{sum:016x}")),
        canary_ns: [before_ns, canary_ns()],
        elapsed_ns,
        counters: BTreeMap::new(),
        timer,
        command: None,
        span: None,
        sliced: None,
        timed_ns: None,
    };
    if json {
        println!(
            "{}",
            serde_json::to_string(&report).expect("a report has only text keys")
        );
    } else {
        print(&report);
    }
    ExitCode::SUCCESS
}

/// A fixed stretch of integer work.
fn canary_ns() -> f64 {
    let begin = Instant::now();
    std::hint::black_box((0..100_000u64).fold(1u64, |state, step| {
        std::hint::black_box(state.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ step)
    }));
    begin.elapsed().as_nanos() as f64
}

fn print(report: &ProbeReport) {
    println!(
        "{} took {:.1} ms in all, checksum {}",
        report.probe,
        report.elapsed_ns as f64 / 1e6,
        report.checksum.as_deref().unwrap_or("none")
    );
    for series in &report.series {
        let mut sorted = series.values.clone();
        sorted.sort_by(f64::total_cmp);
        println!(
            "  {:32} min {:>12.3} median {:>12.3} max {:>12.3} {} (n {}, batch {}{}) {}",
            series.metric,
            sorted.first().copied().unwrap_or(f64::NAN),
            sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN),
            sorted.last().copied().unwrap_or(f64::NAN),
            series.unit.symbol(),
            series.values.len(),
            series.batch,
            series
                .linearity
                .map_or(String::new(), |ratio| format!(", linearity {ratio:.2}")),
            series.notes.join("; ")
        );
    }
    for (metric, reason) in &report.unavailable {
        println!("  {metric}: {reason}");
    }
}
