//! What a session knows of taking turns.

/// What a session knows of taking turns.
#[derive(Debug)]
pub(super) struct TurnState {
    /// Whether any workload takes turns.
    pub(super) are_taken: bool,
    /// Whether the page was found to be of use so far.
    pub(super) has_page: bool,
    /// Which workloads' loops have checked themselves.
    pub(super) checked: Vec<bool>,
    /// Which workloads' programs may be stopped on their way, if a look at them finds nothing against that.
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

/// What is alike for every worker of the block.
pub(super) struct Cycle {
    /// The orders, by place.
    pub(super) rows: Vec<Vec<u32>>,
    /// Tells this block's page from the last one's.
    pub(super) key: u64,
    /// How long the slices of each take together, nanoseconds.
    pub(super) target_ns: u64,
    /// The processor for all.
    pub(super) cpu: Option<u32>,
    /// Whether loops check themselves.
    pub(super) check: bool,
    /// Whether the page may be used.
    pub(super) has_page: bool,
    /// Which place the baseline has: without it there is nothing to compare with.
    pub(super) baseline: usize,
}

impl Cycle {
    /// The places in the order in which they are started: their own, or, where that is `drawn`, that of the first row, so
    /// that none is always started first.
    pub(super) fn starting_order(&self, count: usize, is_drawn: bool) -> Vec<usize> {
        let row = self.rows.first().filter(|_| is_drawn).into_iter().flatten();
        let mut order: Vec<usize> = row.map(|place| *place as usize).collect();
        let others: Vec<usize> = (0..count).filter(|place| !order.contains(place)).collect();
        order.extend(others);
        order
    }
}
