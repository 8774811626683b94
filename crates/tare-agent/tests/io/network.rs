//! Tests the TCP probes over the real loopback, alone and as a pair, and with misbehaving peers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe;
use tare_model::{Failure, Params, Unit};

#[cfg(target_os = "linux")]
use super::unshared;
use super::{Answer, FEWEST, failure, has_values, run, temporary};
#[cfg(target_os = "linux")]
use tare_model::Reason;

#[test]
fn a_round_trip_over_the_loopback_needs_no_peer() {
    let folder = temporary("round-trip");
    for bytes in [1i64, 64, 1024] {
        let params = Params::new().with("bytes", bytes);
        let (series, _) = run("tcp-round-trip", &folder, 5_000_000, &params).unwrap();
        has_values(&series, "net.tcp.round-trip.time", Unit::Nanosecond, FEWEST);
    }
}

#[test]
fn a_stream_over_the_loopback_needs_no_peer() {
    let folder = temporary("stream");
    let (series, _) = run("tcp-stream", &folder, 200_000_000, &Params::new()).unwrap();
    has_values(&series, "net.tcp.throughput.rate", Unit::BytePerSecond, 1);
}

/// Runs `server` on a thread and `client` against the port that it announced.
fn pair(server: &'static str, client: &str) -> (Answer, Answer) {
    let (announced, port) = mpsc::channel();
    let thread = std::thread::spawn(move || -> Answer {
        let folder = temporary(server);
        let mut meter = Meter::new(5_000_000, &folder.0);
        meter.set_announcer(Box::new(move |port| announced.send(port).unwrap()));
        (probe::find(server).unwrap().run)(&mut meter, &Params::new())?;
        let unavailable = meter.take_unavailable();
        Ok((meter.finish().0, unavailable))
    });
    let port = port.recv_timeout(Duration::from_secs(5)).unwrap();
    let folder = temporary(client);
    let params = Params::new()
        .with("address", "127.0.0.1")
        .with("port", i64::from(port));
    let answer = run(client, &folder, 10_000_000, &params);
    (thread.join().unwrap(), answer)
}

#[test]
fn server_probe_announces_port_and_reports_no_series() {
    for (server, client, metric, unit, fewest) in [
        (
            "tcp-echo",
            "tcp-round-trip",
            "net.tcp.round-trip.time",
            Unit::Nanosecond,
            FEWEST,
        ),
        (
            "tcp-sink",
            "tcp-stream",
            "net.tcp.throughput.rate",
            Unit::BytePerSecond,
            // A busy machine may stop a stream of a few milliseconds for most of its time.
            1,
        ),
        (
            "udp-echo",
            "udp-round-trip",
            "net.udp.round-trip.time",
            Unit::Nanosecond,
            FEWEST,
        ),
        #[cfg(unix)]
        (
            "tcp-accept",
            "tcp-connect",
            "net.tcp.connect.time",
            Unit::Nanosecond,
            FEWEST,
        ),
    ] {
        let (served, measured) = pair(server, client);
        assert_eq!(served, Ok((Vec::new(), BTreeMap::new())));
        let (series, _) = measured.unwrap();
        has_values(&series, metric, unit, fewest);
    }
}

/// Returns the error of a client that cannot connect to this loopback port, which must come soon.
#[track_caller]
fn quick_failure(client: &str, name: &str, port: u16) -> String {
    let folder = temporary(&format!("{name}-{client}"));
    let params = Params::new()
        .with("address", "127.0.0.1")
        .with("port", i64::from(port));
    let begin = Instant::now();
    let text = failure(run(client, &folder, 50_000_000, &params));
    assert!(begin.elapsed() < Duration::from_secs(30));
    text
}

#[test]
fn peer_closing_at_once_is_an_error_not_a_hang() {
    for client in ["tcp-connect", "tcp-round-trip", "tcp-stream"] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let text = quick_failure(client, "closing", port);
        assert!(text.contains("connection"), "{text}");
        thread.join().unwrap();
    }
}

#[test]
fn connect_to_closed_port_fails_quickly() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for client in ["tcp-connect", "tcp-round-trip", "tcp-stream"] {
        let text = quick_failure(client, "nobody", port);
        assert!(
            text.contains(&format!("connect to 127.0.0.1:{port}")),
            "{text}"
        );
    }
}

#[test]
fn connect_to_silent_port_times_out_in_two_seconds() {
    // A full backlog answers no further connection, like a firewall that drops packets.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    let is_full = (0..10_000).any(|_| {
        match std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            Ok(stream) => {
                waiting.push(stream);
                false
            }
            Err(_) => true,
        }
    });
    assert!(is_full, "a backlog of 10 000 connections");
    let folder = temporary("swallowed");
    let params = Params::new()
        .with("address", "127.0.0.1")
        .with("port", i64::from(address.port()));
    let begin = Instant::now();
    let text = failure(run("tcp-round-trip", &folder, 5_000_000, &params));
    assert!(text.contains("no answer within 2 s"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
#[cfg(target_os = "linux")]
fn a_loopback_that_is_down_is_a_reason_and_no_failure() {
    for name in ["tcp-round-trip", "tcp-stream"] {
        let answer = unshared(libc::CLONE_NEWNET, move || {
            let folder = temporary(&format!("down-{name}"));
            run(name, &folder, 1_000_000, &Params::new())
        });
        match answer {
            None => return,
            Some(Err(ProbeError::Unavailable(Reason::NoPath(what)))) => {
                assert!(what.starts_with("127.0.0.1"), "{what}");
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn network_argument_error_is_a_one_line_failure() {
    let folder = temporary("words");
    let params = Params::new()
        .with("address", "not\nan address")
        .with("port", 1i64);
    let text = failure(run("tcp-stream", &folder, 1_000_000, &params));
    assert!(!text.contains('\n'), "{text}");
    assert!(matches!(
        run(
            "tcp-round-trip",
            &folder,
            1,
            &Params::new().with("bytes", 2_000i64)
        ),
        Err(ProbeError::Failed(Failure::Probe(_)))
    ));
}
