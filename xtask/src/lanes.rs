//! Splits the tests into jobs and runs them in parallel lanes; a free lane takes the next job.
//!
//! A job is a test program, or a module of the largest program. The tests of one job run one after another. Tests of
//! different jobs run in parallel, so each checks only the objects of its own runs on the machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::locked;
use xtask_build::shell::Program;

/// The test program whose modules are separate jobs.
const SPLIT: &str = "it";
/// Its slowest jobs. They start first, so that none is left over at the end.
const FIRST: [&str; 5] = ["user_container", "podman", "gate", "vm", "engine"];
/// Modules that form one job, named after the first: they load the machine heavily, or create the same user.
const TOGETHER: [&[&str]; 2] = [
    &[
        "user_container",
        "cluster",
        "user_container_baseline",
        "user_container_mounts",
        "user_container_ways",
    ],
    &["podman", "attack"],
];
/// Name prefixes of its tests that need an otherwise idle machine: they expect that something is not slower.
const ALONE: [&str; 4] = [
    "shapes::",
    "why::a_quota_is_found",
    "why::seccomp_not_blamed",
    "why::why_accuses_no_cause",
];
/// How many jobs run at once. More than the processors, because most wait for engines and guests.
const LANES: usize = 3;

/// Every test of the workspace except those of the module `elsewhere`.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Jobs that run in parallel.
    pub(crate) beside: Vec<Program>,
    /// Jobs that run after all others.
    pub(crate) alone: Vec<Program>,
}

/// Builds the test programs of a `cargo test` and divides them.
pub(crate) fn build(tests: &Program, elsewhere: &str) -> Result<Jobs> {
    let (mut jobs, mut programs) = (Jobs::default(), Vec::new());
    let mut failed = Ok(());
    let building = tests
        .clone()
        .arguments(&["--no-run", "--message-format=json-render-diagnostics"]);
    building.pass_on(|line| {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |pointer| message.pointer(pointer).and_then(Value::as_str);
        let (true, Some(file), Some(manifest)) = (
            message["profile"]["test"] == true,
            text("/executable"),
            text("/manifest_path").and_then(|manifest| Path::new(manifest).parent()),
        ) else {
            return;
        };
        let whole = tests.instead(file).folder(manifest);
        if text("/target/name") != Some(SPLIT) {
            programs.push(whole);
        } else if let Err(error) = divide(&mut jobs, &whole, elsewhere) {
            failed = Err(error);
        }
    })?;
    failed?;
    ensure!(!jobs.alone.is_empty(), "the tests `{SPLIT}` were not built");
    // Before the short modules: one of the programs takes minutes.
    let place = FIRST.len().min(jobs.beside.len());
    jobs.beside.splice(place..place, programs);
    Ok(jobs)
}

/// Adds the modules of a program, the slowest first.
fn divide(jobs: &mut Jobs, whole: &Program, elsewhere: &str) -> Result<()> {
    let listing = whole.clone().arguments(&["--list", "--format", "terse"]);
    let listing = listing.output()?;
    let (alone, mut modules) = modules(&listing, elsewhere);
    let job = |tests: &[&str]| whole.clone().arguments(&["--exact"]).arguments(tests);
    jobs.alone.push(job(&alone));
    let first = FIRST.iter().filter_map(|name| modules.remove(name));
    let first: Vec<_> = first.collect();
    let ordered = first.iter().chain(modules.values()).map(|it| job(it));
    jobs.beside = ordered.collect();
    Ok(())
}

/// Splits the names in a listing: those that run alone, and the others by module.
fn modules<'a>(
    listing: &'a str,
    elsewhere: &str,
) -> (Vec<&'a str>, BTreeMap<&'a str, Vec<&'a str>>) {
    let names = listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    let (alone, others): (Vec<_>, Vec<_>) = names
        .filter(|name| !name.starts_with(elsewhere))
        .partition(|name| ALONE.iter().any(|part| name.starts_with(part)));
    let mut jobs = BTreeMap::<_, Vec<_>>::new();
    for name in others {
        let module = name.split("::").next().unwrap_or(name);
        let job = TOGETHER.iter().find(|job| job.contains(&module));
        let job = job.map_or(module, |job| job[0]);
        jobs.entry(job).or_default().push(name);
    }
    (alone, jobs)
}

/// Runs the jobs and returns the first error that no failed test accounts for.
pub(crate) fn run(jobs: Vec<Program>, each: impl Fn(&Program) -> Result<()> + Sync) -> Result<()> {
    let queue = Mutex::new(jobs.into_iter());
    let lane = || {
        let mut ended = Ok(());
        while let Some(job) = { locked(&queue).next() } {
            ended = ended.and(each(&job));
        }
        ended
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let mut lanes = lanes.into_iter();
        lanes.try_for_each(|lane| lane.join().expect("a lane does not panic"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_build::shell::program;

    #[test]
    fn each_test_is_in_one_job() {
        let listing = "attack::a: test\npodman::user_container::b: test\nshapes::c: test\nwhy::d: test\nwine::e: test\n\
                       why::a_quota_is_found: test\n\n6 tests, 0 benchmarks\n";
        let (alone, modules) = modules(listing, "wine::");
        assert_eq!(alone, ["shapes::c", "why::a_quota_is_found"]);
        let modules: Vec<_> = modules.into_values().collect();
        assert_eq!(
            modules,
            [
                vec!["attack::a", "podman::user_container::b"],
                vec!["why::d"]
            ]
        );
    }

    #[test]
    fn lanes_carry_out_every_job_and_pass_on_an_error() {
        let jobs = || vec![program("true", &[]); 7];
        let count = Mutex::new(0);
        let each = |job: &Program| {
            *locked(&count) += 1;
            job.run()
        };
        run(jobs(), each).unwrap();
        assert_eq!(*locked(&count), 7);
        let failing = [jobs(), vec![program("false", &[])], jobs()].concat();
        assert!(run(failing, each).is_err());
        assert_eq!(*locked(&count), 22);
    }
}
