//! The stopping rule: which workloads have been measured well enough.
//!
//! Fixed width (`METHODOLOGY.md`, *Stopping*): a workload is done when, in every arm, every metric's 95 %
//! interval of ln(ratio) has a half-width of at most ln(1 + margin)/2, or ln(1 + precision) where the study
//! asks for one. The rule looks at widths only, never at where an interval lies, so that looking repeatedly
//! hardly biases what is found. It shares the pairing, the estimate and the widening with the report.
//! Trials are decoded when they are added, and only workloads that are not done are estimated again.
//! What it cannot see: diagnostics; a drifting cell can be narrow.

use std::collections::BTreeSet;

use tare_model::Study;
use tare_model::study::A_PRIME;

use super::cell::target_half_width;
use super::collect::{Collector, Group};
use super::input::TrialData;
use super::pairs::{Against, Pairs};
use super::{Find, effect};

/// Decides which workloads need no more blocks.
pub struct PrecisionRule<'a> {
    study: Study,
    collected: Collector<'a>,
    done: BTreeSet<u32>,
}

impl std::fmt::Debug for PrecisionRule<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PrecisionRule")
            .field("study", &self.study.id)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<'a> PrecisionRule<'a> {
    /// A rule that has seen nothing yet.
    pub fn new(study: &Study, find: Find<'a>) -> Self {
        Self {
            study: study.clone(),
            collected: Collector::new(study, find),
            done: BTreeSet::new(),
        }
    }

    /// Takes note of one trial. Every trial once, between trials, in any order.
    pub fn add(&mut self, data: &TrialData) {
        self.collected.add(data);
    }

    /// Places, in the study's list, of the workloads that are done; to be asked after whole blocks. A
    /// workload that is done stays so. A metric that has no value in an arm, or no ratio, does not hold
    /// its workload back: no number of blocks would help.
    pub fn done(&mut self) -> &BTreeSet<u32> {
        let mut wide = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (key, group) in &self.collected.groups {
            let index = key.workload_index;
            seen.insert(index);
            if !self.done.contains(&index) && !wide.contains(&index) && !self.is_narrow(group) {
                wide.insert(index);
            }
        }
        self.done.extend(seen.difference(&wide));
        &self.done
    }

    /// For each workload of the study, in its order, whether it is done.
    pub fn finished(&mut self) -> Vec<bool> {
        let workloads = self.study.workloads.len() as u32;
        let done = self.done();
        (0..workloads).map(|index| done.contains(&index)).collect()
    }

    fn is_narrow(&self, group: &Group) -> bool {
        let study = &self.study;
        let Some(workload) = group.workload else {
            return true;
        };
        // The A′ arm only decides where there is no other: its cells are counted, not quoted.
        let has_others = study
            .arms
            .iter()
            .any(|arm| arm.id != study.baseline && arm.id.as_str() != A_PRIME);
        let arms = study.arms.iter().enumerate().filter(|(_, arm)| {
            arm.id != study.baseline && !(has_others && arm.id.as_str() == A_PRIME)
        });
        for (arm, _) in arms {
            let Some(against) = Against::baseline(study, &self.collected, arm) else {
                return true;
            };
            for (place, metric) in workload.metrics().iter().enumerate() {
                let pairs = Pairs::of(group, against, arm, place);
                if pairs.all.is_empty() {
                    continue;
                }
                let Some(d) = pairs.ln_ratios(metric.better, |reading| reading.typical) else {
                    continue;
                };
                let target = target_half_width(study, study.margins.of(metric.class));
                let narrow = effect::interval(&d, &pairs.launches())
                    .is_ok_and(|it| it.half_width() <= target);
                if !narrow {
                    return false;
                }
            }
        }
        true
    }
}
