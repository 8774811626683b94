//! `tare selfcheck`: how often this Tare errs on this machine, counted where the truth is known.
//!
//! Three parts: golden numbers of another implementation, made-up runs through the whole analysis, and a run of three
//! equal arms of this machine that is judged window by window. The run is stored like any other; what came of it is a line
//! of a file next to the store, which later runs read.

use std::fmt::Write as _;

use clap::Args;
use tare_model::{Study, fact};
use tare_stats::{Differences, clustered};

use super::checked::{Checked, SLOPE, WINDOW, keep, machine, now_s, of};
use super::home::Place;
use super::progress::Progress;
use super::rounds::{Ending, Runner};
use super::session::Session;
use super::{Exit, Failed, output, recount};
use crate::analyze::truth::{Replayed, Sides, replayed, simulated};
use crate::analyze::{LEVEL, RunData};
use crate::config::{self, Adjustments, units};
use crate::store::Store;
use crate::workload;

/// The third equal arm.
const THIRD: &str = "third";
/// Made-up runs, and in a long check.
const SIMULATED: (u32, u32) = (400, 4_000);
/// How long equal arms are measured, and in a long check, nanoseconds.
const MEASURED_NS: (u64, u64) = (120_000_000_000, 8 * 3_600_000_000_000);
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

#[derive(Debug, Args)]
pub(crate) struct Selfcheck {
    /// Measure equal arms for this time (default: 2m).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    budget: Option<u64>,
    /// Check for a night: 8 hours of equal arms, 4000 made-up runs.
    #[arg(long)]
    long: bool,
    /// Judge a stored selfcheck run instead of measuring one.
    #[arg(long, value_name = "RUN", conflicts_with = "budget")]
    recording: Option<String>,
    /// Say how often a stored run's last arm is found slower, and keep nothing: it does so much more work.
    #[arg(long, value_parser = units::fraction, value_name = "PERCENT", requires = "recording")]
    planted: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Both differences of ten blocks, and the estimate with its interval by another implementation.
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

/// How many golden numbers do not agree.
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

impl Selfcheck {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let mut store = Store::open(&place.store_file()?)?;
        let recording = match &self.recording {
            Some(text) => {
                let run = recount::resolve(&store, text)?;
                Some(recount::run_data(store.run(&run)?))
            }
            None => self.measure(place, &mut store)?,
        };
        let Some(recording) = recording else {
            output::tell("interrupted: nothing of this selfcheck is kept but its run");
            return Ok(Exit::Interrupted);
        };
        if let Some(planted) = self.planted {
            output::text(&planted_text(&recording, planted))?;
            return Ok(Exit::Done);
        }
        let checked = self.judge(&recording)?;
        keep(&Place::state_folder()?, &checked)?;
        if self.json {
            let text = serde_json::to_string_pretty(&checked);
            let text = text.map_err(|error| Failed::new(Exit::Failure, error))?;
            output::data(&format!("{text}\n"))?;
        } else {
            output::text(&checked.page())?;
        }
        Ok(if checked.passed {
            Exit::Done
        } else {
            Exit::Failure
        })
    }

    /// A run of three equal arms; `None` where it was interrupted.
    fn measure(&self, place: &Place, store: &mut Store) -> Result<Option<RunData>, Failed> {
        let study = self.study()?;
        let mut session = Session::begin(place, None)?;
        let progress = Progress::new();
        let begun_ns = session.now_ns();
        let mut runner = Runner::new(place, &mut session, store, &progress, begun_ns);
        let measured = runner.measure(&study);
        progress.finish();
        let is_clean = match &measured {
            Ok(measured) => measured.left_behind.is_empty(),
            Err(failed) => !failed.may_have_left,
        };
        if is_clean {
            session.end()?;
        }
        let measured = measured?;
        Ok((measured.ending == Ending::Whole).then_some(measured.data))
    }

    fn study(&self) -> Result<Study, Failed> {
        let default_ns = if self.long {
            MEASURED_NS.1
        } else {
            MEASURED_NS.0
        };
        let adjustments = Adjustments {
            budget_ns: Some(self.budget.unwrap_or(default_ns)),
            drawn_seed: crate::cx::drawn_seed(),
            ..Adjustments::default()
        };
        Ok(config::parse("selfcheck", STUDY, &adjustments)?)
    }

    fn judge(&self, recording: &RunData) -> Result<Checked, Failed> {
        let n = if self.long { SIMULATED.1 } else { SIMULATED.0 };
        let made_up = simulated("getppid", &workload::find, n)
            .ok_or_else(|| Failed::new(Exit::Failure, "there is no workload `getppid`"))?;
        let by = |arm| replayed(recording, &workload::find, arm, 1.0, WINDOW);
        let third = by(THIRD);
        let Replayed { sides: aa, .. } = by(tare_model::study::A_PRIME);
        if third.sides.n == 0 {
            let run = &recording.head.run;
            let problem = format!("run {run} holds no {WINDOW} blocks of an arm `{THIRD}`");
            return Err(Failed::new(Exit::Usage, problem)
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
        Ok(Checked {
            unix_s: now_s(),
            tare: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(&facts),
            kernel: of(&facts, fact::KERNEL_RELEASE),
            run: recording.head.run.to_string(),
            golden_wrong,
            simulated: made_up.sides.into(),
            mutant: made_up.mutant.into(),
            slope: made_up.slope,
            third: third.sides.into(),
            aa: aa.into(),
            passed,
        })
    }
}

/// How often what is planted in the last arm of a recorded run is found, and on which side intervals miss it.
fn planted_text(recording: &RunData, planted: f64) -> String {
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

    #[test]
    fn golden_numbers_agree() {
        assert_eq!(golden_wrong(), 0);
    }

    #[test]
    fn study_of_equal_arms_is_sound() {
        let check = Selfcheck {
            budget: Some(1_000_000_000),
            long: false,
            recording: None,
            planted: None,
            json: false,
        };
        let study = check.study().unwrap();
        let arms: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
        assert_eq!(arms, ["host", tare_model::study::A_PRIME, THIRD]);
        assert_eq!(study.budget_ns, Some(1_000_000_000));
    }
}
