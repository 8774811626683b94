//! Names that need several DNS queries, or lose one, until they are resolved.
//!
//! Only for programs that resolve names: Tare's built-in probes connect to addresses. Limits: does not see the
//! queries; the counters only show a program that waits off-CPU.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Waiting];
/// From this `ndots` on, ordinary names are tried with every suffix first.
const MANY_DOTS: u32 = 2;

pub(super) static CAUSE: Entry = Entry {
    id: "network.dns",
    title: "Names are resolved through more questions, or one that gets lost",
    mechanism: "With `ndots:5` and a search list an ordinary name is asked for with every suffix before it is asked for \
                as it stands. Questions for both address families leave at once, one of them can get lost in the \
                tracking of connections, and the resolver waits five seconds.",
    needs: &[
        fact::RESOLVER_NAMESERVERS,
        fact::RESOLVER_SEARCH,
        fact::RESOLVER_OPTIONS,
        "off-processor time of the command",
    ],
    size: "Steps of 5 s where a question is lost (several reports); otherwise a round trip per suffix.",
    advice: "Lower `ndots`, end names that are complete with a dot, and use a cache on the machine.",
    price: "Short names then need their suffix; nothing in security.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.without_probes(case.costs(&[Kind::Network]));
    if cells.is_empty() || case.contradicts(&cells, FAMILIES) {
        return None;
    }
    let dots = |options: Option<&str>| {
        let mut words = options.unwrap_or_default().split_whitespace();
        words
            .find_map(|word| word.strip_prefix("ndots:")?.parse::<u32>().ok())
            .unwrap_or(1)
    };
    let suffixes = |search: Option<&str>| search.map_or(0, |list| list.split_whitespace().count());
    let (here, there) = (
        dots(case.fact(fact::RESOLVER_OPTIONS)),
        dots(case.baseline.fact(fact::RESOLVER_OPTIONS)),
    );
    let (suffixes_here, suffixes_there) = (
        suffixes(case.fact(fact::RESOLVER_SEARCH)),
        suffixes(case.baseline.fact(fact::RESOLVER_SEARCH)),
    );
    let multiplied =
        here >= MANY_DOTS && suffixes_here > 0 && (here > there || suffixes_here > suffixes_there);
    let other_server = case.differs(fact::RESOLVER_NAMESERVERS);
    if !multiplied && other_server.is_none() {
        return None;
    }
    Some(
        case.fitting(FAMILIES, &cells, if multiplied { 0.5 } else { 0.25 },
            if multiplied {
                format!("A name may take {} questions to resolve in the arm", suffixes_here + 1)
            } else {
                "Names are resolved by another server in the arm".to_owned()
            },
        )
        .also_seen(multiplied.then(|| format!("`ndots:{here}` with {suffixes_here} suffixes, in the baseline `ndots:{there}` with {suffixes_there}")))
        .seen_differing("name servers", other_server)
        .with_counterfactual(switch::host_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_search_list_is_suspected_only_of_waiting() {
        let asks = |metric: &str| {
            Composed::new("docker")
                .fact("resolver.options", "ndots:5")
                .fact("resolver.search", "a.svc svc cluster.local")
                .base("resolver.options", "edns0")
                .cost(metric, 3.0)
        };
        let with_user_time = |user: (f64, f64)| {
            asks("command.wall.time").took("command", (1e9, 3e9), user, (0.0, 0.0))
        };
        check(
            &CAUSE,
            &[
                asks("command.wall.time"),
                with_user_time((0.1e9, 0.1e9)),
                Composed::new("docker")
                    .differing("resolver.nameservers", "10.0.0.2", "127.0.0.11")
                    .cost("command.wall.time", 3.0),
            ],
            &[
                asks("net.tcp.round-trip.time"),
                with_user_time((1e9, 3e9)),
                asks("command.wall.time").fact("resolver.options", "ndots:1"),
            ],
        );
    }
}
