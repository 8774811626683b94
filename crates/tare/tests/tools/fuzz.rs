//! A deterministic search for output that makes a decoder panic or read a number that is none.
//!
//! Captures are damaged in the ways that pipes, full disks, other versions and other locales damage them:
//! cut off, a byte changed, a line left out, repeated or moved, a number replaced by one of those that have
//! broken parsers before. Whatever comes, a decoder gives an error or finite positive numbers, and neither it
//! nor its remarks panic. The generator is seeded with the execution's own number, so that a finding can be
//! repeated; without more time than a test has, the search is short (`cargo xtask fuzz` makes it long).
//! What it cannot see: a wrong number that is finite and positive.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tare::workload::{self, Workload};

use crate::golden::{Capture, captures};

/// How long to search, seconds; set by `cargo xtask fuzz`.
const SECONDS: &str = "TARE_FUZZ_SECONDS";
/// The only workload that is searched; set by `cargo xtask fuzz`.
const ONLY: &str = "TARE_FUZZ_WORKLOAD";
/// Executions for each capture where nobody said for how long.
const SHORT: u64 = 60;

thread_local! {
    /// Whether a panic of this thread is a finding.
    static IS_SEARCHING: Cell<bool> = const { Cell::new(false) };
}

/// Numbers that have broken parsers before.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "nan",
    "-nan",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "1e-999",
    "1e308",
    "5e-324",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "-9223372036854775809",
    "999999999999999999999999999999",
    "0x10",
    "1,5",
    "1.000.000",
    "",
    ".",
    "-",
    "+7",
    "null",
    "\"\"",
];

/// A small generator of known quality (SplitMix64, Steele, Lea & Flood 2014), so that a number names a case.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % (n.max(1) as u64)) as usize
    }
}

/// Damages text once.
fn damage(text: &mut Vec<u8>, random: &mut Random) {
    if text.is_empty() {
        text.extend_from_slice(NUMBERS[random.below(NUMBERS.len())].as_bytes());
        return;
    }
    match random.below(9) {
        0 => text.truncate(random.below(text.len())),
        1 => {
            let at = random.below(text.len());
            text[at] = random.next() as u8;
        }
        2 => {
            let at = random.below(text.len());
            text[at] ^= 1 << random.below(8);
        }
        3 | 4 => replace_number(text, random),
        5 => with_lines(text, |lines| {
            lines.remove(random.below(lines.len()));
        }),
        6 => with_lines(text, |lines| {
            let line = lines[random.below(lines.len())].clone();
            lines.insert(random.below(lines.len()), line);
        }),
        7 => with_lines(text, |lines| {
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(a, b);
        }),
        _ => {
            let from = random.below(text.len());
            let until = (from + random.below(200)).min(text.len());
            let part = text[from..until].to_vec();
            let at = random.below(text.len());
            text.splice(at..at, part);
        }
    }
}

/// Puts another number in place of one.
fn replace_number(text: &mut Vec<u8>, random: &mut Random) {
    let start = random.below(text.len());
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let Some(from) = text[start..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let from = start + from;
    let length = text[from..].iter().take_while(|byte| is_part(byte)).count();
    let other = NUMBERS[random.below(NUMBERS.len())];
    text.splice(from..from + length, other.bytes());
}

fn with_lines(text: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> = text
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    change(&mut lines);
    *text = lines.join(&b'\n');
}

/// The capture of one execution: damaged one to four times.
fn damaged(capture: &Capture, number: u64) -> Capture {
    let mut random = Random(number);
    let mut capture = capture.clone();
    for _ in 0..=random.below(4) {
        let n_files = capture.files.len();
        match random.below(4 + n_files) {
            0 if !capture.stderr.is_empty() => damage(&mut capture.stderr, &mut random),
            place if place >= 4 => {
                let file = capture.files.values_mut().nth(place - 4);
                damage(file.expect("the place is below their number"), &mut random);
            }
            _ => damage(&mut capture.stdout, &mut random),
        }
    }
    capture
}

/// Whether a decoder reads the capture, and what is wrong with how it takes it.
fn finding(workload: &dyn Workload, capture: &Capture) -> (bool, Option<String>) {
    let raw = capture.raw();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let decoded = workload.decode(&raw);
        let remarks = workload.remarks(&raw);
        (decoded, remarks)
    }));
    let Ok((decoded, remarks)) = ended else {
        return (false, Some("it panics".to_owned()));
    };
    let is_read = decoded.is_ok();
    let detail = remarks
        .iter()
        .find(|remark| remark.detail.chars().any(char::is_control));
    if let Some(remark) = detail {
        let what = format!("a remark holds control characters: {remark:?}");
        return (is_read, Some(what));
    }
    let what = match decoded {
        Err(error) => error
            .to_string()
            .chars()
            .any(|letter| letter.is_control() && letter != '\n')
            .then(|| format!("its refusal holds control characters: {error:?}")),
        Ok(samples) => samples
            .iter()
            .find(|sample| {
                let values = &sample.observations;
                values.is_empty()
                    || values
                        .iter()
                        .any(|value| !(value.is_finite() && *value > 0.0))
                    || !workload
                        .metrics()
                        .iter()
                        .any(|it| it.id == sample.metric.as_str())
            })
            .map(|sample| format!("it reads {sample:?}")),
    };
    (is_read, what)
}

#[test]
fn whatever_a_tool_prints_gives_an_error_or_finite_positive_numbers() {
    let only = std::env::var(ONLY).ok();
    let limit = std::env::var(SECONDS).ok().map(|text| {
        let seconds: f64 = text.parse().expect("a number of seconds");
        Duration::from_secs_f64(seconds)
    });
    let captures: Vec<Capture> = captures()
        .into_iter()
        .filter(|capture| only.as_ref().is_none_or(|only| *only == capture.workload))
        .collect();
    assert!(
        !captures.is_empty(),
        "no capture is of the workload {only:?}"
    );
    let begin = Instant::now();
    let (mut executions, mut read) = (0_u64, 0_u64);
    let mut findings: Vec<String> = Vec::new();
    // Panics are findings; their words would hide the summary. Other threads' panics are not ours.
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !IS_SEARCHING.get() {
            others(panic);
        }
    }));
    IS_SEARCHING.set(true);
    'search: for round in 0.. {
        for capture in &captures {
            let is_over = match limit {
                Some(limit) => begin.elapsed() >= limit,
                None => round >= SHORT,
            };
            if is_over || findings.len() >= 20 {
                break 'search;
            }
            let workload = workload::find(&capture.workload).expect("captures are of workloads");
            let damaged = damaged(capture, round);
            executions += 1;
            let (is_read, what) = finding(workload, &damaged);
            read += u64::from(is_read);
            if let Some(what) = what {
                let (tool, name) = (&capture.workload, &capture.name);
                findings.push(format!(
                    "{tool}/{name} in round {round}: {what}\n--- stdout\n{}\n--- stderr\n{}",
                    String::from_utf8_lossy(&damaged.stdout).escape_debug(),
                    String::from_utf8_lossy(&damaged.stderr).escape_debug()
                ));
            }
        }
    }
    IS_SEARCHING.set(false);
    println!(
        "{executions} executions over {} captures in {:.1} s, {read} of them read, {} findings",
        captures.len(),
        begin.elapsed().as_secs_f64(),
        findings.len()
    );
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(
        read > 0,
        "no damaged output was read: the search is too rough to find anything"
    );
}
