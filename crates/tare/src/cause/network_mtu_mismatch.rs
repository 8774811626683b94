//! Packets that are too large for the way out of the machine.
//!
//! Matters only for traffic that leaves the machine, and for one that stays only where fragments or repeated
//! packets were counted. What it cannot see: a smaller size somewhere behind the first link.

use super::entry::{Entry, Found};
use super::kind::{Kind, is_own_probe};
use super::look::number;
use super::triage::Family;
use super::{Case, switch};

/// The registered cause.
pub(super) static CAUSE: Entry = Entry {
    id: "network.mtu-mismatch",
    title: "Packets of the environment are larger than the machine's way out allows",
    mechanism: "Engines give their bridge 1500 bytes and do not ask what the machine's own link takes; behind a tunnel or \
                in a cloud that is less. Large packets are then cut up, or vanish where the note that they are too \
                large is filtered: small requests work and bulk data stalls.",
    needs: &["net.default.mtu", "tcp_retransmits", "ip_fragment_failures"],
    size: "From repeated packets up to a connection that hangs for good (several reports).",
    advice: "Set the engine's `mtu` to that of the machine's link, for its default network and for each of one's own.",
    price: "Slightly more packets for the same data; nothing in security.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<Found> {
    let here = case.number("net.default.mtu")?;
    let uplink = number(case.host, "net.default.mtu")
        .or_else(|| number(&case.baseline.facts, "net.default.mtu"))?;
    // The 65520 bytes of a stack in user space are not sent as they are.
    if here <= uplink || here > 9_000.0 {
        return None;
    }
    let cells = case.costs(&[Kind::Network]);
    let grown = |name: &str| {
        let (there, here) = case.counter(&cells, name)?;
        (here > there)
            .then(|| format!("`{name}` grew from {there:.3} to {here:.3} per unit of work"))
    };
    let counted: Vec<String> = ["ip_fragment_failures", "tcp_retransmits"]
        .into_iter()
        .filter_map(grown)
        .collect();
    let cells: Vec<usize> = if counted.is_empty() {
        cells
            .into_iter()
            .filter(|index| !is_own_probe(&case.cells[*index]))
            .collect()
    } else {
        cells
    };
    let likelihood = if counted.is_empty() {
        0.35 * case.fit(&cells, &[Family::Waiting])
    } else {
        0.85
    };
    Some(
        Found::new(cells.clone(), likelihood, format!("The arm sends packets of up to {here} bytes where the machine's link takes {uplink}, and {}.", case.told(&cells)))
            .seen(format!("the arm's default route has an MTU of {here}, the machine's of {uplink}"))
            .seen_all(counted)
            .by(switch::host_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::composed::{Composed, check};

    #[test]
    fn larger_packets_than_the_uplink_takes_are_suspected() {
        let sizes = |uplink: &str, here: &str, metric: &str| {
            Composed::of("docker")
                .base("net.default.mtu", uplink)
                .fact("net.default.mtu", here)
                .cost(metric, 2.0)
        };
        check(
            &super::CAUSE,
            &[
                sizes("1400", "1500", "iperf3.tcp.rate"),
                sizes("1400", "1500", "net.tcp.throughput.rate")
                    .counted("net", &[("tcp_retransmits", 0.0, 9.0)]),
            ],
            &[
                sizes("1500", "1500", "iperf3.tcp.rate"),
                sizes("9000", "1500", "iperf3.tcp.rate"),
                sizes("1400", "1500", "net.tcp.throughput.rate"),
                sizes("1400", "65520", "iperf3.tcp.rate"),
                sizes("1400", "1500", "cpu.integer.time"),
            ],
        );
    }
}
