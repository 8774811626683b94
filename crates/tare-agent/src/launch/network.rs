//! Sets up the container's network: a loopback device and, if asked for, a veth pair between host and container.
//!
//! The pair is point to point: no bridge, no address translation, no port proxy. The additional overhead of an
//! engine's bridge network is therefore the difference between the two environments. A bare process that needs
//! outside access is a port of an engine's bridge instead, and reaches what a container there reaches.
//! Addresses come from 198.18.0.0/15, which RFC 2544 reserves for measuring network devices: the run's label is
//! hashed to one of its 32 768 blocks of four, and blocks that a route of the host covers are skipped.
//! Limits: does not see a block in use by another machine of the network, nor one that another launcher takes between
//! check and use; in the second case the kernel refuses the second address.
//! The outer device is named `tare-` plus eight hexadecimal digits and has the run as its alias. It vanishes with the
//! inner one, that is, with the network namespace.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;

use tare_model::RunId;
use tare_model::launch::{BridgePort, LaunchError, PairAddresses, SiblingLink};

use super::netlink::{Message, ask, destinations, link_index, texts};
use super::spec::Plan;
use super::{refused, sys};

/// 198.18.0.0/15.
const POOL: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// Blocks of four addresses in the pool.
const BLOCKS: u32 = 1 << 15;
/// Prefix length of each block.
const PREFIX_BITS: u8 = 30;
/// How many blocks are tried before giving up.
const ATTEMPTS: u32 = 256;
/// `VETH_INFO_PEER` of `include/uapi/linux/veth.h`.
const VETH_INFO_PEER: u16 = 1;
/// The device inside.
const INNER: &str = "eth0";

/// FNV-1a, 64 bits, with the finishing steps of MurmurHash3: without those, labels that differ only in their last
/// letters would get neighbouring blocks. Not cryptographic.
fn hash(text: &str) -> u64 {
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Returns the name of the host's device for an instance's label.
pub(crate) fn outer_name(label: &str) -> String {
    format!("tare-{:08x}", hash(label) & 0xffff_ffff)
}

fn overlaps(network: Ipv4Addr, bits: u8, block: u32) -> bool {
    // A default route covers everything and excludes nothing.
    if bits == 0 {
        return false;
    }
    let common = bits.min(PREFIX_BITS);
    let mask = u32::MAX << (32 - u32::from(common));
    u32::from(network) & mask == block & mask
}

fn block_for(label: &str, taken: &[(Ipv4Addr, u8)]) -> Option<PairAddresses> {
    let first = (hash(label) >> 17 & 0xffff_ffff) as u32 % BLOCKS;
    (0..ATTEMPTS)
        .map(|attempt| POOL + ((first + attempt) % BLOCKS) * 4)
        .find(|block| {
            !taken
                .iter()
                .any(|(network, bits)| overlaps(*network, *bits, *block))
        })
        .map(|block| PairAddresses {
            host: Ipv4Addr::from(block + 1),
            arm: Ipv4Addr::from(block + 2),
            prefix_bits: PREFIX_BITS,
        })
}

/// Chooses addresses that no route of this network namespace covers.
pub(crate) fn choose(label: &str) -> Result<PairAddresses, LaunchError> {
    let socket = sys::route_socket().map_err(refused("open a netlink socket"))?;
    let taken = destinations(&socket).map_err(refused("list the routes"))?;
    block_for(label, &taken).ok_or_else(|| LaunchError {
        step: "choose addresses for the veth pair".into(),
        problem: format!(
            "{ATTEMPTS} blocks of 198.18.0.0/15 are all covered by routes of this host"
        ),
        errno: None,
        hint: Some("use network = \"none\" or network = \"host\"".into()),
    })
}

/// Returns the addresses of the veth pair, if there is one: those of its bridge port, or chosen ones.
pub(super) fn addresses(plan: &Plan) -> Result<Option<PairAddresses>, LaunchError> {
    match &plan.spec.bridge {
        _ if !plan.has_pair => Ok(None),
        Some(port) => Ok(Some(port.addresses)),
        None => choose(&plan.label()).map(Some),
    }
}

/// Brings a device up and gives it an address, if there is one.
fn raise(
    socket: &std::os::fd::OwnedFd,
    index: i32,
    address: Option<(Ipv4Addr, u8)>,
) -> io::Result<()> {
    if let Some((address, prefix_bits)) = address {
        let octets = address.octets();
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = Message::new(libc::RTM_NEWADDR, flags)
            .address(index.cast_unsigned(), prefix_bits)
            .attribute(libc::IFA_LOCAL, &octets)
            .attribute(libc::IFA_ADDRESS, &octets);
        ask(socket, message)?;
    }
    let up = libc::IFF_UP as u32;
    ask(
        socket,
        Message::new(libc::RTM_NEWLINK, libc::NLM_F_ACK).link(index, up, up),
    )
}

fn missing_device(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no device `{name}`"))
}

/// The prefix of every outer device's alias; the run follows.
const ALIAS: &str = "tare.run=";

/// Builds the request for a veth pair whose inner end is in the network namespace of `process`.
fn veth(outer: &str, inner: &str, process: libc::pid_t) -> Message {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let (message, info) = Message::new(libc::RTM_NEWLINK, flags)
        .link(0, 0, 0)
        .text(libc::IFLA_IFNAME, outer)
        .open(libc::IFLA_LINKINFO);
    let (message, data) = message
        .text(libc::IFLA_INFO_KIND, "veth")
        .open(libc::IFLA_INFO_DATA);
    let (message, peer) = message.open(VETH_INFO_PEER);
    message
        .link(0, 0, 0)
        .text(libc::IFLA_IFNAME, inner)
        .attribute(libc::IFLA_NET_NS_PID, &process.to_ne_bytes())
        .close(&peer)
        .close(&data)
        .close(&info)
}

/// Makes the pair with its inner end in the network namespace of `process`, and brings the outer end up, as a bridge
/// port if a bridge is named.
pub(super) fn make_pair(
    outer: &str,
    run: &RunId,
    process: libc::pid_t,
    addresses: &PairAddresses,
    bridge: Option<&BridgePort>,
) -> Result<(), LaunchError> {
    let socket = sys::route_socket().map_err(refused("open a netlink socket"))?;
    ask(&socket, veth(outer, INNER, process)).map_err(|error| {
        let mut refusal = refused("make the veth pair")(error);
        refusal.hint = Some(match refusal.errno {
            Some(libc::EEXIST) => format!("remove the device `{outer}` with `tare clean`"),
            Some(libc::EOPNOTSUPP | libc::ENODEV) => {
                "load the kernel module `veth`, or use network = \"none\" or \"host\"".into()
            }
            _ => "use network = \"none\" or network = \"host\"".into(),
        });
        refusal
    })?;
    let raised = match bridge {
        None => raise_outside(outer, run, addresses),
        Some(port) => label(outer, run).and_then(|()| plug_in(outer, &port.device)),
    };
    if let Err(error) = raised {
        // Report the first failure; a device left here vanishes with the namespace.
        let _ = remove(outer);
        return Err(refused("raise the outer end")(error));
    }
    Ok(())
}

/// Labels a device of the host with the run.
fn label(outer: &str, run: &RunId) -> io::Result<()> {
    let socket = sys::route_socket()?;
    let index = link_index(&socket, outer)?.ok_or_else(|| missing_device(outer))?;
    let message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_ACK)
        .link(index, 0, 0)
        .text(libc::IFLA_IFALIAS, &format!("{ALIAS}{run}"));
    ask(&socket, message)
}

/// Labels a device of the host with the run, gives it the host's address and brings it up.
pub(crate) fn raise_outside(outer: &str, run: &RunId, addresses: &PairAddresses) -> io::Result<()> {
    label(outer, run)?;
    let socket = sys::route_socket()?;
    let index = link_index(&socket, outer)?.ok_or_else(|| missing_device(outer))?;
    raise(
        &socket,
        index,
        Some((addresses.host, addresses.prefix_bits)),
    )
}

/// Inside: brings up the loopback device, and the pair's inner end with a default route through the host.
pub(crate) fn raise_inside(addresses: Option<&PairAddresses>) -> Result<(), LaunchError> {
    let socket = sys::route_socket().map_err(refused("open a netlink socket inside"))?;
    let index_of = |name: &str| {
        link_index(&socket, name).and_then(|index| index.ok_or_else(|| missing_device(name)))
    };
    index_of("lo")
        .and_then(|index| raise(&socket, index, None))
        .map_err(refused("raise the loopback device"))?;
    let Some(addresses) = addresses else {
        return Ok(());
    };
    index_of(INNER)
        .and_then(|index| raise(&socket, index, Some((addresses.arm, addresses.prefix_bits))))
        .map_err(refused("give the inner end its address"))?;
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let message = Message::new(libc::RTM_NEWROUTE, flags)
        .route(libc::RT_TABLE_MAIN, libc::RTN_UNICAST)
        .attribute(libc::RTA_GATEWAY, &addresses.host.octets());
    ask(&socket, message).map_err(refused("add the default route inside"))
}

/// Inside, before the pair is up: disables IPv6, because engines give containers only IPv4 by default.
pub(super) fn without_ipv6() -> Result<(), LaunchError> {
    match fs::write(format!("/proc/sys/net/ipv6/conf/{INNER}/disable_ipv6"), "1") {
        // A kernel without IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(refused("leave IPv6 out inside")),
    }
}

/// The bridge in a hub's namespace.
pub(crate) const BRIDGE: &str = "tare0";
/// The second device inside, on the network of the arm's other instances.
pub(crate) const SIBLING: &str = "eth1";

/// Makes a hub's bridge in this network namespace and brings it up.
pub(crate) fn make_bridge() -> io::Result<()> {
    let socket = sys::route_socket()?;
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let (message, info) = Message::new(libc::RTM_NEWLINK, flags)
        .link(0, 0, 0)
        .text(libc::IFLA_IFNAME, BRIDGE)
        .open(libc::IFLA_LINKINFO);
    let message = message.text(libc::IFLA_INFO_KIND, "bridge").close(&info);
    ask(&socket, message)?;
    let index = link_index(&socket, BRIDGE)?.ok_or_else(|| missing_device(BRIDGE))?;
    raise(&socket, index, None)
}

/// Runs `action` in a hub's network namespace and returns to the previous one. For programs with one thread.
pub(crate) fn within_hub<T>(hub: u32, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let own = File::open("/proc/self/ns/net")?;
    let hub = File::open(format!("/proc/{hub}/ns/net"))?;
    sys::enter_network(&hub)?;
    let done = action();
    // Failing to return is an error, whatever the action's result: the process must not continue in the wrong
    // namespace.
    sys::enter_network(&own)?;
    done
}

/// Makes a device of this namespace a bridge port and brings it up.
pub(crate) fn plug_in(device: &str, bridge: &str) -> io::Result<()> {
    let socket = sys::route_socket()?;
    let bridge = link_index(&socket, bridge)?.ok_or_else(|| missing_device(bridge))?;
    let index = link_index(&socket, device)?.ok_or_else(|| missing_device(device))?;
    let message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_ACK)
        .link(index, 0, 0)
        .attribute(libc::IFLA_MASTER, &bridge.to_ne_bytes());
    ask(&socket, message)?;
    raise(&socket, index, None)
}

/// Returns the name of an instance's port in the hub's namespace. It contains a pid, because the port of an earlier
/// instance with the same number vanishes only a moment after that instance.
pub(crate) fn port_name(number: u32, process: u32) -> String {
    format!("n{}-{process}", number % 1000)
}

/// Plugs the network namespace of `process` into the hub's bridge and returns the port's name.
pub(super) fn join_hub(process: libc::pid_t, link: &SiblingLink) -> Result<String, LaunchError> {
    let port = port_name(link.number, process.cast_unsigned());
    within_hub(link.hub, || {
        let socket = sys::route_socket()?;
        let message = veth(&port, SIBLING, process);
        ask(&socket, message)?;
        plug_in(&port, BRIDGE)
    })
    .map_err(|error| {
        let mut refusal = refused("join the network of the arm's instances")(error);
        refusal.hint = Some("run as root".into());
        refusal
    })?;
    Ok(port)
}

/// Removes an instance's port from the hub; succeeds if the hub or the port is gone.
pub(super) fn leave_hub(hub: u32, port: &str) -> io::Result<()> {
    match within_hub(hub, || remove(port).map(drop)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Inside: brings up the device on the network of the arm's other instances.
pub(crate) fn raise_sibling(address: Ipv4Addr, prefix_bits: u8) -> Result<(), LaunchError> {
    let socket = sys::route_socket().map_err(refused("open a netlink socket inside"))?;
    link_index(&socket, SIBLING)
        .and_then(|index| index.ok_or_else(|| missing_device(SIBLING)))
        .and_then(|index| raise(&socket, index, Some((address, prefix_bits))))
        .map_err(refused("give the device between the instances its address"))
}

/// Returns each device of this network namespace with the kind of its root queueing discipline.
pub(crate) fn queues() -> io::Result<Vec<(String, String)>> {
    let found = texts(&sys::route_socket()?, libc::IFLA_QDISC)?;
    Ok(found
        .into_iter()
        .map(|(_, name, kind)| (name, kind))
        .collect())
}

/// Removes a device; returns whether it existed.
pub(super) fn remove(name: &str) -> io::Result<bool> {
    let socket = sys::route_socket()?;
    let Some(index) = link_index(&socket, name)? else {
        return Ok(false);
    };
    match ask(
        &socket,
        Message::new(libc::RTM_DELLINK, libc::NLM_F_ACK).link(index, 0, 0),
    ) {
        // The other end's namespace ended in between, and the device with it.
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(false),
        other => other.map(|()| true),
    }
}

/// Returns the outer devices in this namespace: name and run.
pub(super) fn labelled() -> io::Result<Vec<(String, String)>> {
    let socket = sys::route_socket()?;
    Ok(texts(&socket, libc::IFLA_IFALIAS)?
        .into_iter()
        .filter_map(|(_, name, alias)| {
            let run = alias.strip_prefix(ALIAS)?.to_owned();
            name.starts_with("tare-").then_some((name, run))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_name_fits_into_the_kernels_fifteen_bytes() {
        for label in ["", "a", "run-1/arm", &"x".repeat(300)] {
            let name = outer_name(label);
            assert!(name.len() <= 15 && name.starts_with("tare-"), "{name}");
        }
    }

    #[test]
    fn address_block_avoids_routes_except_default() {
        let default = (Ipv4Addr::UNSPECIFIED, 0);
        let free = block_for("label", &[default]).unwrap();
        let next = block_for("label", &[default, (free.host, 32)]).unwrap();
        assert_ne!(free, next);
        assert_ne!(block_for("label", &[(free.arm, 31)]).unwrap(), free);
        assert_eq!(
            block_for("label", &[(Ipv4Addr::new(198, 18, 0, 0), 15)]),
            None
        );
        for address in [free.host, free.arm, next.host] {
            assert_eq!(u32::from(address) & 0xfffe_0000, POOL, "{address}");
        }
    }

    #[test]
    fn different_labels_are_spread_over_the_blocks() {
        let mut hosts: Vec<_> = (0..100)
            .map(|number| block_for(&format!("run-{number}"), &[]).unwrap().host)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        assert!(hosts.len() > 95, "{}", hosts.len());
    }
}
