//! Everything that touches the outside world: programs, clocks, files and variables ([`cx`]), and the environments
//! that work runs in, one driver per file ([`env`](mod@env)).
//!
//! An environment is independent of workloads: it starts instances with Tare's agent in them, and removes what it
//! started.

#[cfg(test)]
use tare_core::cause;
use tare_core::suggest;

pub mod cx;
pub mod env;
#[cfg(test)]
use tare_testkit::{registered, skip};
