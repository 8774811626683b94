//! Checks whether a single reading is plausible, before any statistics; shared by the adapters.
//!
//! Each check takes numbers from a tool's output and returns a [`Remark`] if they contradict each other or show that
//! something other than the metric was measured. A remark labels the cell and drops nothing: the reader decides. The
//! thresholds are fixed, so that all arms are checked equally.
//! Limits: does not detect a log that is wrong but consistent.
//! Not a workload itself.

use tare_model::CommandReport;
use tare_model::counter;

use super::command_output;

/// One doubt about one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The kind of doubt, in kebab case; one of [`KINDS`].
    pub id: &'static str,
    /// The metric concerned; `None` for all metrics of the workload.
    pub metric: Option<&'static str>,
    /// The observation with its numbers, free of foreign control characters.
    pub detail: String,
}

/// The application's bytes did not come from or go to the device.
pub const PAGE_CACHE: &str = "page-cache";
/// Fewer requests were in flight than requested.
pub const SHALLOW_QUEUE: &str = "shallow-queue";
/// The tool's timed region is short compared with its clock's resolution.
pub const SHORT_INTERVAL: &str = "short-interval";
/// More threads than processors.
pub const MORE_THREADS_THAN_CPUS: &str = "more-threads-than-cpus";
/// The tool's numbers contradict each other.
pub const LOG_ARITHMETIC: &str = "log-arithmetic";
/// More CPU time was accounted than available.
pub const IMPOSSIBLE_CPU_TIME: &str = "impossible-cpu-time";
/// Packets were retransmitted.
pub const RETRANSMITS: &str = "retransmits";
/// Packets were lost or duplicated.
pub const PACKET_LOSS: &str = "packet-loss";
/// The tool did not measure the whole time.
pub const GAPS: &str = "gaps";
/// More output was printed than kept.
pub const OUTPUT_CUT: &str = "output-cut";

/// A run was ended at its time limit, and its value is a lower bound.
pub const CUT_OFF: &str = "cut-off";

/// A server's speed still changed at the end of its warm-up.
pub const NOT_STEADY: &str = "not-steady";
/// A server's responses differ in content from the baseline's.
pub const OTHER_ANSWERS: &str = "other-answers";
/// A server closed connections that should stay open.
pub const RECONNECTS: &str = "reconnects";

/// Every kind of doubt.
pub const KINDS: &[&str] = &tare_model::rows! {
    PAGE_CACHE, SHALLOW_QUEUE, SHORT_INTERVAL, MORE_THREADS_THAN_CPUS, LOG_ARITHMETIC, IMPOSSIBLE_CPU_TIME,
    RETRANSMITS, PACKET_LOSS, GAPS, OUTPUT_CUT, CUT_OFF, NOT_STEADY,
    OTHER_ANSWERS, RECONNECTS,
};

impl Remark {
    /// A doubt about the whole trial.
    pub fn new(id: &'static str, detail: impl Into<String>) -> Self {
        Self {
            id,
            metric: None,
            detail: detail.into(),
        }
    }

    /// The same remark about one metric only.
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

/// The fewest clock steps of a sufficiently long interval: its length is then known to a thousandth.
const FEWEST_STEPS: f64 = 1_000.0;
/// The smallest share of the application's bytes that the device must have transferred.
const DEVICE_SHARE: f64 = 0.5;
/// How far a rate times its duration may be from the count, as a share.
const ARITHMETIC: f64 = 0.03;
/// How much a scheduler tick may add to accounted CPU time, nanoseconds.
const TICK_NS: f64 = 20e6;

/// The checks for every program: truncated output, and more CPU time than available.
pub fn of_command(report: &CommandReport) -> Vec<Remark> {
    let cut = report.is_cut.then(|| {
        Remark::new(
            OUTPUT_CUT,
            format!(
                "kept are the first {} bytes",
                report.stdout.0.len() + report.stderr.0.len()
            ),
        )
    });
    [cut, processor_time(report)]
        .into_iter()
        .flatten()
        .collect()
}

/// Compares accounted CPU time with wall time and permitted processors. One more than permitted is tolerated, because
/// a quota may be fractional and can be exceeded within its period.
fn processor_time(report: &CommandReport) -> Option<Remark> {
    let used_ns = command_output::cpu_ns(report)?;
    let cpus = report.usage.get(counter::PERMITTED_CPUS)?;
    let wall_ns = report.wall_ns as f64;
    (used_ns > wall_ns * (cpus + 1.0) + TICK_NS).then(|| {
        Remark::new(
            IMPOSSIBLE_CPU_TIME,
            format!(
                "{} of processor time in {} on {cpus} processors",
                seconds(used_ns),
                seconds(wall_ns)
            ),
        )
    })
}

/// A remark if an interval has fewer than a thousand steps of its clock.
pub fn timer_steps(what: &str, interval_s: f64, step_s: f64) -> Option<Remark> {
    let steps = interval_s / step_s;
    if !steps.is_finite() || steps >= FEWEST_STEPS {
        return None;
    }
    let detail = if steps < 1.5 {
        format!("{what} took one timer step of {}", seconds(step_s * 1e9))
    } else {
        format!(
            "{what} took {steps:.0} timer steps of {}",
            seconds(step_s * 1e9)
        )
    };
    Some(Remark::new(SHORT_INTERVAL, detail))
}

/// A remark if the device transferred less than half of the application's bytes.
pub fn device_bytes(what: &str, application: f64, device: f64) -> Option<Remark> {
    let is_doubtful =
        application > 0.0 && device.is_finite() && device < DEVICE_SHARE * application;
    is_doubtful.then(|| {
        Remark::new(
            PAGE_CACHE,
            format!(
                "of {} bytes {what} the device saw {}",
                application.round(),
                device.max(0.0).round()
            ),
        )
    })
}

/// A remark if there were more threads than processors.
pub fn threads(threads: f64, report: &CommandReport) -> Option<Remark> {
    let cpus = *report.usage.get(counter::PERMITTED_CPUS)?;
    (threads > cpus).then(|| {
        Remark::new(
            MORE_THREADS_THAN_CPUS,
            format!("{threads} threads on {cpus} processors"),
        )
    })
}

/// A remark if `rate × seconds` is not `count`.
pub fn product(what: &str, rate: f64, duration_s: f64, count: f64) -> Option<Remark> {
    let expected = rate * duration_s;
    let distance = (expected - count).abs();
    let is_right = distance.is_finite() && distance <= ARITHMETIC * count.abs().max(expected.abs());
    (!is_right).then(|| {
        Remark::new(
            LOG_ARITHMETIC,
            format!(
                "{what}: {rate:.1}/s for {duration_s:.3} s is {expected:.0}, reported are {count:.0}"
            ),
        )
    })
}

/// Formats a duration in nanoseconds.
pub fn seconds(ns: f64) -> String {
    if ns >= 1e9 {
        format!("{:.2} s", ns / 1e9)
    } else if ns >= 1e6 {
        format!("{:.2} ms", ns / 1e6)
    } else {
        format!("{:.2} µs", ns / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_output::{report, tests::raw};
    use super::*;

    fn ran(usage: &[(&str, f64)]) -> CommandReport {
        let mut report = report(&raw(0, b"", b"")).unwrap();
        report.wall_ns = 1_000_000_000;
        report.usage = usage
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        report
    }

    #[test]
    fn interval_below_thousand_timer_steps_is_remarked() {
        let one = timer_steps("64 kB", 1e-6, 1e-6).unwrap();
        assert_eq!(one.id, SHORT_INTERVAL);
        assert!(one.detail.contains("one timer step of 1.00 µs"), "{one:?}");
        assert!(
            timer_steps("x", 999e-6, 1e-6)
                .unwrap()
                .detail
                .contains("999")
        );
        assert!(timer_steps("x", 1001e-6, 1e-6).is_none());
        assert!(timer_steps("x", 1.0, 0.0).is_none());
    }

    #[test]
    fn bytes_that_no_device_saw_came_from_the_page_cache() {
        assert_eq!(device_bytes("read", 1e9, 0.0).unwrap().id, PAGE_CACHE);
        assert!(device_bytes("read", 1e9, 0.9e9).is_none());
        assert!(device_bytes("read", 1e9, 3e9).is_none());
        assert!(device_bytes("read", 0.0, 0.0).is_none());
    }

    #[test]
    fn rate_inconsistent_with_count_is_remarked() {
        assert!(product("reads", 100.0, 2.0, 201.0).is_none());
        assert_eq!(
            product("reads", 100.0, 2.0, 400.0).unwrap().id,
            LOG_ARITHMETIC
        );
        assert!(product("reads", f64::NAN, 2.0, 1.0).is_some());
    }

    #[test]
    fn impossible_cpu_time_is_remarked_but_not_a_burst() {
        let usage = |user| ran(&[("user_ns", user), ("sys_ns", 1e8), ("permitted_cpus", 1.0)]);
        assert!(of_command(&usage(1.6e9)).is_empty());
        assert_eq!(of_command(&usage(9e9))[0].id, IMPOSSIBLE_CPU_TIME);
        assert!(of_command(&ran(&[("user_ns", 9e9)])).is_empty());
    }

    #[test]
    fn threads_are_compared_with_permitted_cpus() {
        let report = ran(&[("permitted_cpus", 2.0)]);
        assert!(threads(2.0, &report).is_none());
        assert_eq!(threads(3.0, &report).unwrap().id, MORE_THREADS_THAN_CPUS);
        assert!(threads(99.0, &ran(&[])).is_none());
    }

    #[test]
    fn truncated_output_is_remarked() {
        let mut report = ran(&[]);
        report.is_cut = true;
        assert_eq!(of_command(&report)[0].id, OUTPUT_CUT);
    }
}
