//! A deterministic search for output that makes a decoder panic or return an invalid number.
//!
//! Output of real tools and reports of real probes are damaged in the ways that pipes, full disks, other versions and
//! other locales damage them: truncated, a byte changed, a line removed, repeated or moved, a number replaced by one
//! that has broken parsers before. A tool's text is damaged within the report that holds it, and sometimes the report
//! itself. In every case a decoder must return an error or finite positive numbers, and neither it nor its remarks
//! may panic. Every workload is searched separately, so that a slow decoder takes no time from the others. The
//! execution's number seeds the generator, so that a finding can be repeated. By default the search is short (`cargo
//! xtask fuzz` makes it long).
//! Limits: does not detect a wrong number that is finite and positive.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use tare::workload::{self, Workload};
use tare_model::outcome::{Bytes, Exit};
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::{LIFECYCLE_FORMAT, RawOutput, whole_size};

use crate::golden::{Capture, captures, folders};

/// How long to search each decoder, seconds; set by `cargo xtask fuzz`.
const SECONDS: &str = "TARE_FUZZ_SECONDS";
/// The only workload that is searched; set by `cargo xtask fuzz`.
const ONLY: &str = "TARE_FUZZ_WORKLOAD";
/// Executions for each seed if no time is set.
const SHORT: u64 = 60;
/// One in this many executions damages the report around a tool's text, or how the worker ended.
const AROUND: usize = 16;
/// Findings of one decoder after which its search ends.
const ENOUGH: usize = 5;

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

/// A small generator of known quality (SplitMix64, Steele, Lea & Flood 2014), so that a number identifies a case.
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
        whole_size(self.next() % (n.max(1) as u64))
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
            text[at] = (random.next() & 0xff) as u8;
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

/// Replaces a number by another.
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

/// The start of a search.
enum Seed {
    /// A tool's output.
    Tool(Capture),
    /// A worker's output.
    Worker { name: String, raw: RawOutput },
}

impl Seed {
    /// Reads a worker's report.
    fn worker(path: &Path, format: &str) -> Self {
        Self::Worker {
            name: path.display().to_string(),
            raw: RawOutput {
                format: format.to_owned(),
                stdout: Bytes(std::fs::read(path).unwrap()),
                stderr: Bytes::default(),
                exit: Exit::Code(0),
            },
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Tool(capture) => &capture.name,
            Self::Worker { name, .. } => name,
        }
    }

    /// Returns the input of one execution, damaged one to four times.
    fn damaged(&self, number: u64) -> RawOutput {
        let mut random = Random(number);
        match self {
            Self::Tool(capture) if random.below(AROUND) > 0 => {
                let mut capture = capture.clone();
                for _ in 0..=random.below(4) {
                    damage_capture(&mut capture, &mut random);
                }
                capture.raw()
            }
            Self::Tool(capture) => damaged_report(capture.raw(), &mut random),
            Self::Worker { raw, .. } => damaged_report(raw.clone(), &mut random),
        }
    }
}

/// Damages one of the texts of a tool.
fn damage_capture(capture: &mut Capture, random: &mut Random) {
    let n_files = capture.files.len();
    match random.below(4 + n_files) {
        0 if !capture.stderr.is_empty() => damage(&mut capture.stderr, random),
        place if place >= 4 => {
            let file = capture.files.values_mut().nth(place - 4);
            damage(file.expect("the place is below their number"), random);
        }
        _ => damage(&mut capture.stdout, random),
    }
}

/// Damages a worker's output as a whole; mostly its numbers, because most other damage makes it no report.
fn damaged_report(mut raw: RawOutput, random: &mut Random) -> RawOutput {
    for _ in 0..=random.below(4) {
        match random.below(AROUND) {
            0 => raw.exit = [Exit::Code(1), Exit::Signal(11)][random.below(2)],
            1 => damage(&mut raw.stderr.0, random),
            2 => {
                let mut format = std::mem::take(&mut raw.format).into_bytes();
                damage(&mut format, random);
                raw.format = String::from_utf8_lossy(&format).into_owned();
            }
            3..=6 => damage(&mut raw.stdout.0, random),
            _ => replace_number(&mut raw.stdout.0, random),
        }
    }
    raw
}

/// Returns all real output of this workload.
fn seeds(workload: &dyn Workload, captures: &[Capture]) -> Vec<Seed> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let id = workload.id();
    let of_tool = captures
        .iter()
        .filter(|capture| capture.workload == id)
        .cloned();
    let mut seeds: Vec<Seed> = of_tool.map(Seed::Tool).collect();
    if id == "hpcc" {
        let nested = folders(&golden.join("hpcc"));
        let nested = nested.iter().flat_map(|version| folders(version));
        seeds.extend(
            nested
                .filter_map(|folder| Capture::read(id, &folder))
                .map(Seed::Tool),
        );
    }
    let report = golden.join("probe").join(format!("{id}.json"));
    if report.is_file() {
        seeds.push(Seed::worker(&report, PROBE_FORMAT));
    }
    for folder in folders(&golden.join("probe-1")) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if name == id || name.strip_suffix("-blocked") == Some(id) {
            seeds.push(Seed::worker(&folder.join("stdout"), PROBE_FORMAT));
        }
    }
    // A compared command has the same report as one that is asked about.
    let of = if id == "compared-command" {
        "user-command"
    } else {
        id
    };
    let trial = golden.join("trials").join(format!("{of}.json"));
    if trial.is_file() {
        let format = if id == "start-up" {
            LIFECYCLE_FORMAT
        } else {
            PROBE_FORMAT
        };
        seeds.push(Seed::worker(&trial, format));
    }
    seeds
}

/// Returns whether a decoder reads the output, and what is wrong with its result, if anything.
fn finding(workload: &dyn Workload, raw: &RawOutput) -> (bool, Option<String>) {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        // The analysis calls these as well: neither may panic, and their values are checked elsewhere.
        let _ = (workload.demand(raw), workload.span(raw));
        (workload.decode(raw), workload.remarks(raw))
    }));
    let Ok((decoded, remarks)) = ended else {
        return (false, Some(PANICS.to_owned()));
    };
    let is_read = decoded.is_ok();
    let detail = remarks
        .iter()
        .find(|remark| remark.detail.chars().any(char::is_control));
    if let Some(remark) = detail {
        let what = format!("a remark holds control characters: {remark:?}");
        return (is_read, Some(what));
    }
    let is_wrong = |sample: &&tare_model::Sample| {
        let values = &sample.observations;
        let is_known = |id: &str| workload.metrics().iter().any(|metric| metric.id == id);
        values.is_empty()
            || values
                .iter()
                .any(|value| !(value.is_finite() && *value > 0.0))
            || !is_known(sample.metric.as_str())
    };
    let what = match decoded {
        Err(error) => error
            .to_string()
            .chars()
            .any(|letter| letter.is_control() && letter != '\n')
            .then(|| format!("its refusal holds control characters: {error:?}")),
        Ok(samples) => samples
            .iter()
            .find(is_wrong)
            .map(|sample| format!("it reads {sample:?}")),
    };
    (is_read, what)
}

/// The text of a finding that is a panic.
const PANICS: &str = "it panics";

/// The result of the search of one decoder.
#[derive(Default)]
struct Searched {
    inputs: u64,
    /// How many of them were read despite the damage.
    read: u64,
    panics: u64,
    findings: Vec<String>,
    took: Duration,
}

/// Searches one decoder, for this long or for a fixed number of rounds.
fn search(workload: &dyn Workload, seeds: &[Seed], limit: Option<Duration>) -> Searched {
    let begin = Instant::now();
    let mut searched = Searched::default();
    'search: for round in 0.. {
        for seed in seeds {
            let is_over = match limit {
                Some(limit) => begin.elapsed() >= limit,
                None => round >= SHORT,
            };
            if is_over || searched.findings.len() >= ENOUGH {
                break 'search;
            }
            let raw = seed.damaged(round);
            searched.inputs += 1;
            let (is_read, what) = finding(workload, &raw);
            searched.read += u64::from(is_read);
            let Some(what) = what else {
                continue;
            };
            searched.panics += u64::from(what == PANICS);
            searched.findings.push(format!(
                "{}/{} in round {round}: {what}\n--- {} {:?}\n{}",
                workload.id(),
                seed.name(),
                raw.format.escape_debug(),
                raw.exit,
                String::from_utf8_lossy(&raw.stdout.0).escape_debug()
            ));
        }
    }
    searched.took = begin.elapsed();
    searched
}

#[test]
fn tool_output_gives_error_or_finite_positive_numbers() {
    let only = std::env::var(ONLY).ok();
    let limit = std::env::var(SECONDS).ok().map(|text| {
        let seconds: f64 = text.parse().expect("a number of seconds");
        Duration::from_secs_f64(seconds)
    });
    let captures = captures();
    let workloads: Vec<&dyn Workload> = workload::WORKLOADS
        .iter()
        .copied()
        .filter(|workload| only.as_ref().is_none_or(|only| only == workload.id()))
        .collect();
    assert!(!workloads.is_empty(), "there is no workload {only:?}");
    let mut findings: Vec<String> = Vec::new();
    // Panics are findings; their messages would hide the summary. Other threads' panics do not count.
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !IS_SEARCHING.get() {
            others(panic);
        }
    }));
    // `cargo xtask fuzz` counts these lines.
    println!(
        "{:<18} {:>8} {:>10} {:>10} {:>7}",
        "decoder", "seconds", "inputs", "read", "panics"
    );
    for workload in workloads {
        let seeds = seeds(workload, &captures);
        assert!(
            !seeds.is_empty(),
            "there is no real output of `{}`",
            workload.id()
        );
        IS_SEARCHING.set(true);
        let searched = search(workload, &seeds, limit);
        IS_SEARCHING.set(false);
        println!(
            "{:<18} {:>8.1} {:>10} {:>10} {:>7}",
            workload.id(),
            searched.took.as_secs_f64(),
            searched.inputs,
            searched.read,
            searched.panics
        );
        let is_too_rough = searched.read == 0 && searched.findings.is_empty();
        findings.extend(is_too_rough.then(|| {
            let id = workload.id();
            format!("{id}: no damaged output was read: the search is too rough to find anything")
        }));
        findings.extend(searched.findings);
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
