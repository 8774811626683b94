//! Tests interleaved workers, over a page of memory and over the channel. Needs pages and signals.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tare_model::turns::{DONE, PAGE_BYTES, PAGE_KEY, Stages, next_turn};
use tare_model::wire::{Reply, Request};
use tare_model::{Failure, Params, ProbeCall, ProbeReport, TurnPage, Turns, whole_ns, whole_size};

use common::{ANSWER_LIMIT, Agent, kill};
use tare_testkit::skip::skip;

const KEY: u64 = 77;
/// Long for a slice, short for a test.
const PATIENCE: Duration = Duration::from_millis(500);

/// An unused page, removed with the test.
struct Page(PathBuf);

impl Drop for Page {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn page(test: &str) -> Page {
    let name = format!("tare-turns-{}-{test}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut bytes = vec![0; PAGE_BYTES];
    bytes[PAGE_KEY..PAGE_KEY + 8].copy_from_slice(&KEY.to_ne_bytes());
    std::fs::write(&path, bytes).unwrap();
    Page(path)
}

fn rows() -> Vec<Vec<u32>> {
    vec![vec![0, 1, 2], vec![1, 2, 0], vec![2, 0, 1]]
}

fn run(place: u32, probe: &str, page: Option<&Path>, key: u64, patience: Duration) -> Request {
    let call = ProbeCall {
        name: probe.into(),
        args: Params::new(),
    };
    let turns = Turns {
        place,
        rows: rows(),
        stages: None,
        page: page.map(|path| TurnPage {
            path: path.display().to_string(),
            key,
        }),
        check: false,
        patience_ns: whole_ns(patience),
    };
    let trial = u64::from(place) + 1;
    common::trial(trial, call, 12_000_000, ANSWER_LIMIT, Some(turns))
}

/// Prepares three workers, with words in the same order as a host has them.
fn prepare(agent: &mut Agent, probes: [&str; 3], page: Option<&Path>, patience: Duration) {
    for (place, probe) in (0..).zip(probes) {
        agent.prepare(&run(place, probe, page, KEY, patience));
    }
}

#[test]
fn turn_page_gives_workers_equal_slices_per_metric() {
    for probe in ["getppid", "clock", "stat", "files", "pipe"] {
        let mut agent = Agent::start();
        let page = page(&format!("equal-{probe}"));
        prepare(&mut agent, [probe; 3], Some(&page.0), ANSWER_LIMIT);
        agent.go(1..=3);
        let mut reports: Vec<_> = (0..3).map(|_| agent.report().1).collect();
        let first = reports.pop().unwrap();
        assert!(first.sliced.as_ref().unwrap().by_page);
        assert!(first.series.iter().all(|series| series.values.len() >= 8));
        for other in reports {
            let lengths = |report: &tare_model::ProbeReport| -> Vec<(String, usize)> {
                let series = report.series.iter();
                series
                    .map(|series| (series.metric.clone(), series.values.len()))
                    .collect()
            };
            assert_eq!(lengths(&first), lengths(&other), "{probe}");
        }
    }
}

#[test]
fn stages_run_common_workers_with_one_other_each() {
    for has_page in [true, false] {
        let mut agent = Agent::start();
        let page = has_page.then(|| page("stages"));
        for (place, own) in (0..).zip([None, Some(1), Some(0)]) {
            let path = page.as_ref().map(|page| &*page.0);
            let mut request = run(place, "clock", path, KEY, ANSWER_LIMIT);
            if let Request::Run {
                turns: Some(turns), ..
            } = &mut request
            {
                turns.stages = Some(Stages { count: 2, own });
            }
            agent.prepare(&request);
        }
        agent.go(1..=3);
        let (mut reports, order) = if has_page {
            ((0..3).map(|_| agent.report()).collect(), Vec::new())
        } else {
            give_turns(&mut agent, [1, 2, 1])
        };
        reports.sort_by_key(|(trial, _)| *trial);
        let lengths = |place: usize| -> Vec<usize> {
            let series = reports[place].1.series.iter();
            series.map(|series| series.values.len()).collect()
        };
        let stage = |place: usize| reports[place].1.sliced.as_ref().unwrap().stage;
        assert_eq!([0, 1, 2].map(stage), [None, Some(1), Some(0)]);
        assert_eq!(lengths(1), lengths(2));
        let twice: Vec<usize> = lengths(1).iter().map(|count| 2 * count).collect();
        assert_eq!(lengths(0), twice);
        // In the first stage of each metric the second worker has no turn, and in the second the third has none.
        let is_in_its_stage = |(phase, place): &(u32, u32)| match place {
            0 => true,
            1 => phase % 2 == 0,
            _ => phase % 2 == 1,
        };
        assert!(order.iter().all(is_in_its_stage), "{order:?}");
        assert!(order.is_sorted_by_key(|(phase, _)| *phase), "{order:?}");
    }
}

#[test]
fn every_probe_that_can_be_cut_takes_turns() {
    let slices = Agent::start().slices.clone();
    assert!(slices.len() > 25, "{slices:?}");
    // A program is sliced in another way (`stopped.rs`).
    for probe in slices.keys().filter(|probe| *probe != "command") {
        let mut agent = Agent::start();
        let page = page(&format!("each-{probe}"));
        let mut request = run(0, probe, Some(&page.0), KEY, ANSWER_LIMIT);
        if let Request::Run {
            turns: Some(turns), ..
        } = &mut request
        {
            turns.rows = vec![vec![0]];
        }
        match agent.ask(&request) {
            Reply::Ready { trial: 1 } => {}
            // For example io_uring under a seccomp filter.
            Reply::Unavailable { reason, .. } => {
                skip("probe", &format!("{probe}: {reason}"));
                continue;
            }
            other => panic!("{probe}: {other:?}"),
        }
        agent.go([1]);
        let (_, report) = agent.report();
        assert!(report.sliced.is_some(), "{probe}");
        for series in &report.series {
            assert!(series.values.len() >= 8, "{probe}: {series:?}");
        }
    }
}

/// Like a processor that was taken offline after the host had chosen it.
#[test]
fn offline_cpu_is_not_reported_and_turns_continue() {
    /// Beyond the kernel's set of processors.
    const GONE: u32 = 1_000_000;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let here = tare_model::facts::cpu_list(allowed.unwrap()).unwrap()[0];
    let here = u32::try_from(here).unwrap();
    let mut agent = Agent::start();
    let page = page("gone");
    for (place, on) in (0..).zip([here, GONE, here]) {
        let mut request = run(place, "getppid", Some(&page.0), KEY, ANSWER_LIMIT);
        if let Request::Run { cpu, .. } = &mut request {
            *cpu = Some(on);
        }
        agent.prepare(&request);
    }
    agent.go(1..=3);
    let mut on = [Some(GONE); 3];
    let mut slices = Vec::new();
    for _ in 0..3 {
        let (trial, report) = agent.report();
        on[whole_size(trial) - 1] = report.sliced.unwrap().cpu;
        slices.push(report.series[0].values.len());
    }
    assert_eq!(on, [Some(here), None, Some(here)]);
    assert!(slices.iter().all(|count| *count == slices[0]), "{slices:?}");
}

/// What workers without a page reported by trial, and who had a turn in which phase.
type Given = (Vec<(u64, ProbeReport)>, Vec<(u32, u32)>);

/// Gives three prepared workers their turns like a host without a page.
fn give_turns(agent: &mut Agent, expected: [u32; 3]) -> Given {
    let mut phases = [0; 3];
    let (mut reports, mut order) = (Vec::new(), Vec::new());
    let mut hear = |agent: &mut Agent, phases: &mut [u32; 3]| match agent.reply() {
        Reply::Waiting { trial, phase } => phases[whole_size(trial) - 1] = phase,
        Reply::Done { trial, raw } => {
            phases[whole_size(trial) - 1] = DONE;
            reports.push((trial, serde_json::from_slice(&raw.stdout.0).unwrap()));
        }
        other => panic!("{other:?}"),
    };
    for _ in 0..3 {
        hear(agent, &mut phases);
    }
    assert_eq!(phases, expected);
    let (mut last, mut last_phase) = (None, 0);
    while let Some((number, place)) = next_turn(&rows(), &phases, last, last_phase) {
        (last, last_phase) = (Some(number), phases[place as usize]);
        order.push((last_phase, place));
        agent.send(&Request::Turn {
            trial: u64::from(place) + 1,
        });
        hear(agent, &mut phases);
    }
    (reports, order)
}

#[test]
fn over_the_channel_the_host_gives_each_turn() {
    let mut agent = Agent::start();
    prepare(&mut agent, ["clock"; 3], None, ANSWER_LIMIT);
    agent.go(1..=3);
    let (reports, _) = give_turns(&mut agent, [1; 3]);
    assert_eq!(reports.len(), 3);
    for (_, report) in reports {
        assert!(!report.sliced.unwrap().by_page);
        assert_eq!(report.series.len(), 2);
        // Eight, and whole rounds of the orders.
        let slices = 8_usize.next_multiple_of(rows().len());
        let mut series = report.series.iter();
        assert!(series.all(|series| series.values.len() == slices));
    }
}

#[test]
fn turn_page_with_wrong_key_or_missing_is_an_error() {
    let page = page("refused");
    let mut agent = Agent::start();
    let missing = PathBuf::from("/proc/self/none");
    for (path, key) in [(&page.0, KEY + 1), (&missing, KEY)] {
        let reply = agent.ask(&run(0, "getppid", Some(path), key, ANSWER_LIMIT));
        assert!(
            matches!(&reply, Reply::Failed { failure: Failure::Probe(why), .. } if why.contains("the page for the turns")),
            "{reply:?}"
        );
    }
}

#[test]
fn work_that_cannot_be_cut_takes_no_turns() {
    let page = page("whole");
    let mut agent = Agent::start();
    let reply = agent.ask(&run(0, "copy-up", Some(&page.0), KEY, ANSWER_LIMIT));
    assert!(
        matches!(&reply, Reply::Unavailable { reason, .. } if reason.to_string().contains("cannot be interleaved")),
        "{reply:?}"
    );
}

#[test]
fn turn_timeout_names_worker_holding_the_turn() {
    let page = page("stopped");
    let mut agent = Agent::start();
    prepare(&mut agent, ["getppid"; 3], Some(&page.0), PATIENCE);
    // The worker at place 1 is stopped before it can take its turn, so the turn stays there.
    kill(agent.workers_of_trial_order()[1], "-STOP");
    agent.go(1..=3);
    for _ in 0..2 {
        let reply = agent.reply();
        assert!(
            matches!(&reply, Reply::Failed { failure: Failure::Lost(why), trial: 1 | 3 } if why.contains("place 1 kept its turn")),
            "{reply:?}"
        );
    }
    let reply = agent.ask(&Request::Cancel { trial: 2 });
    assert!(matches!(reply, Reply::Failed { trial: 2, .. }));
}
