//! Tare's integration tests: one program, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it is skipped"
)]

mod container;
mod contract;
mod docker;
mod engine;
mod host;
#[cfg(target_os = "linux")]
mod launcher;
mod vm;
mod world;
