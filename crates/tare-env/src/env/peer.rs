//! What another machine or an engine says of itself, and how far it is believed.
//!
//! Two-ended work connects to, and listens on, addresses that the other side names. One that is no single machine's
//! on a network would open this machine's server to everybody or lead the client somewhere else: the unspecified
//! address stands for all addresses, the loopback is this machine and not the other one, and a multicast or
//! broadcast address is many machines'.
//! What it cannot see: whether an ordinary address is really the other side's own; connecting tells.

use std::net::IpAddr;

use tare_model::Reason;

/// An address that another side named, if it can be one machine's on a network.
pub(super) fn on_network(address: IpAddr) -> Result<IpAddr, Reason> {
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    let kind = if address.is_unspecified() {
        "stands for every address"
    } else if address.is_loopback() {
        "is this machine's own loopback"
    } else if address.is_multicast() || is_broadcast {
        "is that of many machines"
    } else {
        return Ok(address);
    };
    Err(Reason::NoPath(format!(
        "the other side names the address {address}, which {kind}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_one_machines_address_is_believed() {
        let named = |text: &str| on_network(text.parse().unwrap());
        for fine in ["10.0.0.7", "192.0.2.1", "2001:db8::1", "fd00::7"] {
            assert_eq!(named(fine).unwrap().to_string(), fine);
        }
        assert_eq!(named("::ffff:10.0.0.7").unwrap().to_string(), "10.0.0.7");
        for bad in [
            "0.0.0.0",
            "::",
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
        ] {
            let Err(Reason::NoPath(why)) = named(bad) else {
                panic!("{bad} is believed");
            };
            assert!(why.contains("names the address"), "{why}");
        }
    }
}
