//! Servers that are compared: one client outside of every arm, and how its requests are interleaved.
//!
//! [`http`] writes requests and reads answers from bytes, [`asked`] says which requests are sent and how ([`mix`]: several
//! of a list), [`client`] sends them over sockets and times them, [`turns`] gives each server a slice at a time.
//! [`user`] asks a server of the user's that way or with a program ([`program`]), once it is [`ready`].

pub use tare_core::service::{asked, http, mix};

#[cfg(target_os = "linux")]
pub mod client;
pub mod program;
pub mod ready;
#[cfg(target_os = "linux")]
pub mod slice;
#[cfg(target_os = "linux")]
pub mod turns;
pub mod user;
