//! Servers that are compared: an HTTP client outside of every arm, and how its requests are interleaved.
//!
//! [`http`] writes requests and reads answers from bytes, [`mix`] says which requests are sent, [`asked`] takes both from
//! parameters, [`client`] sends them over sockets and times them, [`turns`] gives each server a slice at a time. It
//! knows no arm and no run.

pub use tare_core::service::{asked, http, mix};

#[cfg(target_os = "linux")]
pub mod client;
#[cfg(target_os = "linux")]
pub mod load;
#[cfg(target_os = "linux")]
pub mod turns;
