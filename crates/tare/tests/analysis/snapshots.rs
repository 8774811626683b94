//! Compares tables exactly with stored files, as a reader sees them.
//!
//! `TARE_BLESS=1 cargo test` rewrites the files; the difference is then reviewed like any other change.

use std::path::PathBuf;

use tare::analyze::{RunData, analyze};
use tare::report::terminal::{Style, brief, table};
use tare_model::dossier::Dossier;
use tare_model::{Failure, Outcome, Params, Reason, StoppedBy};

use super::generator::{Effect, Plan, find, is_of_arm, of_width};

pub(crate) fn compare(name: &str, drawn: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(format!("{name}.txt"));
    if std::env::var_os("TARE_BLESS").is_some() {
        std::fs::write(&file, drawn).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    if kept == drawn {
        return;
    }
    let mut difference = Vec::new();
    let (mut old, mut new) = (kept.lines(), drawn.lines());
    loop {
        let (left, right) = (old.next(), new.next());
        match (left, right) {
            (None, None) => break,
            (Some(left), Some(right)) if left == right => {
                difference.push(format!("  {left}"));
            }
            _ => {
                for (sign, line) in [('-', left), ('+', right)] {
                    if let Some(line) = line {
                        difference.push(format!("{sign} {line}"));
                    }
                }
            }
        }
    }
    panic!(
        "{name} is not as kept (TARE_BLESS=1 keeps it anew):\n{}",
        difference.join("\n")
    );
}

fn drawn(name: &str, run: &RunData) {
    of_dossier(name, &analyze(run, &find));
}

pub(crate) fn of_dossier(name: &str, dossier: &Dossier) {
    for width in [80, 140] {
        let plain = table(dossier, of_width(width));
        for line in plain.lines() {
            assert!(
                line.chars().count() <= width,
                "{} characters: {line}",
                line.chars().count()
            );
            assert_eq!(line, line.trim_end(), "a line ends in blanks");
        }
        assert!(plain.starts_with("A/A control A′ (host against"));
        assert!(
            !plain.chars().any(|it| it.is_control() && it != '\n'),
            "{plain:?}"
        );
        compare(&format!("{name}-{width}"), &plain);
        compare(
            &format!("{name}-brief-{width}"),
            &brief(dossier, of_width(width)),
        );
        let coloured = table(
            dossier,
            Style {
                width,
                colour: true,
            },
        );
        assert_eq!(without_colour(&coloured), plain, "colour changes the text");
    }
}

pub(crate) fn without_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        let end = rest[at..].find('m').unwrap();
        rest = &rest[at + end + 1..];
    }
    out + rest
}

pub(crate) fn ordinary() -> Plan {
    Plan::default()
        .workloads(["integer", "syscall", "files", "stream"])
        .arms(["container", "docker"])
        .trial_noise(0.008)
        .seed(3)
        .with("container", "syscall.getppid.time", Effect::Plus(2.0))
        .with("docker", "syscall.getppid.time", Effect::Plus(14.7))
        .with("docker", "disk.fsync.time", Effect::Times(0.7))
        .with("docker", "disk.read.throughput", Effect::Times(1.04))
        .with("docker", "net.tcp.throughput", Effect::Times(2.6))
}

#[test]
fn an_ordinary_run() {
    drawn("ordinary", &ordinary().run());
}

#[test]
fn a_noisy_run_with_failures_and_unequal_arms() {
    let plan = ordinary().trial_noise(0.09).blocks(12);
    let mut run = plan.run();
    for data in &mut run.trials {
        let is = |arm: &'static str, index| {
            is_of_arm(arm)(&data.trial) && data.trial.workload_index == index
        };
        if is("docker", 2) && data.trial.block < 3 {
            data.outcome = Outcome::Failed(Failure::TimedOut {
                limit_ns: 10_000_000_000,
            });
        } else if is("container", 3) {
            let reason = Reason::BlockedSyscall("io_uring_setup".to_owned());
            data.outcome = Outcome::Unavailable(reason);
        }
    }
    run.head.complete = false;
    run.head.stopped_by = StoppedBy::Budget;
    let docker = run.head.arms.last_mut().unwrap();
    docker
        .facts
        .insert("status.Seccomp".to_owned(), "2".to_owned());
    docker
        .facts
        .insert("cpu.affinity".to_owned(), "0".to_owned());
    drawn("noisy", &run);
}

#[test]
fn only_host_is_available() {
    drawn("unavailable", &unavailable());
}

pub(crate) fn unavailable() -> RunData {
    let mut run = ordinary().run();
    for arm in &mut run.head.arms[2..] {
        arm.available = false;
        arm.reason = Some("permission denied: unshare".to_owned());
        arm.fix = Some("sysctl kernel.unprivileged_userns_clone=1".to_owned());
    }
    run.trials
        .retain(|data| !is_of_arm("container")(&data.trial) && !is_of_arm("docker")(&data.trial));
    run
}

#[test]
fn one_block() {
    let plan = ordinary().blocks(1);
    drawn("one-block", &plan.run());
}

#[test]
fn names_and_reasons_from_outside_do_no_harm() {
    drawn("hostile", &hostile());
}

pub(crate) fn hostile() -> RunData {
    let mut run = ordinary().run();
    run.head.study.id = String::from("<script>&\"x\"");
    run.head.study.title = String::from("\u{1b}]0;owned\u{7}\u{202e}gnp.exe\r\nfalse line");
    run.head.arms[3].available = false;
    run.head.arms[3].reason = Some("\u{1b}[2J\u{1b}[31m<b>gone</b> & \"done\"".to_owned());
    run.head.arms[2]
        .facts
        .insert("status.Seccomp".to_owned(), "2\u{9b}31m".to_owned());
    let hostile = Params::new().with("file", "a\tb\u{1b}c<&\"");
    for data in &mut run.trials {
        if data.trial.workload_index == 1 {
            data.trial.cell.params = hostile.clone();
        }
    }
    run
}

#[test]
fn terminals_too_narrow_for_columns_get_paragraphs() {
    let dossier = analyze(&ordinary().run(), &find);
    for width in [1, 40, 45, 50, 60, 70, 79] {
        let plain = table(&dossier, of_width(width));
        let widest = plain.lines().map(|line| line.chars().count()).max();
        assert!(
            widest <= Some(width.max(40)),
            "{width}: {widest:?}\n{plain}"
        );
        assert!(
            plain.replace(['\n', ' '], "").contains("2.586–2.604×"),
            "{plain}"
        );
    }
}
