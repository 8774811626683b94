//! The pure half of Tare: what is run, and what follows from stored trials.
//!
//! Workloads say what to run and read the bytes ([`workload`]), a study becomes trials ([`plan`]), stored trials become a
//! dossier ([`analyze`]) with what the facts make suspect ([`cause`]) and what came of trying it ([`why`]), or a
//! comparison ([`compare`]). Nothing here reads a file, starts a program, opens a socket or asks a clock: those are the
//! crates `tare-env` and `tare`. The crate `tare-report` draws what follows.

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
