//! The time budget: what still fits into it, and what is left out where not everything does.
//!
//! An interval needs a number of blocks. Where one workload takes so long that the others would not get theirs,
//! it alone is left out of the further blocks: what it gave stays, and the others get their intervals. That is
//! decided by how long things took and never by what they measured, for all arms alike, so it biases no ratio.
//! Where all workloads are slow alike, none is left out: then there are fewer blocks of everything.
//!
//! Once there are enough blocks to tell from the widths of intervals how many each workload still needs, the rest of
//! the budget goes to those that it can decide, the nearest first; the others rest meanwhile. When nothing more can be
//! decided, what is left goes to all that is open and to what can still become narrower. What few are left of a block
//! run longer in it, so that its time does not go to restarting the arms.
//! What it cannot see: how much a workload matters to the reader. Who wants it above all names it alone with
//! `--workload`, or gives a longer budget.

use tare_model::{Trial, whole_count};
use tare_stats::Needed;

use super::TELLING_BLOCKS;
use super::session::{Break, Session};
use crate::store::{StoreError, WorkloadEnd};

/// Fewer blocks give no interval.
const ENOUGH_BLOCKS: u32 = 6;
/// A workload is left out for its length only if it takes so many times as long as the others on average.
const DISPROPORTION: u64 = 3;

impl Session<'_> {
    /// Whether the block is expected to end, and everything to be removed, within the budget.
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

    /// What is left of the budget when removing everything is paid for.
    pub(super) fn budget_left_ns(&self) -> Option<u64> {
        let spent_ns = self.earlier_ns + self.elapsed_ns() + self.pace.expected_removal_ns();
        Some(self.budget_ns()?.saturating_sub(spent_ns))
    }

    /// Whether the workload that begins with this trial of a block is expected to end in every arm within the
    /// budget. Arms follow each other closely, so a workload that has begun is brought to its end.
    pub(super) fn fits_still(&self, trials: &[Trial], index: usize) -> bool {
        let workload = trials[index].workload_index;
        let begins = index == 0 || trials[index - 1].workload_index != workload;
        let Some(left_ns) = self.budget_left_ns().filter(|_| begins) else {
            return true;
        };
        // Who gives less than one block takes even by the plan wants one block.
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

    /// Stores and tells which blocks, and which workloads of a block that was begun, were not measured.
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

    /// Before a block: has the workloads rest that the budget cannot decide, while there are others that it can.
    /// `needed` is how many blocks each still needs, where that was asked: a block that was begun is brought to its end as
    /// it was begun.
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

    /// Before a block: leaves out the longest workloads if the blocks that make an interval do not fit
    /// otherwise.
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
        let left_ns =
            left_ns.saturating_sub(u64::from(n_restarts) * self.pace.expected_restart_ns());
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
            self.ended[workload] = Some(block);
            self.store.end_workload(WorkloadEnd {
                workload_index: whole_count(workload),
                after_blocks: block,
            })?;
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

/// Which workloads to measure, so that as many as possible become precise enough in the time that is left: those
/// that need least, one after the other. `needs` holds what a block of each takes, and how many it needs. Where none
/// would become so, all for which more blocks are worth the time, or all.
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

/// A length for a reader.
fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::{Needed, worthwhile};

    #[test]
    fn time_goes_to_what_it_can_decide_and_to_all_where_it_decides_nothing() {
        let chosen = |needs: &[(f64, f64)]| {
            let of = |(enough, most): &(f64, f64)| {
                let (enough, most) = (*enough, *most);
                (1.0, Needed { enough, most })
            };
            worthwhile(&needs.iter().map(of).collect::<Vec<_>>(), 20.0)
        };
        let inf = f64::INFINITY;
        // The nearest first, as far as the time goes.
        assert_eq!(
            chosen(&[(30.0, 90.0), (5.0, 50.0), (inf, inf), (10.0, 70.0)]),
            [false, true, false, true]
        );
        // What is precise enough already waits for the others.
        assert_eq!(chosen(&[(0.0, 3.0), (5.0, 50.0)]), [false, true]);
        // Nothing can be decided: then all that is open, or can become narrower, goes on.
        assert_eq!(
            chosen(&[(0.0, 0.0), (0.0, 9.0), (50.0, 99.0), (inf, inf)]),
            [false, true, true, true]
        );
        // Nothing is open: then the time makes everything narrower.
        assert_eq!(chosen(&[(0.0, 9.0), (0.0, 0.0)]), [true, false]);
        assert_eq!(chosen(&[(0.0, 0.0), (0.0, 0.0)]), [true, true]);
    }

    #[test]
    fn enough_blocks_are_those_that_the_analysis_needs_for_an_interval() {
        assert_eq!(super::ENOUGH_BLOCKS as usize, crate::analyze::FEWEST_BLOCKS);
    }
}
