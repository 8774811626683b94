//! Compares servers: one client outside of all arms, with requests interleaved between them.
//!
//! [`http`] writes requests and parses answers, [`request_plan`] describes which requests are sent and how ([`mix`]:
//! several from a list), [`client`] sends them over sockets and times them, [`turns`] interleaves the servers in slices.
//! [`user`] does that for the user's server, or runs a client program ([`program`]), once the server is [`ready`].

pub use tare_core::service::{http, mix, request_plan};

/// The user pressed Ctrl-C; what was being measured was ended and does not count.
#[derive(Debug)]
pub struct Cancelled;

#[cfg(target_os = "linux")]
pub mod client;
pub mod program;
pub mod ready;
#[cfg(target_os = "linux")]
pub mod slice;
#[cfg(target_os = "linux")]
pub mod turns;
pub mod user;
