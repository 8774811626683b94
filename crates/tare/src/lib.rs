//! Tare's host side.
//!
//! The data goes one way: a study file and a seed become a plan ([`plan`]); the plan is executed
//! ([`run`]) in environments ([`env`](mod@env)) with workloads ([`workload`]); raw output is stored first
//! ([`store`]) and decoded second; stored trials become costs ([`analyze`]), gathered in a
//! dossier, and the dossier is drawn ([`report`]). Everything that touches the outside world goes
//! through [`cx`]. What is pure is the crate `tare-core`, and drivers are the crate `tare-env`.

pub use tare_core::{analyze, cause, driver, plan, workload};
use tare_core::{parity, suggest};
pub use tare_env::{cx, env};
pub use tare_report as report;

mod bundle;
pub mod cli;
pub mod compare;
pub mod config;
mod failed;
mod output;
mod recount;
pub mod run;
mod selfcheck;
pub mod service;
mod session;
pub mod store;
#[cfg(test)]
use tare_core::testing;
#[cfg(test)]
use tare_testkit::registered;
pub mod why;
