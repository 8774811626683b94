//! What must not be compared is struck out here, and listed as void.
//!
//! Two rules. *Other work*: if a checksum or a kernel's revision differs from the baseline's in any block,
//! the arm did not do the same work, and the whole cell is void. *Other time*: a worker's clock that runs
//! against the host's makes its trial void. The worker's interval lies inside of the host's, so it can
//! never be the longer one; it may be shorter by the way to the worker and back, for which an allowance is
//! made, since a reply that waits for a processor says nothing about a clock. An arm on the host's own
//! kernel has the host's clock, so nothing is asked there: on a busy machine the way alone would void it.
//! What it cannot see: a clock that is slow by less than the allowance; the canary sees that.

use tare_model::fact;
use tare_model::{Absence, ArmId, ArmSpec, Failure};
use tare_stats::median;

use super::collect::Collector;
use super::failures::Counted;
use super::input::RunHead;
use super::kept::{Checksum, Group, Kept};

/// Largest disagreement of the two clocks, as a share.
const CLOCK_SHARE: f64 = 0.001;
/// Least allowance for the way to the worker and back, nanoseconds: a few scheduling quanta.
const WAY_NS: f64 = 20_000_000.0;
/// How many times the arm's typical way a way may take.
const WAY_FACTOR: f64 = 20.0;

/// Strikes out what is void, and counts it.
pub(crate) fn strike_out(head: &RunHead, collected: &mut Collector<'_>) {
    let study = &head.study;
    let has_own_clock: Vec<bool> = study
        .arms
        .iter()
        .map(|spec| has_own_clock(head, spec))
        .collect();
    let baseline = collected.arm_index(study.baseline.as_str());
    let arms = study.arms.len();
    let ways: Vec<f64> = (0..arms)
        .map(|arm| typical_way_ns(collected.groups.values(), arm))
        .collect();
    let mut struck = Vec::new();
    for group in collected.groups.values_mut() {
        for (index, spec) in study.arms.iter().enumerate() {
            let void = |why: String| Counted {
                arm: spec.id.to_string(),
                workload: group.name.clone(),
                kind: Absence::Failed,
                reason: Failure::Void(why).to_string(),
                hint: None,
            };
            let n_before = group.arms[index].len();
            if has_own_clock[index] {
                group.arms[index].retain(|_, kept| clocks_agree(kept, ways[index]));
            }
            let n_wrong = (n_before - group.arms[index].len()) as u32;
            if n_wrong > 0 {
                let why = "the clock inside and the clock outside disagree by more than 0.1 %";
                struck.push((void(why.to_owned()), n_wrong));
            }
            let Some(baseline) = baseline.filter(|baseline| *baseline != index) else {
                continue;
            };
            if let Some(why) = other_work(group, baseline, index) {
                struck.push((void(why), group.arms[index].len() as u32));
                group.arms[index].clear();
            }
        }
    }
    for (counted, trials) in struck {
        collected.tally.count_many(counted, trials);
    }
}

/// Whether the arm is known to run on, or may run on, another kernel than the baseline.
pub(crate) fn has_own_clock(head: &RunHead, spec: &ArmSpec) -> bool {
    let boot = |id: &ArmId| {
        let arm = head.arms.iter().find(|arm| arm.spec.id == *id)?;
        arm.facts.get(fact::KERNEL_BOOT_ID)
    };
    match (boot(&spec.id), boot(&head.study.baseline)) {
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

/// The host's interval less the worker's.
fn way_ns(kept: &Kept) -> Option<f64> {
    let probe = kept.probe.as_ref()?;
    (kept.host_ns > 0 && probe.elapsed_ns > 0)
        .then_some(kept.host_ns as f64 - probe.elapsed_ns as f64)
}

fn clocks_agree(kept: &Kept, typical_way_ns: f64) -> bool {
    let Some(way) = way_ns(kept) else {
        return true;
    };
    let share_ns = CLOCK_SHARE * kept.host_ns as f64;
    let allowance_ns = f64::max(WAY_NS, WAY_FACTOR * typical_way_ns);
    -share_ns <= way && way <= share_ns + allowance_ns
}

/// Why the arm's work was not the baseline's, if it was not.
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
            let text = |sum: &Option<Checksum>| {
                let short = |sum: &Checksum| sum.to_string().chars().take(16).collect();
                sum.as_ref().map_or_else(|| "none".to_owned(), short)
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
