//! The plan: which trial runs when, fixed before the first one.
//!
//! Randomised complete blocks (METHOD 1.3): in each block the workloads come in a random order, and for each workload
//! every arm runs once, back to back, in an order from a Williams square, so that carry-over effects of a trial
//! affect every arm alike. Everything is a function of the study with its seed: block 17 can be planned without the
//! 16 before it, and a resumed run continues with the same plan. The orders and shuffles are those of `tare-stats`,
//! which are part of its promise never to change.
//! Limits: plans for all arms, usable or not; a missing arm is left out when the plan is executed, and the others
//! keep their places.

use std::io::Write;

use sha2::{Digest, Sha256};
use tare_model::arm::Role;
use tare_model::study::A_PRIME;
use tare_model::{ArmId, ArmSpec, CellKey, Study, Trial, whole_count, whole_place};
use tare_stats::{BlockOrders, Stream, closed_rows};

mod duration;

pub use duration::expected_ns;

/// The most arms and trials of an imported study: larger ones would take too long to plan.
const MOST_ARMS: usize = 256;
const MOST_TRIALS: usize = 1 << 27;
const MOST_CELLS: usize = 1 << 20;

/// The plan of a study.
#[derive(Debug, Clone)]
pub struct Plan {
    study: Study,
    /// One for each workload, so that the workloads' orders are independent.
    orders: Vec<BlockOrders>,
    sha256: String,
}

// Stream ids of the random numbers, by purpose; any distinct numbers would do. Never to be changed.
const WORKLOAD_ORDER: u64 = 0x776f_726b_6c6f_6164;
const ARM_ORDER: u64 = 0x0061_726d_6f72_6465;
const TURN_ORDER: u64 = 0x0074_7572_6e6f_7264;
/// Streams of the order in which arms are started.
const START_ORDER: u64 = 0x7374_6172_746f_7264;
/// Streams of the padding bytes of an arm's workers.
const PADS: u64 = 0x0000_0070_6164_7300;

/// Pads are below this, a page: larger shifts repeat the same offsets. In steps of a stack's alignment.
const MOST_PAD_BYTES: u32 = 4096;
const PAD_STEP_BYTES: u32 = 16;

impl Plan {
    /// Plans a study. The hash covers the study and every trial of `blocks_max` blocks.
    pub fn new(study: &Study) -> Self {
        let orders = (0..study.workloads.len())
            .map(|workload| {
                let seed = Stream::new(study.seed, ARM_ORDER, workload as u64).bits();
                BlockOrders::new(study.arms.len(), seed)
            })
            .collect();
        let mut plan = Self {
            study: study.clone(),
            orders,
            sha256: String::new(),
        };
        plan.sha256 = plan.hash();
        plan
    }

    /// Whether a study is small enough to be planned, and has something to plan.
    pub fn fits(study: &Study) -> bool {
        let (arms, workloads) = (study.arms.len(), study.workloads.len());
        let trials = arms
            .saturating_mul(workloads)
            .saturating_mul(study.blocks_max as usize);
        arms > 0 && workloads > 0 && arms <= MOST_ARMS && trials <= MOST_TRIALS
    }

    /// Whether an imported study is small enough to be reported. With pairs each workload has a cell for every two
    /// arms.
    pub fn can_be_reported(study: &Study) -> bool {
        let arms = study.arms.len();
        let of_a_workload = if study.pairs {
            arms.saturating_mul(arms)
        } else {
            arms
        };
        let cells = of_a_workload.saturating_mul(study.workloads.len());
        arms <= MOST_ARMS && cells <= MOST_CELLS
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// SHA-256 of the study as JSON and of each planned trial, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// How many trials one block holds: workloads × arms.
    pub fn trials_per_block(&self) -> u32 {
        whole_count(self.study.workloads.len() * self.study.arms.len())
    }

    /// The launch that a block belongs to; arms are restarted between launches.
    pub fn launch(&self, block: u32) -> u32 {
        block / self.study.blocks_per_launch.max(1)
    }

    /// Returns the trials of a block, in order. Any block can be planned; the caller limits their number.
    pub fn block(&self, block: u32) -> Vec<Trial> {
        let mut workloads: Vec<usize> = (0..self.study.workloads.len()).collect();
        Stream::new(self.study.seed, WORKLOAD_ORDER, u64::from(block)).shuffle(&mut workloads);
        let mut trials = Vec::with_capacity(self.trials_per_block() as usize);
        let mut sequence = block * self.trials_per_block();
        for workload_index in workloads {
            let workload = &self.study.workloads[workload_index];
            let order = self.orders[workload_index].order(block as usize);
            for (position, arm) in (0..).zip(order) {
                trials.push(Trial {
                    sequence,
                    block,
                    position,
                    launch: self.launch(block),
                    workload_index: whole_count(workload_index),
                    cell: CellKey {
                        arm: self.study.arms[arm].id.clone(),
                        workload: workload.id.clone(),
                        params: workload.params.clone(),
                        instances: workload.instances,
                        path: workload.path,
                    },
                });
                sequence += 1;
            }
        }
        trials
    }

    /// Returns the order in which `places` arms are started for a launch.
    pub fn start_order(&self, launch: u32, places: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..places).collect();
        Stream::new(self.study.seed, START_ORDER, u64::from(launch)).shuffle(&mut order);
        order
    }

    /// By how many bytes environment and heap of an arm's workers are shifted in a launch, so that an offset within a
    /// page is not a property of the arm.
    pub fn pad_bytes(&self, launch: u32, arm: usize) -> u32 {
        let number = u64::from(launch) * MOST_ARMS as u64 + arm as u64;
        let steps = whole_place(f64::from(MOST_PAD_BYTES / PAD_STEP_BYTES));
        PAD_STEP_BYTES * whole_count(Stream::new(self.study.seed, PADS, number).below(steps))
    }

    /// The orders in which `places` workers are interleaved in a block of a workload: the rows of a Williams square,
    /// arranged so that none follows itself.
    pub fn turn_rows(&self, block: u32, workload: usize, places: usize) -> Vec<Vec<u32>> {
        let number = u64::from(block) * self.study.workloads.len() as u64 + workload as u64;
        let seed = Stream::new(self.study.seed, TURN_ORDER, number).bits();
        let rows = closed_rows(places, seed).into_iter();
        rows.map(|row| row.into_iter().map(whole_count).collect())
            .collect()
    }

    /// The only stage of each of these arms in a block, by place; `None` for the baseline and its copy, which run in
    /// all. Empty if all arms share one stage: where at most one is compared with the baseline, and where arms are
    /// compared with each other.
    pub fn stages(&self, block: u32, arms: &[&ArmId]) -> Vec<Option<u32>> {
        let study = &self.study;
        let is_common = |arm: &ArmId| *arm == study.baseline || arm.as_str() == A_PRIME;
        let has_purpose = |arm: &ArmSpec| arm.role != Role::default();
        let n_compared = whole_count(arms.iter().filter(|arm| !is_common(arm)).count());
        if n_compared < 2 || study.pairs || study.arms.iter().any(has_purpose) {
            return Vec::new();
        }
        // Each block begins with another arm.
        let mut stages = (0..n_compared).map(|stage| (stage + block) % n_compared);
        let own = |arm: &&ArmId| if is_common(arm) { None } else { stages.next() };
        arms.iter().map(own).collect()
    }

    fn hash(&self) -> String {
        let mut sink = Sha256::new();
        let fine = serde_json::to_writer(&mut sink, &self.study).is_ok()
            && (0..self.study.blocks_max)
                .flat_map(|block| self.block(block))
                .all(|trial| {
                    writeln!(
                        sink,
                        "\n{} {} {} {} {} {}",
                        trial.sequence,
                        trial.block,
                        trial.position,
                        trial.launch,
                        trial.workload_index,
                        trial.cell.arm
                    )
                    .is_ok()
                });
        assert!(fine, "hashing writes to memory only and cannot fail");
        format!("{:x}", sink.finalize())
    }
}

#[cfg(test)]
mod tests;
