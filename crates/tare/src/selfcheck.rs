//! Measures the error rate of this Tare on this machine where the true value is known; judges, stores and prints it.
//!
//! Three parts: golden numbers of another implementation, simulated runs through the whole analysis, and a run of
//! three equal arms of this machine, judged window by window.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tare_model::dossier::Dossier;
use tare_model::{Facts, Study, fact};
use tare_stats::{Differences, clustered};

use crate::analyze::truth::{Replayed, Sides, replayed, simulated};
use crate::analyze::{LEVEL, RunData};
use crate::config::{self, Adjustments};
use crate::cx::{Clock, SystemClock, files};
use crate::failed::Failed;
use crate::output;
use crate::session::Session;
use crate::session::home::GivenPaths;
use crate::store::Store;
use crate::why::rounds::{Ending, Runner};
use crate::workload;

/// File next to the store, one line per selfcheck.
const FILE: &str = "selfchecks.jsonl";
/// Blocks per window: as many as a short run has.
pub(crate) const WINDOW: u32 = 10;
/// How far the slope of estimates over planted effects may be from 1.
pub(crate) const SLOPE: f64 = 0.02;

/// The third equal arm.
const THIRD: &str = "third";
/// Both differences of ten blocks; the estimate with its interval, computed by another implementation.
const GOLDEN: ([[f64; 2]; 10], [f64; 3]) = (
    [
        [0.011, 0.007],
        [-0.004, 0.003],
        [0.022, 0.019],
        [0.009, -0.002],
        [0.031, 0.035],
        [0.002, 0.009],
        [0.014, 0.011],
        [-0.011, -0.006],
        [0.027, 0.018],
        [0.006, 0.012],
    ],
    [0.002, 0.0105, 0.02],
);

/// The number of golden numbers that do not agree.
fn golden_wrong() -> usize {
    let (blocks, expected) = GOLDEN;
    let blocks = blocks.map(|[first, second]| Differences::two(first, second));
    let found = clustered(&blocks, LEVEL).map(|found| found.interval);
    let Ok(found) = found else {
        return expected.len();
    };
    let found = [found.low, found.point, found.high];
    let pairs = found.iter().zip(expected);
    pairs
        .filter(|(ours, theirs)| (*ours - theirs).abs() > 1e-9)
        .count()
}

/// Result of a selfcheck, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) unix_s: u64,
    pub(crate) tare: String,
    /// CPU model and count.
    pub(crate) machine: String,
    pub(crate) kernel: String,
    /// The run of equal arms.
    pub(crate) run: String,
    /// The number of golden numbers that do not agree.
    pub(crate) golden_wrong: usize,
    pub(crate) simulated: Sides,
    pub(crate) mutant: Sides,
    pub(crate) slope: f64,
    pub(crate) third: Sides,
    pub(crate) aa: Sides,
    pub(crate) passed: bool,
}

/// The shares of intervals that are wrongly above the true value (slower), and wrongly below (faster).
fn rates(counted: Sides) -> [String; 2] {
    let n = counted.n.max(1) as f64;
    [counted.above, counted.below].map(|count| format!("{:.1} %", 100.0 * count as f64 / n))
}

fn line(counted: Sides) -> String {
    let [slower, faster] = rates(counted);
    let Sides { n, above, below } = counted;
    format!(
        "{n} intervals, {above} too slow ({slower}), {below} too fast ({faster}); 2.5 % each are expected"
    )
}

pub(crate) fn now_s() -> u64 {
    let unix_ns = SystemClock::default().unix_ns();
    u64::try_from(unix_ns).unwrap_or(0) / 1_000_000_000
}

/// Formats an age: `90 s`, `9 min`, `7 h`, `12 days`.
fn age(seconds: u64) -> String {
    const HOUR: u64 = 3_600;
    match seconds / HOUR {
        0..2 => output::lasting(seconds * 1_000_000_000),
        hours @ 2..48 => format!("{hours} h"),
        hours => format!("{} days", hours / 24),
    }
}

pub(crate) fn fact_or_unknown(facts: &Facts, name: &str) -> String {
    facts.get(name).cloned().unwrap_or_default()
}

pub(crate) fn machine(facts: &Facts) -> String {
    let parts = [fact::CPU_MODEL, fact::CPU_COUNT].map(|name| fact_or_unknown(facts, name));
    parts.join(" × ")
}

const STUDY: &str = r#"id = "selfcheck"
title = "Three equal arms"
baseline = "host"

[design]
trial = "20ms"
blocks_max = 20000

[[arm]]
id = "host"

[[arm]]
id = "third"
driver = "host"
required = true

[[workload]]
id = "integer"
[[workload]]
id = "getppid"
[[workload]]
id = "stat"
[[workload]]
id = "pipe"
"#;

/// The study of three equal arms for this time.
pub(crate) fn equal_arms(budget_ns: u64) -> Result<Study, Failed> {
    let adjustments = Adjustments {
        budget_ns: Some(budget_ns),
        drawn_seed: crate::cx::drawn_seed(),
        ..Adjustments::default()
    };
    Ok(config::parse("selfcheck", STUDY, &adjustments)?)
}

/// Runs three equal arms; `None` if interrupted.
pub(crate) fn measure(
    study: &Study,
    place: &GivenPaths,
    store: &mut Store,
) -> Result<Option<RunData>, Failed> {
    Session::within(place, |session, progress| {
        let begun_ns = session.now_ns();
        let measured = Runner::new(session, store, progress, begun_ns).measure(study)?;
        let is_whole = measured.ending == Ending::Whole;
        Ok((is_whole.then_some(measured.data), measured.left_behind))
    })
}

impl Checked {
    /// Judges a run of three equal arms, and `n_simulated` simulated runs.
    pub(crate) fn judge(recording: &RunData, n_simulated: u32) -> Result<Self, Failed> {
        let made_up = simulated("getppid", &workload::find, n_simulated)
            .ok_or_else(|| Failed::failure("there is no workload `getppid`"))?;
        let by = |arm| replayed(recording, &workload::find, arm, 1.0, WINDOW);
        let third = by(THIRD);
        let Replayed { sides: aa, .. } = by(tare_model::study::A_PRIME);
        if third.sides.n == 0 {
            let run = &recording.head.run;
            let problem = format!("run {run} holds no {WINDOW} blocks of an arm `{THIRD}`");
            return Err(Failed::usage(problem)
                .hint("measure equal arms for longer: `tare selfcheck --budget 4m`"));
        }
        let baseline = recording.head.arms.first();
        let facts = baseline.map(|arm| arm.facts.clone()).unwrap_or_default();
        let golden_wrong = golden_wrong();
        let is_mutant_caught = !made_up.mutant.is_accepted();
        let passed = golden_wrong == 0
            && made_up.sides.is_accepted()
            && is_mutant_caught
            && (made_up.slope - 1.0).abs() <= SLOPE
            && third.sides.is_accepted()
            && aa.is_accepted();
        Ok(Self {
            unix_s: now_s(),
            tare: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(&facts),
            kernel: fact_or_unknown(&facts, fact::KERNEL_RELEASE),
            run: recording.head.run.to_string(),
            golden_wrong,
            simulated: made_up.sides,
            mutant: made_up.mutant,
            slope: made_up.slope,
            third: third.sides,
            aa,
            passed,
        })
    }

    /// The report, one page.
    pub(crate) fn page(&self) -> String {
        let word = |is_good: bool| if is_good { "ok    " } else { "FAILED" };
        let mut out = format!("Selfcheck: {}\n\n", verdict(self.passed));
        for (is_good, what, text) in [
            (
                self.golden_wrong == 0,
                "golden numbers",
                format!("{} disagree", self.golden_wrong),
            ),
            (
                self.simulated.is_accepted(),
                "made-up runs",
                line(self.simulated),
            ),
            (
                (self.slope - 1.0).abs() <= SLOPE,
                "planted doses",
                format!("slope of estimate on truth {:.4}", self.slope),
            ),
            (
                !self.mutant.is_accepted(),
                "wrong method",
                format!(
                    "mean of both copies: {} too slow, {} too fast; must be rejected",
                    self.mutant.above, self.mutant.below
                ),
            ),
            (
                self.third.is_accepted(),
                "third equal arm",
                line(self.third),
            ),
            (self.aa.is_accepted(), "A/A control", line(self.aa)),
        ] {
            let _ = writeln!(out, "{}  {what:<15}  {text}", word(is_good));
        }
        let _ = writeln!(
            out,
            "\nMachine {}, kernel {}, tare {}, run {}: windows of {WINDOW} blocks.",
            output::printable(&self.machine),
            output::printable(&self.kernel),
            output::printable(&self.tare),
            output::printable(&self.run),
        );
        out
    }
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

pub(crate) fn keep(state: &Path, checked: &Checked) -> Result<(), Failed> {
    let file = state.join(FILE);
    let mut text = files::read_text(&file).unwrap_or_default();
    let line = serde_json::to_string(checked);
    text.push_str(&line.map_err(Failed::failure)?);
    text.push('\n');
    Ok(files::write(&file, text.as_bytes())?)
}

/// The result of the last selfcheck on the machine of this run, for the end of its report; `None` if there is none.
pub(crate) fn last_here(dossier: &Dossier) -> Option<String> {
    let file: PathBuf = GivenPaths::existing_state_folder().ok()??.join(FILE);
    let text = files::read_text(&file).ok()?;
    let baseline = dossier.arms.iter().find(|arm| arm.baseline)?;
    last_of(&text, &baseline.facts, now_s())
}

fn last_of(text: &str, facts: &Facts, now_s: u64) -> Option<String> {
    let all = text.lines().rev();
    let mut all = all.filter_map(|line| serde_json::from_str::<Checked>(line).ok());
    let here = (machine(facts), fact_or_unknown(facts, fact::KERNEL_RELEASE));
    let last = all.find(|checked| {
        (checked.machine.as_str(), checked.kernel.as_str()) == (here.0.as_str(), here.1.as_str())
    })?;
    let [slower, faster] = rates(last.third);
    Some(format!(
        "selfcheck {} ago on this machine and kernel: {}; equal arms were called slower in {slower} and faster in {faster} of {} intervals",
        age(now_s.saturating_sub(last.unix_s)),
        verdict(last.passed),
        last.third.n
    ))
}

/// How often an effect planted in the last arm of a recorded run is found, and on which side intervals miss it.
pub(crate) fn planted_text(recording: &RunData, planted: f64) -> String {
    let arms = &recording.head.study.arms;
    let arm = arms.last().map_or("", |arm| arm.id.as_str());
    let found = replayed(recording, &workload::find, arm, 1.0 + planted, WINDOW);
    let mut out = String::new();
    for (metric, ratio) in &found.missed {
        let _ = writeln!(
            out,
            "missed: {} {:.4} [{:.4}, {:.4}]",
            output::printable(metric),
            ratio.point,
            ratio.low,
            ratio.high
        );
    }
    let Sides { n, above, below } = found.sides;
    let _ = writeln!(
        out,
        "found {} of {n} in {} windows, interval above the truth {above}, below {below}",
        found.found, found.n_windows
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(kernel: &str, unix_s: u64, slower: u64) -> Checked {
        let counted = |above| Sides {
            n: 200,
            above,
            below: 3,
        };
        Checked {
            unix_s,
            tare: "0".to_owned(),
            machine: "CPU × 2".to_owned(),
            kernel: kernel.to_owned(),
            run: "r".to_owned(),
            golden_wrong: 0,
            simulated: counted(4),
            mutant: counted(30),
            slope: 1.0,
            third: counted(slower),
            aa: counted(2),
            passed: slower < 20,
        }
    }

    #[test]
    fn last_check_of_this_machine_and_kernel_is_named() {
        let facts = Facts::from([
            (fact::CPU_COUNT.to_owned(), "2".to_owned()),
            (fact::CPU_MODEL.to_owned(), "CPU".to_owned()),
            (fact::KERNEL_RELEASE.to_owned(), "6.1".to_owned()),
        ]);
        let lines = [
            checked("6.1", 1_000, 2),
            checked("6.1", 2_000, 40),
            checked("7", 3_000, 5),
        ];
        let text: String = lines
            .iter()
            .map(|line| serde_json::to_string(line).unwrap() + "\n")
            .collect();
        let shown = last_of(&text, &facts, 2_000 + 7_200)
            .unwrap()
            .replace('\u{a0}', " ");
        assert!(
            shown.contains("FAILED") && shown.contains("20.0 %") && shown.contains("1.5 %"),
            "{shown}"
        );
        assert!(shown.starts_with("selfcheck 2 h ago"), "{shown}");
        assert_eq!(age(3 * 86_400 + 5), "3 days");
        assert!(last_of("no JSON\n", &facts, 1).is_none());
        let elsewhere = Facts::from([(fact::KERNEL_RELEASE.to_owned(), "6.1".to_owned())]);
        assert!(last_of(&text, &elsewhere, 1).is_none());
    }

    #[test]
    fn study_of_equal_arms_is_sound() {
        let study = equal_arms(1_000_000_000).unwrap();
        let arms: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(arms, ["host", tare_model::study::A_PRIME, "third"]);
        assert_eq!(study.budget_ns, Some(1_000_000_000));
    }

    #[test]
    fn golden_numbers_agree() {
        assert_eq!(golden_wrong(), 0);
    }

    #[test]
    fn selfcheck_page_lists_failed_checks() {
        let page = checked("6.1", 1, 40).page();
        assert!(page.starts_with("Selfcheck: FAILED"), "{page}");
        let failed: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("FAILED"))
            .collect();
        assert_eq!(failed.len(), 1, "{page}");
        assert!(failed[0].contains("third equal arm"), "{page}");
    }
}
