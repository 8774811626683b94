//! The answer of `tare why` in a sentence: what the command costs, why, and what it would take to know more.
//!
//! What it cannot see: the trials; it words what was concluded from them.

use tare_model::dossier::{DossierCell, DossierFinding, DossierLadder, Span};
use tare_model::{ArmSpec, Status, Verdict, WhyOutcome, whole_part};

use super::{FEWEST, own, readings};
use crate::analyze::RunData;
use crate::cause;
use crate::config::units;
use crate::env::{self, own::OWN};
use crate::workload::sanity::CUT_OFF;

/// What is said where nothing is suspected that may be told, with what there is to look at instead.
pub(super) fn unexplained(env: &ArmSpec, has_ladder: bool) -> &'static str {
    match (env::own::is_own(&env.settings), has_ladder) {
        (false, true) => "and no rule here explains it; the ladder says where it arises",
        (false, false) => "and no rule here explains it",
        (true, true) => {
            "and none of its differences was shown to carry it; the ladder says where it arises"
        }
        (true, false) => {
            "and none of its differences was shown to carry it; a longer `--budget` tries more of them"
        }
    }
}

/// Of a cost that is said to be explained whole, surely no more than so many percent are left.
const SURELY_LEFT: f64 = 25.0;

/// A share of the cost that is surely larger than this is most of it.
const MOST_OF_IT: f64 = 0.5;

/// Why the command costs more, as far as that was proved, and what that leaves.
pub(super) fn because(
    findings: &[DossierFinding],
    explained: Option<&Span>,
    unexplained: &str,
) -> String {
    let first = findings.first();
    let is = |status: Status| first.filter(|finding| finding.status == status);
    let what = if let Some(finding) = is(Status::Confirmed) {
        format!("mostly because of {}", named(finding))
    } else if let Some(finding) = is(Status::Supported) {
        let least = finding.share.as_ref().map_or(0.0, |share| share.low);
        let part = if least > MOST_OF_IT { "most" } else { "part" };
        format!("{part} of it because of {}", named(finding))
    } else if let Some(finding) = is(Status::Undecided) {
        format!(
            "perhaps because of {}; it was tried, and that decided nothing",
            catalogued(&finding.cause)
        )
    } else if let Some(finding) = is(Status::Untested) {
        let tried = match finding.arm {
            Some(_) => "was tried too seldom to tell",
            None => "was not tried",
        };
        format!(
            "perhaps because of {}; it {tried}",
            catalogued(&finding.cause)
        )
    } else {
        unexplained.to_owned()
    };
    let rest = explained.map_or_else(String::new, |share| {
        let left = |explained: f64| (100.0 * (1.0 - explained)).max(0.0);
        if left(share.point) < 5.0 && left(share.low) < SURELY_LEFT {
            "; that explains all of it".to_owned()
        } else {
            format!(
                "; {:.0} % of it stays unexplained [{:.0}, {:.0}]",
                left(share.point),
                left(share.high),
                left(share.low)
            )
        }
    });
    format!("{what}{rest}")
}

/// A cause by its name, with what that means in the words of its title where the catalogue has one.
fn catalogued(cause: &str) -> String {
    let Some(entry) = cause::find(cause) else {
        return cause.to_owned();
    };
    let mut letters = entry.title.chars();
    let first = letters.next().map(char::to_lowercase);
    let first = first.into_iter().flatten();
    format!("{cause} ({})", first.chain(letters).collect::<String>())
}

/// A cause by its name and meaning; a difference of the user's own by what it is, with what there is to change.
fn named(finding: &DossierFinding) -> String {
    match finding.claim.strip_suffix(own::CLAIM) {
        _ if !finding.cause.starts_with(OWN) => catalogued(&finding.cause),
        Some(what) => format!("{what}: {} (price: {})", finding.advice, finding.price),
        None => finding.claim.clone(),
    }
}

/// The outcome, the answer in a sentence, and what could have been seen.
pub(super) fn answer(
    cell: Option<&DossierCell>,
    env: &ArmSpec,
    because: Option<&str>,
    spent: &Spent,
) -> (WhyOutcome, String, Option<f64>) {
    let place = if env::own::is_own(&env.settings) {
        "your container".to_owned()
    } else {
        format!("`{}`", env.id)
    };
    let Some(cell) = cell else {
        return (
            WhyOutcome::Undecided,
            format!("nothing could be compared with {place}"),
            None,
        );
    };
    let Some(ratio) = cell.ratio else {
        return (
            WhyOutcome::Undecided,
            format!(
                "{}{} block{} of host and {place} are too few for an interval: it takes six, which `--budget {}` holds",
                apart(cell),
                cell.n_blocks,
                if cell.n_blocks == 1 { "" } else { "s" },
                units::at_least(spent.budget_ns(FEWEST))
            ),
            None,
        );
    };
    match cell.verdict {
        Verdict::MaterialCost | Verdict::Cost => {
            let times = times(cell, &ratio, &place);
            let because = because.map_or_else(String::new, |because| format!(", {because}"));
            (
                WhyOutcome::Cost,
                format!("the command costs {times}{because}"),
                None,
            )
        }
        Verdict::Inconclusive => {
            let more = more_time(cell, spent);
            let text = if ratio.high / ratio.low.max(f64::MIN_POSITIVE) < WIDE {
                format!(
                    "undecided: the command costs between {:.2} and {:.2} times as much in {place}{more}",
                    ratio.low, ratio.high
                )
            } else {
                format!(
                    "nothing can be said about {place}: the command differs so much between runs that it costs between {:.2} and {:.2} times as much there{more}",
                    ratio.low, ratio.high
                )
            };
            (WhyOutcome::Undecided, text, cell.mde)
        }
        _ => {
            let (told, at_most) = no_cost(cell, &ratio, &place);
            (WhyOutcome::None, told, at_most)
        }
    }
}

/// What is said where no cost was found, and what it may be at most.
fn no_cost(cell: &DossierCell, ratio: &Span, place: &str) -> (String, Option<f64>) {
    match cell.verdict {
        Verdict::Gain | Verdict::MaterialGain => (
            format!(
                "no cost found: the command costs less in {place}, {:.3} times as much [{:.3}, {:.3}]; that is an order effect, another program or another clock more often than a gift",
                ratio.point, ratio.low, ratio.high
            ),
            None,
        ),
        Verdict::NegligibleCost => (
            format!(
                "next to no cost in {place}: {} more [{}, {}], which is less than the {} that count here",
                percent(ratio.point - 1.0),
                percent(ratio.low - 1.0),
                percent(ratio.high - 1.0),
                percent(cell.margin)
            ),
            Some(ratio.high - 1.0),
        ),
        _ => {
            let at_most = (ratio.high - 1.0).max(0.0);
            (
                format!(
                    "no cost found in {place}: {} at most, at 95 %",
                    percent(at_most)
                ),
                Some(at_most),
            )
        }
    }
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

/// What stands beside the answer where the image's program was compared with another one of the host's: how much that
/// does, which is below the baseline and no part of the cost. None where nothing could be told.
pub(super) fn userland(ladder: &DossierLadder, baseline: &str) -> Option<String> {
    let step = ladder.rungs.first().filter(|rung| rung.arm == baseline)?;
    let (adds, base) = (step.adds?, ladder.base?);
    let is_told = (adds.low > 0.0 || adds.high < 0.0) && base.point > 0.0;
    is_told.then(|| {
        format!(
            "; beside that, and without any container, the image's own program takes {:.2} times as much as the host's: that is its userland (program, libraries, interpreter), and no setting of the container",
            (base.point + adds.point) / base.point
        )
    })
}

/// How much as many times, as far as that was seen.
fn times(cell: &DossierCell, ratio: &Span, place: &str) -> String {
    if cell.flags.iter().any(|flag| flag.id == CUT_OFF) {
        format!(
            "at least {:.2} times as much in {place} (runs were ended before their end)",
            ratio.low
        )
    } else {
        format!(
            "{:.2} times as much in {place} [{:.2}, {:.2}]",
            ratio.point, ratio.low, ratio.high
        )
    }
}

/// What few blocks show all the same: that every run inside took longer than every other one.
fn apart(cell: &DossierCell) -> String {
    match (cell.base, cell.env) {
        (Some(base), Some(env)) if base.high > 0.0 && env.low > base.high => format!(
            "each run inside took at least {:.1} times as long as each of the others; ",
            env.low / base.high
        ),
        _ => String::new(),
    }
}

/// An interval whose ends are so many times apart says nothing.
const WIDE: f64 = 4.0;

/// What the answer took so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    wall_ns: f64,
    /// One block of the two sides.
    block_ns: f64,
    n_blocks: u32,
}

impl Spent {
    pub(super) fn of(run: &RunData, baseline: &str, env: &str, n_blocks: u32) -> Self {
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

    /// What so many blocks would take: those of the two sides, and everything else as it was.
    fn budget_ns(&self, n_blocks: u32) -> u64 {
        /// Looking at the command once on either side comes before it.
        const LOOK: f64 = 5e9;
        let others_ns = (self.wall_ns - f64::from(self.n_blocks) * self.block_ns).max(0.0);
        whole_part(LOOK + others_ns + 1.3 * f64::from(n_blocks) * self.block_ns)
    }
}

/// What is said of a container of the user's own that costs something, and of which nothing was left away so far.
pub(super) fn not_searched(
    env: &ArmSpec,
    arms: &[ArmSpec],
    verdict: Option<Verdict>,
    spent: &Spent,
) -> Option<String> {
    /// As many blocks of the two sides take as long as a few rounds of the search and a proof.
    const SEARCH: u32 = 70;
    let costs = matches!(verdict, Some(Verdict::MaterialCost | Verdict::Cost));
    // Where there are plain containers beside it, the ladder says whether there is anything to search for.
    let is_done = |arm: &ArmSpec| own::is_of_search(arm) || arm.role.rung.is_some();
    let is_open = costs && env::own::is_own(&env.settings) && !arms.iter().any(is_done);
    is_open.then(|| {
        format!(
            ". None of its differences was left away: there was no time for it; `--budget {}` gives it",
            units::at_least(spent.budget_ns(spent.n_blocks.saturating_add(SEARCH)))
        )
    })
}

/// How much more it would take.
fn more_time(cell: &DossierCell, spent: &Spent) -> String {
    /// So many times as many blocks are no advice.
    const MOST: u32 = 100;
    match cell.further_blocks {
        Some(blocks) if blocks / MOST > cell.n_blocks.max(1) => {
            "; give the command more to do, or a quieter machine".to_owned()
        }
        Some(blocks) if blocks > 0 => format!(
            "; `--budget {}` would tell more",
            units::at_least(spent.budget_ns(cell.n_blocks.saturating_add(blocks)))
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use tare_model::dossier::DossierRung;

    use super::super::conclude::tests::finding;
    use super::*;

    #[test]
    fn another_userland_is_told_beside_the_answer_where_it_is_a_step() {
        let ladder = |arm: &str, low: f64| DossierLadder {
            arm: "docker".into(),
            metric: "command.wall.time".into(),
            unit: "ns".into(),
            base: Some(Span::new(9.0, 10.0, 11.0)),
            env: None,
            total: None,
            rungs: vec![DossierRung {
                title: "userland".into(),
                arm: arm.into(),
                adds: Some(Span::new(low, 5.0, 6.0)),
                note: None,
            }],
            sum: None,
            sum_span: None,
            agrees: None,
            together: Vec::new(),
        };
        let told = |arm: &str, low: f64| userland(&ladder(arm, low), "image");
        assert!(told("image", 4.0).unwrap().contains("1.50 times"));
        assert_eq!(told("image", -1.0), None);
        assert_eq!(told("plain", 4.0), None);
    }

    #[test]
    fn what_was_tried_and_decided_nothing_is_no_reason() {
        let told = |status| because(&[finding("a", status, "off-1", 0.2)], None, "");
        assert!(told(Status::Supported).starts_with("part of it because of a"));
        let whole = finding("a", Status::Supported, "off-1", 0.9);
        assert!(because(&[whole], None, "").starts_with("most of it because of a"));
        assert_eq!(
            told(Status::Undecided),
            "perhaps because of a; it was tried, and that decided nothing"
        );
    }

    #[test]
    fn what_nothing_explains_is_told_with_what_there_is_to_look_at() {
        let env = |settings: tare_model::Params| {
            let id = tare_model::ArmId::new("docker").unwrap();
            ArmSpec::new(id, "docker", settings)
        };
        let own = env(tare_model::Params::new().with(env::own::LIKE, "web"));
        let of_ours = env(tare_model::Params::new());
        let told = |arm: &ArmSpec, has_ladder| because(&[], None, unexplained(arm, has_ladder));
        for arm in [&own, &of_ours] {
            assert!(told(arm, true).contains("the ladder says"));
            assert!(!told(arm, false).contains("ladder"));
        }
        assert!(told(&own, false).contains("`--budget`"));
    }

    #[test]
    fn a_cost_of_which_nothing_was_left_away_is_told_with_the_time_that_it_takes() {
        let arm = |id: &str, settings: tare_model::Params| {
            ArmSpec::new(tare_model::ArmId::new(id).unwrap(), "docker", settings)
        };
        let own = arm(
            "docker",
            tare_model::Params::new().with(env::own::LIKE, "web"),
        );
        let spent = Spent {
            wall_ns: 20e9,
            block_ns: 2e9,
            n_blocks: 6,
        };
        let told = |env: &ArmSpec, more: &[&str], verdict| {
            let more = more.iter().map(|id| arm(id, tare_model::Params::new()));
            let arms: Vec<ArmSpec> = std::iter::once(env.clone()).chain(more).collect();
            not_searched(env, &arms, Some(verdict), &spent)
        };
        let cost = Verdict::MaterialCost;
        let line = told(&own, &[], cost).unwrap();
        assert!(line.contains("`--budget 4m`"), "{line}");
        assert_eq!(told(&own, &["try-1"], cost), None);
        assert_eq!(told(&own, &[], Verdict::Equivalent), None);
        let of_ours = arm("docker", tare_model::Params::new());
        assert_eq!(told(&of_ours, &[], cost), None);
    }

    #[test]
    fn a_cause_of_the_catalogue_is_told_in_words() {
        let told = |status| {
            because(
                &[finding("cpu.cfs-quota-throttle", status, "off-1", 0.2)],
                None,
                "",
            )
        };
        for status in [
            Status::Confirmed,
            Status::Supported,
            Status::Undecided,
            Status::Untested,
        ] {
            let told = told(status);
            let named = "because of cpu.cfs-quota-throttle (a processor quota stops ";
            assert!(told.contains(named), "{told}");
        }
    }
}
