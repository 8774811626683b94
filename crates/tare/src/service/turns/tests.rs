//! Tests of blocks with small servers on the loopback, and of the computed values.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::*;
use crate::cx::{Cancel, Clock as _, SystemClock};
use crate::service::client::tests::{self as client, serve};
use crate::service::http::Request;

fn page(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn answering(body: &'static str) -> SocketAddr {
    serve(move |stream, _| stream.write_all(page(body).as_bytes()).is_ok())
}

fn answer(from_ns: u64, latency_ns: u64, is_counted: bool) -> crate::service::client::Answer {
    crate::service::client::Answer {
        from_ns,
        latency_ns,
        status: 200,
        bytes: 1,
        digest: None,
        is_counted,
    }
}

fn measured(servers: &[SocketAddr], target_ns: u64) -> Outcomes {
    let (clock, cancel) = (SystemClock::default(), Cancel::new());
    let asked = RequestPlan::closed_loop(Request::get("/")).unwrap();
    let block = Block {
        starts_ns: vec![clock.now_ns(); servers.len()],
        rows: vec![vec![0, 1, 2], vec![2, 1, 0], vec![1, 0, 2]],
        slice_ns: 1_000_000,
        target_ns,
        ready_ns: 50_000_000,
        ..Block::default()
    };
    let mut client = Client::new(&clock, &cancel, servers, asked);
    measure(&mut client, &block, &[]).unwrap()
}

#[test]
fn slice_with_one_response_per_connection_has_value() {
    let of = |answers: Vec<_>, counted_ns| {
        let mut measured = Measured::default();
        let slice = Slice {
            answers,
            counted_ns,
            ..Slice::default()
        };
        measured.add(&slice, 3_000_000);
        (
            measured.typical_ns[0],
            measured.rate[0],
            measured.latencies_ns,
        )
    };
    let first = |latency_ns| answer(0, latency_ns, false);
    let firsts = vec![first(1_000_000), first(4_000_000), first(2_000_000)];
    let (typical, rate, latencies) = of(firsts, 4_000_000);
    assert_eq!((typical, rate), (2e6, 750.0));
    assert_eq!(latencies, [1_000_000, 2_000_000, 4_000_000]);
    // Once a connection has answered again, first answers do not count, except one that fills the slice.
    let again = answer(0, 1_000_000, true);
    let (typical, rate, _) = of(vec![first(2_000_000), again], 1_000_000);
    assert_eq!((typical, rate), (1e6, 1000.0));
    let (_, _, latencies) = of(vec![first(3_000_000), again], 1_000_000);
    assert_eq!(latencies, [1_000_000, 3_000_000]);
}

#[test]
fn trial_at_a_rate_is_one_slice() {
    let (clock, cancel) = (SystemClock::default(), Cancel::new());
    let mut asked = RequestPlan::closed_loop(Request::get("/")).unwrap();
    asked.rate = Some(100.0);
    let block = Block {
        starts_ns: vec![clock.now_ns()],
        rows: vec![vec![0]],
        // The last request is sent after 90 ms.
        slice_ns: 95_000_000,
        target_ns: 95_000_000,
        ready_ns: 50_000_000,
        are_warm: true,
        ..Block::default()
    };
    let mut client = Client::new(&clock, &cancel, &[answering("hello")], asked);
    let outcomes = measure(&mut client, &block, &[]).unwrap();
    let measured = outcomes[0].as_ref().unwrap();
    assert_eq!(measured.typical_ns.len(), 1);
    assert_eq!(measured.course.typical_ns.len(), 10);
}

#[test]
fn long_slice_has_a_course_in_the_order_of_sending() {
    // The answers end in another order, and the middle of the trial is slow.
    let at = |from_ns: u64| {
        let is_slow = (400..600).contains(&from_ns);
        answer(from_ns, if is_slow { 900 } else { 100 }, true)
    };
    let mut measured = Measured::default();
    let slice = Slice {
        answers: (0..1000).rev().map(at).collect(),
        counted_ns: 1000,
        ..Slice::default()
    };
    measured.add(&slice, 1);
    assert_eq!(
        (measured.course.each, measured.course.typical_ns.len()),
        (10, 100)
    );
    let slow = |at: &usize| measured.course.typical_ns[*at] > 500.0;
    let slow: Vec<usize> = (0..100).filter(slow).collect();
    assert_eq!(slow, (40..60).collect::<Vec<_>>());
    // Each of several slices has one value and is a step.
    measured.add(&slice, 1);
    assert_eq!(measured.course, Course::default());
}

#[test]
fn slices_of_all_servers_are_pairs() {
    let outcomes = measured(
        &[answering("hello"), answering("hello"), answering("holla")],
        20_000_000,
    );
    let all: Vec<&Measured> = outcomes.iter().map(|one| one.as_ref().unwrap()).collect();
    let cycles = all[0].typical_ns.len();
    assert!(cycles >= 3 && cycles.is_multiple_of(3), "{cycles}");
    for one in &all {
        assert_eq!((one.typical_ns.len(), one.rate.len()), (cycles, cycles));
        assert!(
            one.typical_ns
                .iter()
                .chain(&one.rate)
                .all(|value| *value > 0.0)
        );
        assert!(one.latencies_ns.is_sorted() && one.ready_ns > 0);
        assert_eq!((one.first.status, one.first.bytes), (200, 5));
    }
    assert_eq!(
        all.iter()
            .map(|one| one.has_other_contents)
            .collect::<Vec<_>>(),
        [false, false, true]
    );
}

#[test]
fn page_that_differs_each_time_is_measured() {
    let count = AtomicUsize::new(0);
    let varying = serve(move |stream, _| {
        let body = "x".repeat(10 + 40 * (count.fetch_add(1, Ordering::Relaxed) % 2));
        stream.write_all(page(&body).as_bytes()).is_ok()
    });
    let outcomes = measured(&[answering("hello"), varying, answering("hello")], 1);
    assert!(outcomes[1].as_ref().is_ok_and(|one| one.first.varies));
}

#[test]
fn server_that_answers_otherwise_is_left_out() {
    let failing = client::answering(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno");
    let outcomes = measured(&[answering("hello"), failing, answering("much longer")], 1);
    assert!(
        outcomes[0]
            .as_ref()
            .is_ok_and(|one| !one.typical_ns.is_empty())
    );
    let shown = outcomes[1].as_ref().unwrap_err();
    assert!(
        shown.contains("not ready after 0.05 s") && shown.contains("status 500"),
        "{shown}"
    );
    let shown = outcomes[2].as_ref().unwrap_err();
    assert!(
        shown.contains("11 bytes, there 200 with 5 bytes"),
        "{shown}"
    );
}

#[test]
fn server_that_dies_under_load_ends_the_block() {
    let left = Arc::new(AtomicU32::new(200));
    let dying = serve(move |stream, _| {
        let is_alive = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        is_alive.is_ok() && stream.write_all(page("hello").as_bytes()).is_ok()
    });
    let outcomes = measured(
        &[answering("hello"), dying, answering("hello")],
        60_000_000_000,
    );
    let shown = outcomes[1].as_ref().unwrap_err();
    assert!(shown.contains("closed without an answer"), "{shown}");
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
}

#[test]
fn percentile_needs_requests_beyond_it() {
    let of = |count: u64| Measured {
        latencies_ns: (1..=count).collect(),
        ..Measured::default()
    };
    assert_eq!(of(4999).percentile_ns(0.99), None);
    assert_eq!(of(5000).percentile_ns(0.99), Some(4950.0));
    assert_eq!(of(99).percentile_ns(0.5), None);
    assert_eq!(of(101).percentile_ns(0.5), Some(51.0));
    assert_eq!(of(0).percentile_ns(0.5), None);
}

#[test]
fn slices_that_still_fall_have_not_settled() {
    let falling: Vec<f64> = (0..10).map(|at| 100.0 - 5.0 * f64::from(at)).collect();
    assert!(!has_settled(&falling));
    assert!(!has_settled(&falling[..9]));
    let scattered = [10.0, 12.0, 11.0, 10.5, 11.5, 11.0, 10.8, 12.5, 11.2, 9.0];
    assert!(has_settled(&scattered));
}
