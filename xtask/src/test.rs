//! `cargo xtask test [--provision] [-- ARGS]`: runs every check that a change must pass.
//!
//! With `--provision` it first installs from the distribution what the tests need and starts a separate Docker engine
//! if none answers. Tests then fail rather than skip if something provisioned is missing. It always stops what it
//! started.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::flags::exit_status;
use crate::notes::Notes;
use crate::provision::python::{self, Libraries};
use crate::provision::{axe, docker::Engine, packages};
use crate::tally::{Output, Tally};
use crate::{contracts, deny, lanes, locked, planted, skips};
use xtask_build::dist::{self, BuildPaths};
use xtask_build::shell::{Program, cargo, step, strs};
use xtask_build::workspace::target_folder;

/// Prefix of the tests that run the Windows program.
const WINDOWS: &str = "wine::";
/// The variable that names the Windows program.
const WINDOWS_PROGRAM: &str = "TARE_TEST_WINDOWS";
/// Its compilation target.
const WINDOWS_TARGET: &str = "x86_64-pc-windows-gnu";
/// Runs every check and every test. The last line is always `N passed, N failed, N skipped`.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let mut parts = arguments.splitn(2, |argument| argument == "--").map(strs);
    let [own, passed] = [(); 2].map(|()| parts.next().unwrap_or_default());
    if let Some(other) = own.iter().find(|argument| **argument != "--provision") {
        bail!(
            "unknown option `{other}`; usage: cargo xtask test [--provision] [-- ARGUMENTS OF cargo test]"
        );
    }
    let is_provisioned = !own.is_empty();
    let tally = Mutex::new(Tally::default());
    let mut shown = Vec::new();
    let result = all(is_provisioned, &passed, &tally, &mut shown);
    match &result {
        Ok(()) => step("everything passed"),
        Err(error) => eprintln!("error: {error:#}"),
    }
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    for line in shown.into_iter().chain(tally.notes()) {
        println!("{line}");
    }
    println!("{}", tally.count(result.is_err()));
    Ok(exit_status(result.is_ok()))
}

/// What is provisioned in addition to the packages; stops the engine on drop.
struct Needs {
    engine: Engine,
    /// The available interpreters, each with the libraries that it finds.
    interpreters: Vec<(&'static Libraries, PathBuf)>,
    axe: Option<PathBuf>,
}

impl Needs {
    fn ensure() -> Result<Self> {
        packages::ensure()?;
        let engine = Engine::ensure().context("no Docker engine could be had for the tests")?;
        Ok(Self {
            engine,
            interpreters: [&python::PYPERF, &python::TABLES]
                .into_iter()
                .filter_map(|libraries| Some((libraries, libraries.ensure()?)))
                .collect(),
            axe: axe::ensure(),
        })
    }
}

/// Provisions, checks, tests, and stops what it started.
fn all(
    is_provisioned: bool,
    passed: &[&str],
    tally: &Mutex<Tally>,
    told: &mut Vec<String>,
) -> Result<()> {
    step("formatting");
    cargo(&["fmt", "--all", "--check"]).run()?;
    step("licences and sources of dependencies");
    deny::check()?;
    step("building the tests, and meanwhile what they need and one file for every arm");
    // In parallel: packages come over the network, and linking the agent takes one processor a minute, in a separate
    // folder.
    let (needs, agent) = std::thread::scope(|scope| {
        let meanwhile = scope.spawn(|| -> Result<_> {
            let needs = is_provisioned.then(Needs::ensure).transpose()?;
            Ok((needs, dist::own_agent(&BuildPaths::own())?))
        });
        let built = cargo(&["test", "--no-run", "--workspace", "--all-features"]).run();
        let meanwhile = meanwhile.join().expect("provisioning does not panic");
        built.and(meanwhile)
    })?;
    dist::is_small_enough(&agent)?;
    step("tests");
    let (contracts, skipped) = (Notes::new("contracts")?, Notes::new("skips")?);
    let mut tests = cargo(&["test", "--no-fail-fast", "--all-features"])
        .variable("TARE_TEST_AGENT", agent.as_os_str())
        .variable("TARE_TEST_EXAMPLES", target_folder().join("debug/examples"))
        // Many of them compare the machine's state before and after: links, mounts, processes.
        .variable("RUST_TEST_THREADS", "1")
        .variable(contracts::VARIABLE, contracts.path().as_os_str())
        .variable(skips::VARIABLE, skipped.path().as_os_str());
    if let Some(needs) = &needs {
        let mut required = skips::PROVISIONED.join(",");
        for (libraries, python) in &needs.interpreters {
            for need in libraries.needs {
                required.push(',');
                required.push_str(need);
            }
            tests = tests.variable(libraries.variable, python);
        }
        if let Some(file) = &needs.axe {
            tests = tests.variable(axe::VARIABLE, file);
        }
        tests = tests
            .variable("TARE_REQUIRE", required)
            .variable("DOCKER_HOST", needs.engine.host());
    }
    let everywhere = tests.clone().arguments(&["--workspace"]);
    let names_package = passed
        .iter()
        .any(|argument| argument.starts_with("-p") || argument.starts_with("--package"));
    let tests = if names_package {
        tests
    } else {
        everywhere.clone()
    };
    let tested = if passed.is_empty() {
        let host = needs.as_ref().map(|needs| needs.engine.host());
        every_test(&tests, host, &agent, tally)
    } else {
        part(&tests.clone().arguments(passed), tally)
            .and_then(|()| other_builds(&everywhere, is_provisioned, tally))
    };
    let mut tally = locked(tally);
    tally.try_again(|test| {
        step(&format!("once more by itself: {test}"));
        let mut once_more = everywhere.clone().arguments(&["--", "--exact", test]);
        if test.starts_with(WINDOWS) {
            once_more = once_more.variable(WINDOWS_PROGRAM, windows_program());
        }
        let before = skipped.read().unwrap_or_default();
        let (output, ended) = carry_out(&once_more);
        let ended = ended.and_then(|()| {
            let after = skipped.read()?;
            let is_new = |line: &&str| before.lines().all(|known| known != *line);
            match after.lines().find(is_new) {
                // It failed at first, so skipping it now proves nothing.
                Some(line) => bail!("`{test}` was skipped at its second try: {line}"),
                None => Ok(()),
            }
        });
        (output, ended)
    });
    let read = skipped.read()?;
    tally.skips.read(&read);
    told.push(contracts::summary(&contracts.read()?));
    tested?;
    tally.judge()
}

/// Runs all tests, with the other builds in parallel, and then a planted cause if the engine at `host` was
/// provisioned; tests that compare times run afterwards, alone.
fn every_test(
    tests: &Program,
    host: Option<&str>,
    agent: &Path,
    tally: &Mutex<Tally>,
) -> Result<()> {
    let lanes::Jobs { beside, alone } = lanes::build(tests, WINDOWS)?;
    let (tested, checked) = std::thread::scope(|scope| {
        let checks = scope.spawn(|| {
            other_builds(tests, host.is_some(), tally)?;
            let Some(host) = host else { return Ok(()) };
            step("a planted cause");
            planted::small(target_folder().join("debug/tare"), agent.to_owned(), host)
        });
        let tested = lanes::run(beside, |job| part(job, tally));
        (tested, checks.join().expect("checking does not panic"))
    });
    step("tests that compare times");
    let alone = alone.iter().map(|job| part(job, tally));
    tested.and(checked).and(alone.collect())
}

/// Runs one part of the tests and adds the results; returns an error that no failed test accounts for.
fn part(tests: &Program, tally: &Mutex<Tally>) -> Result<()> {
    let (output, ended) = carry_out(tests);
    locked(tally).add(output, ended)
}

/// Runs tests and prints their output at the end, because others run in parallel.
fn carry_out(tests: &Program) -> (Output, Result<()>) {
    let (mut output, mut lines) = (Output::default(), String::new());
    let ended = tests.pass_on(|line| {
        output.read(line);
        lines.extend([line, "\n"]);
    });
    println!("     Running {:.160}\n{lines}", tests.to_string());
    (output, ended)
}

/// Runs what tolerates noise: lints, the documentation, and the Windows tests. Has low priority. It locks the folder in
/// which the tests were built; they no longer build there.
fn other_builds(tests: &Program, is_provisioned: bool, tally: &Mutex<Tally>) -> Result<()> {
    let check = |arguments| {
        cargo(arguments)
            .arguments(&["--quiet", "--workspace", "--all-features"])
            .politely()
    };
    step("lints");
    check(&["clippy"])
        .arguments(&["--all-targets", "--", "-D", "warnings"])
        .run()?;
    step("documentation");
    check(&["doc", "--no-deps"])
        .variable("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    step("examples in the documentation");
    let examples = tests.clone().arguments(&["--quiet", "--doc"]).politely();
    part(&examples, tally)?;
    windows(tests, is_provisioned, tally)
}

/// Builds the Windows program and runs it with Wine. For a processor that is not available here, only compiles it.
fn windows(tests: &Program, is_provisioned: bool, tally: &Mutex<Tally>) -> Result<()> {
    step("Windows");
    let (target, arm) = (WINDOWS_TARGET, "aarch64-pc-windows-gnullvm");
    let agent = ["--quiet", "--package", "tare-agent"];
    let both = ["--package", "tare", "--bin", "tare", "--bin", "tare-agent"];
    if dist::is_installed(arm) {
        cargo(&["check"])
            .arguments(&agent)
            .arguments(&["--target", arm])
            .politely()
            .run()?;
    }
    if packages::has("x86_64-w64-mingw32-gcc") && dist::is_installed(target) {
        cargo(&["build"])
            .arguments(&agent)
            .arguments(&both)
            .arguments(&["--target", target])
            .politely()
            .run()?;
        let tests = tests
            .clone()
            .variable(WINDOWS_PROGRAM, windows_program())
            .arguments(&["--test", "it", "--", WINDOWS]);
        part(&tests, tally)?;
    } else if is_provisioned {
        bail!(
            "Debian's mingw-w64 or Rust's x86_64-pc-windows-gnu target is missing although it was provisioned"
        );
    } else {
        let why = "mingw-w64 or Rust's x86_64-pc-windows-gnu target is not installed";
        locked(tally)
            .skips
            .add("xtask", "compiling for Windows", "windows", why);
    }
    Ok(())
}

/// Path of the built Windows program.
fn windows_program() -> PathBuf {
    let folder = target_folder().join(WINDOWS_TARGET);
    folder.join("debug/tare.exe")
}
