//! Collects facts about the network: the device of the default route, name service, kernel settings.
//!
//! Devices are queried by `ioctl` on a socket and never through `/sys/class/net`: sysfs shows the network namespace
//! in which it was mounted, which may be another one (a device of the host was once read that way). Queueing
//! disciplines come from rtnetlink, which answers every user about this namespace.
//! Sources: netdevice(7), rtnetlink(7), resolv.conf(5), the kernel's Documentation/networking/ip-sysctl.rst.
//! Limits: misses an IPv6 default route if there is none for IPv4, and everything behind the device.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use tare_model::fact;

use super::Collector;
use crate::launch::network::queues;

/// Queueing disciplines that hold packets back: by rate limiting or by emulating delay.
const HOLDING: [&str; 6] = ["tbf", "netem", "htb", "hfsc", "cake", "cbq"];

/// Settings that a new network namespace resets to the kernel's defaults.
const SETTINGS: &[&str] = &tare_model::rows! {
    "net/core/somaxconn", "net/core/rmem_max", "net/core/wmem_max", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_congestion_control", "net/ipv4/tcp_slow_start_after_idle", "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_count",
};

/// Collects all network facts.
pub(super) fn collect(facts: &mut Collector) {
    match std::fs::read_to_string("/proc/net/route") {
        Ok(table) => match default_device(&table) {
            Some(device) => of_device(
                facts,
                [fact::NET_DEFAULT_DEVICE, fact::NET_DEFAULT_MTU],
                Some(fact::NET_DEFAULT_DRIVER),
                device,
            ),
            None => facts.set(fact::NET_DEFAULT_DEVICE, "none"),
        },
        Err(error) => facts.unreadable(fact::NET_DEFAULT_DEVICE, &error),
    }
    // The loopback device has no driver to query.
    let names = [fact::NET_LOOPBACK_DEVICE, fact::NET_LOOPBACK_MTU];
    of_device(facts, names, None, "lo");
    facts.try_set(
        fact::NET_HELD_BACK,
        queues().map(|queues| held_back(&queues)),
    );
    for name in SETTINGS {
        let path = format!("/proc/sys/{name}");
        // A setting of a module that is not loaded does not exist; that is not a read error.
        if let Ok(value) = std::fs::read_to_string(path) {
            facts.set(
                &fact::name_for(fact::SYSCTL, &name.replace('/', ".")),
                value,
            );
        }
    }
    match std::fs::read_to_string("/etc/resolv.conf") {
        Ok(text) => {
            for (name, value) in resolver(&text) {
                facts.set(name, value);
            }
        }
        Err(error) => facts.unreadable("resolver", &error),
    }
}

/// Returns the device of the IPv4 default route with the smallest metric.
fn default_device(table: &str) -> Option<&str> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [device, "00000000", _, _, _, _, metric, "00000000", ..] = fields.as_slice() else {
            return None;
        };
        Some((metric.parse::<u32>().ok()?, *device))
    });
    routes
        .min_by_key(|(metric, _)| *metric)
        .map(|(_, device)| device)
}

/// Lists the devices whose queue holds packets back, `eth0 tbf, docker0 htb`, or `none`.
fn held_back(queues: &[(String, String)]) -> String {
    let mut held: Vec<String> = queues
        .iter()
        .filter(|(_, kind)| HOLDING.contains(&kind.as_str()))
        .map(|(device, kind)| format!("{device} {kind}"))
        .collect();
    held.sort_unstable();
    if held.is_empty() {
        "none".to_owned()
    } else {
        held.join(", ")
    }
}

fn of_device(
    facts: &mut Collector,
    [name, largest]: [&str; 2],
    driven_by: Option<&str>,
    device: &str,
) {
    facts.set(name, device);
    let socket = match UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0")) {
        Ok(socket) => socket,
        Err(error) => return facts.unreadable(largest, &error),
    };
    facts.try_set(largest, mtu(&socket, device).map(|mtu| mtu.to_string()));
    if let Some(name) = driven_by {
        facts.try_set(name, driver(&socket, device));
    }
}

fn request(device: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero: the name ends there.
    if device.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}

fn mtu(socket: &UdpSocket, device: &str) -> io::Result<i32> {
    let mut request = request(device)?;
    // SAFETY: the socket is open, and SIOCGIFMTU reads and writes one `ifreq`, which is live and borrowed
    // exclusively.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above succeeded, and it fills this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu })
}

/// `struct ethtool_drvinfo` of the kernel's `linux/ethtool.h`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// `ETHTOOL_GDRVINFO`.
const GET_DRIVER: u32 = 3;

fn driver(socket: &UdpSocket, device: &str) -> io::Result<String> {
    let mut info = DriverInfo {
        command: GET_DRIVER,
        driver: [0; 32],
        rest: [0; 160],
    };
    let mut request = request(device)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: the socket is open; SIOCETHTOOL follows `ifru_data` to a command, which says that the kernel
    // fills one `ethtool_drvinfo` (196 bytes) there; `info` has that size and outlives the call.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let name = info.driver.split(|byte| *byte == 0).next();
    debug_assert_eq!(info.rest.len() + 36, size_of::<DriverInfo>());
    Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
}

/// Parses the name servers, search list and options of a resolv.conf.
fn resolver(text: &str) -> Vec<(&'static str, String)> {
    let of = |keyword: &str| {
        let lines = text.lines().filter_map(|line| {
            let (first, rest) = line.trim().split_once(char::is_whitespace)?;
            (first == keyword).then(|| rest.trim())
        });
        lines.collect::<Vec<_>>()
    };
    vec![
        (fact::RESOLVER_NAMESERVERS, of("nameserver").join(" ")),
        // The last line wins (resolv.conf(5)); `domain` is the older word for a list of one.
        (
            fact::RESOLVER_SEARCH,
            of("search")
                .last()
                .or(of("domain").last())
                .map_or(String::new(), |it| (*it).to_owned()),
        ),
        (fact::RESOLVER_OPTIONS, of("options").join(" ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_route_has_the_smallest_metric() {
        let table =
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t00000000\t010011AC\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
";
        assert_eq!(default_device(table), Some("eth0"));
        assert_eq!(default_device("Iface\tDestination\n"), None);
    }

    #[test]
    fn held_back_lists_only_rate_limiting_qdiscs() {
        let queues = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, kind)| ((*name).into(), (*kind).into()))
                .collect()
        };
        assert_eq!(
            held_back(&queues(&[("lo", "noqueue"), ("eth0", "fq_codel")])),
            "none"
        );
        assert_eq!(
            held_back(&queues(&[
                ("veth1", "tbf"),
                ("lo", "noqueue"),
                ("docker0", "htb")
            ])),
            "docker0 htb, veth1 tbf"
        );
    }

    #[test]
    fn loopback_mtu_is_read_and_missing_device_fails() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(mtu(&socket, "lo").unwrap() >= 16_384);
        assert!(mtu(&socket, "tare-nothing0").is_err());
        assert!(driver(&socket, "tare-nothing0").is_err());
        assert!(mtu(&socket, "a-name-that-is-far-too-long").is_err());
    }

    #[test]
    fn the_last_search_list_holds_and_all_options_count() {
        let text = "# by hand\nnameserver 10.0.0.1\nnameserver  127.0.0.11\nsearch a b\nsearch c.d e\noptions ndots:5\noptions edns0\n";
        let facts: std::collections::BTreeMap<_, _> = resolver(text).into_iter().collect();
        assert_eq!(facts["resolver.nameservers"], "10.0.0.1 127.0.0.11");
        assert_eq!(facts["resolver.search"], "c.d e");
        assert_eq!(facts["resolver.options"], "ndots:5 edns0");
    }
}
