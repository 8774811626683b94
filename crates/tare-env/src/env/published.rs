//! How to reach a port of an instance that its engine publishes.
//!
//! Not a driver.

use std::net::IpAddr;

/// An address of the host on which a port of an instance is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedAt {
    /// 127.0.0.1.
    Loopback,
    /// The host's address on the arm's bridge.
    Bridge,
}

/// How the host reaches a server through a published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Nothing in between: the server's port is open at this address of the host.
    Direct(IpAddr),
    /// A server that listens inside on port `inside` is reached at `port` of `address`.
    Mapped {
        /// An address of the host.
        address: IpAddr,
        /// The port on that address.
        port: u16,
        /// The port inside.
        inside: u16,
    },
}
