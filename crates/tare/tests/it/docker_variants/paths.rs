//! Tests the paths between two ends of Docker containers: which exist, the order of their round-trip times, and the
//! error if there is none.

use super::*;
use crate::talk::{self, assert_reached, call, report};
const ANSWER: Duration = Duration::from_secs(10);

/// Counts the sleeps so far of the engine's proxies for the published ports of the container at `inside`: a proxy
/// sleeps and wakes with every message.
fn sleeps_of_proxies(inside: &str) -> u64 {
    let mut sleeps = 0;
    for process in fs::read_dir("/proc").unwrap() {
        let process = process.unwrap().path();
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let command = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        if name.trim() != "docker-proxy" || !command.split('\0').any(|word| word == inside) {
            continue;
        }
        let threads = fs::read_dir(process.join("task")).into_iter().flatten();
        for thread in threads.flatten() {
            let status = fs::read_to_string(thread.path().join("status"));
            sleeps += status
                .unwrap_or_default()
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
                .map_or(0, |count| count.trim().parse::<u64>().unwrap());
        }
    }
    sleeps
}

/// The observations on one path.
struct Trip {
    n_trips: usize,
    /// Sleeps of the engine's proxies during the trips.
    n_sleeps: u64,
    /// The fastest trip, nanoseconds: under load medians drift by a half, and the lowest values repeat.
    lowest_ns: f64,
}

/// Returns the fastest round trip, nanoseconds.
fn lowest(report: &ProbeReport) -> f64 {
    let values = report.series[0].values.iter();
    values.copied().fold(f64::INFINITY, f64::min)
}

/// Makes round trips from `client` to a server in `server`.
fn round_trip(
    client: &mut dyn Instance,
    server: &mut dyn Instance,
    (bind, inside): (&str, u16),
    (address, port): (String, Option<u16>),
    trial: u64,
) -> Trip {
    let request = |instance: &dyn Instance, trial, name: &str, args| {
        let target = Duration::from_millis(60);
        talk::run(instance, trial, call(name, args), target, ANSWER)
    };
    let arguments = Params::new()
        .with("bind", bind)
        .with("port", i64::from(inside));
    let serve = request(server, trial, "tcp-echo", arguments);
    server.channel().send(&serve).unwrap();
    let listening = match server.channel().receive(ANSWER).unwrap() {
        Reply::Listening { port, .. } => port,
        other => panic!("{other:?}"),
    };
    let arguments = Params::new()
        .with("address", address)
        .with("port", i64::from(port.unwrap_or(listening)))
        .with("bytes", 1i64);
    let at = server.address_from_host().unwrap().to_string();
    let before = sleeps_of_proxies(&at);
    let question = request(client, trial + 1, "tcp-round-trip", arguments);
    let report = report(ask(client, &question));
    assert!(matches!(
        server.channel().receive(ANSWER).unwrap(),
        Reply::Done { .. }
    ));
    let n_sleeps = sleeps_of_proxies(&at).saturating_sub(before);
    Trip {
        n_trips: report.series[0].values.len(),
        n_sleeps,
        lowest_ns: lowest(&report),
    }
}

#[test]
fn only_loopback_published_port_uses_engine_proxy() {
    let world = needed!(world("published"));
    let cx = world.cx();
    let settings = params("network = 'published'");
    let mut arm = environment(&DOCKER, "arm", &settings);
    let mut first = arm.start(&cx, StartMode::Resident).unwrap();
    let mut second = arm.start(&cx, StartMode::Resident).unwrap();
    let host = tare::env::find("host").unwrap();
    let mut host = host.configure(arm_id("host"), &Params::new()).unwrap();
    host.prepare(&cx).unwrap();
    let mut peer = host.start(&cx, StartMode::Resident).unwrap();
    for instance in [&mut first, &mut second, &mut peer] {
        hello(instance.as_mut());
    }
    let mapped = |at| match first.published(at) {
        Ok(Published::Mapped {
            address,
            port,
            inside,
        }) => (address, port, inside),
        other => panic!("{other:?}"),
    };
    let loopback = mapped(PublishedAt::Loopback);
    assert!(loopback.0.is_loopback());
    let bridge = mapped(PublishedAt::Bridge);
    assert_eq!(bridge.0, first.host_address().unwrap());
    assert_ne!(first.address_from_arm(), second.address_from_arm());
    let inside = first.address_from_host().unwrap().to_string();
    let between = first.address_from_arm().unwrap().to_string();
    assert_eq!(inside, between);
    let plain = (inside.clone(), None);
    let published = |way: (std::net::IpAddr, u16, u16)| (way.0.to_string(), Some(way.1));
    let at = |way: (std::net::IpAddr, u16, u16)| ("0.0.0.0", way.2);
    let alone = self_trip(peer.as_mut(), 1);
    let trips = {
        let (peer, first, second) = (peer.as_mut(), first.as_mut(), second.as_mut());
        [
            round_trip(peer, first, (&inside, 0), plain.clone(), 10),
            round_trip(peer, first, at(bridge), published(bridge), 20),
            round_trip(second, first, (&between, 0), plain, 30),
            round_trip(peer, first, at(loopback), published(loopback), 40),
        ]
    };
    for instance in [first, second, peer] {
        instance.stop(&cx).unwrap();
    }
    arm.remove(&cx).unwrap();
    host.remove(&cx).unwrap();
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
    println!("loopback: {alone:.0} ns");
    let names = ["host→arm", "bridge", "arm→arm", "127.0.0.1"];
    for (name, trip) in names.iter().zip(&trips) {
        println!(
            "{name}: {:.0} ns; the proxies slept {} times in {} trips",
            trip.lowest_ns, trip.n_sleeps, trip.n_trips
        );
        assert!(trip.n_trips > 0, "{name}");
    }
    let [direct @ .., proxy] = &trips;
    for way in direct {
        assert!(way.n_sleeps <= way.n_trips as u64 / 10);
    }
    // Two a trip, except trips whose answer arrives before the proxy could sleep.
    assert!(proxy.n_sleeps >= proxy.n_trips as u64 / 2);
}

/// Returns the round trip within one agent over its loopback.
fn self_trip(instance: &mut dyn Instance, trial: u64) -> f64 {
    let words = run(instance, trial, "tcp-round-trip");
    let json = words
        .strip_prefix("done ")
        .unwrap_or_else(|| panic!("{words}"));
    let report: ProbeReport = serde_json::from_str(json).unwrap();
    lowest(&report)
}

#[test]
fn the_study_of_paths_goes_every_way_between_two_ends() {
    let text = include_str!("../../../../../examples/studies/network-paths.toml");
    let study = parse("network-paths.toml", text, &Adjustments::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let paths: BTreeSet<_> = study.workloads.iter().filter_map(|one| one.path).collect();
    let between: BTreeSet<_> = tare_model::Path::ALL
        .into_iter()
        .filter(|path| *path != tare_model::Path::Loopback)
        .collect();
    assert_eq!(paths, between);
}

#[test]
fn occupied_published_port_is_refused_with_advice() {
    let world = needed!(world("taken"));
    let owner = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = owner.local_addr().unwrap().port();
    let settings = params("network = 'published'").with("port", i64::from(port));
    let (why, fix) = absent(refusal(&world, &settings));
    assert_says(&why, "taken");
    assert_says(&fix, "remove `port`");
    drop(owner);
    // Once free again, the port is published.
    with_instance(&world, &settings, StartMode::Resident, |instance| {
        let published = instance.published(PublishedAt::Loopback);
        assert!(
            matches!(published, Ok(Published::Mapped { port: given, .. }) if given == port),
            "{published:?}"
        );
    });
}

#[test]
fn another_containers_network_is_joined_and_shared() {
    let world = needed!(world("joined"));
    let cx = world.cx();
    let mut other = environment(&DOCKER, "other", &Params::new());
    let whole = other.start(&cx, StartMode::Resident).unwrap();
    let network = format!("container:tare-{}-other-1", world.run);
    let settings = Params::new().with("network", network.as_str());
    let mut joined = environment(&DOCKER, "joined", &settings);
    let instance = joined.greeted(&cx, StartMode::Resident);
    assert_eq!(instance.address_from_host(), whole.address_from_host());
    assert_eq!(instance.host_address(), whole.host_address());
    assert!(instance.address_from_arm().unwrap().is_loopback());
    instance.stop(&cx).unwrap();
    // After the other one stops, a new arm gets an error.
    whole.stop(&cx).unwrap();
    let error = joined.start(&cx, StartMode::Resident).err().unwrap();
    let (why, _) = absent(error);
    assert_says(&why, "no container whose network");
    joined.remove(&cx).unwrap();
    other.remove(&cx).unwrap();
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
}

#[test]
fn each_network_has_its_addresses_or_no_path() {
    let world = needed!(world("networks"));
    with_instance(&world, &Params::new(), StartMode::Resident, |instance| {
        let inside = instance.address_from_host().unwrap();
        assert_ne!(inside, instance.host_address().unwrap());
        assert_reached(inside);
        let Err(Reason::NoPath(why)) = instance.published(PublishedAt::Loopback) else {
            panic!("a port is published that nobody asked for");
        };
        assert_says(&why, "network = \"published\"");
    });
    let settings = params("network = 'none'");
    with_instance(&world, &settings, StartMode::Resident, |instance| {
        for address in [
            instance.address_from_arm(),
            instance.address_from_host(),
            instance.host_address(),
        ] {
            assert!(matches!(address, Err(Reason::NoPath(_))), "{address:?}");
        }
        assert!(instance.published(PublishedAt::Bridge).is_err());
    });
    let settings = params("network = 'host'");
    with_instance(&world, &settings, StartMode::Resident, |instance| {
        assert!(instance.address_from_host().unwrap().is_loopback());
        assert!(instance.host_address().unwrap().is_loopback());
        assert!(matches!(
            instance.published(PublishedAt::Loopback),
            Ok(Published::Direct(address)) if address.is_loopback()
        ));
    });
}
