//! Removes what must not be compared, and lists it as void.
//!
//! Two rules. *Other work*: if a checksum or a kernel's revision differs from the baseline's in any block, the arm
//! did not do the same work, and the whole cell is void. *Other time*: a worker's clock that contradicts the host's
//! makes its trial void. The worker's interval is inside the host's, so it can never be the longer one. It may be
//! shorter by the round trip to the worker, for which an allowance is made, because a reply that waits for a CPU is
//! no evidence about a clock. An arm on the host's kernel shares the host's clock, so it is not checked: on a busy
//! machine the round trip alone would void it.
//! Limits: misses a clock that is slow by less than the allowance; the canary detects that.

use tare_model::fact;
use tare_model::{Absence, ArmId, Facts, Failure, Study, whole_count};
use tare_stats::median;

use super::collect::Collector;
use super::failures::Counted;
use super::input::RunHead;
use super::kept_trial::{Group, GroupKey, KeptTrial};

/// Largest disagreement of the two clocks, as a fraction.
const CLOCK_SHARE: f64 = 0.001;
/// Least allowance for the round trip to the worker, in nanoseconds: a few scheduling quanta.
const WAY_NS: f64 = 20_000_000.0;
/// How many times the arm's typical round trip a round trip may take.
const WAY_FACTOR: f64 = 20.0;

/// Trials of one arm and workload that were removed, and why.
pub(crate) struct VoidTrials {
    key: GroupKey,
    /// The arm's index in the study.
    arm: usize,
    why: String,
    trials: Vec<(u32, KeptTrial)>,
}

/// Removes void trials and counts them.
pub(crate) fn strike_out(head: &RunHead, collected: &mut Collector<'_>) {
    for struck in take_out(&head.study, |arm| head.facts(arm), collected) {
        let counted = Counted {
            arm: head.study.arms[struck.arm].id.to_string(),
            workload: collected.groups[&struck.key].name.clone(),
            kind: Absence::Failed,
            reason: Failure::Void(struck.why).to_string(),
            hint: None,
        };
        let trials = whole_count(struck.trials.len());
        collected.tally.count_many(counted, trials);
    }
}

/// Removes void trials so that [`put_back`] can restore them. `inside` returns the facts found in an arm.
pub(crate) fn take_out<'f>(
    study: &Study,
    inside: impl Fn(&ArmId) -> Option<&'f Facts>,
    collected: &mut Collector<'_>,
) -> Vec<VoidTrials> {
    let baseline = collected.arm_index(study.baseline.as_str());
    let of_baseline = inside(&study.baseline);
    // The typical round trip to each arm that may have a separate clock.
    let arms = study.arms.iter().enumerate();
    let ways: Vec<Option<f64>> = arms
        .map(|(arm, spec)| {
            has_own_clock(inside(&spec.id), of_baseline)
                .then(|| typical_way_ns(collected.groups.values(), arm))
        })
        .collect();
    let mut struck = Vec::new();
    for (key, group) in &mut collected.groups {
        for (arm, way) in ways.iter().enumerate() {
            let mut strike = |why: String, trials: Vec<(u32, KeptTrial)>| {
                struck.push(VoidTrials {
                    key: *key,
                    arm,
                    why,
                    trials,
                });
            };
            if let Some(way) = way {
                let wrong = group.arms[arm].take_if(|kept| !clocks_agree(kept, *way));
                if !wrong.is_empty() {
                    let why = "the clock inside and the clock outside disagree by more than 0.1 %";
                    strike(why.to_owned(), wrong);
                }
            }
            let Some(baseline) = baseline.filter(|baseline| *baseline != arm) else {
                continue;
            };
            if let Some(why) = other_work(group, baseline, arm) {
                strike(why, group.arms[arm].take_if(|_| true));
            }
        }
    }
    struck
}

/// Restores what was removed.
pub(crate) fn put_back(struck: Vec<VoidTrials>, collected: &mut Collector<'_>) {
    for VoidTrials {
        key, arm, trials, ..
    } in struck
    {
        let Some(group) = collected.groups.get_mut(&key) else {
            continue;
        };
        for (block, kept) in trials {
            group.arms[arm].insert(block, kept);
        }
    }
}

/// Whether an arm runs, or may run, on another kernel than the baseline, by the facts of both.
pub(crate) fn has_own_clock(arm: Option<&Facts>, baseline: Option<&Facts>) -> bool {
    let boot = |facts: Option<&Facts>| facts?.get(fact::KERNEL_BOOT_ID).cloned();
    match (boot(arm), boot(baseline)) {
        (Some(here), Some(there)) => here != there,
        _ => true,
    }
}

fn typical_way_ns<'a>(groups: impl Iterator<Item = &'a Group>, arm: usize) -> f64 {
    let ways: Vec<f64> = groups
        .flat_map(|group| group.arms[arm].values())
        .filter_map(way_ns)
        .collect();
    median(&ways).map_or(0.0, |way| way.max(0.0))
}

/// The host's interval minus the worker's.
fn way_ns(kept: &KeptTrial) -> Option<f64> {
    let probe = kept.probe.as_ref()?;
    (kept.host_ns > 0 && probe.elapsed_ns > 0)
        .then_some(kept.host_ns as f64 - probe.elapsed_ns as f64)
}

fn clocks_agree(kept: &KeptTrial, typical_way_ns: f64) -> bool {
    let Some(way) = way_ns(kept) else {
        return true;
    };
    let share_ns = CLOCK_SHARE * kept.host_ns as f64;
    let allowance_ns = f64::max(WAY_NS, WAY_FACTOR * typical_way_ns);
    -share_ns <= way && way <= share_ns + allowance_ns
}

/// Returns why the arm's work differed from the baseline's, if it did.
fn other_work(group: &Group, baseline: usize, arm: usize) -> Option<String> {
    group.arms[arm].iter().find_map(|(block, here)| {
        let there = group.arms[baseline].get(block)?.probe.as_ref()?;
        let here = here.probe.as_ref()?;
        if here.revision != there.revision {
            return Some(format!(
                "the kernel's revision is {} here and {} in the baseline",
                here.revision, there.revision
            ));
        }
        if here.checksum != there.checksum {
            let text = |sum: &Option<Box<str>>| -> String {
                let sum = sum.as_deref().unwrap_or("none");
                sum.chars().take(16).collect()
            };
            return Some(format!(
                "the checksum of the work is `{}` here and `{}` in the baseline",
                text(&here.checksum),
                text(&there.checksum)
            ));
        }
        None
    })
}
