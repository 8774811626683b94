//! A published port that is reached through a copying process.
//!
//! Either the arm's port is published, or its command uses another container's: then the proxies on this machine are
//! busy while it runs inside, and not while it runs outside.
//! Limits: does not know whether the engine's proxy is off; then the measurement shows no slowdown.

use super::prelude::*;
use super::triage::Family::{CostlierCalls, MoreCalls, OtherCode, Waiting};
use tare_model::End;

const FAMILIES: &[Family] = &[Waiting, CostlierCalls, MoreCalls, OtherCode];

pub(super) static CAUSE: Entry = Entry {
    id: "network.userland-proxy",
    title: "The published port is reached through the engine's proxy",
    mechanism: "A connection to a published port on the loopback address, or from a container to its own host's port, is \
                not rewritten by the kernel: a process of the engine accepts it and copies every byte to a second \
                connection, with two sockets and two wake-ups more.",
    needs: &[
        "settings: network, port",
        fact::ASKED_PORTS,
        "paths of two-ended cells",
        fact::COMMAND_PROXY,
        fact::COMMAND_WALL,
    ],
    size: "Round trip 12 µs to the container's address, 13 µs through the host's address, 29–35 µs through the published \
           port on the loopback; a stream fell from 35 to 14–17 Gbit/s. Another report: 264 000 to 118 000 requests a \
           second.",
    advice: "Let containers reach each other by name on a network of their own, and the host reach them at their \
             address; where many short requests cross the port, switch the engine's `userland-proxy` off.",
    price: "Without the proxy the loopback of the machine is routed, which some rules for filtering packets do not \
            expect; the host's network instead would give up the separation of ports.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let is_published = case.is_set("network", "published")
        || case.fact(fact::ASKED_PORTS).is_some_and(is_some_port);
    let busy = case.proxy_busy();
    let is_proxied = case.is_proxied();
    if !(is_published || is_proxied) || !case.is_of_engine() {
        return None;
    }
    let cells: Vec<usize> = case
        .costs(&[Kind::Network])
        .into_iter()
        // Only connections from the host use the port.
        .filter(|index| {
            let path = case.cells[*index].path;
            path.is_none_or(|path| path.client() == End::Host)
        })
        // The proxies were observed, and had nothing to do with the command.
        .filter(|index| {
            busy.is_none() || is_proxied || Kind::for_cell(&case.cells[*index]) != Kind::Any
        })
        .collect();
    Some(
        case.found(&cells, 0.9 * case.fit(&cells, FAMILIES).max(0.7), format!("Connections to {} are copied by the engine's proxy", if is_published { "the published port" } else { "a published port" }))
        .also_seen(
            is_published.then(|| "the arm's port is published on the loopback address".to_owned()),
        )
        .also_seen(busy.filter(|_| is_proxied).map(|(there, here)| {
            format!(
                "the engine's port proxies were on a processor for {:.0} % of the command's time inside, for {:.0} % of it outside",
                here * 100.0,
                there * 100.0
            )
        }))
        .because(FAMILIES)
        // A command that uses the port itself loses it with the setting; on the host network the kernel rewrites the
        // same address.
        .with_counterfactual(if is_proxied {
            switch::host_network(case)
        } else {
            switch::bridge_network(case)
        }),
    )
}

/// Whether a container's configuration names a port at all: engines print the empty list.
fn is_some_port(asked: &str) -> bool {
    asked.chars().any(|letter| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_port_is_suspected_direct_address_is_not() {
        let reached = |network: &str| {
            Composed::new("docker")
                .setting("network", network)
                .cost("net.tcp.round-trip.time", 2.7)
        };
        let proxied = |inside: &str, outside: &str| {
            Composed::new("docker")
                .both("command.wall_ns", "1e9")
                .differing("command.engine_proxy_ns", outside, inside)
                .cost("command.wall.time", 3.0)
        };
        let mut away = cell("net.tcp.round-trip.time", 2.7);
        away.path = Some(tare_model::Path::ArmToHost);
        check(
            &CAUSE,
            &[
                reached("published"),
                Composed::new("docker")
                    .fact("asked.PortBindings", "{\"80/tcp\":[{\"HostIp\":\"\"}]}")
                    .cost("redis.request.rate", 2.0),
                proxied("4e8", "0"),
                proxied("4e8", "1e7"),
            ],
            &[
                reached("bridge"),
                proxied("1e6", "0"),
                proxied("4e8", "3e8"),
                proxied("0", "0").setting("network", "published"),
                reached("host"),
                // What an engine prints for a container without a port.
                Composed::new("docker")
                    .fact("asked.PortBindings", "{}")
                    .cost("redis.request.rate", 2.0),
                Composed::new("docker")
                    .setting("network", "published")
                    .cell(away),
                Composed::new("docker")
                    .setting("network", "published")
                    .cost("fs.stat.time", 2.0),
            ],
        );
    }
}
