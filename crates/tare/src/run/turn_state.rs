//! State of a session's alternation.

use tare_model::turns::Stages;

/// State of a session's alternation.
#[derive(Debug)]
pub(super) struct TurnState {
    /// Whether workloads may be interleaved.
    pub(super) are_taken: bool,
    /// Whether the turn page has worked so far.
    pub(super) has_page: bool,
    /// Whether the loops of each workload have checked themselves.
    pub(super) checked: Vec<bool>,
    /// Whether the programs of each workload may be stopped midway, subject to inspection.
    pub(super) may_be_stopped: Vec<bool>,
}

impl TurnState {
    pub(super) fn new(may_be_stopped: Vec<bool>) -> Self {
        Self {
            are_taken: false,
            has_page: true,
            checked: vec![false; may_be_stopped.len()],
            may_be_stopped,
        }
    }
}

/// What all workers of a block share.
pub(super) struct Cycle {
    /// The orders of the cycles, by place.
    pub(super) rows: Vec<Vec<u32>>,
    /// The only stage of each place, `None` for those that run in all; empty if there is one.
    pub(super) stages: Vec<Option<u32>>,
    /// Distinguishes the block's turn page from the last one's.
    pub(super) key: u64,
    /// Total time of the slices of each arm, nanoseconds.
    pub(super) target_ns: u64,
    /// The CPU of all workers, if it is the same.
    pub(super) cpu: Option<u32>,
    /// Whether loops check themselves.
    pub(super) check: bool,
    /// Whether the turn page may be used.
    pub(super) has_page: bool,
    /// The baseline's place; without the baseline there is nothing to compare with.
    pub(super) baseline: usize,
}

impl Cycle {
    /// The number of stages.
    fn n_stages(&self) -> u32 {
        self.stages
            .iter()
            .flatten()
            .max()
            .map_or(1, |last| last + 1)
    }

    /// The time limit of the block, if every place alone has this one.
    pub(super) fn limit_ns(&self, of_place_ns: u64) -> u64 {
        let n_places = self.rows.first().map_or(1, Vec::len) as u64;
        of_place_ns.saturating_mul(n_places * u64::from(self.n_stages()))
    }

    /// The stages of a place; `None` if there is one.
    pub(super) fn stages(&self, place: usize) -> Option<Stages> {
        Some(Stages {
            count: self.n_stages(),
            own: *self.stages.get(place)?,
        })
    }

    /// The order in which places are started: that of the first row, so that no place always starts first, and the
    /// kernel's choice of memory is no property of a place.
    pub(super) fn starting_order(&self, count: usize) -> Vec<usize> {
        let row = self.rows.first().into_iter().flatten();
        let mut order: Vec<usize> = row.map(|place| *place as usize).collect();
        let others: Vec<usize> = (0..count).filter(|place| !order.contains(place)).collect();
        order.extend(others);
        order
    }
}
