//! How a port of an instance is reached where its engine publishes it.
//! This file is no driver.

use std::net::IpAddr;

/// An address of the host on which a port of an instance is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedAt {
    /// 127.0.0.1.
    Loopback,
    /// The host's address on the arm's bridge.
    Bridge,
}

/// How the host reaches a server by a published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Nothing is in between: the server's own port is open at this address of the host.
    Direct(IpAddr),
    /// What listens inside on port `inside` is reached at `port` of `address`.
    Mapped {
        /// An address of the host.
        address: IpAddr,
        /// The port there.
        port: u16,
        /// The port inside.
        inside: u16,
    },
}
