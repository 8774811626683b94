//! Tests the analysis and its reports end to end: generated runs in, dossiers, tables and JSON out.
//!
//! One binary, so that the library is linked once. A seeded generator makes the runs with known effects, so a verdict
//! can be right or wrong.
#![allow(
    clippy::unwrap_used,
    reason = "a test may end where its own generator fails"
)]

mod accessible;
mod answers;
mod before;
mod compared;
mod concurrency;
mod decided;
mod figures;
mod forms;
mod generator;
mod inference;
mod invariants;
mod methodology;
mod odd;
mod opened;
mod pairs;
mod precision;
mod proof;
mod publication;
mod published;
mod schema;
mod snapshots;
mod two_runs;
mod verdicts;
