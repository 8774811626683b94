//! Network sysctls that a new namespace resets, and a full connection table.
//!
//! Limits: does not see drops, only that the table is nearly full.

use super::prelude::*;

/// From this fraction on the table counts as full.
const FULL: f64 = 0.95;
const FAMILIES: &[Family] = &[Family::Waiting];

pub(super) static CAUSE: Entry = Entry {
    id: "network.netns-sysctl-reset",
    title: "The network namespace starts with the kernel's defaults, or the table of connections is full",
    mechanism: "Buffers, queues and algorithms that were tuned on the host do not hold in a new network namespace. The \
                table in which connections are tracked is shared by all, and when it is full new ones are dropped.",
    needs: &[
        fact::SYSCTL_NET,
        fact::SYSCTL_CONNTRACK_COUNT,
        fact::SYSCTL_CONNTRACK_MAX,
    ],
    size: "A throughput bounded by buffer and distance; lost connections where the table is full (reports).",
    advice: "Set the same values for the container, one by one; enlarge the table or leave tracking out for busy ports.",
    price: "Kernel memory.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let differing: Vec<(&str, &str, &str)> = case
        .all_differing(fact::SYSCTL_NET)
        .into_iter()
        .filter(|(name, ..)| !name.contains("conntrack"))
        .collect();
    let share = |facts: &Facts| {
        let count = number(facts, fact::SYSCTL_CONNTRACK_COUNT)?;
        let most = number(facts, fact::SYSCTL_CONNTRACK_MAX).filter(|most| *most > 0.0)?;
        Some(count / most)
    };
    let full = share(&case.arm.facts)
        .or_else(|| share(&case.baseline.facts))
        .filter(|share| *share >= FULL);
    if (differing.is_empty() && full.is_none()) || case.is_joined() {
        return None;
    }
    let cells = case.costs_only(&[Kind::Network]);
    Some(
        case.found(
            &cells,
            (if full.is_some() { 0.8 } else { 0.3 }) * case.fit(&cells, FAMILIES).max(0.6),
            match full {
                Some(share) => format!(
                    "The table of tracked connections is {:.0} % full",
                    share * 100.0
                ),
                None => format!(
                    "{} network settings differ from the baseline's",
                    differing.len()
                ),
            },
        )
        .also_seen(differing.iter().take(4).map(|(name, there, here)| {
            format!(
                "`{}`: `{}`, in the baseline `{}`",
                name.trim_start_matches(fact::beginning(fact::SYSCTL)),
                spaced(here),
                spaced(there)
            )
        }))
        .also_seen(full.map(|share| format!("{:.0} % of the table are in use", share * 100.0)))
        .with_counterfactual(switch::host_network(case)),
    )
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netns_buffers_and_full_conntrack_are_suspected() {
        let buffers = |here: &str, metric: &str| {
            Composed::new("docker")
                .differing("sysctl.net.ipv4.tcp_rmem", "4096\t131072\t6291456", here)
                .cost(metric, 1.5)
        };
        let table = |count: &str| {
            Composed::new("docker")
                .fact("sysctl.net.netfilter.nf_conntrack_max", "65536")
                .fact("sysctl.net.netfilter.nf_conntrack_count", count)
                .cost("net.tcp.round-trip.time", 1.5)
        };
        check(
            &CAUSE,
            &[
                buffers("4096 16384 131072", "net.tcp.throughput.rate"),
                table("65500"),
            ],
            &[
                buffers("4096\t131072\t6291456", "net.tcp.throughput.rate"),
                table("100"),
                buffers("4096 16384 131072", "cpu.integer.time"),
            ],
        );
    }
}
