//! Another container's network, with everything that is configured in it.
//!
//! Limits: does not know which setting is responsible; the switch removes the whole network, so that is what it
//! names.

use super::prelude::*;

pub(super) static CAUSE: Entry = Entry {
    id: "network.joined",
    title: "The network that is joined: something in it",
    mechanism: "A container that joins another's network namespace gets its addresses, its routes and every value that \
                was set in it: sizes of buffers, queues, rules of the packet filter, delays of its devices.",
    needs: &[fact::SYSCTL_NET, "settings: network"],
    size: "Whatever was set: send buffers of two kilobytes make a stream many times slower.",
    advice: "Compare `sysctl -a`, `tc qdisc` and the packet filter in the namespace with those of a new one, and set the \
             values that differ one by one; or join another network.",
    price: "What the network was set up for.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    // Rate limits and small packets have more specific causes.
    if !case.is_joined() || case.link_held_back().is_some() || case.small_packets().is_some() {
        return None;
    }
    let cells = case.costs(&[Kind::Network]);
    let network = case.setting("network").unwrap_or_default();
    let differing = case.all_differing(fact::SYSCTL_NET).into_iter().take(6);
    Some(
        case.found(
            &cells,
            0.6,
            format!("The network is that of another container (`{network}`)"),
        )
        .seen(format!("its network is `{network}`"))
        .also_seen(differing.map(|(name, there, here)| {
            let name = name.trim_start_matches(fact::beginning(fact::SYSCTL));
            let [here, there] = [here, there].map(|it| it.replace('\t', " "));
            format!("`{name}`: `{here}`, in the baseline `{there}`")
        }))
        .with_counterfactual(switch::default_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_network_is_suspected_as_a_whole() {
        let on = |network: &str| {
            Composed::new("docker")
                .setting("network", network)
                .differing(
                    "sysctl.net.ipv4.tcp_wmem",
                    "4096\t16384\t4194304",
                    "2304\t2304\t2304",
                )
                .cost("net.tcp.throughput.rate", 3.0)
        };
        check(&CAUSE, &[on("container:web")], &[on("bridge")]);
        // The whole network is switched, neither the bridge nor a single value.
        for other in [
            &super::super::network_bridge_nat::CAUSE,
            &super::super::network_netns_sysctl_reset::CAUSE,
        ] {
            assert!(
                on("container:web").suspects(other).is_none(),
                "{}",
                other.id
            );
        }
    }
}
