//! A veth pair, a bridge and the packet filter between two ends on one machine.
//!
//! Limits: does not split the time between them; a network shared with another container would.

use super::prelude::*;
use super::triage::Family::{CostlierCalls, MoreCalls, OtherCode, Waiting};

const FAMILIES: &[Family] = &[Waiting, CostlierCalls, MoreCalls, OtherCode];

pub(super) static CAUSE: Entry = Entry {
    id: "network.bridge-nat",
    title: "Packets cross virtual devices, a bridge and the packet filter",
    mechanism: "Each packet passes a pair of virtual devices, a bridge, the tracking of connections and the chains of the \
                packet filter, and the large packets of the loopback are lost. On one machine all of that is copying \
                and looking up; between machines the wire decides.",
    needs: &[
        fact::NS_NET,
        fact::NET_DEFAULT_DRIVER,
        fact::NET_DEFAULT_MTU,
        "settings: network",
        "cells of net",
    ],
    size: "Round trip 10.3 to 11.5–16 µs, a stream 35 to 23–30 Gbit/s, a connection 23–42 to 45–95 µs; between two \
           machines 0.3 % of the throughput and 2.5 µs.",
    advice: "Leave it alone below about a hundred thousand packets a second or where microseconds do not count; \
             otherwise let containers that talk much share one network namespace, or use ipvlan or macvlan.",
    price: "The host's own network would expose every socket of the host to the container; ipvlan and macvlan want \
            addresses of the outer network.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let separate = case.differs(fact::NS_NET).is_some() && case.same_kernel() != Some(false);
    let veth = case.says(fact::NET_DEFAULT_DRIVER, &["veth"]);
    let by_setting = matches!(case.setting("network").as_deref(), Some("bridge" | "veth"));
    // A separate pair of devices, not a user-space network stack.
    let rootless = case.fact(fact::ENGINE_ROOTLESS) == Some("true")
        || case.says(fact::NET_DEFAULT_DRIVER, &["tun"]);
    let none = matches!(
        case.setting("network").as_deref(),
        Some("none" | "host" | "published")
    );
    if !(veth
        || by_setting
        || (separate && case.has(Mechanism::Network)))
        || rootless
        || none
        || case.is_joined()
        // A proxy, a rate limit or small packets are slow for other reasons than the bridge, and the host network
        // would remove them as well.
        || case.is_proxied()
        || case.link_held_back().is_some()
        || case.small_packets().is_some()
    {
        return None;
    }
    let cells = case.costs(&[Kind::Network]);
    let only_own = case.costs_only(&[Kind::Network]);
    // An unknown command needs counters that point outside: reading smaller pieces also runs more of its own code,
    // but not only that.
    let cells = if only_own.is_empty() && !case.shows(&cells, &[Waiting, CostlierCalls, MoreCalls])
    {
        Vec::new()
    } else {
        cells
    };
    let likelihood = if only_own.is_empty() { 0.35 } else { 0.85 };
    Some(
        case.found(
            &cells,
            likelihood * case.fit(&cells, FAMILIES).max(0.7),
            "Packets cross a pair of virtual devices and a bridge",
        )
        .also_seen(
            case.differs(fact::NS_NET)
                .map(|_| "the arm has a network namespace of its own".to_owned()),
        )
        .also_seen(
            case.fact(fact::NET_DEFAULT_DRIVER)
                .map(|driver| format!("its default route leads through a `{driver}` device")),
        )
        .also_seen(by_setting.then(|| {
            format!(
                "its network is `{}`",
                case.setting("network").unwrap_or_default()
            )
        }))
        .because(FAMILIES)
        .with_counterfactual(switch::host_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridge_is_suspected_only_for_network_metrics() {
        let bridged = || {
            Composed::new("docker")
                .both("kernel.boot_id", "one")
                .differing("ns.net", "net:[1]", "net:[2]")
                .fact("net.default.driver", "veth")
        };
        let waiting = || {
            let command = bridged().cost("command.wall.time", 3.0);
            command.took("command", (1e9, 3e9), (0.1e9, 0.1e9), (0.2e9, 0.2e9))
        };
        let computing = || {
            let command = bridged().cost("command.wall.time", 3.0);
            command.took("command", (1e9, 3e9), (0.9e9, 2.9e9), (0.1e9, 0.1e9))
        };
        let streams = |case: Composed, times: f64| case.cost("net.tcp.throughput.rate", times);
        check(
            &CAUSE,
            &[
                streams(bridged(), 1.4),
                streams(
                    bridged()
                        .both("net.default.mtu", "1500")
                        .fact("net.held_back", "none"),
                    1.4,
                ),
                Composed::new("container")
                    .setting("network", "veth")
                    .cost("net.tcp.round-trip.time", 1.3),
                waiting(),
            ],
            &[
                bridged().cost("cpu.integer.time", 1.4),
                streams(bridged().fact("engine.rootless", "true"), 5.0),
                streams(bridged().setting("network", "published"), 2.0),
                streams(
                    Composed::new("ssh").differing("ns.net", "net:[1]", "net:[2]"),
                    2.0,
                ),
                bridged().cost("command.wall.time", 1.4),
                computing(),
                waiting()
                    .fact("command.wall_ns", "3e9")
                    .fact("command.engine_proxy_ns", "1e9"),
                streams(bridged().fact("net.held_back", "eth0 tbf"), 9.0),
                streams(bridged().differing("net.default.mtu", "1500", "576"), 2.0),
            ],
        );
    }
}
