//! Tare's host side.
//!
//! The data goes one way: a study file and a seed become a plan ([`plan`]); the plan is executed
//! ([`run`]) in environments ([`env`](mod@env)) with workloads ([`workload`]); raw output is stored first
//! ([`store`]) and decoded second; stored trials become costs ([`analyze`]), gathered in a
//! dossier, and the dossier is drawn ([`report`]). Everything that touches the outside world goes
//! through [`cx`].

pub mod analyze;
pub mod cause;
pub mod cli;
pub mod compare;
pub mod config;
pub mod cx;
pub mod env;
mod parity;
pub mod plan;
#[cfg(test)]
#[path = "../../tare-agent/tests/common/registered.rs"]
mod registered;
pub mod report;
pub mod run;
pub mod service;
#[cfg(test)]
#[path = "../../tare-agent/tests/common/skip.rs"]
mod skip;
pub mod store;
mod suggest;
pub mod why;
pub mod workload;
