//! The pure half of Tare: what to run, and what follows from stored trials.
//!
//! Workloads define what to run and parse the output ([`workload`]), a study becomes trials ([`plan`]), stored trials
//! become a dossier ([`analyze`]) with the causes that the facts suggest ([`cause`]) and the results of testing them
//! ([`why`]), or a comparison ([`compare`]). Nothing here reads a file, starts a program, opens a socket or reads a
//! clock: the crates `tare-env` and `tare` do that. The crate `tare-report` renders the results.

pub mod analyze;
pub mod cause;
pub mod compare;
pub mod config;
pub mod driver;
pub mod foreign;
pub mod parity;
pub mod plan;
#[cfg(test)]
use tare_testkit::registered;
pub mod service;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod why;
pub mod workload;
