//! Orders the differences by how likely each is the cause, and proves the likeliest in the first comparison if there is
//! no time for a search.
//!
//! Limits: a likelihood is a guess from the first runs; a difference that comes late is still found with more time.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::{ArmSpec, whole_part};

use super::super::pace::Pace;
use super::super::search::{Item, MANY};
use super::super::studies::{Arms, SAFE};
use super::super::{Ask, FEWEST, First};
use super::costs::{Costs, NEXT_ARMS, fitting};
use super::shares::PLAIN_BLOCKS;
use super::sifting::suspect_of;
use super::trace::Trace;
use super::{ContainerQuestion, PROOF, evidence, tried};
use crate::analyze::RunData;
use crate::driver::user_container::{self, Difference};

/// From this likelihood on a difference, or a suspect from the catalogue, is likely.
pub(super) const LIKELY: f64 = 0.5;
/// The factor at the first look from which on the likeliest differences are proved at once.
const VISIBLE: f64 = 1.2;
/// The prefix of variables.
const VARIABLE: &str = "env.";

/// The differences with their likelihoods, the likeliest first.
pub(super) fn weighed(asks: &ContainerQuestion, trace: Trace, first: &First) -> Vec<Item> {
    let of = |it: &Difference| Item {
        id: it.id.clone(),
        likelihood: evidence::weighed(&it.id, trace.weighed(&it.id, it.likelihood), &first.env),
        members: Vec::new(),
    };
    let mut items: Vec<Item> = asks.differences.iter().map(of).collect();
    items.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
    items
}

/// Puts the differences first that fit what was seen in the first runs.
pub fn likeliest_first(asks: &mut ContainerQuestion, first: &First) {
    let trace = Trace::between(&first.host.counters, &first.env.counters);
    let order: BTreeMap<String, usize> = (0..)
        .zip(weighed(asks, trace, first))
        .map(|(place, item)| (item.id, place))
        .collect();
    asks.differences
        .sort_by_key(|it| order.get(&it.id).copied());
}

/// Replaces many variables, none of them likely, by one item that stands for all: they may only act by their number.
pub(super) fn with_families(asks: &ContainerQuestion, items: Vec<Item>) -> Vec<Item> {
    let variables = asks.differences.iter();
    let variables = variables.filter(|it| it.id.starts_with(VARIABLE) && it.likelihood < LIKELY);
    let variables: BTreeSet<&str> = variables.map(|it| it.id.as_str()).collect();
    let is_one = |item: &Item| variables.contains(item.id.as_str());
    let (members, mut others): (Vec<Item>, Vec<Item>) = items.into_iter().partition(is_one);
    if members.len() < MANY {
        others.extend(members);
    } else {
        others.push(Item {
            id: VARIABLE.to_owned(),
            likelihood: members.iter().map(|it| it.likelihood).fold(0.0, f64::max),
            members,
        });
    }
    others.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
    others
}

/// The arms of proofs so far, by what they lack.
pub(super) fn proved_before(run: &RunData) -> BTreeMap<Vec<String>, String> {
    let arms = run.head.study.arms.iter();
    let arms = arms.filter(|arm| arm.id.as_str().starts_with(PROOF));
    arms.filter_map(|arm| Some((user_container::without_of(arm)?, arm.id.to_string())))
        .collect()
}

/// Adds to the arms of a first comparison those without the likeliest differences, alone, as far as they fit: if a
/// search would not fit afterwards, or if these are all. Only where the first look shows a difference.
pub fn at_once(
    ask: &Ask,
    first: &First,
    pace: Pace,
    left_ns: u64,
    specs: Vec<ArmSpec>,
) -> Vec<ArmSpec> {
    let apart = (first.env.wall_ns.max(1) as f64 / first.host.wall_ns.max(1) as f64).ln();
    let Some(asks) = ask.own.as_ref() else {
        return specs;
    };
    if first.cut_ns.is_some() || apart.abs() < VISIBLE.ln() {
        return specs;
    }
    let costs = Costs::new(asks, pace);
    let safe_ns = whole_part(left_ns as f64 * SAFE);
    let fitting = fitting(NEXT_ARMS, safe_ns, |number| costs.proof_ns(number));
    let search_ns =
        u64::from(FEWEST) * costs.base_ns() + costs.round_ns(2, PLAIN_BLOCKS) + costs.proof_ns(1);
    let count = asks.differences.len();
    if count > fitting && search_ns <= safe_ns || count < 2 {
        return specs;
    }
    let trace = Trace::between(&first.host.counters, &first.env.counters);
    let mut arms = Arms::new(specs, 0);
    for item in weighed(asks, trace, first).into_iter().take(fitting) {
        let set = [item.id];
        let suspect = suspect_of(asks, &set, &ask.metric);
        arms.put(PROOF, &tried(ask, asks, &set), |role| {
            asks.note(role, suspect, &set);
        });
    }
    arms.into_specs()
}
