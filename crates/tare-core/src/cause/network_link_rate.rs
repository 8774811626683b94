//! A queue on the arm's link that holds packets back: a rate limit, or a delay that simulates a long line.
//!
//! The kernel reports the kind of each device's queue in the reader's network namespace. A limit on the arm's device
//! is visible from inside. One on an engine's bridge or on the outer end of a pair is visible on the host, where it
//! is not known whose packets pass it, and counts for less. Limits: does not know the rate, limits behind the
//! machine, or filters that drop packets arriving too fast.

use super::prelude::*;
use crate::driver;

const FAMILIES: &[Family] = &[Family::Waiting];

pub(super) static CAUSE: Entry = Entry {
    id: "network.link-rate",
    title: "A queue on the link holds packets back: a rate limit or an added delay",
    mechanism: "A token bucket, a class of a shared link or an emulated line lets packets through at its own pace, and \
                the rest wait in its queue or are dropped. The program waits for its peer and no processor is busy. \
                Orchestrators put such queues on pods by annotation, and they outlive the tests for which they were \
                made.",
    needs: &[
        fact::NET_HELD_BACK,
        "settings: network",
        "off-processor time of the command",
    ],
    size: "Bulk data to the rate that is set, whatever the machine could do; with a delay every round trip by the delay.",
    advice: "Look with `tc -s qdisc` on both ends of the link at who set the limit and how much it held back; raise it or \
             take it away if it is not wanted any more.",
    price: "A limit that protects neighbours from this traffic protects them no longer.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if case.is_set("network", "host") {
        return None;
    }
    let own = case.link_held_back();
    let outer: Vec<&str> = case
        .baseline
        .fact(fact::NET_HELD_BACK)
        .map(|list| {
            list.split(", ")
                .filter(|entry| driver::links().any(|prefix| entry.starts_with(prefix)))
                .collect()
        })
        .unwrap_or_default();
    let is_separate = case.differs(fact::NS_NET).is_some() && case.same_kernel() != Some(false);
    if own.is_none() && (outer.is_empty() || !is_separate) {
        return None;
    }
    // A limited program waits; a command or a tool that computes more has another cause.
    let cells: Vec<usize> = case
        .costs(&[Kind::Network])
        .into_iter()
        .filter(|index| {
            case.shows(&[*index], FAMILIES)
                || (case.leads(&[*index]).is_empty()
                    && Kind::for_cell(&case.cells[*index]) == Kind::Network)
        })
        .collect();
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            if own.is_some() { 0.9 } else { 0.6 },
            format!(
                "The queue of `{}` holds packets back",
                own.unwrap_or_else(|| outer.first().copied().unwrap_or_default())
            ),
        )
        .also_seen(own.map(|queue| format!("inside, the queue of a device holds back: `{queue}`")))
        .also_seen(
            (own.is_none() && !outer.is_empty())
                .then(|| format!("on the host, queues hold back: `{}`", outer.join(", "))),
        )
        .with_counterfactual(switch::default_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limiting_qdisc_is_suspected_of_network_waits() {
        let held = |inside: &str, outside: &str| {
            Composed::new("docker")
                .both("kernel.boot_id", "one")
                .differing("ns.net", "net:[1]", "net:[2]")
                .fact("net.held_back", inside)
                .base("net.held_back", outside)
        };
        let waits = |held: Composed| {
            let held = held.cost("command.wall.time", 20.0);
            held.took("command", (0.1e9, 2e9), (0.05e9, 0.05e9), (0.02e9, 0.02e9))
        };
        check(
            &CAUSE,
            &[
                waits(held("eth0 tbf", "none")),
                waits(held("none", "docker0 tbf")),
                held("eth0 netem", "none").cost("net.tcp.round-trip.time", 3.0),
            ],
            &[
                waits(held("none", "none")),
                // The machine's uplink is not a link of the arm.
                waits(held("none", "eth0 cake")),
                waits(held("eth0 tbf", "eth0 tbf")).setting("network", "host"),
                held("eth0 tbf", "none")
                    .cost("command.wall.time", 2.0)
                    .took("command", (1e9, 2e9), (0.9e9, 1.9e9), (0.0, 0.0)),
                held("eth0 tbf", "none").cost("cpu.integer.time", 2.0),
                held("eth0 tbf", "none").cost("command.wall.time", 2.0),
            ],
        );
    }

    #[test]
    fn it_is_proved_on_the_network_that_everybody_gets() {
        let held = |driver: &str| {
            Composed::new(driver)
                .fact("net.held_back", "eth0 tbf")
                .cost("net.tcp.throughput.rate", 9.0)
        };
        let network =
            |composed: &Composed| match CAUSE.suspect(&composed.case()).unwrap().counterfactual {
                Counterfactual::Settings(params) => params.value("network").unwrap().to_string(),
                other => panic!("{other:?}"),
            };
        assert_eq!(
            network(&held("docker").setting("network", "container:other")),
            "bridge"
        );
        assert_eq!(network(&held("docker")), "host");
        assert_eq!(
            network(&held("container").setting("network", "veth")),
            "host"
        );
    }
}
