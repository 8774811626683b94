//! Adapts the user's container with a server, so that several copies can serve at the same time, and names the route
//! to them.
//!
//! Limits: the addresses on which the server listens inside show only when it is first queried.

use std::collections::BTreeMap;

use tare_model::command::{Pick, Stdout};
use tare_model::{CommandChange, Params, counter};

use crate::cx::Context;
use crate::env::user_container::{Difference, UserContainer};
use crate::failed::Failed;
use crate::output;
use crate::report::command_line;
use crate::run;
use crate::service::user::UserClient;
use crate::why::First;
use crate::why::user_container::ContainerQuestion;

/// ID of the difference of published ports.
const PUBLISH: &str = "publish";
/// ID of the difference of the engine's log driver.
const LOG: &str = concat!("engine", ".log");
/// Likelihood that a published port matters to a client that uses it.
const LIKELY: f64 = 0.9;
/// Differences that may be a CPU quota, and the trial time of twenty usual periods: a quota takes effect only over
/// several.
const QUOTAS: [&str; 4] = ["cpus", "cpu-quota", "cpu-period", "cgroup-parent"];
const OVER_PERIODS_NS: u64 = 2_000_000_000;
/// How long requests are sent in a trial for a percentile.
const PERCENTILE_NS: u64 = 500_000_000;
/// From this fraction of the client's time on, the proxy is busy.
const BUSY: f64 = 0.05;

/// Adapts a taken container so that copies of it can serve at the same time. Returns the client with the port inside.
///
/// # Errors
/// The copies cannot serve at the same time.
pub(super) fn adapted(
    own: &mut UserContainer,
    client: &UserClient,
    pick: Option<&Pick>,
) -> Result<UserClient, Failed> {
    if own.bare.text("network") == Some("host") {
        return Err(on_machines_network().hint("remove `--network host` and `--host-network-ok`, and publish the port: `docker run -p 8080:80 …`"));
    }
    let mut published = own.published.iter();
    let wanted = published.find(|(outside, _)| *outside == client.port);
    let port = wanted.map_or(client.port, |(_, inside)| *inside);
    let is_published = own.published.iter().any(|(_, inside)| *inside == port);
    // The host reaches a bare process over a veth pair.
    own.bare = std::mem::take(&mut own.bare).with("network", "veth");
    if let Some(it) = own.differences.iter_mut().find(|it| it.id == PUBLISH) {
        it.advice = format!(
            "let clients on this machine use the container's own address, or its name on a network that they share; {}",
            "or switch the engine's `userland-proxy` off"
        );
        "the address changes with each start; without the proxy the kernel routes loopback addresses"
            .clone_into(&mut it.price);
    }
    without_pipe(own);
    let mut ids = own.differences.iter().map(|it| it.id.as_str());
    let has_quota = ids.any(|id| QUOTAS.contains(&id));
    let client = UserClient {
        port,
        ..fitted(client, pick, has_quota)
    };
    own.notes.push(format!(
        "{}; the way to your container is {}, to a bare process a veth pair",
        asked(&client),
        if is_published {
            "the published port"
        } else {
            "its own address"
        }
    ));
    Ok(client)
}

/// The client with trials as long as the comparison needs.
fn fitted(client: &UserClient, pick: Option<&Pick>, has_quota: bool) -> UserClient {
    let mut client = client.clone();
    // A percentile needs many requests.
    if pick.is_some_and(|pick| pick.pattern.starts_with("^p")) {
        client.trial_ns = client.trial_ns.max(PERCENTILE_NS);
    }
    if client.http.is_some() && has_quota {
        client.trial_ns = client.trial_ns.max(OVER_PERIODS_NS);
        client.by_mean = true;
    }
    client
}

/// The client of a server that is a plain command in an environment with these settings, and a note. The baseline is
/// the host's program in a network namespace, because several servers use the same port.
///
/// # Errors
/// The servers would share the host's network.
pub(crate) fn in_environment(
    client: &UserClient,
    pick: Option<&Pick>,
    settings: &Params,
) -> Result<(UserClient, String), Failed> {
    if settings.text("network") == Some("host") {
        return Err(on_machines_network().hint("remove `network=host`"));
    }
    let client = fitted(client, pick, settings.value("cpus").is_some());
    let note = format!(
        "{}; what it is compared with is the host's program in a network namespace, behind a veth pair",
        asked(&client)
    );
    Ok((client, note))
}

/// The client's share in the time of a request, if Tare is the client.
pub(crate) fn own_cost(cx: &Context<'_>, client: &UserClient) -> Option<String> {
    client.http.as_ref().and_then(|_| run::own_cost(cx))
}

fn on_machines_network() -> Failed {
    Failed::usage(
        "several servers cannot have this machine's own network at once, where their ports are the same",
    )
}

/// Describes how a client sends requests.
fn asked(client: &UserClient) -> String {
    let by = match &client.http {
        Some(http) => {
            let first = http.requests.first();
            let first = first.map(|it| format!("{} {}", it.method, it.path));
            let how = match client.in_turn() {
                Some(_) => "a slice of milliseconds of each server in turn",
                None => "whole trials",
            };
            format!(
                "`{}`: {}, {how}",
                output::printable(&first.unwrap_or_default()),
                http.load(),
            )
        }
        None => format!(
            "`{}`, one run a trial",
            output::printable(&command_line(&client.argv))
        ),
    };
    format!("asked from this machine by {by}")
}

/// Discards the output in the arm without the engine's log, as for a bare server: even without a log the engine reads
/// the output through a pipe, which makes a server wait when it is full.
fn without_pipe(own: &mut UserContainer) {
    let Some(log) = own.differences.iter_mut().find(|it| it.id == LOG) else {
        return;
    };
    "what the server prints, through the engine's pipe into its log".clone_into(&mut log.what);
    "print less for each request, or into a file; another `--log-driver` saves little: the engine reads every byte first"
        .clone_into(&mut log.advice);
    let nowhere = CommandChange {
        stdout: Some(Stdout::Discarded),
        ..CommandChange::default()
    };
    own.of_command.insert(LOG.to_owned(), nowhere);
}

/// Counters of a server from outside: name, meaning, and prefixes of the differences that become the first suspects.
const COUNTED: [(&str, &str, &[&str]); 4] = [
    (
        counter::SERVER_DATAGRAMS,
        "datagrams, such as name lookups, were sent",
        &["dns", "mounted./etc/", "add-host"],
    ),
    (
        counter::SERVER_OVERFLOWS,
        "connections were turned away by its full queue",
        &[
            concat!("sysctl", ".net.core.somaxconn"),
            concat!("sysctl", ".net.ipv4.tcp_max_syn_backlog"),
        ],
    ),
    (
        counter::CHARGED_NR_THROTTLED,
        "periods ended with its processor quota used up",
        &QUOTAS,
    ),
    (
        counter::CHARGED_MEMORY_LIMIT_HITS,
        "times its memory limit was reached",
        &["memory"],
    ),
];
/// A count inside is higher if it is at least this multiple of the one outside, and at least this number.
const MORE: f64 = 2.0;
const OFTEN: f64 = 3.0;

/// Ranks the differences by the counters of the first runs; returns those that stand out, one clause each.
pub(super) fn weighed(asks: &mut ContainerQuestion, first: &First) -> Vec<String> {
    let busy = first.env.counters.get(counter::ENGINE_PROXY).copied();
    let wall = first.env.wall_ns.max(1) as f64;
    let differences = &mut asks.differences;
    named(differences, busy.unwrap_or(0.0) / wall);
    let lines = counted(
        differences,
        [&first.host, &first.env].map(|it| &it.counters),
    );
    differences.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
    lines
}

/// Suspects the differences related to counters that are higher inside than outside.
fn counted(
    differences: &mut [Difference],
    [outside, inside]: [&BTreeMap<String, f64>; 2],
) -> Vec<String> {
    let line = |(name, what, ids): (&str, &str, &[&str])| {
        let here = *inside.get(name)?;
        // A bare process may have no cgroup that counts a quota.
        let there = outside.get(name).copied().unwrap_or(0.0);
        if here < OFTEN || here < MORE * there {
            return None;
        }
        for difference in &mut *differences {
            if ids.iter().any(|id| difference.id.starts_with(id)) {
                difference.likelihood = LIKELY;
            }
        }
        Some(format!(
            "counted from outside at the first look: {here} {what} in the container, {there} outside"
        ))
    };
    COUNTED.into_iter().filter_map(line).collect()
}

/// Suspects the published port if the engine's proxies were busy for enough of the client's time.
fn named(differences: &mut [Difference], busy: f64) {
    let of_way = differences.iter_mut().find(|it| it.id == PUBLISH);
    let Some(publish) = of_way else { return };
    if busy > BUSY {
        publish.likelihood = LIKELY;
    }
    let way = if busy > 0.0 {
        "the published port, whose proxy process copies each byte"
    } else {
        "the published port"
    };
    publish.what = format!("{}: {way}", publish.what);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::user_container::leave_out;
    use crate::service::http::Request;
    use crate::service::request_plan::RequestPlan;

    fn own() -> UserContainer {
        let difference = |id: &str, likelihood| Difference {
            id: id.to_owned(),
            likelihood,
            ..Difference::default()
        };
        UserContainer {
            bare: Params::new().with("network", "none"),
            published: vec![(8080, 80), (9090, 90)],
            differences: vec![difference("cpus", 0.7), difference("publish", 0.2)],
            ..UserContainer::default()
        }
    }

    fn client_at(port: u16) -> UserClient {
        UserClient {
            argv: vec!["ab".to_owned()],
            port,
            ..UserClient::default()
        }
    }

    #[test]
    fn published_port_is_the_one_inside() {
        for (given, inside, way) in [
            (8080, 80, "published port"),
            (90, 90, "published port"),
            (5432, 5432, "own address"),
        ] {
            let mut own = own();
            assert_eq!(
                adapted(&mut own, &client_at(given), None).unwrap().port,
                inside
            );
            assert!(own.notes[0].contains(way), "{:?}", own.notes);
            assert_eq!(own.bare.text("network"), Some("veth"));
        }
    }

    #[test]
    fn server_without_the_log_prints_nowhere() {
        let mut own = own();
        adapted(&mut own, &client_at(80), None).unwrap();
        assert!(own.of_command.is_empty());
        own.differences[1].id = LOG.to_owned();
        adapted(&mut own, &client_at(80), None).unwrap();
        let mut change = CommandChange::default();
        leave_out(&own.of_command, &["cpus".to_owned()], &mut change);
        assert_eq!(change.stdout, None);
        leave_out(&own.of_command, &[LOG.to_owned()], &mut change);
        assert_eq!(change.stdout, Some(Stdout::Discarded));
    }

    #[test]
    fn busy_proxy_is_named_and_suspected_first() {
        let shown = |busy: f64| {
            let mut all = own().differences;
            named(&mut all, busy);
            let way = all.into_iter().find(|it| it.id == PUBLISH).unwrap();
            (way.likelihood, way.what)
        };
        let (likelihood, what) = shown(0.5);
        assert!(
            likelihood >= LIKELY && what.contains("proxy process"),
            "{what}"
        );
        assert_eq!(shown(0.0), (0.2, ": the published port".into()));
    }

    #[test]
    fn counter_higher_inside_is_named_and_suspected() {
        let weigh = |name: &str, there: f64, here: f64| {
            let [there, here] = [there, here].map(|n| BTreeMap::from([(name.to_owned(), n)]));
            let mut all = own().differences;
            all[1].id = "dns-search".to_owned();
            let lines = counted(&mut all, [&there, &here]);
            (lines, all[1].likelihood)
        };
        let (lines, likelihood) = weigh(counter::SERVER_DATAGRAMS, 4.0, 500.0);
        assert!(likelihood >= LIKELY);
        assert!(
            lines[0].contains("500 datagrams") && lines[0].ends_with("4 outside"),
            "{lines:?}"
        );
        for (name, there, here) in [
            (counter::SERVER_DATAGRAMS, 400.0, 500.0),
            (counter::SERVER_DATAGRAMS, 0.0, 2.0),
            (counter::SERVER_OVERFLOWS, 0.0, 0.0),
        ] {
            assert_eq!(weigh(name, there, here), (Vec::new(), 0.2));
        }
    }

    #[test]
    fn server_needs_arm_network_and_trials_fit_quota() {
        let mut client = client_at(80);
        client.http = Some(RequestPlan::closed_loop(Request::get("/")).unwrap());
        let of = |settings: Params| in_environment(&client, None, &settings);
        let (fitted, note) = of(Params::new().with("cpus", 0.5)).unwrap();
        assert!(fitted.by_mean && fitted.trial_ns == OVER_PERIODS_NS);
        assert!(
            note.contains("`GET /`") && note.contains("whole trials"),
            "{note}"
        );
        assert!(!of(Params::new()).unwrap().0.by_mean);
        assert!(of(Params::new().with("network", "host")).is_err());
    }

    #[test]
    fn servers_on_the_machines_network_are_refused() {
        let mut own = own();
        own.bare = Params::new().with("network", "host");
        let failed = adapted(&mut own, &client_at(80), None).unwrap_err();
        assert!(failed.message.contains("own network"), "{failed}");
        assert!(failed.hint.unwrap().contains("-p 8080:80"));
    }
}
