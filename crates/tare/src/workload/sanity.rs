//! Whether a single reading can be believed, before any statistics: the checks that adapters share.
//!
//! Each takes plain numbers out of a tool's own output and gives a [`Remark`] where they contradict each other
//! or say that something else was measured than the metric's name promises. A remark labels the cell and
//! drops nothing: the reader decides. The thresholds are fixed, so that no arm is looked at more kindly.
//! What it cannot see: a log that is wrong and consistent with itself.
//! This file is no workload.

/// One doubt about one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The kind of doubt, in kebab case; one of [`KINDS`].
    pub id: &'static str,
    /// The metric that is concerned; all of the workload's metrics for `None`.
    pub metric: Option<&'static str>,
    /// What was seen, with its numbers. Without foreign control characters.
    pub detail: String,
}

/// Application bytes did not come from or go to the device.
pub const PAGE_CACHE: &str = "page-cache";
/// Fewer requests were in flight than were asked for.
pub const SHALLOW_QUEUE: &str = "shallow-queue";
/// The tool's timed region is short against the step of its clock.
pub const SHORT_INTERVAL: &str = "short-interval";
/// More threads were run than there are processors for them.
pub const MORE_THREADS_THAN_CPUS: &str = "more-threads-than-cpus";
/// The tool's figures do not fit together.
pub const LOG_ARITHMETIC: &str = "log-arithmetic";
/// More processor time was accounted than there was.
pub const IMPOSSIBLE_CPU_TIME: &str = "impossible-cpu-time";
/// Packets were sent again.
pub const RETRANSMITS: &str = "retransmits";
/// Packets were lost, or came twice.
pub const PACKET_LOSS: &str = "packet-loss";
/// The tool did not measure all of the time.
pub const GAPS: &str = "gaps";
/// More was printed than was kept.
pub const OUTPUT_CUT: &str = "output-cut";

/// Every kind of doubt.
pub const KINDS: &[&str] = &[
    PAGE_CACHE,
    SHALLOW_QUEUE,
    SHORT_INTERVAL,
    MORE_THREADS_THAN_CPUS,
    LOG_ARITHMETIC,
    IMPOSSIBLE_CPU_TIME,
    RETRANSMITS,
    PACKET_LOSS,
    GAPS,
    OUTPUT_CUT,
];

impl Remark {
    /// A doubt about the whole trial.
    pub fn new(id: &'static str, detail: impl Into<String>) -> Self {
        Self {
            id,
            metric: None,
            detail: detail.into(),
        }
    }

    /// The same about one metric only.
    #[must_use]
    pub fn about(mut self, metric: &'static str) -> Self {
        self.metric = Some(metric);
        self
    }

    /// Whether it is about this metric.
    pub fn concerns(&self, metric: &str) -> bool {
        self.metric.is_none_or(|only| only == metric)
    }
}
