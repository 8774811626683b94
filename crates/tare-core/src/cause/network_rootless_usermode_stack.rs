//! A user-space network stack for rootless containers.
//!
//! Limits: does not know which stack a rootless engine uses if it does not report it.

use super::prelude::*;
use super::triage::Family::{CostlierCalls, MoreCalls, OtherCode, Waiting};

const FAMILIES: &[Family] = &[Waiting, CostlierCalls, MoreCalls, OtherCode];

pub(super) static CAUSE: Entry = Entry {
    id: "network.rootless-usermode-stack",
    title: "A program in user space carries the packets of a rootless container",
    mechanism: "An ordinary user may not make network devices on the host. A helper therefore reads every packet from a \
                device of the container, takes the part of a router, and sends it on through sockets of its own.",
    needs: &[
        fact::ENGINE_ROOTLESS,
        fact::ENGINE_SECURITY,
        fact::ENGINE_ROOTLESS_NETWORK,
        fact::NET_DEFAULT_DRIVER,
        fact::NET_DEFAULT_MTU,
    ],
    size: "57.9 Gbit/s on the host, 7.6 Gbit/s through slirp4netns, 56.5 Gbit/s where system calls are passed on \
           instead (one project's own table).",
    advice: "Use pasta or a way around the helper (bypass4netns), or a socket handed over by the host; keep the engine \
             rootless.",
    price: "A way around the helper trusts a further program; an engine with root rights would give up the protection \
            of the user namespace.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let rootless = case.fact(fact::ENGINE_ROOTLESS) == Some("true")
        || case.says(fact::ENGINE_SECURITY, &["rootless"]);
    let tap = case.says(fact::NET_DEFAULT_DRIVER, &["tun"]);
    let stack = case
        .setting("network")
        .filter(|name| name == "slirp4netns" || name == "pasta");
    if !(rootless || stack.is_some())
        || case.is_set("network", "host")
        || case.is_set("network", "none")
    {
        return None;
    }
    let cells = case.costs_only(&[Kind::Network]);
    let helper = stack.or_else(|| case.fact(fact::ENGINE_ROOTLESS_NETWORK).map(str::to_owned));
    Some(
        case.found(
            &cells,
            (if tap || helper.is_some() { 0.92 } else { 0.7 })
                * case.fit(&cells, FAMILIES).max(0.8),
            format!(
                "{} carries the arm's packets in user space",
                helper
                    .as_deref()
                    .map_or_else(|| "A helper".to_owned(), |name| format!("`{name}`"))
            ),
        )
        .seen(if rootless {
            "the engine is rootless"
        } else {
            "the arm asks for a stack in user space"
        })
        .also_seen(tap.then(|| "its default route leads through a tun or tap device".to_owned()))
        .also_seen(
            case.fact(fact::NET_DEFAULT_MTU)
                .map(|mtu| format!("with an MTU of {mtu}")),
        )
        .with_counterfactual(switch::host_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rootless_engine_is_suspected_of_packets() {
        let rootless = |metric: &str| {
            Composed::new("podman")
                .fact("engine.rootless", "true")
                .fact("net.default.driver", "tun")
                .cost(metric, 7.0)
        };
        check(
            &CAUSE,
            &[
                rootless("net.tcp.throughput.rate"),
                Composed::new("podman")
                    .setting("network", "slirp4netns")
                    .cost("net.iperf3.throughput", 7.0),
                Composed::new("docker")
                    .fact(
                        "engine.security",
                        "name=seccomp,profile=builtin name=rootless",
                    )
                    .cost("net.tcp.round-trip.time", 3.0),
            ],
            &[
                rootless("fs.stat.time"),
                rootless("net.tcp.throughput.rate").setting("network", "host"),
                Composed::new("podman")
                    .fact("engine.rootless", "false")
                    .cost("net.tcp.throughput.rate", 2.0),
            ],
        );
    }
}
