//! How long the default interval takes: `cargo run --release --example interval_time`.
//!
//! Why an example and not a test: the answer is a duration, and no change is blocked by
//! one. What it cannot see: other machines.

#![allow(clippy::print_stdout, reason = "printing the figures is its purpose")]

use std::hint::black_box;
use std::time::Instant;
use tare_stats::{Stream, hodges_lehmann_paired};

fn main() {
    for n in [10, 32, 33, 100, 256, 257, 1_000, 10_000, 100_000] {
        let mut stream = Stream::new(1, 0, n);
        let d: Vec<f64> = (0..n).map(|_| 0.02 + 0.03 * stream.normal()).collect();
        let mut times: Vec<f64> = (0..15)
            .map(|_| {
                let start = Instant::now();
                black_box(hodges_lehmann_paired(black_box(&d), 0.95).expect("enough blocks"));
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{n:>7} blocks: {:.4} ms (median of 15, slowest {:.4} ms)",
            times[7], times[14]
        );
    }
}
