//! `cargo xtask test [--provision] [-- ARGS]`: everything that a change must pass.
//!
//! With `--provision` it first installs from the distribution what the tests need, starts an own Docker
//! engine if none answers, makes the tests fail rather than skip where they need something that was
//! provisioned, and stops what it started, whatever happens in between.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::provision::{docker::Engine, packages};
use crate::shell::{cargo, step};
use crate::workspace::target_folder;
use crate::{contracts, dist, planted};

/// What the tests may rely on once it was provisioned.
const PROVISIONED: &str =
    "crun,docker,docker-tls,fio,hpcc,iperf3,nc,openblas,ping,podman,root,runc,ssh,stress-ng,vm";

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
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    tests = tests
        .arguments(passed)
        .variable("TARE_TEST_AGENT", agent.as_os_str())
        // Many of them compare what the machine holds before and after: links, mounts, processes.
        .variable("RUST_TEST_THREADS", "1");
    if let Some(engine) = engine {
        tests = tests
            .variable("TARE_REQUIRE", PROVISIONED)
            .variable("DOCKER_HOST", engine.host());
    }
    let contracts = contracts::Table::new()?;
    tests = tests.variable(contracts::VARIABLE, contracts.path().as_os_str());
    let mut count = Count::default();
    let (tested, checked) = std::thread::scope(|scope| {
        let (begin, begun) = std::sync::mpsc::channel();
        // The first tests leave a processor idle; by then everything is compiled, so none waits for the other.
        let checks = scope.spawn(move || match begun.recv() {
            Ok(()) => documentation_and_windows(engine.is_some()),
            Err(_) => Ok(()),
        });
        let tested = tests.pass_on(|line| {
            let _ = begin.send(());
            count.add(line);
        });
        drop(begin);
        let checked = checks.join().expect("checking does not panic");
        (tested, checked)
    });
    println!("{}", contracts.told());
    println!(
        "{} passed, {} failed, {} skipped",
        count.passed, count.failed, count.ignored
    );
    tested?;
    checked?;
    if let Some(engine) = engine {
        step("planted causes, a part of them");
        let tare = target_folder().join("debug/tare");
        planted::small(tare, agent, engine.host())?;
    }
    step("everything passed");
    println!("{}", contracts.told());
    println!(
        "{} passed, {} failed, {} skipped",
        count.passed, count.failed, count.ignored
    );
    Ok(())
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

/// The sum of what the test programs say at their ends.
#[derive(Debug, Default)]
struct Count {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Count {
    /// Adds a line such as `test result: ok. 5 passed; 0 failed; 1 ignored; …`; others are nothing to it.
    fn add(&mut self, line: &str) {
        let Some((_, rest)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in rest.split("; ") {
            match part
                .split_once(' ')
                .and_then(|(number, what)| Some((number.parse::<u32>().ok()?, what)))
            {
                Some((number, "passed")) => self.passed += number,
                Some((number, "failed")) => self.failed += number,
                Some((number, "ignored")) => self.ignored += number,
                _ => {}
            }
        }
    }
}

fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}
