//! The host side of Tare.
//!
//! Data flows one way. A study file and a seed become a plan ([`plan`]). The plan runs ([`run`]) in environments
//! ([`env`](mod@env)) with workloads ([`workload`]). Raw output is stored first ([`store`]) and decoded second.
//! Stored trials become overheads ([`analyze`]), which are collected in a dossier and rendered ([`report`]). All
//! access to the outside world goes through [`cx`]. Pure code is in the crate `tare-core`, drivers are in the crate
//! `tare-env`.

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
mod trusted;
#[cfg(test)]
use tare_core::testing;
#[cfg(test)]
use tare_testkit::registered;
pub mod why;
