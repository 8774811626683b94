//! Writes the answer of `tare why`: a headline that says how much slower or faster the command is, and the lines
//! below it.
//!
//! The headline never names an untested cause; leads are listed below it as such ([`lines`]).

use tare_model::dossier::{DossierCell, DossierLadder, Span};
use tare_model::{ArmSpec, Verdict, WhyOutcome, whole_part};
use tare_stats::{Interval, detectable_effect};

use super::settled::{blocks_until_sure, is_sure};
use super::{FEWEST, HOST, readings, user_container};
use crate::analyze::{LEVEL, RunData};
use crate::config::units;
use crate::driver::user_container as own_env;
use crate::workload::sanity::CUT_OFF;

mod lines;
mod size;

pub(super) use lines::{Below, below};
pub(super) use size::Terms;

/// An interval whose ends differ by this factor is uninformative.
const WIDE: f64 = 4.0;

/// The outcome, the headline's text, and the smallest detectable slowdown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Headline {
    pub(super) outcome: WhyOutcome,
    pub(super) text: String,
    pub(super) could_see: Option<f64>,
}

/// The environment, its baseline, and the metric's terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    pub(super) env: &'a ArmSpec,
    pub(super) baseline: &'a str,
    pub(super) terms: Terms,
}

impl Sides<'_> {
    fn inside(&self) -> String {
        if self.baseline == user_container::sides::FIRST {
            "with b".to_owned()
        } else if own_env::is_own(&self.env.settings) {
            "in your container".to_owned()
        } else {
            format!("in `{}`", self.env.id)
        }
    }

    fn outside(&self) -> &'static str {
        match self.baseline {
            user_container::sides::FIRST => "than with a",
            user_container::PLAIN => "than in a plain container",
            HOST if !own_env::is_own(&self.env.settings) => "than on the host",
            _ => "than outside",
        }
    }
}

/// The outcome of a comparison, one-sided: "is it slower inside?" is answered with no as soon as a relevant slowdown
/// is excluded, and with yes if that is sure or `has_cause`, as its cause was then proved in separate blocks.
pub(super) fn outcome(cell: &DossierCell, has_cause: bool) -> WhyOutcome {
    let Some(ratio) = cell.ratio else {
        return WhyOutcome::Undecided;
    };
    let is_sure = has_cause || is_sure(cell);
    match cell.verdict {
        Verdict::MaterialCost | Verdict::Cost if !is_sure => WhyOutcome::Undecided,
        Verdict::Gain | Verdict::MaterialGain if !is_sure => WhyOutcome::None,
        Verdict::MaterialCost | Verdict::Cost => WhyOutcome::Cost,
        Verdict::Gain | Verdict::MaterialGain => WhyOutcome::Gain,
        Verdict::Inconclusive if ratio.high > 1.0 + cell.margin => WhyOutcome::Undecided,
        _ => WhyOutcome::None,
    }
}

/// Writes the headline; `has_cause` if a cause was proved.
pub(super) fn headline(
    cell: Option<&DossierCell>,
    sides: Sides<'_>,
    spent: &Spent,
    has_cause: bool,
) -> Headline {
    let inside = sides.inside();
    let terms = sides.terms;
    let undecided = |text: String| Headline {
        outcome: WhyOutcome::Undecided,
        text,
        could_see: None,
    };
    let Some(cell) = cell else {
        return undecided(format!("Inconclusive: nothing could be compared {inside}."));
    };
    let Some(ratio) = cell.ratio else {
        return undecided(too_few(cell, sides, spent));
    };
    let outcome = outcome(cell, has_cause);
    let (text, could_see) = match outcome {
        WhyOutcome::Cost | WhyOutcome::Gain => {
            let numbers: Vec<String> = size::levels(cell)
                .into_iter()
                .chain([size::interval(&ratio)])
                .collect();
            let numbers = numbers.join(", ");
            let outside = sides.outside();
            let text = if cell.flags.iter().any(|flag| flag.id == CUT_OFF) {
                format!(
                    "At least {} {inside} {outside} (runs were ended before their end).",
                    size::difference(ratio.low, terms)
                )
            } else {
                let size = size::difference(ratio.point, terms);
                format!("{}{size} {inside} {outside} ({numbers}).", terms.subject)
            };
            (text, None)
        }
        WhyOutcome::Undecided => (inconclusive(cell, &ratio, sides, spent), cell.mde),
        _ => {
            let could_see = detectable(&ratio, cell.n_blocks);
            (no_slowdown(cell, &ratio, sides, could_see), could_see)
        }
    };
    Headline {
        outcome,
        text,
        could_see,
    }
}

fn no_slowdown(
    cell: &DossierCell,
    ratio: &Span,
    sides: Sides<'_>,
    could_see: Option<f64>,
) -> String {
    let range = size::range(ratio, sides.terms);
    let inside = sides.inside();
    let blocks = plural(cell.n_blocks, "block");
    if cell.verdict == Verdict::NegligibleCost {
        return format!(
            "No relevant {}: {range} {inside}, less than the {} that count ({blocks}).",
            sides.terms.loss,
            size::fraction(cell.margin)
        );
    }
    let could = could_see.map_or_else(String::new, |could_see| {
        format!("; could have detected {}", size::fraction(could_see))
    });
    format!(
        "No {}: {range} {inside} ({blocks}{could}).",
        sides.terms.loss
    )
}

fn inconclusive(cell: &DossierCell, ratio: &Span, sides: Sides<'_>, spent: &Spent) -> String {
    let range = size::range(ratio, sides.terms);
    let inside = sides.inside();
    let is_cost = matches!(cell.verdict, Verdict::Cost | Verdict::MaterialCost);
    let (note, further) = if is_cost {
        let note = " (95 % CI), which is not yet sure at 99 % confidence";
        (note, blocks_until_sure(cell))
    } else if ratio.high / ratio.low.max(f64::MIN_POSITIVE) < WIDE {
        ("", cell.further_blocks)
    } else {
        (": its runs differ too much", cell.further_blocks)
    };
    format!(
        "Inconclusive: {range} {inside}{note}.{}",
        more_time(cell, further, spent)
    )
}

/// The headline for too few blocks. It still says if every run inside took longer than every run outside.
fn too_few(cell: &DossierCell, sides: Sides<'_>, spent: &Spent) -> String {
    let apart = match (cell.base, cell.env) {
        (Some(base), Some(env)) if base.high > 0.0 && env.low > base.high => format!(
            "each run {} was at least {} than each outside, but ",
            sides.inside(),
            size::difference(env.low / base.high, sides.terms)
        ),
        _ => String::new(),
    };
    format!(
        "Inconclusive: {apart}{} are too few for an interval. `--budget {}` holds the six that it takes.",
        plural(cell.n_blocks, "block"),
        units::at_least(spent.budget_ns(FEWEST))
    )
}

/// How much more time a conclusive answer needs.
fn more_time(cell: &DossierCell, further: Option<u32>, spent: &Spent) -> String {
    /// If more than this many times the blocks are needed, a larger budget is not advised.
    const MOST: u32 = 100;
    match further {
        Some(blocks) if blocks / MOST > cell.n_blocks.max(1) => {
            " Give the command more to do, or use a quieter machine.".to_owned()
        }
        Some(blocks) if blocks > 0 => format!(
            " `--budget {}` should settle it.",
            units::at_least(spent.budget_ns(cell.n_blocks.saturating_add(blocks)))
        ),
        _ => String::new(),
    }
}

/// The smallest slowdown that is detected with 80 % power, as a fraction.
fn detectable(ratio: &Span, n_blocks: u32) -> Option<f64> {
    if ratio.low <= 0.0 {
        return None;
    }
    let [low, point, high] = [ratio.low, ratio.point, ratio.high].map(f64::ln);
    let interval = Interval::new(low, point, high, LEVEL);
    detectable_effect(&interval, n_blocks as usize).filter(|it| it.is_finite())
}

/// The headline for a command that takes almost no time compared with starting its environment.
pub(super) fn start_up(told: &Headline, life_ns: f64, sides: Sides<'_>) -> Headline {
    let takes = format!(
        "starting and removing `{}` takes {}",
        sides.env.id,
        size::time(life_ns)
    );
    Headline {
        text: match told.outcome {
            WhyOutcome::None => format!("The program itself runs at the same speed; {takes}."),
            _ => format!("{} Apart from that {takes}.", told.text),
        },
        outcome: WhyOutcome::StartUp,
        could_see: told.could_see,
    }
}

/// How much slower the image's program is than the host's. The baseline already contains this, so that the headline
/// does not. `None` if unknown.
pub(super) fn userland(ladder: &DossierLadder, baseline: &str) -> Option<String> {
    let step = ladder.rungs.first().filter(|rung| rung.arm == baseline)?;
    let (adds, base) = (step.adds?, ladder.base?);
    let is_shown = (adds.low > 0.0 || adds.high < 0.0) && base.point > 0.0;
    let ratio = (base.point + adds.point) / base.point;
    is_shown.then(|| {
        format!(
            "not in these numbers: without any container the image's own program is {} than the host's (another build of it, its libraries or its interpreter)",
            size::difference(ratio, Terms::for_metric(&ladder.metric))
        )
    })
}

fn plural(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The time spent so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    wall_ns: f64,
    /// One block of the two sides.
    block_ns: f64,
    n_blocks: u32,
}

impl Spent {
    pub(super) fn new(run: &RunData, baseline: &str, env: &str, n_blocks: u32) -> Self {
        let mean = |arm: &str| {
            let trials = run.trials.iter();
            let of_arm = trials.filter(|data| data.trial.cell.arm.as_str() == arm);
            let times: Vec<f64> = of_arm.map(|data| readings::own_ns(data) as f64).collect();
            times.iter().sum::<f64>() / times.len().max(1) as f64
        };
        Self {
            wall_ns: run.head.wall_s * 1e9,
            block_ns: mean(baseline) + mean(env),
            n_blocks,
        }
    }

    /// The budget for `n_blocks` blocks of the two sides, with all other costs unchanged.
    fn budget_ns(&self, n_blocks: u32) -> u64 {
        /// Time to observe the command once on each side beforehand.
        const LOOK: f64 = 5e9;
        /// What was spent was too little, however cheap another block looks.
        const MORE: f64 = 1.5;
        let others_ns = (self.wall_ns - f64::from(self.n_blocks) * self.block_ns).max(0.0);
        let needed_ns = LOOK + others_ns + 1.3 * f64::from(n_blocks) * self.block_ns;
        whole_part(needed_ns.max(MORE * self.wall_ns))
    }

    /// A budget that also holds a search for the cause.
    fn with_search(&self) -> String {
        /// A few rounds of the search and a proof take as long as this many blocks of the two sides.
        const SEARCH: u32 = 70;
        units::at_least(self.budget_ns(self.n_blocks.saturating_add(SEARCH)))
    }
}

#[cfg(test)]
mod tests;
