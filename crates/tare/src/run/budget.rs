//! Spends the time budget: decides which blocks still fit, and which workloads are left out if not all do.
//!
//! An interval needs a minimum number of blocks. If one workload is so slow that the others would not get theirs,
//! only that one is left out of further blocks; its results stay. The decision depends on durations, never on
//! measured values, and holds for all arms alike, so it biases no ratio. If all workloads are equally slow, none is
//! left out, and there are fewer blocks.
//!
//! After enough blocks, interval widths show how many more each workload needs. The rest of the budget then goes to
//! those that it can decide, nearest first, while the others pause. When nothing more can be decided, it goes to all
//! inconclusive workloads and those whose interval can still become narrower. If few workloads of a block remain,
//! each runs longer, so that the time is not spent on restarting the arms.
//! Limits: it does not know how much a workload matters to the user; `--workload` or a longer budget says that.

use tare_model::Trial;
use tare_stats::Needed;

use super::TELLING_BLOCKS;
use super::session::{Break, Session};
use crate::store::StoreError;

/// Minimum number of blocks for an interval.
const ENOUGH_BLOCKS: u32 = 6;
/// A workload is left out for its duration only if it takes this many times the average of the others.
const DISPROPORTION: u64 = 3;

impl Session<'_> {
    /// Whether the block and the cleanup are expected to fit into the budget.
    pub(super) fn fits(&self, trials: &[Trial], block: u32) -> bool {
        let Some(left_ns) = self.budget_left_ns() else {
            return true;
        };
        let workloads = self
            .usable(trials)
            .map(|trial| trial.workload_index as usize);
        let has_restart = self.launched != Some(self.launch_of(block));
        block == 0 || self.pace.expected_block_ns(workloads, has_restart) <= left_ns
    }

    /// The rest of the budget, minus the expected cleanup.
    pub(super) fn budget_left_ns(&self) -> Option<u64> {
        let spent_ns = self.earlier_ns + self.elapsed_ns() + self.pace.removal_ns;
        Some(self.budget_ns()?.saturating_sub(spent_ns))
    }

    /// Whether the workload that begins with this trial is expected to finish in every arm within the budget. Once
    /// begun, a workload always finishes, because its arms must run close together.
    pub(super) fn fits_still(&self, trials: &[Trial], index: usize) -> bool {
        let workload = trials[index].workload_index;
        let begins = index == 0 || trials[index - 1].workload_index != workload;
        let Some(left_ns) = self.budget_left_ns().filter(|_| begins) else {
            return true;
        };
        // With a budget of less than one block, even as planned, the user wants one block.
        let planned_ns = u64::from(self.plan.trials_per_block()) * self.study().trial_ns;
        if trials[index].block == 0 && (index == 0 || planned_ns > self.budget_ns().unwrap_or(0)) {
            return true;
        }
        let same = trials[index..]
            .iter()
            .filter(|trial| trial.workload_index == workload);
        let n_arms = self.usable(same).count() as u64;
        n_arms * self.pace.expected_trial_ns(workload as usize) <= left_ns
    }

    /// Stores and prints which blocks, and which workloads of the last block, were not measured.
    pub(super) fn say_what_the_budget_left_out(
        &mut self,
        block: u32,
        rest: &[Trial],
    ) -> Result<(), StoreError> {
        let mut names: Vec<String> = rest
            .iter()
            .map(|trial| format!("`{}`", trial.cell.workload))
            .collect();
        names.dedup();
        let begun = if names.is_empty() {
            String::new()
        } else {
            format!(", and of block {} without {}", block + 1, names.join(", "))
        };
        self.say(format!(
            "the time budget of {} ended the run after {block} block{}{begun}",
            seconds(self.budget_ns().unwrap_or(0)),
            if block == 1 { "" } else { "s" }
        ))
    }

    /// Before a block: pauses workloads that the budget cannot decide while there are others that it can. `needed` is
    /// the number of blocks that each still needs; `None` pauses nothing, as in a block begun by an earlier session,
    /// which is finished as it was begun.
    pub(super) fn spend_where_it_decides(&mut self, block: u32, needed: Option<&[Needed]>) {
        self.resting.fill(false);
        self.pace.as_planned();
        let (Some(left_ns), Some(needed)) = (self.budget_left_ns(), needed) else {
            return;
        };
        if block < TELLING_BLOCKS {
            return;
        }
        let arms = self.testbed.n_usable();
        let live: Vec<usize> = self.live_workloads(block).collect();
        let needs: Vec<(f64, Needed)> = live
            .iter()
            .map(|workload| {
                let block_ns = arms * self.pace.expected_trial_ns(*workload);
                let needed = needed.get(*workload).copied();
                (block_ns as f64, needed.unwrap_or(Needed::UNKNOWN))
            })
            .collect();
        for (workload, chosen) in live.iter().zip(worthwhile(&needs, left_ns as f64)) {
            self.resting[*workload] = !chosen;
        }
        if self.launched != Some(self.launch_of(block)) {
            let at_work = live.iter().filter(|workload| !self.resting[**workload]);
            let (in_turn, whole): (Vec<usize>, Vec<usize>) =
                at_work.partition(|workload| self.takes_turns(**workload));
            let whole_ns = whole.iter().map(|it| self.pace.expected_trial_ns(*it));
            let whole_ns = arms.saturating_mul(whole_ns.sum());
            self.pace.lengthen(&in_turn, arms, whole_ns);
        }
    }

    /// Before a block: leaves out the slowest workloads if the blocks needed for an interval would not fit.
    pub(super) fn ration(&mut self, block: u32) -> Result<(), Break> {
        let enough = ENOUGH_BLOCKS.min(self.study().blocks_max);
        if block == 0 || block >= enough {
            return Ok(());
        }
        let arms = self.testbed.n_usable();
        let Some(left_ns) = self.budget_left_ns() else {
            return Ok(());
        };
        let n_restarts = self
            .launched
            .map_or(0, |now| self.launch_of(enough - 1).saturating_sub(now));
        let left_ns = left_ns.saturating_sub(u64::from(n_restarts) * self.pace.restart_ns);
        loop {
            let mut costs: Vec<(u64, usize)> = self
                .live_workloads(block)
                .map(|workload| (arms * self.pace.expected_trial_ns(workload), workload))
                .collect();
            costs.sort_unstable();
            let Some((longest_ns, workload)) = costs.pop() else {
                return Ok(());
            };
            let others_ns: u64 = costs.iter().map(|(ns, _)| ns).sum();
            let fits =
                (others_ns + longest_ns).saturating_mul(u64::from(enough - block)) <= left_ns;
            let is_longer = longest_ns.saturating_mul(costs.len() as u64)
                > others_ns.saturating_mul(DISPROPORTION);
            if fits || costs.is_empty() || !is_longer {
                return Ok(());
            }
            self.end_workload(workload, block)?;
            let name = self.study().name_of(&self.study().workloads[workload]);
            let plural = if block == 1 { "" } else { "s" };
            self.say(format!(
                "`{name}` is left out after {block} block{plural}: it takes {} of each, and with it {enough} blocks \
                 would not fit into the time budget; `--budget` gives more time",
                seconds(longest_ns)
            ))?;
        }
    }
}

/// Chooses workloads such that as many as possible become precise enough in the remaining time: those that need
/// least, one after the other. `needs` holds the block time of each and how many blocks it needs. If none can become
/// precise enough, chooses all for which more blocks are worth the time; if there are none either, all.
fn worthwhile(needs: &[(f64, Needed)], left_ns: f64) -> Vec<bool> {
    let need_ns = |place: usize| needs[place].0 * needs[place].1.enough;
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.retain(|place| needs[*place].1.enough > 0.0);
    order.sort_by(|one, other| need_ns(*one).total_cmp(&need_ns(*other)));
    let mut chosen = vec![false; needs.len()];
    let mut spent_ns = 0.0;
    for place in order {
        spent_ns += need_ns(place);
        if spent_ns > left_ns {
            break;
        }
        chosen[place] = true;
    }
    if !chosen.contains(&true) {
        chosen = needs.iter().map(|(_, needed)| needed.most > 0.0).collect();
    }
    if !chosen.contains(&true) {
        chosen.fill(true);
    }
    chosen
}

fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::{Needed, worthwhile};

    #[test]
    fn time_goes_to_decidable_workloads_else_to_all() {
        let chosen = |needs: &[(f64, f64)]| {
            let of = |(enough, most): &(f64, f64)| {
                let (enough, most) = (*enough, *most);
                (1.0, Needed { enough, most })
            };
            worthwhile(&needs.iter().map(of).collect::<Vec<_>>(), 20.0)
        };
        let inf = f64::INFINITY;
        // The nearest first, while time remains.
        assert_eq!(
            chosen(&[(30.0, 90.0), (5.0, 50.0), (inf, inf), (10.0, 70.0)]),
            [false, true, false, true]
        );
        // A workload that is precise enough waits for the others.
        assert_eq!(chosen(&[(0.0, 3.0), (5.0, 50.0)]), [false, true]);
        // Nothing can be decided: everything inconclusive, or with an interval that can become narrower, continues.
        assert_eq!(
            chosen(&[(0.0, 0.0), (0.0, 9.0), (50.0, 99.0), (inf, inf)]),
            [false, true, true, true]
        );
        // Nothing is inconclusive: the time makes every interval narrower.
        assert_eq!(chosen(&[(0.0, 9.0), (0.0, 0.0)]), [true, false]);
        assert_eq!(chosen(&[(0.0, 0.0), (0.0, 0.0)]), [true, true]);
    }

    #[test]
    fn enough_blocks_equals_analysis_minimum() {
        assert_eq!(super::ENOUGH_BLOCKS as usize, crate::analyze::FEWEST_BLOCKS);
    }
}
