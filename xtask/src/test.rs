//! `cargo xtask test [--provision] [-- ARGS]`: everything that a change must pass.
//!
//! With `--provision` it first installs from the distribution what the tests need, starts an own Docker
//! engine if none answers, makes the tests fail rather than skip where they need something that was
//! provisioned, and stops what it started, whatever happens in between.

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

use anyhow::{Context, Result, bail};

use crate::provision::{docker::Engine, packages, pyperf};
use crate::shell::{Program, cargo, step};
use crate::workspace::target_folder;
use crate::{contracts, dist, planted};

/// What the tests may rely on once it was provisioned.
const PROVISIONED: &str =
    "crun,docker,docker-tls,fio,hpcc,iperf3,nc,openblas,ping,podman,root,runc,ssh,stress-ng,vm";

/// Parts of the names of tests that wait for other programs more than they compute.
const WAITING: [&str; 4] = ["podman::", "ssh::", "vm::", "docker_contexts::"];
/// Parts of the names of tests whose answer needs a machine that does nothing else.
const ALONE: [&str; 3] = ["copy_up::", "shapes::", "why::"];

/// Runs every check and every test.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let (own, passed): (Vec<&str>, Vec<&str>) =
        match arguments.iter().position(|argument| argument == "--") {
            Some(position) => (
                strs(&arguments[..position]),
                strs(&arguments[position + 1..]),
            ),
            None => (strs(arguments), Vec::new()),
        };
    let mut is_provisioned = false;
    for argument in own {
        match argument {
            "--provision" => is_provisioned = true,
            other => bail!(
                "unknown option `{other}`; usage: cargo xtask test [--provision] [-- ARGUMENTS OF cargo test]"
            ),
        }
    }
    let engine = if is_provisioned {
        packages::ensure()?;
        Some(Engine::ensure().context("no Docker engine could be had for the tests")?)
    } else {
        None
    };
    let result = checks_and_tests(engine.as_ref(), &passed);
    if let Some(engine) = engine {
        drop(engine);
    }
    result?;
    Ok(ExitCode::SUCCESS)
}

fn checks_and_tests(engine: Option<&Engine>, passed: &[&str]) -> Result<()> {
    step("formatting");
    cargo(&["fmt", "--all", "--check"]).run()?;
    step("lints, and meanwhile one file for every arm");
    // The agent is linked by one processor for a minute; it has a folder of its own, so neither waits.
    let agent = std::thread::scope(|scope| {
        let agent = scope.spawn(dist::own_agent);
        cargo(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ])
        .run()?;
        agent.join().expect("building the agent does not panic")
    })?;
    step("tests");
    let contracts = contracts::Table::new()?;
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"])
        .variable("TARE_TEST_AGENT", agent.as_os_str())
        // Many of them compare what the machine holds before and after: links, mounts, processes.
        .variable("RUST_TEST_THREADS", "1")
        .variable(contracts::VARIABLE, contracts.path().as_os_str());
    if let Some(engine) = engine {
        let mut required = PROVISIONED.to_owned();
        if let Some(python) = pyperf::ensure() {
            required.push_str(",pyperf");
            tests = tests.variable(pyperf::VARIABLE, python);
        }
        tests = tests
            .variable("TARE_REQUIRE", required)
            .variable("DOCKER_HOST", engine.host());
    }
    let count = Count::default();
    let tested = if passed.is_empty() {
        all(&tests, engine.is_some(), &count)
    } else {
        let tested = tests.arguments(passed).pass_on(|line| count.show(line));
        tested.and_then(|()| documentation_and_windows(engine.is_some()))
    };
    println!("{}", contracts.told());
    println!("{count}");
    tested?;
    if let Some(engine) = engine {
        step("planted causes, a part of them");
        let tare = target_folder().join("debug/tare");
        planted::small(tare, agent, engine.host())?;
    }
    step("everything passed");
    println!("{}", contracts.told());
    println!("{count}");
    Ok(())
}

/// All tests, in three parts: what waits more than it computes runs beside the rest, and so do the documentation
/// and Windows; what compares times runs after them, alone.
fn all(tests: &Program, is_provisioned: bool, count: &Count) -> Result<()> {
    let skipped: Vec<&str> = WAITING
        .iter()
        .chain(&ALONE)
        .flat_map(|part| ["--skip", part])
        .collect();
    let rest = tests.clone().arguments(&["--"]).arguments(&skipped);
    let waiting = tests.clone().arguments(&["--"]).arguments(&WAITING);
    let alone = tests.clone().arguments(&["--"]).arguments(&ALONE);
    let (rest, waiting, checks) = std::thread::scope(|scope| {
        // By the first line of one part everything is compiled, so the next does not wait for the builder.
        let (begin, begun) = channel();
        let (begin_checks, begun_checks) = channel();
        let waiting = scope.spawn(move || {
            begun.recv()?;
            waiting.pass_on(|line| {
                // Nobody listens any more once the checks run.
                let _ = begin_checks.send(());
                count.show(line);
            })
        });
        let checks = scope.spawn(move || {
            begun_checks.recv()?;
            documentation_and_windows(is_provisioned)
        });
        let rest = rest.pass_on(|line| {
            let _ = begin.send(());
            count.show(line);
        });
        drop(begin);
        let waiting = waiting.join().expect("passing on does not panic");
        (
            rest,
            waiting,
            checks.join().expect("checking does not panic"),
        )
    });
    step("tests that compare times");
    let alone = alone.pass_on(|line| count.show(line));
    rest.and(waiting).and(checks).and(alone)
}

/// Builds the documentation and checks what runs on Windows; yields to whatever else runs.
fn documentation_and_windows(is_provisioned: bool) -> Result<()> {
    step("documentation");
    cargo(&["doc", "--quiet", "--workspace", "--no-deps"])
        .variable("RUSTDOCFLAGS", "-D warnings")
        .politely()
        .run()?;
    step("Windows");
    if packages::has("x86_64-w64-mingw32-gcc") && dist::is_installed("x86_64-pc-windows-gnu") {
        for package in ["tare-agent", "tare"] {
            cargo(&[
                "check",
                "--quiet",
                "--package",
                package,
                "--target",
                "x86_64-pc-windows-gnu",
            ])
            .politely()
            .run()?;
        }
    } else if is_provisioned {
        bail!(
            "Debian's mingw-w64 or Rust's x86_64-pc-windows-gnu target is missing although it was provisioned"
        );
    } else {
        step("skipped: mingw-w64 or Rust's x86_64-pc-windows-gnu target is not installed");
    }
    Ok(())
}

/// The sum of what the test programs say at their ends; several may run at the same time.
#[derive(Debug, Default)]
struct Count {
    passed: AtomicU32,
    failed: AtomicU32,
    ignored: AtomicU32,
}

impl Count {
    /// Shows a line and adds it, if it is such as `test result: ok. 5 passed; 0 failed; 1 ignored; …`.
    fn show(&self, line: &str) {
        println!("{line}");
        let Some((_, rest)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in rest.split("; ") {
            let Some((number, what)) = part.split_once(' ') else {
                continue;
            };
            let sum = match what {
                "passed" => &self.passed,
                "failed" => &self.failed,
                "ignored" => &self.ignored,
                _ => continue,
            };
            sum.fetch_add(number.parse().unwrap_or(0), Ordering::Relaxed);
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [passed, failed, ignored] =
            [&self.passed, &self.failed, &self.ignored].map(|sum| sum.load(Ordering::Relaxed));
        write!(out, "{passed} passed, {failed} failed, {ignored} skipped")
    }
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
