//! Parses the output of the test programs line by line: counts, names and durations of passed and failed tests.
//!
//! A failed test is retried once alone after all others. If it passes then, it is flaky: it is reported with its
//! first failure, and the run succeeds if there are few of them.
//! Limits: durations are wrong if several tests run at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::skips::Skips;

/// More flaky tests than this fail the run; so do more failures, whether or not a retry passes.
const FLAKY_LIMIT: usize = 3;

/// How many of the slowest tests are listed.
const SLOWEST: usize = 40;

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    test: String,
    /// Location and first message of the panic.
    why: String,
}

/// Prefixes of the ignore reason of a body that another test starts as a separate process; these count as not
/// skipped.
const WITHIN: [&str; 2] = ["runs in a child process of another test", "started "];

/// The parsed output of one `cargo test`.
#[derive(Debug, Default)]
pub(crate) struct Output {
    n_begun: u32,
    n_ended: u32,
    n_passed: u32,
    n_failed: u32,
    ignored: Vec<(String, String)>,
    failures: Vec<Failure>,
    times: Vec<(Duration, String)>,
    last: Option<Instant>,
    place: Section,
}

/// The section of a test program's output that the next line is in.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Section {
    /// Results, one test a line.
    #[default]
    Results,
    /// Output of a failed test; whether the next line is its panic message.
    Words { said_next: bool },
    /// The names of the failed tests.
    Names,
}

impl Output {
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            return self.end(counts);
        }
        if let Some(test) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.place = Section::Words { said_next: false };
            return self.failures.push(Failure::named(test));
        }
        if line == "failures:" {
            self.place = Section::Names;
            return;
        }
        match self.place {
            Section::Results => self.result(line),
            Section::Words { said_next } => self.words(line, said_next),
            Section::Names => {
                // A test that printed nothing has no section of its own.
                if let Some(test) = line.strip_prefix("    ")
                    && !self.failures.iter().any(|failure| failure.test == test)
                {
                    self.failures.push(Failure::named(test));
                }
            }
        }
    }

    /// Parses `running 5 tests`, `test NAME ... ok`, `test NAME ... ignored, REASON`.
    fn result(&mut self, line: &str) {
        if line.starts_with("running ") {
            self.n_begun += 1;
            self.last = Some(Instant::now());
        }
        let Some((test, how)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        else {
            return;
        };
        if let Some(why) = how.strip_prefix("ignored") {
            let why = why.trim_start_matches(", ").to_owned();
            if !WITHIN.iter().any(|begin| why.starts_with(begin)) {
                self.ignored.push((test.to_owned(), why));
            }
        }
        let now = Instant::now();
        let before = self.last.replace(now).unwrap_or(now);
        self.times.push((now - before, test.to_owned()));
    }

    fn words(&mut self, line: &str, said_next: bool) {
        let Some(failure) = self.failures.last_mut() else {
            return;
        };
        if said_next {
            failure.why = format!("{} {}", failure.why, line.trim());
            self.place = Section::Words { said_next: false };
        } else if failure.why.is_empty()
            && let Some((_, place)) = line.split_once(" panicked at ")
        {
            place.clone_into(&mut failure.why);
            self.place = Section::Words { said_next: true };
        }
    }

    /// Parses `FAILED. 5 passed; 1 failed; 1 ignored; …`.
    fn end(&mut self, counts: &str) {
        self.n_ended += 1;
        self.place = Section::Results;
        for part in counts.split([';', '.']) {
            let number = |what| part.trim().strip_suffix(what)?.parse::<u32>().ok();
            self.n_passed += number(" passed").unwrap_or(0);
            self.n_failed += number(" failed").unwrap_or(0);
        }
    }

    /// Whether every program ended and every failure has a name; otherwise something other than a test failed.
    fn is_complete(&self) -> bool {
        self.n_begun == self.n_ended && self.failures.len() == self.n_failed as usize
    }
}

/// The sum over all calls.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    n_passed: u32,
    ignored: BTreeSet<(String, String)>,
    failures: Vec<Failure>,
    flaky: Vec<Failure>,
    times: Vec<(Duration, String)>,
    pub(crate) skips: Skips,
}

impl Tally {
    /// Adds the output of a call and its result; returns an error that failed tests do not account for.
    pub(crate) fn add(&mut self, output: Output, ended: Result<()>) -> Result<()> {
        let is_accounted_for = output.is_complete() && !output.failures.is_empty();
        self.n_passed += output.n_passed;
        self.ignored.extend(output.ignored);
        self.failures.extend(output.failures);
        self.times.extend(output.times);
        if is_accounted_for { Ok(()) } else { ended }
    }

    /// Retries each failed test once, unless there are too many for the run to succeed.
    pub(crate) fn try_again(&mut self, mut again: impl FnMut(&str) -> (Output, Result<()>)) {
        if self.failures.len() > FLAKY_LIMIT {
            return;
        }
        for failure in std::mem::take(&mut self.failures) {
            let (output, ended) = again(&failure.test);
            if ended.is_ok() && output.n_passed > 0 && output.n_failed == 0 {
                self.n_passed += 1;
                self.flaky.push(failure);
            } else {
                self.failures.push(failure);
            }
        }
    }

    /// An error if a test failed or none passed.
    pub(crate) fn judge(&self) -> Result<()> {
        match self.failures.len() {
            0 if self.n_shown() == 0 => bail!("no test passed, so nothing was shown"),
            0 => Ok(()),
            1 => bail!("a test failed"),
            count => bail!("{count} tests failed"),
        }
    }

    /// Returns what to report in addition to the counts, one line each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut times = self.times.clone();
        times.sort_by(|one, other| other.cmp(one));
        let slowest: Vec<String> = times
            .iter()
            .take(SLOWEST)
            .map(|(time, test)| format!("{:.0} s {test}", time.as_secs_f64()))
            .collect();
        let mut lines = vec![format!("slowest: {}", slowest.join(", "))];
        lines.extend(
            self.ignored
                .iter()
                .map(|(test, why)| format!("skipped: ignored: {why}: {test}")),
        );
        lines.extend(self.skips.lines());
        let each = |word: &'static str, failures: &[Failure]| -> Vec<String> {
            let line = |failure: &Failure| format!("{word}: {}: {}", failure.test, failure.words());
            failures.iter().map(line).collect()
        };
        lines.extend(each("flaky", &self.flaky));
        lines.extend(each("failed", &self.failures));
        lines
    }

    /// Counts the tests that were skipped, wholly or in part, and did not fail.
    fn n_left_out(&self) -> u32 {
        let failed = self.failures.iter().map(|failure| failure.test.as_str());
        self.skips.count(&failed.collect())
    }

    /// Counts the tests that passed and skipped nothing.
    fn n_shown(&self) -> u32 {
        self.n_passed.saturating_sub(self.n_left_out())
    }

    /// `N passed, N failed, N skipped`; a failure other than a test counts as one.
    pub(crate) fn count(&self, has_failed: bool) -> String {
        let n_passed = self.n_shown();
        let n_failed = self.failures.len().max(usize::from(has_failed));
        let n_skipped = self.n_left_out() as usize + self.ignored.len();
        format!("{n_passed} passed, {n_failed} failed, {n_skipped} skipped")
    }
}

impl Failure {
    fn named(test: &str) -> Self {
        Self {
            test: test.to_owned(),
            why: String::new(),
        }
    }

    fn words(&self) -> String {
        if self.why.is_empty() {
            "first failure without a word".to_owned()
        } else {
            format!("first failure at {}", self.why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "\nrunning 4 tests\ntest a::one ... ok\ntest a::two ... FAILED\n\
        test a::body ... ignored, runs in a child\n\
        test a::part ... ignored, runs in a child process of another test\ntest a::silent ... FAILED\n\nfailures:\n\n\
        ---- a::two stdout ----\nfirst it said this\n\
        thread 'a::two' (7) panicked at src/a.rs:1:2:\nassertion failed: it holds\n  left: 1\n\
        note: run with `RUST_BACKTRACE=1`\n\n\nfailures:\n    a::silent\n    a::two\n\n\
        test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s\n\n\
        running 1 test\ntest b::one ... ok\n\n\
        test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    const PASSED: &str = "running 1 test\ntest a::two ... ok\n\n\
        test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.00s\n";

    fn output(text: &str) -> Output {
        let mut output = Output::default();
        text.lines().for_each(|line| output.read(line));
        output
    }

    fn error() -> Result<()> {
        bail!("`cargo test` ended with 101")
    }

    fn lines(tally: &Tally) -> Vec<String> {
        tally.notes()[1..].to_vec()
    }

    #[test]
    fn test_passing_on_retry_is_flaky_twice_failing_fails() {
        let mut tally = Tally::default();
        tally.add(output(FAILED), error()).unwrap();
        assert_eq!(tally.count(true), "2 passed, 2 failed, 1 skipped");
        let mut tried = Vec::new();
        tally.try_again(|test| {
            tried.push(test.to_owned());
            match test {
                "a::two" => (output(PASSED), Ok(())),
                // No test ran, which proves nothing.
                _ => (output("running 0 tests\n"), Ok(())),
            }
        });
        assert_eq!(tried, ["a::two", "a::silent"]);
        assert!(tally.judge().is_err());
        assert_eq!(
            lines(&tally),
            [
                "skipped: ignored: runs in a child: a::body",
                "flaky: a::two: first failure at src/a.rs:1:2: assertion failed: it holds",
                "failed: a::silent: first failure without a word",
            ]
        );
        assert_eq!(tally.count(true), "3 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn few_flaky_tests_succeed_and_many_fail() {
        for (n_failed, succeeds) in [(1, true), (3, true), (4, false)] {
            let mut text = "running 9 tests\nfailures:\n".to_owned();
            text.extend((0..n_failed).map(|number| format!("    a::test{number}\n")));
            text.push_str("test result: FAILED. 5 passed; ");
            text.extend([n_failed.to_string().as_str(), " failed; 0 ignored\n"]);
            let mut tally = Tally::default();
            tally.add(output(&text), error()).unwrap();
            tally.try_again(|_| (output(PASSED), Ok(())));
            assert_eq!(tally.judge().is_ok(), succeeds, "{n_failed}");
            assert_eq!(tally.flaky.len(), if succeeds { n_failed } else { 0 });
        }
    }

    #[test]
    fn crash_or_build_failure_is_not_a_failed_test() {
        let crashed = "running 2 tests\ntest a ... ok\n";
        for text in [
            crashed.to_owned(),
            format!("{FAILED}{crashed}"),
            String::new(),
        ] {
            let mut tally = Tally::default();
            assert!(tally.add(output(&text), error()).is_err(), "{text}");
        }
        let tally = Tally::default();
        assert_eq!(tally.count(true), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn empty_test_run_is_not_green_skipped_has_not_passed() {
        let mut tally = Tally::default();
        let nothing = "running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        tally.add(output(nothing), Ok(())).unwrap();
        assert!(tally.judge().is_err());
        tally.add(output(PASSED), Ok(())).unwrap();
        assert!(tally.judge().is_ok());
        assert_eq!(tally.count(false), "1 passed, 0 failed, 0 skipped");
        tally.skips.read("it\ta::two\tvm\tno emulator\n");
        assert_eq!(tally.count(false), "0 passed, 0 failed, 1 skipped");
    }
}
