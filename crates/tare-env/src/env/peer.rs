//! Validates an address that another machine or an engine reports for itself.
//!
//! Two-ended work connects to and listens on addresses that the other side names. An address that does not belong to
//! a single machine on a network would open this machine's server to everyone or lead the client elsewhere: the
//! unspecified address means all addresses, the loopback is this machine, and multicast and broadcast addresses
//! belong to many machines.
//! Limits: only connecting shows whether an ordinary address really belongs to the other side.

use std::net::IpAddr;

use tare_model::Reason;

use super::no_path;

/// Returns an address that another side named, if it can belong to one machine on a network.
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
    Err(no_path(format!(
        "the other side names the address {address}, which {kind}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_address_must_be_of_a_single_machine() {
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
