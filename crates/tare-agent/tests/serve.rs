//! Tests the server as a separate process with real workers, as a host sees it.
//!
//! The agent under test is `examples/faulty_agent.rs`, the same library with misbehaving probes. Tests that do not
//! need Unix run against both servers.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tare_testkit::example::example;

use tare_model::wire::{Reply, Request};
use tare_model::{CommandCall, Failure, Params, ProbeCall, Reason, whole_ns};

use common::{ANSWER_LIMIT, Agent, kill, trial, wait_until};

/// Both servers, by the subcommand of the example.
const SERVERS: [&str; 2] = ["serve", "threads"];

/// Builds the example from the current sources.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let agent = Path::new(env!("CARGO_BIN_EXE_tare-agent"));
        example("faulty_agent", agent.ancestors().nth(2).unwrap())
    })
}

fn start(arguments: &[&str]) -> Agent {
    Agent::of(Command::new(program()).args(arguments))
}

impl Agent {
    /// Returns the reply about the fault `how`.
    fn fault(&mut self, how: &str) -> Reply {
        self.ask(&fault(1, how, ANSWER_LIMIT))
    }

    fn failure(&mut self, how: &str) -> Failure {
        match self.fault(how) {
            Reply::Failed { trial: 1, failure } => failure,
            other => panic!("no failure but {other:?}"),
        }
    }

    /// Returns all processes with this agent's label, including the agent.
    fn processes(&self) -> BTreeSet<u32> {
        let label = format!("TARE_RUN={}", self.label);
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &u32| {
                let environment = std::fs::read(format!("/proc/{pid}/environ"));
                environment
                    .unwrap_or_default()
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == label.as_bytes())
            })
            .collect()
    }

    /// Returns the processes below it, once there are `count`.
    fn below(&self, count: usize) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        wait_until(&format!("{count} processes"), || {
            found = self.processes();
            found.remove(&self.child.id());
            found.len() == count
        });
        found
    }

    fn kill(&self, signal: &str) {
        kill(self.child.id(), signal);
    }

    /// Asserts that this trial does nothing and is done.
    #[track_caller]
    fn does_nothing(&mut self, number: u64) {
        let reply = self.ask(&null(number));
        assert!(
            matches!(reply, Reply::Done { trial, .. } if trial == number),
            "{reply:?}"
        );
    }

    /// Waits until it and all processes below it are gone.
    fn assert_all_gone(mut self) {
        wait_until("the end of all", || {
            self.child.try_wait().unwrap().is_some() && self.processes().is_empty()
        });
    }
}

fn run(number: u64, name: &str, args: Params, limit: Duration) -> Request {
    let name = name.to_owned();
    trial(number, ProbeCall { name, args }, 0, limit, None)
}

fn fault(number: u64, how: &str, limit: Duration) -> Request {
    run(number, "fault", Params::new().with("how", how), limit)
}

fn null(number: u64) -> Request {
    let args = Params::new().with("canary", false);
    run(number, "null", args, ANSWER_LIMIT)
}

/// Returns the request for this program.
fn program_run(program: &str, arguments: &[&str]) -> Request {
    let call = CommandCall::new(program, arguments.iter().copied());
    trial(1, call.to_probe(), 0, ANSWER_LIMIT, None)
}

fn facts(paths: &[&str]) -> Request {
    Request::Facts {
        paths: paths.iter().map(ToString::to_string).collect(),
        tools: Vec::new(),
    }
}

/// Returns the processors that a process may use, as the kernel lists them.
fn allowed(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default().trim().to_owned()
}

/// Waits until a process may use these processors only.
fn wait_until_allowed(pid: u32, list: &str) {
    wait_until(list, || allowed(pid) == list);
}

#[test]
fn agent_moves_to_host_cpu_and_worker_keeps_all_cpus() {
    let all = allowed(std::process::id());
    let first: String = all.chars().take_while(char::is_ascii_digit).collect();
    let mut agent = start(&["serve"]);
    let affinity = |agent: &mut Agent| {
        let reply = agent.ask(&facts(&[]));
        let Reply::Facts { facts } = reply else {
            panic!("{reply:?}");
        };
        facts[tare_model::fact::CPU_AFFINITY].clone()
    };
    let before = affinity(&mut agent);
    agent.send(&Request::Meet {
        cpu: first.parse().unwrap(),
    });
    for trial in 1..3 {
        agent.does_nothing(trial);
        wait_until_allowed(agent.child.id(), &first);
        for worker in agent.below(1) {
            wait_until_allowed(worker, &first);
        }
    }
    agent.send(&fault(3, "hang", ANSWER_LIMIT));
    for worker in agent.below(1) {
        wait_until_allowed(worker, &all);
    }
    agent.send(&Request::Cancel { trial: 3 });
    assert!(matches!(agent.reply(), Reply::Failed { .. }));
    assert_eq!(affinity(&mut agent), before, "the place is as it was");
    // A processor that does not exist is ignored, and nothing else is lost.
    agent.send(&Request::Meet { cpu: 1 << 20 });
    for trial in 4..6 {
        agent.does_nothing(trial);
    }
    wait_until_allowed(agent.child.id(), &all);
}

#[test]
fn null_trial_returns_a_report() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        for trial in 1..4 {
            agent.send(&null(trial));
            let (about, report) = agent.report();
            assert_eq!(about, trial, "{server}");
            assert_eq!(report.series[0].metric, "dispatch.null.time");
            assert!(report.timer.contains_key("cost_ns"));
        }
        assert_eq!(agent.ask(&Request::Bye), Reply::Bye);
        agent.assert_all_gone();
    }
}

#[test]
fn facts_are_those_of_the_place_where_the_agent_runs() {
    let mut agent = start(&["serve", "--cpus", "0"]);
    let Reply::Facts { facts } = agent.ask(&facts(&["/proc"])) else {
        panic!("no facts");
    };
    assert_eq!(facts["mount./proc.fstype"], "proc");
    assert_eq!(facts["cpu.affinity"], "0");
}

#[test]
fn a_worker_that_hangs_is_killed_and_reported() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        let limit = Duration::from_millis(150);
        let begin = Instant::now();
        let reply = agent.ask(&fault(1, "hang", limit));
        let limit_ns = whole_ns(limit);
        let failure = Failure::TimedOut { limit_ns };
        assert_eq!(reply, Reply::Failed { trial: 1, failure }, "{server}");
        assert!(begin.elapsed() >= limit);
        agent.does_nothing(2);
    }
}

#[test]
fn each_kind_of_worker_end_maps_to_its_failure() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        assert_eq!(agent.failure("abort"), Failure::Killed { signal: 6 });
        let message = "last words".to_owned();
        assert_eq!(agent.failure("exit"), Failure::Exited { code: 7, message });
        assert!(matches!(agent.failure("garbage"), Failure::Garbled(_)));
        assert!(matches!(agent.failure("silent"), Failure::Garbled(_)));
        assert_eq!(agent.failure("fail"), Failure::Probe("it failed".into()));
        let reason = Reason::MissingTool("x".into());
        assert_eq!(
            agent.fault("unavailable"),
            Reply::Unavailable { trial: 1, reason }
        );
        let unknown = agent.ask(&run(1, "no-such", Params::new(), ANSWER_LIMIT));
        assert!(
            matches!(
                &unknown,
                Reply::Unavailable { reason: Reason::Unsupported(what), .. } if what.contains("no-such")
            ),
            "{unknown:?}"
        );
        assert!(matches!(agent.fault(""), Reply::Done { .. }), "{server}");
    }
}

#[test]
fn probe_output_is_separate_from_frames() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        let Reply::Done { raw, .. } = agent.fault("print") else {
            panic!("{server}: printing spoiled the report");
        };
        assert_eq!(raw.stderr.0, b"a probe that prints\n");
    }
}

#[test]
fn listening_port_is_reported_while_worker_runs() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        let first = agent.fault("listen");
        assert_eq!(
            first,
            Reply::Listening {
                trial: 1,
                port: 4711
            },
            "{server}"
        );
        assert!(matches!(agent.reply(), Reply::Done { trial: 1, .. }));
    }
}

#[test]
fn concurrent_trials_are_cancelled_independently() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        agent.send(&fault(1, "hang", ANSWER_LIMIT));
        agent.does_nothing(2);
        let taken = agent.ask(&null(1));
        assert!(
            matches!(&taken, Reply::Failed { trial: 1, failure: Failure::Probe(why) } if why.contains("already")),
            "{taken:?}"
        );
        let reply = agent.ask(&Request::Cancel { trial: 1 });
        let failure = Failure::Killed { signal: 9 };
        assert_eq!(reply, Reply::Failed { trial: 1, failure }, "{server}");
        // There is nothing left to cancel, and that is no error.
        agent.send(&Request::Cancel { trial: 1 });
        agent.does_nothing(3);
    }
}

#[test]
fn agent_and_workers_end_when_host_disconnects() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        agent.send(&fault(1, "hang", ANSWER_LIMIT));
        agent.send(&fault(2, "hang", ANSWER_LIMIT));
        agent.below(2);
        drop(agent.input.take());
        agent.assert_all_gone();
    }
}

#[test]
fn workers_end_when_agent_is_killed() {
    let mut agent = start(&["serve"]);
    agent.send(&fault(1, "hang", ANSWER_LIMIT));
    agent.below(1);
    agent.kill("-KILL");
    agent.assert_all_gone();
}

#[test]
fn sigterm_ends_agent_and_sigint_does_not() {
    let mut agent = start(&["serve"]);
    agent.send(&fault(1, "hang", ANSWER_LIMIT));
    agent.kill("-INT");
    agent.does_nothing(2);
    agent.kill("-TERM");
    agent.assert_all_gone();
}

#[test]
fn spare_worker_starts_only_between_trials() {
    let mut agent = start(&["serve"]);
    let first = agent.below(1);
    agent.send(&fault(1, "hang", ANSWER_LIMIT));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(agent.below(1), first, "the worker that waited must be used");
    agent.ask(&Request::Cancel { trial: 1 });
    let second = agent.below(1);
    assert!(first.is_disjoint(&second), "each trial has a new process");
}

#[test]
fn dead_spare_worker_does_not_break_next_trial() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        kill(agent.below(1).pop_first().unwrap(), "-KILL");
        std::thread::sleep(Duration::from_millis(100));
        agent.does_nothing(1);
    }
}

#[test]
fn no_spare_leaves_agent_without_children() {
    let mut agent = start(&["serve", "--no-spare"]);
    agent.does_nothing(1);
    std::thread::sleep(Duration::from_millis(50));
    agent.below(0);
}

#[test]
fn leftover_child_is_killed_before_trial_report() {
    let mut agent = start(&["serve", "--no-spare"]);
    assert!(matches!(agent.fault("stray"), Reply::Done { .. }));
    let left = agent.processes();
    assert_eq!(left, BTreeSet::from([agent.child.id()]));
}

#[test]
fn cancel_kills_process_without_session_or_label() {
    let mut agent = start(&["serve", "--no-spare"]);
    let process = agent.leave_behind();
    let reply = agent.ask(&Request::Cancel { trial: 1 });
    assert!(matches!(reply, Reply::Failed { trial: 1, .. }), "{reply:?}");
    assert!(!process.exists(), "it outlived its trial");
}

#[test]
fn killed_agent_ends_program_and_its_leftovers() {
    for left in ["-KILL", "-TERM"] {
        let mut agent = start(&["serve"]);
        let process = agent.leave_behind();
        agent.kill(left);
        agent.assert_all_gone();
        // It no longer has a label by which it could be found.
        wait_until("its end", || !process.exists());
    }
}

impl Agent {
    /// Runs a trial that leaves a process without its label in a separate session; returns that process.
    fn leave_behind(&mut self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let pid_file = folder.join(format!("left-{}-{count}", std::process::id()));
        let script = format!(
            "env -i setsid sh -c 'echo $$ > {0}.part; mv {0}.part {0}; exec sleep 300' & sleep 300",
            pid_file.display()
        );
        self.send(&program_run("/bin/sh", &["-c", &script]));
        wait_until("the program", || pid_file.exists());
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        std::fs::remove_file(&pid_file).unwrap();
        let process = PathBuf::from("/proc").join(pid.trim());
        assert!(process.exists());
        process
    }
}

#[test]
fn agent_exits_with_error_on_non_frame_input() {
    for server in SERVERS {
        let mut agent = start(&[server]);
        let mut input = agent.input.take().unwrap();
        input.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        wait_until("its end", || agent.child.try_wait().unwrap().is_some());
        assert_eq!(agent.child.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn true_version_and_unknown_subcommand_work() {
    let call = |argument: &str| {
        Command::new(env!("CARGO_BIN_EXE_tare-agent"))
            .arg(argument)
            .output()
            .unwrap()
    };
    let silent = call("true");
    assert!(silent.status.success() && silent.stdout.is_empty() && silent.stderr.is_empty());
    let version = call("version");
    let words = String::from_utf8(version.stdout).unwrap();
    assert!(words.contains(tare_agent::build::id()), "{words}");
    assert_eq!(call("no-such-subcommand").status.code(), Some(2));
}

#[test]
fn the_shipped_agent_has_no_probe_that_misbehaves() {
    assert!(tare_agent::probe::find("fault").is_none());
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_tare-agent")).unwrap();
    let needle = b"this is no frame";
    assert!(!bytes.windows(needle.len()).any(|window| window == needle));
}

#[test]
fn hold_runs_until_sigterm() {
    let mut hold = Command::new(env!("CARGO_BIN_EXE_tare-agent"))
        .arg("hold")
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(hold.try_wait().unwrap().is_none());
    kill(hold.id(), "-TERM");
    assert!(hold.wait().unwrap().success());
}

#[test]
fn program_has_higher_oom_score_than_agent() {
    let mut agent = start(&["serve"]);
    let report = agent.done(&program_run("/bin/cat", &["/proc/self/oom_score_adj"]));
    let score = |bytes: &[u8]| -> i32 { String::from_utf8_lossy(bytes).trim().parse().unwrap() };
    let of_agent = std::fs::read(format!("/proc/{}/oom_score_adj", agent.child.id())).unwrap();
    let of_program = score(&report.command.unwrap().stdout.0);
    assert!(
        of_program >= 500 && of_program > score(&of_agent),
        "{of_program}"
    );
}

#[test]
fn workers_have_the_pad_and_programs_do_not() {
    let mut agent = start(&["serve"]);
    let before = agent.below(1);
    agent.send(&Request::Pad { bytes: 3_008 });
    assert!(matches!(agent.ask(&facts(&[])), Reply::Facts { .. }));
    let pad = format!("TARE_PAD={}", "x".repeat(3_008));
    let is_padded = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == pad.as_bytes())
    };
    // Another worker waits now, and the agent itself is unchanged.
    let mut after = BTreeSet::new();
    wait_until("a padded worker", || {
        after = agent.below(1);
        after.iter().all(is_padded)
    });
    assert!(before.is_disjoint(&after), "{before:?} {after:?}");
    assert!(!is_padded(&agent.child.id()));
    let report = agent.done(&program_run("sh", &["-c", "env | grep -c PAD"]));
    let printed = report.command.unwrap().stdout;
    assert_eq!(printed.0, b"0\n");
}
