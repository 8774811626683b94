//! Helpers shared by the tests and development commands of several packages; not part of the product.

#![allow(
    clippy::unwrap_used,
    reason = "what a test asks of it fails by panicking"
)]

#[cfg(unix)]
pub mod account;
pub mod browser;
pub mod docker;
pub mod example;
pub mod registered;
#[cfg(feature = "schema")]
pub mod schema;
pub mod skip;
#[cfg(unix)]
pub mod ssh_server;
pub mod traces;
