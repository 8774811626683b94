//! Plans and evaluates the search through the differences of a user's container, or of two sides: which arms are
//! measured next, and what they showed.
//!
//! Every study has both sides in its blocks. If a round was inconclusive, the same arms get more blocks before
//! anything is concluded. What is found is proved again, because among many candidates something is always found.
//! Limits: the speed of an arm that has not run yet is unknown. The plan assumes that parts that together are
//! everything remove the whole slowdown, and that an arm that proves something removes at least half of it.

use std::collections::BTreeMap;

use tare_model::arm::Rung;
use tare_model::{Study, Value, whole_part};

use super::super::counterfactual::SuspectTrial;
use super::super::pace::{Pace, enough};
use super::super::readings::Readings;
use super::super::search::{Item, LEAST_SHARE, Probe, RemovedShare, Search};
use super::super::studies::{Arms, SAFE, base_arms};
use super::super::total::Total;
use super::super::{Ask, FEWEST, First};
use super::costs::{Costs, NEXT_ARMS, fitting};
use super::likeliest::{LIKELY, proved_before, weighed, with_families};
use super::members::{can_be_taken_apart, is_open, reduced, sorted, tries, without_one};
use super::shares::{PLAIN_BLOCKS, floor, part, shown, whole};
use super::sifting::{narrowest, suspect_of};
use super::trace::Trace;
use super::{ContainerQuestion, PLAIN, PROOF, TRY, steps, tried};
use crate::analyze::RunData;
use crate::driver::user_container::WITHOUT;

/// The maximum number of arms in one round of the search.
const ARMS_MOST: usize = 6;
/// The number of suspects from the catalogue in the first round of the search.
const CATALOGUE_MOST: usize = 2;
/// From this share on the search ends.
const LARGE: f64 = 0.8;
/// The maximum number of blocks of a round and of a proof: as many as the share of the whole needs.
const ROUND_BLOCKS: u32 = 16;
const PROOF_BLOCKS: u32 = 24;
/// How often what is undecided gets twice as many blocks.
const REOPENED_MOST: u32 = 3;
/// The part of the time that is planned with for what is tried if nothing else fits: its durations were measured.
const LAST: f64 = 0.95;
/// The factor of the likelihood of a difference that showed nothing alone.
const TRIED: f64 = 0.1;

/// Keeps an arm only for suspects of the catalogue whose switch is a difference of the container. The others are
/// reported without a trial.
fn resolved(trials: Vec<SuspectTrial>, asks: &ContainerQuestion) -> Vec<SuspectTrial> {
    trials
        .into_iter()
        .map(|mut trial| {
            let Some(tried) = &mut trial.arm else {
                return trial;
            };
            let words = tried.settings.words(WITHOUT);
            let is_known = |id: &str| asks.differences.iter().any(|it| it.id == id);
            let kept: Vec<String> = words
                .iter()
                .map(|word| word.trim_end_matches('?').to_owned())
                .filter(|id| is_known(id))
                .collect();
            if kept.is_empty() && !words.is_empty() {
                trial.suspect.tried = format!(
                    "not possible here: the container differs in nothing that could be switched for it ({})",
                    trial.suspect.tried
                );
                trial.arm = None;
            } else if !words.is_empty() {
                let list = kept.into_iter().map(Value::Text).collect();
                tried.settings = tried.settings.clone().with(WITHOUT, Value::List(list));
            }
            trial
        })
        .collect()
}

/// A running search and its state.
#[derive(Debug)]
pub struct Hunt {
    search: Search,
    /// Suspects of the catalogue that are not tried yet.
    catalogue: Vec<SuspectTrial>,
    is_begun: bool,
    /// The sets to prove next; `None` while nothing is found yet.
    to_prove: Option<Vec<Vec<String>>>,
    /// The arms of proofs, by the differences that they lack.
    proofs: BTreeMap<Vec<String>, String>,
    /// Whether a copy of the container may have a slowdown to search for.
    is_worthwhile: bool,
    /// The search's zero: the baseline, or a plain container if what every container does causes a part by itself.
    floor: &'static str,
    /// Every difference, the likeliest first.
    likely: Vec<String>,
    /// Whether a proof explained almost all of the slowdown.
    is_explained: bool,
    /// Blocks of a round: few if the slowdown is obvious, as the proof has more.
    blocks: u32,
    /// Blocks of the last proof.
    enough: u32,
    /// The tried arms, by the differences that they lack: an arm that is tried again gets further blocks.
    known: BTreeMap<Vec<String>, String>,
    /// How often the undecided differences were taken up again.
    n_reopened: u32,
    /// How many numbers in arm names are used: an arm that is tried again leaves a gap.
    n_named: usize,
}

/// The next study of a search.
#[derive(Debug)]
pub struct Next {
    /// The study.
    pub study: Study,
    /// The probes with their arms' names; empty in a proof.
    probes: Vec<(Probe, String)>,
    /// The sets to prove; empty in a search.
    sets: Vec<Vec<String>>,
    is_again: bool,
}

impl Next {
    fn is_proof(&self) -> bool {
        !self.sets.is_empty()
    }

    /// A progress message.
    pub fn describe(&self) -> String {
        if self.is_proof() {
            return "proving what was found in blocks of its own".to_owned();
        }
        let alone = self
            .probes
            .iter()
            .filter(|(probe, _)| probe.part.len() == 1);
        format!(
            "running without {} part{} of the differences, {} of them alone{}",
            self.probes.len(),
            if self.probes.len() == 1 { "" } else { "s" },
            alone.count(),
            if self.is_again {
                ", once more: it was not decided"
            } else {
                ""
            }
        )
    }
}

/// Time for one more comparison of both sides with a third arm, nanoseconds: as long as a proof.
pub fn one_more_ns(asks: &ContainerQuestion, pace: Pace) -> u64 {
    whole_part(Costs::new(asks, pace).proof_ns(1) as f64 / SAFE)
}

/// Time for the shortest search, nanoseconds: each of the likeliest differences proved directly.
pub fn search_ns(asks: &ContainerQuestion, pace: Pace) -> u64 {
    let singles = asks.differences.len().clamp(1, NEXT_ARMS);
    whole_part(Costs::new(asks, pace).proof_ns(singles) as f64 / SAFE)
}

/// Time for a whole search, nanoseconds: both sides, a round of the maximum number of parts, a smaller round if that
/// leaves groups, and a proof.
pub fn whole_ns(asks: &ContainerQuestion, pace: Pace) -> u64 {
    let costs = Costs::new(asks, pace);
    let round_ns = |n_parts| costs.round_ns(n_parts, PLAIN_BLOCKS);
    let rounds_ns = match asks.differences.len() {
        0 | 1 => 0,
        few if few <= ARMS_MOST => round_ns(few),
        _ => round_ns(ARMS_MOST) + round_ns(NEXT_ARMS),
    };
    let both_ns = u64::from(FEWEST) * costs.base_ns();
    whole_part((both_ns + rounds_ns + costs.proof_ns(1)) as f64 / SAFE)
}

impl Hunt {
    /// A search for the question's differences, with the catalogue's suspects. `run` is what was measured so far;
    /// `few` is the number of blocks in which the slowdown is obvious without a rank interval.
    pub fn new(
        asks: &ContainerQuestion,
        (ask, first): (&Ask, &First),
        run: &RunData,
        catalogue: Vec<SuspectTrial>,
        few: Option<u32>,
    ) -> Self {
        let readings = Readings::read(run);
        // Runs that were ended early have no counters.
        let floor = floor(&readings, ask, asks);
        let trace = match first.cut_ns {
            Some(_) => Trace::between(&first.host.counters, &first.env.counters),
            None => Trace::new(&readings, floor, whole(ask)),
        };
        let proofs = proved_before(run);
        let proved = proofs.iter().filter_map(|(set, arm)| {
            let shown = shown(&readings, ask, (floor, arm))?;
            Some((set, shown))
        });
        let proved: Vec<(&Vec<String>, RemovedShare)> = proved.collect();
        let is_explained = proved
            .iter()
            .any(|(_, it)| it.is_hot() && it.share >= LARGE);
        let mut items = weighed(asks, trace, first);
        for item in &mut items {
            let is_it = |set: &[String]| set == [item.id.as_str()];
            if proved.iter().any(|(set, it)| is_it(set) && !it.is_hot()) {
                item.likelihood *= TRIED;
            }
        }
        let items = with_families(asks, items);
        let likely = items.iter().flat_map(Item::ids).cloned().collect();
        let mut catalogue = resolved(catalogue, asks);
        catalogue.retain(|trial| trial.arm.is_some() && trial.suspect.likelihood >= LIKELY);
        catalogue.truncate(CATALOGUE_MOST);
        Self {
            search: Search::new(items),
            catalogue,
            is_begun: false,
            to_prove: None,
            is_worthwhile: !is_explained
                && ((asks.copy.is_none() && floor == asks.base.id)
                    || part(&readings, ask, (floor, whole(ask)))
                        .is_some_and(|it| it.high >= LEAST_SHARE)),
            floor,
            likely,
            is_explained,
            // The fewest that give an interval, and one more that may be void.
            blocks: few.unwrap_or(FEWEST + 1),
            enough: enough(
                &Total::between(&readings, floor, whole(ask), &ask.metric),
                PROOF_BLOCKS,
            ),
            known: BTreeMap::new(),
            n_reopened: 0,
            n_named: 0,
            proofs,
        }
    }

    /// The next study that fits into the time; `n_arms` names were used before.
    pub fn next(
        &mut self,
        ask: &Ask,
        first: &First,
        pace: Pace,
        n_arms: usize,
        left_ns: u64,
    ) -> Option<Next> {
        let asks = ask.own.as_ref().filter(|_| self.is_worthwhile)?;
        let costs = Costs::new(asks, pace).with_floor(self.floor != asks.base.id);
        let safe_ns = whole_part(left_ns as f64 * SAFE);
        let blocks = self.blocks << self.search.tries();
        let blocks = blocks.min(ROUND_BLOCKS) << self.n_reopened;
        let round_ns = |number| costs.round_ns(number, blocks);
        // A proof of what is found always has its time reserved.
        let for_search_ns = safe_ns.saturating_sub(costs.proof_ns(1));
        let room = fitting(ARMS_MOST, for_search_ns, round_ns);
        // The same again is reserved for a further round, as long as two arms are left for this one.
        let next_ns = costs.round_ns(NEXT_ARMS, self.blocks);
        let frugal = fitting(ARMS_MOST, for_search_ns.saturating_sub(next_ns), round_ns);
        let most = frugal.clamp(self.search.parts_least().min(room), ARMS_MOST);
        let probes = self.search.probes(most);
        let n_arms = n_arms.max(self.n_named);
        let mut arms = Arms::new(base_arms(ask, first, false), n_arms);
        if self.floor != asks.base.id {
            put_plain(ask, asks, &mut arms);
        }
        if probes.is_empty() {
            let last_ns = whole_part(left_ns as f64 * LAST);
            let proof_ns = |number| costs.proof_ns(number);
            let room = fitting(ARMS_MOST, safe_ns, proof_ns).max(fitting(1, last_ns, proof_ns));
            let sets = match &mut self.to_prove {
                Some(sets) => std::mem::take(sets),
                None => self.held(asks),
            };
            self.to_prove = Some(Vec::new());
            let tried = tries(&sets, room);
            if tried.is_empty() {
                return self.next_reopened(ask, first, pace, (n_arms, left_ns));
            }
            self.prove(ask, asks, &mut arms, &tried);
            let specs = arms.into_specs();
            self.n_named = n_arms + specs.len();
            let mut study = ask.study("what was found, once more", specs, first);
            // Members of sets of three or more may turn out idle; what is left is then proved again.
            let is_last = self.is_begun && sets.iter().all(|set| set.len() <= 2);
            study.blocks_max = if is_last { self.enough } else { FEWEST + 1 };
            pace.plan_launches(ask, &mut study, safe_ns);
            study.budget_ns = Some(left_ns);
            return Some(Next {
                study,
                probes: Vec::new(),
                sets,
                is_again: false,
            });
        }
        let mut named = Vec::new();
        for probe in probes {
            named.push((probe.clone(), self.put(ask, asks, &mut arms, &probe)));
        }
        // If the search leaves time: suspects of the catalogue and the ladder.
        if !std::mem::replace(&mut self.is_begun, true) {
            let spare = frugal.saturating_sub(named.len());
            for trial in self.catalogue.clone().into_iter().take(spare) {
                if let Some(tried) = &trial.arm {
                    arms.put("off", tried, |role| role.suspects.push(trial.suspect));
                }
            }
            if spare > CATALOGUE_MOST && first.cut_ns.is_none() && asks.undo.is_empty() {
                climb(ask, asks, &mut arms);
            }
        }
        let specs = arms.into_specs();
        self.n_named = n_arms + specs.len();
        let mut study = ask.study("the command without parts of the differences", specs, first);
        study.blocks_max = blocks;
        study.blocks_min = blocks;
        study.budget_ns = Some(left_ns);
        Some(Next {
            study,
            probes: named,
            sets: Vec::new(),
            is_again: self.search.tries() > 0,
        })
    }

    /// The next study after the undecided differences are taken up again.
    fn next_reopened(
        &mut self,
        ask: &Ask,
        first: &First,
        pace: Pace,
        (n_arms, left_ns): (usize, u64),
    ) -> Option<Next> {
        let is_over = self.n_reopened >= REOPENED_MOST
            || self.is_explained
            || !self.search.found().is_empty();
        if is_over || !self.search.reopen() {
            return None;
        }
        self.n_reopened += 1;
        self.to_prove = None;
        self.next(ask, first, pace, n_arms, left_ns)
    }

    /// The arm of a probe: the one that was tried before, or a new one.
    fn put(
        &mut self,
        ask: &Ask,
        asks: &ContainerQuestion,
        arms: &mut Arms,
        probe: &Probe,
    ) -> String {
        let mut without = probe.without.clone();
        without.sort();
        let suspect = suspect_of(asks, &probe.part, &ask.metric);
        let arm = tried(ask, asks, &without);
        let id = arms.put_as(self.known.get(&without), TRY, &arm, |role| {
            asks.note(role, suspect, &without);
        });
        self.known.insert(without, id.clone());
        id
    }

    /// The sets to prove: what was found or, if there was too little time, the sets that may contain it.
    fn held(&self, asks: &ContainerQuestion) -> Vec<Vec<String>> {
        match self.search.found() {
            // All of them together are the baseline, which proves nothing.
            [] if self.is_begun => {
                let mut open = self.search.open();
                open.retain(|set| set.len() < self.likely.len());
                open
            }
            // No round fits: prove the likeliest differences that were not tried.
            [] => {
                let singles = self.likely.iter().map(|id| vec![id.clone()]);
                let left = singles.filter(|set| !self.proofs.contains_key(set));
                left.take(ARMS_MOST).collect()
            }
            found => {
                let all: Vec<&str> = asks.differences.iter().map(|it| it.id.as_str()).collect();
                narrowest(found, &all)
            }
        }
    }

    /// Adds arms for the sets and their parts, with the catalogue's evidence on the same switch.
    fn prove(
        &mut self,
        ask: &Ask,
        asks: &ContainerQuestion,
        arms: &mut Arms,
        sets: &[Vec<String>],
    ) {
        for set in sets {
            let arm = tried(ask, asks, set);
            let mut suspect = suspect_of(asks, set, &ask.metric);
            let of_catalogue = self.catalogue.iter().filter(|trial| {
                let same = trial.arm.as_ref();
                same.is_some_and(|it| it.settings == arm.settings && it.change == arm.change)
            });
            for SuspectTrial { suspect: known, .. } in of_catalogue {
                suspect
                    .evidence
                    .push(format!("{}: {}", known.cause, known.claim));
                suspect.evidence.extend(known.evidence.iter().cloned());
            }
            let id = arms.put_as(self.proofs.get(set), PROOF, &arm, |role| {
                asks.note(role, suspect, set);
            });
            self.proofs.insert(set.clone(), id);
        }
    }

    /// Evaluates a finished study.
    pub fn learn(&mut self, next: &Next, run: &RunData, ask: &Ask) {
        let readings = Readings::read(run);
        if next.is_proof() {
            self.to_prove = Some(self.narrowed(&next.sets, &readings, ask));
            let proved = next.sets.iter().filter_map(|set| self.proofs.get(set));
            let mut shown = proved.filter_map(|arm| shown(&readings, ask, (self.floor, arm)));
            self.is_explained |= shown.any(|it| it.is_hot() && it.share >= LARGE);
            return;
        }
        let results: Vec<(Probe, Option<RemovedShare>)> = next
            .probes
            .iter()
            .map(|(probe, arm)| (probe.clone(), shown(&readings, ask, (self.floor, arm))))
            .collect();
        self.search.learn(&results);
    }

    /// The sets without the members that turned out idle, unless those were already tried.
    fn narrowed(&self, sets: &[Vec<String>], readings: &Readings, ask: &Ask) -> Vec<Vec<String>> {
        let back = |set: &[String], member: &str| {
            let rest = self.proofs.get(&without_one(set, member))?;
            let whole = self.proofs.get(set)?;
            Total::between(readings, self.floor, self::whole(ask), &ask.metric)
                .came_back(&readings.differences(whole, rest, &ask.metric))
        };
        let several = sets.iter().map(|set| sorted(set));
        let mut left: Vec<Vec<String>> = several
            .filter(|set| can_be_taken_apart(set))
            .filter_map(|set| reduced(&set, |member| back(&set, member)))
            .filter(|set| is_open(set, |set| self.proofs.contains_key(set)))
            .collect();
        left.dedup();
        left
    }
}

fn climb(ask: &Ask, asks: &ContainerQuestion, arms: &mut Arms) {
    let plain = PLAIN.to_owned();
    for (place, step) in (1..).zip(steps(ask, asks)) {
        let rung = Rung {
            place,
            title: step.title,
        };
        let tried = ask.tried(step.settings);
        let is_plain = asks.plain.as_ref() == Some(&tried.settings);
        let known = is_plain.then_some(&plain);
        arms.put_as(known, "rung", &tried, |role| role.rung = Some(rung));
    }
}

/// Adds the plain container above a baseline that is not a container.
fn put_plain(ask: &Ask, asks: &ContainerQuestion, arms: &mut Arms) {
    let Some(settings) = &asks.plain else { return };
    let tried = ask.tried(settings.clone());
    arms.put_as(Some(&PLAIN.to_owned()), PLAIN, &tried, |_| ());
}
