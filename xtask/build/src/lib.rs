//! Builds `tare` and its agents; what every development command shares.
//!
//! A package apart from them, with one dependency, because the first command of a newcomer waits for it.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "development commands speak to the developer"
)]

pub mod dist;
pub mod run;
pub mod shell;
pub mod workspace;
