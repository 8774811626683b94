//! Coverage of the default interval in every noise model, with many repetitions:
//! `cargo run --release -p tare-stats --example coverage`.
//!
//! Why an example: it takes a minute. What it cannot see: the same as the models.

#![allow(clippy::print_stdout, reason = "printing the table is its purpose")]

#[path = "../tests/common/simulation.rs"]
mod simulation;

use simulation::{Noise, coverage, sequential_coverage};

const REPS: usize = 20_000;

fn main() {
    for model in Noise::ALL {
        print!("{:>13}", format!("{model:?}"));
        for n in [6, 10, 20, 40] {
            print!("  n={n}: {:.2} %", 100.0 * coverage(model, n, REPS, 1));
        }
        println!(
            "  precision rule: {:.2} %",
            100.0 * sequential_coverage(model, 0.05, 60, REPS / 4, 1)
        );
    }
}
