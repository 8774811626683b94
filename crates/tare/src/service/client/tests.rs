//! Tests with real sockets to small servers on the loopback.

use std::io::{BufRead as _, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::cx::SystemClock;

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Serves each connection on a thread. `answer` writes the answer to the request with this number on the connection;
/// if it returns false, the connection is closed.
pub(crate) fn serve(
    answer: impl Fn(&mut TcpStream, u32) -> bool + Send + Sync + 'static,
) -> SocketAddr {
    serve_at("127.0.0.1:0", answer)
}

fn serve_at(
    at: &str,
    answer: impl Fn(&mut TcpStream, u32) -> bool + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let Ok(mut stream) = stream else { return };
                let _ = stream.set_nodelay(true);
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                for number in 0.. {
                    let head = lines
                        .by_ref()
                        .take_while(|line| matches!(line, Ok(line) if !line.is_empty()));
                    if head.count() == 0 || !answer(&mut stream, number) {
                        let _ = stream.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                }
            });
        }
    });
    address
}

fn load() -> RequestPlan {
    RequestPlan::closed_loop(Request::get("/page")).unwrap()
}

fn over(connections: u32) -> RequestPlan {
    RequestPlan {
        connections,
        ..load()
    }
}

fn asked(server: SocketAddr, load: RequestPlan, how: SliceLength) -> Result<Slice, SliceError> {
    let limits = Limits {
        time_ns: 400_000_000,
        body_bytes: 1 << 20,
    };
    asked_within(server, load, how, limits)
}

fn asked_within(
    server: SocketAddr,
    load: RequestPlan,
    how: SliceLength,
    limits: Limits,
) -> Result<Slice, SliceError> {
    let (clock, cancel) = (SystemClock::default(), Cancel::new());
    let mut client = Client::new(&clock, &cancel, &[server], load);
    client.limits = limits;
    client.slice(0, how)
}

fn patient(server: SocketAddr, load: RequestPlan, how: SliceLength) -> Slice {
    asked_within(server, load, how, Limits::default()).unwrap()
}

/// A server that answers every request with these bytes.
pub(crate) fn answering(bytes: &'static [u8]) -> SocketAddr {
    serve(move |stream, _| stream.write_all(bytes).is_ok())
}

fn good() -> SocketAddr {
    answering(GOOD)
}

#[test]
fn slice_ends_after_its_count_or_time() {
    let slice = patient(good(), load(), SliceLength::Count(20));
    assert_eq!(slice.answers.len(), 20);
    assert_eq!(slice.latencies().count(), 19);
    assert!(
        slice
            .answers
            .iter()
            .all(|answer| (answer.status, answer.bytes) == (200, 5))
    );
    assert!(slice.answers[0].digest.is_some() && slice.answers[1].digest.is_none());
    assert_eq!((slice.reopened, &slice.unexpected), (0, &None));
    let slice = patient(good(), load(), SliceLength::For(1));
    assert_eq!(slice.answers.len(), 1);
}

#[test]
fn several_connections_share_the_requests() {
    let slice = patient(good(), over(8), SliceLength::Count(100));
    assert_eq!(slice.answers.len(), 100);
    assert!(slice.latencies().count() >= 92);
    assert!(slice.counted_ns > 0);
}

#[test]
fn ipv6_is_reached() {
    // Not every machine has IPv6.
    if TcpListener::bind("[::1]:0").is_ok() {
        let server = serve_at("[::1]:0", |stream, _| stream.write_all(GOOD).is_ok());
        assert_eq!(
            patient(server, load(), SliceLength::Count(3)).answers.len(),
            3
        );
    }
}

#[test]
fn closed_connections_are_opened_again_and_counted() {
    // Closed with notice, without notice, and by the client.
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let noticed = serve(|stream, _| {
        let _ = stream.write_all(closing);
        false
    });
    let slice = patient(noticed, load(), SliceLength::Count(5));
    assert_eq!((slice.answers.len(), slice.reopened), (5, 0));
    for connections in [1, 2] {
        let load = over(connections);
        let dropping = serve(|stream, number| number < 2 && stream.write_all(GOOD).is_ok());
        let slice = patient(dropping, load.clone(), SliceLength::Count(12));
        assert_eq!(slice.answers.len(), 12);
        assert!(
            connections == 2 || slice.reopened == 5,
            "{}",
            slice.reopened
        );
        let load = RequestPlan {
            keep_alive: false,
            ..load
        };
        let once = serve(|stream, number| number == 0 && stream.write_all(GOOD).is_ok());
        assert_eq!(patient(once, load, SliceLength::Count(6)).answers.len(), 6);
    }
}

#[test]
fn unexpected_answers_are_named() {
    let failing = answering(b"HTTP/1.1 500 No\r\nContent-Length: 13\r\n\r\nno \x1b database");
    let slice = patient(failing, load(), SliceLength::Count(2));
    let shown = slice.unexpected.unwrap();
    assert!(
        shown.contains("status 500: `no \\u{1b} database`"),
        "{shown}"
    );
    let moved =
        answering(b"HTTP/1.1 302 Moved\r\nLocation: https://name/\r\nContent-Length: 0\r\n\r\n");
    let shown = patient(moved, load(), SliceLength::Count(1))
        .unexpected
        .unwrap();
    assert!(
        shown.contains("redirected to `https://name/`") && shown.contains("hint:"),
        "{shown}"
    );
}

#[test]
fn bad_servers_give_an_error_with_a_reason() {
    let endless = serve(|stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[0; 4096]).is_ok() {}
        false
    });
    let silent = serve(|_, _| {
        std::thread::sleep(Duration::from_secs(2));
        false
    });
    let cut = serve(|stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
        false
    });
    let tls = answering(b"\x15\x03\x01\x00\x02\x02\x46");
    // Closed again at once.
    let nothing = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (server, said) in [
        (endless, "longer than 1048576 bytes"),
        (silent, "no complete answer within 0.4 s, 0 bytes"),
        (serve(|_, _| false), "closed without an answer"),
        (cut, "after 5 bytes of its body"),
        (tls, "speaks TLS"),
        (nothing, "no connection to 127.0.0.1:"),
    ] {
        for connections in [1, 2] {
            let error = asked(server, over(connections), SliceLength::Count(2)).unwrap_err();
            assert!(error.to_string().contains(said), "{said}: {error}");
        }
    }
}

#[test]
fn large_response_is_counted_not_buffered() {
    const MIB: u64 = 64;
    let large = serve(|stream, _| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", MIB << 20);
        let _ = stream.write_all(head.as_bytes());
        let part = vec![7; 1 << 20];
        (0..MIB).all(|_| stream.write_all(&part).is_ok())
    });
    let slice = patient(large, load(), SliceLength::Count(2));
    assert!(slice.answers.iter().all(|answer| answer.bytes == MIB << 20));
}

#[test]
fn interrupt_ends_a_slice() {
    let (clock, cancel) = (SystemClock::default(), Cancel::new());
    let silent = serve(|_, _| {
        std::thread::sleep(Duration::from_secs(60));
        false
    });
    for connections in [1, 4] {
        cancel.request();
        let mut client = Client::new(&clock, &cancel, &[silent], over(connections));
        assert!(matches!(
            client.slice(0, SliceLength::Count(1)),
            Err(SliceError::Cancelled)
        ));
    }
}

/// A server that stops for 100 ms in every 300 ms. A closed loop sends almost nothing meanwhile, which hides it.
#[test]
fn stalls_show_in_an_open_loop_only() {
    let origin = Instant::now();
    let stalling = serve(move |stream, _| {
        let at_ms = origin.elapsed().as_millis() % 300;
        if at_ms < 100 {
            std::thread::sleep(Duration::from_millis(100 - u64::try_from(at_ms).unwrap()));
        }
        stream.write_all(GOOD).is_ok()
    });
    let p85_ms = |rate| {
        let load = RequestPlan { rate, ..load() };
        let slice = patient(stalling, load, SliceLength::For(900_000_000));
        let mut latencies: Vec<u64> = slice.latencies().collect();
        latencies.sort_unstable();
        latencies[latencies.len() * 85 / 100] as f64 / 1e6
    };
    let (closed, open) = (p85_ms(None), p85_ms(Some(200.0)));
    assert!(open > 20.0 && closed < open / 2.0, "{closed} {open}");
}

#[test]
fn own_cost_is_measured() {
    let cost_ns = own_cost_ns(&SystemClock::default()).unwrap();
    assert!((100..1_000_000_000).contains(&cost_ns), "{cost_ns}");
}
