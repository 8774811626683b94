//! Packets that are too large for the machine's uplink, or much smaller than it allows.
//!
//! Too large affects only traffic that leaves the machine, and local traffic only if fragments or retransmissions
//! were counted; much smaller affects all bulk data. Limits: misses a smaller MTU behind the first link.

use super::prelude::*;

pub(super) static CAUSE: Entry = Entry {
    id: "network.mtu-mismatch",
    title: "Packets of the environment are larger than the machine's way out allows, or much smaller",
    mechanism: "Engines give their bridge 1500 bytes and do not ask what the machine's own link takes; behind a tunnel or \
                in a cloud that is less. Large packets are then cut up, or vanish where the note that they are too \
                large is filtered: small requests work and bulk data stalls. A network that was given a small \
                size, for a tunnel that is not there any more, cuts the same data into many packets.",
    needs: &[
        fact::NET_DEFAULT_MTU,
        counter::TCP_RETRANSMITS,
        counter::IP_FRAGMENT_FAILURES,
    ],
    size: "From repeated packets up to a connection that hangs for good (several reports); as many times the work per \
           byte as there are more packets, where the size is small.",
    advice: "Set the engine's `mtu` to that of the machine's link, for its default network and for each user-defined one.",
    price: "Slightly more packets for the same data; nothing in security.",
    suspect,
};

const FAMILIES: &[Family] = &[Family::Waiting, Family::CostlierCalls, Family::MoreCalls];

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if let Some((here, uplink)) = case.small_packets() {
        return Some(small(case, here, uplink));
    }
    let here = case.number(fact::NET_DEFAULT_MTU)?;
    let uplink = number(&case.baseline.facts, fact::NET_DEFAULT_MTU)?;
    // A user-space stack does not send its 65520 bytes as they are.
    if here <= uplink || here > 9_000.0 || case.is_joined() {
        return None;
    }
    let cells = case.costs(&[Kind::Network]);
    let grown = |name: &str| {
        let (there, here) = case.counter(&cells, name)?;
        (here > there)
            .then(|| format!("`{name}` grew from {there:.3} to {here:.3} per unit of work"))
    };
    // A full queue drops packets of any size, which are retransmitted too.
    let is_held_back = case.link_held_back().is_some();
    let counted: Vec<String> = [counter::IP_FRAGMENT_FAILURES, counter::TCP_RETRANSMITS]
        .into_iter()
        .filter(|name| !(is_held_back && *name == counter::TCP_RETRANSMITS))
        .filter_map(grown)
        .collect();
    if is_held_back && counted.is_empty() {
        return None;
    }
    let cells = if counted.is_empty() {
        case.without_probes(cells)
    } else {
        cells
    };
    let likelihood = if counted.is_empty() {
        0.35 * case.fit(&cells, &[Family::Waiting])
    } else {
        0.85
    };
    Some(
        case.found(&cells, likelihood, format!("The arm sends packets of up to {here} bytes where the machine's link takes {uplink}"))
            .seen(format!("the arm's default route has an MTU of {here}, the machine's of {uplink}"))
            .also_seen(counted)
            .with_counterfactual(switch::host_network(case)),
    )
}

fn small(case: &Case<'_>, here: f64, uplink: f64) -> CauseMatch {
    // An unknown command must wait, or have more to do in the kernel.
    let cells: Vec<usize> = case
        .costs(&[Kind::Network])
        .into_iter()
        .filter(|index| {
            Kind::for_cell(&case.cells[*index]) == Kind::Network || case.shows(&[*index], FAMILIES)
        })
        .collect();
    case.found(
        &cells,
        0.7 * case.fit(&cells, FAMILIES).max(0.7),
        format!(
            "The arm sends packets of at most {here} bytes where the machine's link takes {uplink}"
        ),
    )
    .seen(format!(
        "the arm's default route has an MTU of {here}, the machine's of {uplink}"
    ))
    .because(FAMILIES)
    .with_counterfactual(switch::default_network(case))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_packets_than_the_uplink_takes_are_suspected() {
        let sizes = |uplink: &str, here: &str, metric: &str| {
            Composed::new("docker")
                .differing("net.default.mtu", uplink, here)
                .cost(metric, 2.0)
        };
        let command = |user: (f64, f64), sys: (f64, f64)| {
            let smaller = sizes("1500", "576", "command.wall.time");
            smaller.took("command", (1e9, 2e9), user, sys)
        };
        check(
            &CAUSE,
            &[
                sizes("1400", "1500", "net.iperf3.throughput"),
                sizes("1500", "576", "net.tcp.throughput.rate"),
                command((0.1e9, 0.1e9), (0.1e9, 0.9e9)),
                sizes("1400", "1500", "net.tcp.throughput.rate")
                    .counted("net", &[("tcp_retransmits", 0.0, 9.0)]),
            ],
            &[
                sizes("1500", "1500", "net.iperf3.throughput"),
                sizes("9000", "1500", "net.iperf3.throughput"),
                sizes("1400", "1500", "net.tcp.throughput.rate"),
                sizes("1400", "65520", "net.iperf3.throughput"),
                sizes("1500", "1400", "net.tcp.throughput.rate"),
                sizes("1500", "576", "cpu.integer.time"),
                command((0.9e9, 1.9e9), (0.1e9, 0.1e9)),
                sizes("1400", "1500", "cpu.integer.time"),
                sizes("1400", "1500", "net.tcp.throughput.rate")
                    .fact("net.held_back", "eth0 tbf")
                    .counted("net", &[("tcp_retransmits", 0.0, 9.0)]),
            ],
        );
    }
}
