//! Decides which study of a question comes next, from what was measured so far.
//!
//! A state machine without I/O: the caller measures a study, concludes, and asks for the next one with the time that is
//! left. First both sides are compared, until a difference is clear or excluded. A difference is then explained: in
//! an environment by its suspects and the ladder (`studies::round`), in the user's container by a search among its
//! differences ([`Hunt`]). The rest of the time is for what is undecided.
//! Limits: a study that takes longer than planned leaves less for the next; the caller ends it with the budget.

use tare_model::dossier::{Dossier, Span};
use tare_model::{Status, Study, WhyOutcome};

use super::conclude::{self, WORTH_A_SEARCH};
use super::counterfactual::SuspectTrial;
use super::pace::{Before, PROOF_MOST, Pace, enough};
use super::readings::Readings;
use super::total::Total;
use super::user_container::{self, Hunt, PLAIN_BLOCKS};
use super::{Ask, First, is_settled, more_blocks, studies};
use crate::analyze::RunData;

/// The part of the time (1/N) for the first closer look. Of a user's container the first comparison is short.
const FIRST_PART: u64 = 2;
const FIRST_PART_OWN: u64 = 4;
/// Blocks of the first study that adds blocks to undecided results.
const AGAIN_FIRST: u32 = 24;
/// A search that proved nothing restarts if this fraction (1/N) of the budget is left.
const SECOND_PART: u64 = 4;
/// From this factor on, a few blocks show the slowdown clearly.
const PLAIN_FROM: f64 = 1.5;

/// What the user wants in addition to the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// The ladder, even if the command is not slower.
    pub ladder: bool,
    /// The fix applied at the end, for which time is kept.
    pub apply: bool,
}

/// Why a study comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Both sides are not compared precisely enough.
    Closer,
    /// So many suspects are switched off, perhaps with the steps of the ladder.
    Suspects {
        /// Number of arms that switch a suspect off.
        n_tried: usize,
        /// Whether steps of the ladder are measured too.
        with_ladder: bool,
    },
    /// A step of the search among differences, described.
    Differences {
        /// What is removed.
        what: String,
        /// Whether the search begins again, because nothing was proved.
        is_restart: bool,
    },
    /// Something was tried and is not decided.
    Undecided,
}

/// A study to measure, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// The study.
    pub study: Study,
    /// Why it comes next.
    pub reason: Reason,
}

/// What was measured so far, and the time left.
#[derive(Debug, Clone, Copy)]
pub struct SoFar<'a> {
    /// All runs of the answer, joined.
    pub data: &'a RunData,
    /// What is concluded from them.
    pub dossier: &'a Dossier,
    /// The rest of the budget, nanoseconds.
    pub left_ns: u64,
}

/// The state of one question.
#[derive(Debug)]
pub struct Engine<'a> {
    ask: &'a Ask,
    first: &'a First,
    options: EngineOptions,
    phase: Phase,
    has_searched: bool,
}

#[derive(Debug)]
enum Phase {
    /// Both sides, until a difference is clear or excluded; up to 1/N of the time at once.
    Comparing(u64),
    /// Suspects and the ladder; `None` after the last of them.
    Trying(Option<Vec<SuspectTrial>>),
    /// A search among the differences of the user's container.
    Searching(Box<Searching>),
    /// More blocks, so many next, for what was tried and is not decided.
    Deciding(u32),
    /// Both sides for the rest of the time; up to 1/N of it at once.
    Closing(u64),
    Over,
}

#[derive(Debug)]
struct Searching {
    hunt: Hunt,
    /// The study that is being measured.
    pending: Option<user_container::Next>,
    is_second: bool,
}

impl<'a> Engine<'a> {
    /// An engine for a question whose command was seen once on both sides.
    pub fn new(ask: &'a Ask, first: &'a First, options: EngineOptions) -> Self {
        Self {
            ask,
            first,
            options,
            phase: Phase::Comparing(first_part(ask)),
            has_searched: false,
        }
    }

    /// The first study. `None` if not even six blocks of both sides fit.
    pub fn first(&self, left_ns: u64) -> Option<Study> {
        studies::first_study(self.ask, self.first, left_ns)
    }

    /// Whether differences of the user's container were searched.
    pub fn has_searched(&self) -> bool {
        self.has_searched
    }

    /// The next study, if any. What the last one showed is in `so_far`.
    pub fn next(&mut self, so_far: SoFar<'_>) -> Option<Next> {
        loop {
            let next = match self.phase {
                Phase::Comparing(part) => self.closer(part, so_far, true),
                Phase::Closing(part) => self.closer(part, so_far, false),
                Phase::Trying(_) => self.suspects(so_far),
                Phase::Searching(_) => self.differences(so_far),
                Phase::Deciding(blocks) => self.undecided(blocks, so_far),
                Phase::Over => return None,
            };
            if next.is_some() {
                return next;
            }
            self.phase = self.following(so_far);
        }
    }

    /// The phase after one that has nothing more to measure.
    fn following(&self, so_far: SoFar<'_>) -> Phase {
        let differs = differs(so_far.dossier);
        match &self.phase {
            Phase::Comparing(_) if self.options.ladder || differs || self.may_differ(so_far) => {
                match self.search(so_far) {
                    Some(searching) => Phase::Searching(Box::new(searching)),
                    None => Phase::Trying(Some(conclude::suspects(so_far.data, so_far.dossier))),
                }
            }
            Phase::Trying(_) | Phase::Searching(_) if differs && self.options.apply => Phase::Over,
            Phase::Trying(_) | Phase::Searching(_) if differs => Phase::Deciding(AGAIN_FIRST),
            // An apparent difference may become inconclusive with more blocks; then both sides get the rest.
            Phase::Comparing(_) | Phase::Trying(_) | Phase::Searching(_) => {
                Phase::Closing(first_part(self.ask))
            }
            Phase::Deciding(_) | Phase::Closing(_) | Phase::Over => Phase::Over,
        }
    }

    /// More blocks of both sides until they are compared precisely enough, or the time is over; first with a part of
    /// the time, so that some is left to find the cause. `then_why`: a clear difference is enough, or one that remains
    /// after more blocks; the rest of the time is for the search, whose blocks include both sides.
    fn closer(&mut self, mut part: u64, so_far: SoFar<'_>, then_why: bool) -> Option<Next> {
        let ask = self.ask;
        while part > 0 && !is_settled(so_far.dossier) {
            let is_enough = part < first_part(ask) || self.is_plain(so_far);
            // For a user's container, time for the search is always reserved.
            let may = ask.own.is_none() && self.may_differ(so_far);
            if then_why && is_enough && (differs(so_far.dossier) || may) {
                return None;
            }
            let pace = self.pace(so_far);
            let searched = ask.own.as_ref().filter(|_| then_why);
            let search_ns = searched.map_or(0, |asks| user_container::search_ns(asks, pace));
            let left_ns = so_far.left_ns;
            let time_ns = (left_ns / part).min(left_ns.saturating_sub(search_ns));
            let n_blocks = so_far.dossier.cells.iter().map(|cell| cell.n_blocks);
            let time = (time_ns, n_blocks.max().unwrap_or(0));
            // With all of the time there may be another look, as long as one fits.
            let (is_last, smaller) = (part == 1, (part / 2).max(1));
            let study = more_blocks::closer(ask, self.first, pace, time, is_last);
            if let Some(study) = study {
                self.phase = if then_why {
                    Phase::Comparing(smaller)
                } else {
                    Phase::Closing(smaller)
                };
                let reason = Reason::Closer;
                return Some(Next { study, reason });
            }
            part = if is_last { 0 } else { smaller };
        }
        None
    }

    /// Suspects and steps that fit into the time.
    fn suspects(&mut self, so_far: SoFar<'_>) -> Option<Next> {
        let Phase::Trying(trials) = &mut self.phase else {
            return None;
        };
        let trials = trials.take()?;
        let (ask, data, dossier) = (self.ask, so_far.data, so_far.dossier);
        let metric = match dossier.why.as_ref().map(|why| why.outcome) {
            Some(WhyOutcome::StartUp) => conclude::START_UP,
            _ => &ask.metric,
        };
        let (readings, baseline) = (Readings::read(data), data.head.study.baseline.as_str());
        let total = Total::between(&readings, baseline, &ask.driver, metric);
        let before = Before {
            pace: self.pace(so_far),
            n_arms: data.head.arms.len(),
            // Several steps of a server would share the host's network, and the same port.
            has_ladder: dossier.ladder.is_some() || ask.call.client.is_some(),
            enough: enough(&total, PROOF_MOST),
        };
        let round = studies::round(ask, self.first, before, &trials, so_far.left_ns)?;
        let reason = Reason::Suspects {
            n_tried: round.n_tried(),
            with_ladder: round.has_steps(),
        };
        self.phase = Phase::Trying(round.is_open().then_some(round.waiting));
        let study = round.study;
        Some(Next { study, reason })
    }

    /// The search among the differences of the user's container, if the question is about one.
    fn search(&self, so_far: SoFar<'_>) -> Option<Searching> {
        let (ask, data) = (self.ask, so_far.data);
        let asks = ask.own.as_ref()?;
        // The catalogue of suspects is about environments, not about two sides.
        let trials = if asks.undo.is_empty() {
            conclude::suspects(data, so_far.dossier)
        } else {
            Vec::new()
        };
        let is_plain = self
            .ratios(so_far)
            .any(|it| it.low >= PLAIN_FROM || it.high <= 1.0 / PLAIN_FROM);
        let few =
            user_container::plain_blocks(asks, ask, data).or(is_plain.then_some(PLAIN_BLOCKS));
        Some(Searching {
            hunt: Hunt::new(asks, (ask, self.first), data, trials, few),
            pending: None,
            is_second: false,
        })
    }

    /// The next step of the search, which begins once more if it proved nothing and there is time.
    fn differences(&mut self, so_far: SoFar<'_>) -> Option<Next> {
        let (ask, first, pace) = (self.ask, self.first, self.pace(so_far));
        self.has_searched = true;
        let Phase::Searching(searching) = &mut self.phase else {
            return None;
        };
        let asks = ask.own.as_ref()?;
        if let Some(pending) = searching.pending.take() {
            searching.hunt.learn(&pending, so_far.data, ask);
        }
        let kept_ns = if self.options.apply {
            user_container::one_more_ns(asks, pace)
        } else {
            0
        };
        let left_ns = so_far.left_ns.saturating_sub(kept_ns);
        let n_arms = so_far.data.head.arms.len();
        let mut next = searching.hunt.next(ask, first, pace, n_arms, left_ns);
        let may_restart = !searching.is_second
            && !is_found(so_far.dossier)
            && left_ns >= ask.budget_ns / SECOND_PART;
        let is_restart = next.is_none() && may_restart;
        if is_restart {
            // A suspected part was refuted by its blocks; now each part gets as many blocks as a proof.
            searching.is_second = true;
            searching.hunt = Hunt::new(asks, (ask, first), so_far.data, Vec::new(), None);
            next = searching.hunt.next(ask, first, pace, n_arms, left_ns);
        }
        let next = next?;
        let (study, what) = (next.study.clone(), next.describe());
        searching.pending = Some(next);
        let reason = Reason::Differences { what, is_restart };
        Some(Next { study, reason })
    }

    /// More blocks for undecided results, as long as six of them fit; twice as many each time.
    fn undecided(&mut self, blocks: u32, so_far: SoFar<'_>) -> Option<Next> {
        if !differs(so_far.dossier) {
            return None;
        }
        let open = more_blocks::undecided(so_far.data, so_far.dossier);
        let pace = self.pace(so_far);
        let time = (so_far.left_ns, blocks);
        let study = more_blocks::study(self.ask, self.first, pace, open, time)?;
        self.phase = Phase::Deciding(blocks * 2);
        let reason = Reason::Undecided;
        Some(Next { study, reason })
    }

    fn pace(&self, so_far: SoFar<'_>) -> Pace {
        Pace::from_run(so_far.data, &self.ask.driver, self.first)
    }

    fn ratios<'s>(&'s self, so_far: SoFar<'s>) -> impl Iterator<Item = Span> + 's {
        let (arm, metric) = (&self.ask.driver, &self.ask.metric);
        let cells = so_far.dossier.cells.iter();
        cells
            .filter(move |cell| cell.arm == *arm && cell.metric == *metric)
            .filter_map(|cell| cell.ratio)
    }

    /// Whether the point estimate differs enough, regardless of the interval.
    fn may_differ(&self, so_far: SoFar<'_>) -> bool {
        let ratio = self.ratios(so_far).next();
        ratio.is_some_and(|ratio| ratio.point.ln().abs() >= WORTH_A_SEARCH.ln())
    }

    /// Whether the whole interval differs enough.
    fn is_plain(&self, so_far: SoFar<'_>) -> bool {
        let ratio = self.ratios(so_far).next();
        ratio.is_some_and(|it| it.low >= WORTH_A_SEARCH || it.high <= WORTH_A_SEARCH.recip())
    }
}

fn first_part(ask: &Ask) -> u64 {
    if ask.own.is_some() {
        FIRST_PART_OWN
    } else {
        FIRST_PART
    }
}

/// Whether there is a difference to explain: the command is slower or faster, or the environment starts slowly.
fn differs(dossier: &Dossier) -> bool {
    let explained = [WhyOutcome::Cost, WhyOutcome::Gain, WhyOutcome::StartUp];
    let why = dossier.why.as_ref();
    why.is_some_and(|why| explained.contains(&why.outcome))
}

/// Whether a cause is proven, or likely by elimination.
fn is_found(dossier: &Dossier) -> bool {
    let mut findings = dossier.findings.iter();
    findings.any(|it| matches!(it.status, Status::Confirmed | Status::Likely))
}

#[cfg(test)]
mod tests;
