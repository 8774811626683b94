//! Tests programs that run in slices: which one is stopped, what counts, and what is left if one is killed in
//! between. Needs signals and `/proc`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::num::NonZeroU32;
use std::path::PathBuf;

use tare_model::command::{CommandCall, InSlices};
use tare_model::outcome::Exit;
use tare_model::turns::{PAGE_BYTES, PAGE_KEY};
use tare_model::wire::{Reply, Request};
use tare_model::{ProbeReport, TurnPage, Turns, whole_ns};

use common::{ANSWER_LIMIT, Agent, trial, wait_until};

const SLICES: InSlices = InSlices {
    ns: 5_000_000,
    one_processor: true,
};

fn run(number: u64, call: &CommandCall, turns: Option<Turns>) -> Request {
    trial(number, call.to_probe(), 0, ANSWER_LIMIT, turns)
}

fn cut(program: &str, arguments: &[&str]) -> CommandCall {
    CommandCall {
        in_slices: Some(SLICES),
        ..CommandCall::new(program, arguments.iter().copied())
    }
}

/// A call that computes long enough to be stopped a few times on any machine.
fn perl(before: &str) -> CommandCall {
    cut(
        "perl",
        &[
            "-e",
            &format!(
                "{before}; my $x = 1; for (1..1_500_000) {{ $x = ($x * 3 + 1) % 65521 }} print $x"
            ),
        ],
    )
}

/// Runs one program alone, stopped for twice as long as it runs.
fn alone(call: &CommandCall) -> ProbeReport {
    Agent::start().done(&run(1, call, None))
}

/// Returns the processes whose arguments contain a word.
fn processes(word: &str) -> Vec<PathBuf> {
    let folders = std::fs::read_dir("/proc").unwrap().flatten();
    folders
        .map(|entry| entry.path())
        .filter(|folder| {
            let text = std::fs::read(folder.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&text).contains(word)
        })
        .collect()
}

/// Runs two copies of a program interleaved; returns their reports.
fn in_turn(test: &str, call: &CommandCall) -> [ProbeReport; 2] {
    let path = std::env::temp_dir().join(format!("tare-stopped-{}-{test}", std::process::id()));
    let mut bytes = vec![0; PAGE_BYTES];
    bytes[PAGE_KEY..PAGE_KEY + 8].copy_from_slice(&9u64.to_ne_bytes());
    std::fs::write(&path, bytes).unwrap();
    let mut agent = Agent::start();
    for place in 0..2 {
        let turns = Turns {
            place,
            rows: vec![vec![0, 1], vec![1, 0]],
            stages: None,
            page: Some(TurnPage {
                path: path.display().to_string(),
                key: 9,
            }),
            check: false,
            patience_ns: whole_ns(ANSWER_LIMIT),
        };
        agent.prepare(&run(u64::from(place) + 1, call, Some(turns)));
    }
    agent.go(1..=2);
    let reports = [agent.report().1, agent.report().1];
    std::fs::remove_file(&path).unwrap();
    reports
}

#[test]
fn sliced_programs_take_turns_and_count_their_slices() {
    let programs = [
        ("perl", perl("")),
        (
            "gzip",
            cut(
                "sh",
                &[
                    "-c",
                    "head -c 12000000 /bin/bash /bin/bash /bin/bash | gzip -9 | wc -c",
                ],
            ),
        ),
    ];
    for (name, call) in programs {
        let reports = in_turn(name, &call);
        let longest_ns = reports
            .iter()
            .map(|report| report.elapsed_ns)
            .max()
            .unwrap();
        let commands = reports.map(|report| {
            assert!(report.sliced.unwrap().by_page);
            assert!(report.counters.contains_key("children_user_ns"));
            report.command.unwrap()
        });
        assert!(
            commands
                .iter()
                .all(|it| it.exit.is_success() && it.stops > 1),
            "{commands:?}"
        );
        assert_eq!(commands[0].stdout, commands[1].stdout);
        let sum_ns: u64 = commands.iter().map(|it| it.wall_ns).sum();
        // In parallel, on two processors, they would have taken half as long together.
        assert!(sum_ns <= longest_ns, "{sum_ns} ns in {longest_ns}");
    }
}

#[test]
fn program_shorter_than_first_slice_is_not_stopped() {
    // A slice long enough for any busy machine.
    let call = CommandCall {
        in_slices: Some(InSlices {
            ns: whole_ns(ANSWER_LIMIT),
            ..SLICES
        }),
        ..cut("true", &[])
    };
    let command = alone(&call).command.unwrap();
    assert_eq!((command.exit, command.stops), (Exit::Code(0), 0));
    assert!(command.wall_ns > 0);
    let failed = alone(&cut("sh", &["-c", "exit 3"])).command.unwrap();
    assert_eq!(failed.exit, Exit::Code(3));
}

#[test]
fn several_runs_in_a_trial_are_reported_as_their_mean() {
    // Each run finds its folder empty, and the last one is the slowest.
    let count = std::env::temp_dir().join(format!("tare-runs-{}", std::process::id()));
    let script = format!(
        "test ! -e here && touch here && echo x >>{0} && test $(wc -l <{0}) -lt 3 || sleep 0.3",
        count.display()
    );
    let call = CommandCall {
        runs: NonZeroU32::new(3),
        ..CommandCall::new("sh", ["-c", &script])
    };
    let report = alone(&call);
    let elapsed_ns = report.elapsed_ns;
    let command = report.command.unwrap();
    assert!(command.exit.is_success(), "{command:?}");
    assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\nx\nx\n");
    std::fs::remove_file(count).unwrap();
    assert!(command.wall_ns >= 100_000_000, "{command:?}");
    assert!(3 * command.wall_ns <= elapsed_ns, "{elapsed_ns} ns");
    // A run that fails is the last.
    let fails = CommandCall {
        runs: NonZeroU32::new(1000),
        ..CommandCall::new("sh", ["-c", "exit 3"])
    };
    assert_eq!(alone(&fails).command.unwrap().exit, Exit::Code(3));
}

#[test]
fn program_ignoring_or_handling_sigcont_resumes() {
    for before in ["$SIG{CONT} = 'IGNORE'", "$SIG{CONT} = sub { $n++ }"] {
        let command = alone(&perl(before)).command.unwrap();
        assert!(
            command.exit.is_success() && command.stops > 1,
            "{command:?}"
        );
    }
}

#[test]
fn the_time_in_which_it_is_stopped_is_not_counted() {
    let report = alone(&perl(""));
    let command = report.command.unwrap();
    // It is stopped for twice as long as it runs.
    assert!(command.wall_ns < report.elapsed_ns / 2, "{command:?}");
    let used_ns = command.usage["user_ns"] + command.usage["sys_ns"];
    // Apart from the accounting's granularity, it cannot have computed longer than it ran.
    assert!(used_ns < command.wall_ns as f64 + 2e7, "{command:?}");
}

/// A program with a child in a separate session, both computing until they are killed.
fn endless(word: &str) -> CommandCall {
    let script =
        format!("setsid perl -e '1 while 1 # {word}' & perl -e '1 while 1 # {word}'; wait");
    cut("sh", &["-c", &script])
}

#[test]
fn cancelled_sliced_program_leaves_no_process() {
    let word = format!("tare-ended-{}", std::process::id());
    let mut agent = Agent::start();
    agent.send(&run(1, &endless(&word), None));
    wait_until("the program", || processes(&word).len() >= 3);
    let reply = agent.ask(&Request::Cancel { trial: 1 });
    assert!(matches!(reply, Reply::Failed { trial: 1, .. }));
    wait_until("its end", || processes(&word).is_empty());
}

#[test]
fn killed_agent_does_not_leave_program_stopped() {
    let word = format!("tare-orphan-{}", std::process::id());
    let mut agent = Agent::start();
    let call = cut("perl", &["-e", &format!("1 while 1 # {word}")]);
    agent.send(&run(1, &call, None));
    wait_until("the program", || !processes(&word).is_empty());
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    wait_until("its end", || processes(&word).is_empty());
}

#[test]
fn a_program_that_cannot_be_cut_takes_no_turns() {
    let mut agent = Agent::start();
    let turns = Turns {
        place: 0,
        rows: vec![vec![0]],
        stages: None,
        page: None,
        check: false,
        patience_ns: 1_000_000_000,
    };
    let reply = agent.ask(&run(1, &CommandCall::new("true", [""; 0]), Some(turns)));
    assert!(
        matches!(&reply, Reply::Unavailable { reason, .. } if reason.to_string().contains("cannot be interleaved")),
        "{reply:?}"
    );
}
