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
