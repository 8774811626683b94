//! Tests workers that are held until all are ready: who waits, who continues, and who is killed while waiting. Needs
//! signals and `/proc`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write as _;
use std::time::{Duration, Instant};

use tare_model::command::CommandCall;
use tare_model::wire::{Reply, Request};
use tare_model::{Failure, Params, ProbeCall, ProbeReport, SpanClock, WorkSpan, whole_ns};

use common::{ANSWER_LIMIT, Agent, trial};

/// Holds workers of these trials and waits until all are ready.
fn hold(agent: &mut Agent, trials: &[u64], call: &ProbeCall, limit: Duration) {
    for trial in trials {
        agent.send(&held(*trial, call.clone(), limit));
    }
    let mut ready: Vec<u64> = trials
        .iter()
        .map(|_| match agent.reply() {
            Reply::Ready { trial } => trial,
            other => panic!("not ready but {other:?}"),
        })
        .collect();
    ready.sort_unstable();
    assert_eq!(ready, trials);
}

fn held(number: u64, call: ProbeCall, limit: Duration) -> Request {
    let mut request = trial(number, call, 20_000_000, limit, None);
    if let Request::Run { hold, .. } = &mut request {
        *hold = true;
    }
    request
}

fn probe(name: &str) -> ProbeCall {
    ProbeCall {
        name: name.into(),
        args: Params::new(),
    }
}

#[test]
fn held_workers_start_together_and_report_their_span() {
    let mut agent = Agent::start();
    let sleep = CommandCall::new("sleep", ["0.3"]).to_probe();
    hold(&mut agent, &[1, 2, 3], &sleep, ANSWER_LIMIT);
    // No worker continues on its own.
    let early = agent.replies.recv_timeout(Duration::from_millis(200));
    assert!(early.is_err(), "{early:?}");
    agent.go([1, 2, 3]);
    let reports: Vec<(u64, ProbeReport)> = (0..3).map(|_| agent.report()).collect();
    let spans: Vec<WorkSpan> = reports
        .iter()
        .map(|(_, report)| report.span.unwrap())
        .collect();
    for span in &spans {
        assert_eq!(span.clock, SpanClock::Kernel);
        let length_ns = span.end_ns - span.start_ns;
        assert!(
            length_ns >= 300_000_000,
            "the wait is not part of the work: {length_ns}"
        );
        // If one had waited for another's end, the first would have ended before the last began.
        assert!(spans.iter().all(|other| other.start_ns < span.end_ns));
    }
}

#[test]
fn held_probe_waits_for_go_and_unheld_runs_at_once() {
    let mut agent = Agent::start();
    hold(&mut agent, &[7], &probe("getppid"), ANSWER_LIMIT);
    agent.go([7]);
    let (about, report) = agent.report();
    assert_eq!(about, 7);
    assert!(report.span.is_some() && !report.series.is_empty());
    let report = agent.done(&trial(8, probe("getppid"), 20_000_000, ANSWER_LIMIT, None));
    assert_eq!(report.span, None);
}

#[test]
fn held_worker_time_limit_starts_at_go() {
    let mut agent = Agent::start();
    // Waiting and work exceed the limit together, and each alone is far shorter.
    let limit = Duration::from_secs(4);
    let sleep = CommandCall::new("sleep", ["2.1"]).to_probe();
    hold(&mut agent, &[1], &sleep, limit);
    std::thread::sleep(Duration::from_millis(2100));
    agent.go([1]);
    agent.report();
}

#[test]
fn held_worker_without_go_is_killed_at_its_limit() {
    let mut agent = Agent::start();
    let limit = Duration::from_millis(300);
    let begin = Instant::now();
    hold(&mut agent, &[1], &probe("null"), limit);
    let failure = Failure::TimedOut {
        limit_ns: whole_ns(limit),
    };
    assert_eq!(agent.reply(), Reply::Failed { trial: 1, failure });
    assert!(begin.elapsed() >= limit);
}

#[test]
fn cancelling_held_worker_leaves_the_other_running() {
    let mut agent = Agent::start();
    hold(&mut agent, &[1, 2], &probe("null"), ANSWER_LIMIT);
    agent.send(&Request::Cancel { trial: 1 });
    let failure = Failure::Killed { signal: 9 };
    assert_eq!(agent.reply(), Reply::Failed { trial: 1, failure });
    agent.go([2]);
    assert_eq!(agent.report().0, 2);
}

#[test]
fn go_without_waiting_worker_is_ignored() {
    let mut agent = Agent::start();
    agent.go([9]);
    hold(&mut agent, &[1], &probe("null"), ANSWER_LIMIT);
    agent.go([1, 1]);
    assert_eq!(agent.report().0, 1);
}

#[test]
fn held_workers_end_with_their_agent() {
    let mut agent = Agent::start();
    hold(&mut agent, &[1, 2], &probe("null"), ANSWER_LIMIT);
    let group = agent.workers_of_trial_order();
    assert!(group.len() >= 2, "{group:?}");
    let mut input = agent.input.take().unwrap();
    input.flush().unwrap();
    drop(input);
    agent.child.wait().unwrap();
    for pid in group {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "{pid}"
        );
    }
}
