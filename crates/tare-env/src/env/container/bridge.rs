//! An engine's bridge that bare processes join, to reach the same peers as a container there.
//!
//! Limits: does not see addresses that another program assigns on the bridge; it must have no other containers.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use tare_model::launch::{BridgePort, PairAddresses};

use crate::env::grammar::has_only;

/// A bridge's device, its address, and its prefix length in bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bridge {
    device: String,
    address: Ipv4Addr,
    prefix_bits: u8,
}

impl Bridge {
    /// Reads `DEVICE ADDRESS/BITS`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (device, network) = text.split_once(' ')?;
        let (address, bits) = network.split_once('/')?;
        let is_device = (1..=15).contains(&device.len()) && has_only(device, b"-_");
        let prefix_bits = bits.parse().ok().filter(|bits| (8..=29).contains(bits))?;
        is_device.then_some(Self {
            device: device.to_owned(),
            address: address.parse().ok()?,
            prefix_bits,
        })
    }

    /// A port with an address that no other instance of this process has.
    pub(super) fn port(&self) -> BridgePort {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        BridgePort {
            device: self.device.clone(),
            addresses: PairAddresses {
                host: self.address,
                arm: self.place(COUNT.fetch_add(1, Ordering::Relaxed)),
                prefix_bits: self.prefix_bits,
            },
        }
    }

    /// The address with this number, skipping those of the network, the bridge and broadcast.
    fn place(&self, number: u32) -> Ipv4Addr {
        let hosts = u32::MAX >> self.prefix_bits;
        let own = u32::from(self.address);
        let place = (own & !hosts) + 1 + number % (hosts - 2);
        Ipv4Addr::from(place + u32::from(place >= own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_an_address_of_its_own() {
        for (gateway, expected) in [
            ("192.0.2.1/29", ["192.0.2.2", "192.0.2.6", "192.0.2.2"]),
            ("192.0.2.6/29", ["192.0.2.1", "192.0.2.5", "192.0.2.1"]),
        ] {
            let bridge = Bridge::parse(&format!("br-0 {gateway}")).unwrap();
            let places = [0, 4, 5].map(|number| bridge.place(number).to_string());
            assert_eq!(places, expected);
        }
        let bridge = Bridge::parse("br-0 172.20.0.1/16").unwrap();
        assert_ne!(bridge.port().addresses.arm, bridge.port().addresses.arm);
    }

    #[test]
    fn invalid_bridge_text_is_not_parsed() {
        for text in [
            "",
            "br-0",
            "br-0 192.0.2.1",
            "br-0 192.0.2.1/31",
            "br/0 192.0.2.1/24",
            "br-0123456789abcdef 192.0.2.1/24",
            "br-0 2001:db8::1/24",
        ] {
            assert_eq!(Bridge::parse(text), None, "{text}");
        }
    }
}
