//! The meter: times a probe's work and collects its series.
//!
//! A probe passes a closure that performs `k` operations. The meter finds a `k` so large that one clock reading is
//! negligible, checks that the closure's time grows linearly with `k`, and then times batches until the trial's share
//! of time is used. Nothing is subtracted: batches are made long instead, so that the clock's cost stays below one
//! part in ten thousand.
//! Limits: does not notice work that the compiler removed from a closure that still takes linear time; probes guard
//! against that with `std::hint::black_box` and a checksum.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tare_model::wire::Reply;
use tare_model::{CommandReport, Failure, Reason, Series, Unit, WorkSpan, whole_ns, whole_size};

use crate::by_name::by_name;
use crate::moment::Moment;

mod calibration;
mod in_turn;

use calibration::{calibrate, least_of_three, linearity, uncounted_of};
use in_turn::Alternation;
pub use in_turn::Rounds;

/// Target number of batches in a series.
const BATCHES: u64 = 40;
/// Fewest values in a series of long operations.
const FEWEST: usize = 5;
/// Fewest slices of one stretch of work.
const FEWEST_SLICES: usize = 8;
/// Counted share of a slice.
const COUNTED: f64 = 0.9;

/// Reason why a probe gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeError {
    /// It can never run here.
    Unavailable(Reason),
    /// It failed this time.
    Failed(Failure),
}

impl ProbeError {
    /// Converts the error into the agent's reply to the host.
    pub fn into_reply(self, trial: u64) -> Reply {
        match self {
            Self::Unavailable(reason) => Reply::Unavailable { trial, reason },
            Self::Failed(failure) => Reply::Failed { trial, failure },
        }
    }

    /// Makes a failure from a system error: the call, its object and the error's text.
    pub fn system(call: &str, error: &std::io::Error) -> Self {
        Self::Failed(Failure::Probe(format!("{call}: {error}")))
    }

    /// Makes an error from the `errno` that the syscall `call` has just left: a syscall that does not exist here (as
    /// under a seccomp filter that returns `ENOSYS`) is unavailable, all others are failures.
    pub fn last(call: &str) -> Self {
        let error = std::io::Error::last_os_error();
        if error.kind() == std::io::ErrorKind::Unsupported {
            Self::Unavailable(Reason::BlockedSyscall(call.to_owned()))
        } else {
            Self::system(call, &error)
        }
    }
}

/// The properties of the clock in this environment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timer {
    /// Cost of one reading, nanoseconds (median difference of adjacent readings).
    pub cost_ns: f64,
    /// Smallest non-zero step between two readings, nanoseconds.
    pub resolution_ns: f64,
}

impl Timer {
    /// Measures the clock by 4 096 adjacent readings.
    pub fn measure() -> Self {
        let start = Instant::now();
        let mut readings = vec![0u64; 4096];
        for reading in &mut readings {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "what is weighed is the reading alone, and in 64 bits it is right for centuries"
            )]
            let read = start.elapsed().as_nanos() as u64;
            *reading = read;
        }
        let mut steps: Vec<u64> = readings.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_unstable();
        let cost_ns = steps[steps.len() / 2] as f64;
        let resolution_ns = steps
            .iter()
            .find(|step| **step > 0)
            .map_or(f64::NAN, |step| *step as f64);
        Self {
            cost_ns,
            resolution_ns,
        }
    }
}

/// Receives a program's output while it runs.
pub type OutputSink = Arc<Mutex<dyn FnMut(&[u8]) + Send>>;

/// Reports to the host the port on which a probe listens.
pub type Announcer = Box<dyn FnMut(u16)>;

/// Waits until the workers that start together may continue.
pub type Gate = Box<dyn FnOnce() -> Result<(), ProbeError>>;

/// Times one probe in one trial.
pub struct Meter {
    timer: Timer,
    target_ns: u64,
    workdir: PathBuf,
    series: Vec<Series>,
    unavailable: BTreeMap<String, Reason>,
    checksum: Option<u64>,
    announcer: Option<Announcer>,
    output_sink: Option<OutputSink>,
    command: Option<CommandReport>,
    gate: Option<Gate>,
    went_on: Option<Moment>,
    alternation: Option<Alternation>,
    /// Time in which values were taken, over all stretches.
    timed: Duration,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Meter")
            .field("timer", &self.timer)
            .field("target_ns", &self.target_ns)
            .field("workdir", &self.workdir)
            .field("series", &self.series)
            .field("unavailable", &self.unavailable)
            .field("checksum", &self.checksum)
            .finish_non_exhaustive()
    }
}

impl Meter {
    /// Makes a meter whose timed work aims at `target_ns` in total; the probe's files go into `workdir`.
    pub fn new(target_ns: u64, workdir: &Path) -> Self {
        Self::with_timer(Timer::measure(), target_ns, workdir)
    }

    /// Makes a meter with a clock that the worker measured earlier, while it waited for its request.
    pub fn with_timer(timer: Timer, target_ns: u64, workdir: &Path) -> Self {
        Self {
            timer,
            target_ns,
            workdir: workdir.to_owned(),
            series: Vec::new(),
            unavailable: BTreeMap::new(),
            checksum: None,
            announcer: None,
            output_sink: None,
            command: None,
            gate: None,
            went_on: None,
            alternation: None,
            timed: Duration::ZERO,
        }
    }

    /// Returns the time in which values were taken, for the report: without preparation and calibration; `None` if
    /// the probe timed itself. To be called before [`Meter::finish`].
    pub fn timed_ns(&self) -> Option<u64> {
        (!self.timed.is_zero()).then_some(whole_ns(self.timed))
    }

    /// Adds time in which values were taken, for a probe that times stretches itself.
    pub fn count_timed(&mut self, time: Duration) {
        self.timed += time;
    }

    /// Sets the gate at which to wait when everything is prepared; to be called before the probe runs.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = Some(gate);
    }

    /// Sets the announcer for the port of a probe that serves; to be called before the probe runs.
    pub fn set_announcer(&mut self, announcer: Announcer) {
        self.announcer = Some(announcer);
    }

    /// Sets the destination of a program's output while it runs; to be called before the probe runs.
    pub fn set_output_sink(&mut self, sink: OutputSink) {
        self.output_sink = Some(sink);
    }

    /// Returns the destination of a program's output while it runs, if any.
    pub fn output_sink(&self) -> Option<OutputSink> {
        self.output_sink.clone()
    }

    /// Reports to the host that the probe listens on `port`. Does nothing without an announcer.
    pub fn announce(&mut self, port: u16) {
        if let Some(announcer) = &mut self.announcer {
            announcer(port);
        }
    }

    /// Records that `metric` cannot be measured here while the probe's other metrics can.
    pub fn unavailable(&mut self, metric: &str, reason: Reason) {
        self.unavailable.insert(metric.to_owned(), reason);
        if let Some(alternation) = &mut self.alternation
            && !std::mem::replace(&mut alternation.is_open, false)
        {
            alternation.turns.skip();
        }
    }

    /// Marks the end of preparation: workers that start together wait for each other here, once; without a gate it
    /// returns at once.
    ///
    /// # Errors
    /// The agent ended while the worker waited.
    pub fn ready(&mut self) -> Result<(), ProbeError> {
        if let Some(gate) = self.gate.take() {
            gate()?;
            self.went_on = Some(Moment::now());
        }
        Ok(())
    }

    /// Returns the time from [`Meter::ready`] to now, if the worker waited there; to be called after the work and
    /// before [`Meter::finish`].
    pub fn span(&self) -> Option<WorkSpan> {
        let (start, end) = (self.went_on?, Moment::now());
        Some(WorkSpan {
            start_ns: start.ns,
            end_ns: end.ns,
            clock: end.clock,
        })
    }

    /// Stores a program's report.
    pub fn command(&mut self, report: CommandReport) {
        self.command = Some(report);
    }

    /// Takes a program's report, if any; to be called before [`Meter::finish`].
    pub fn take_command(&mut self) -> Option<CommandReport> {
        self.command.take()
    }

    /// Takes the metrics that cannot be measured here, for the report; to be called before [`Meter::finish`].
    pub fn take_unavailable(&mut self) -> BTreeMap<String, Reason> {
        std::mem::take(&mut self.unavailable)
    }

    /// Returns the directory for the probe's files.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// Returns the target time of all timed work, nanoseconds.
    pub fn target_ns(&self) -> u64 {
        self.target_ns
    }

    /// Times `work(k)`, which performs `k` operations, and records nanoseconds per operation. `share` is this
    /// metric's part of the trial's time, 0 to 1.
    pub fn loops(
        &mut self,
        metric: &str,
        share: f64,
        mut work: impl FnMut(u64) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let mut rounds = self.rounds(share)?;
        let floor_ns = (20.0 * self.timer.cost_ns)
            .max(10.0 * self.timer.resolution_ns)
            .max(1_000.0);
        let batch_ns = match self.slice_ns() {
            Some(slice_ns) => slice_ns as f64 * COUNTED,
            None => rounds.share_ns / BATCHES as f64,
        };
        let own = calibrate(batch_ns.max(floor_ns), &mut |times| timed(times, &mut work))?;
        let batch = self.agreed(own);
        let checks = self
            .alternation
            .as_ref()
            .is_none_or(|alternation| alternation.turns.checks());
        let linearity = if checks {
            Some(linearity(|times| timed(times, &mut work), batch)?)
        } else {
            None
        };
        rounds.begin = Instant::now();
        let mut values = Vec::with_capacity(whole_size(BATCHES) + 8);
        let uncounted = self.uncounted(batch);
        while rounds.another(self)? {
            if uncounted > 0 {
                work(uncounted)?;
            }
            values.push(timed(batch, &mut work)? / batch as f64);
        }
        self.record(metric, Unit::Nanosecond, values, batch);
        if let Some(series) = self.series.last_mut() {
            series.linearity = linearity;
        }
        Ok(())
    }

    /// Returns how many operations run uncounted before a batch: a tenth of the slice, and at least one if that is no
    /// more than a third of it. Without interleaving there are none, because the previous batch was from the same
    /// trial.
    pub fn uncounted(&self, batch: u64) -> u64 {
        self.slice_ns().map_or(0, |_| uncounted_of(batch))
    }

    /// Times single operations that are long compared with the clock (at least 20 of its readings) and records
    /// nanoseconds of each until the share is used, at least five. In an interleaved trial a value is the mean of the
    /// operations in a slice.
    pub fn each(
        &mut self,
        metric: &str,
        share: f64,
        mut work: impl FnMut() -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let (values, batch) = self.passes(share, &mut work)?;
        self.record(metric, Unit::Nanosecond, values, batch);
        Ok(())
    }

    /// Times single passes that are long compared with the clock, each over `amount` (bytes or operations), and
    /// records `amount` per second in `unit` until the share is used, at least five. In an interleaved trial a value
    /// is the rate of the passes in a slice.
    pub fn rate(
        &mut self,
        metric: &str,
        share: f64,
        unit: Unit,
        amount: u64,
        mut work: impl FnMut() -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let (times_ns, batch) = self.passes(share, &mut work)?;
        let rates = times_ns.iter().map(|time_ns| amount as f64 * 1e9 / time_ns);
        self.record(metric, unit, rates.collect(), batch);
        Ok(())
    }

    /// Returns nanoseconds per pass for each value, and the number of passes per value.
    fn passes(
        &mut self,
        share: f64,
        work: &mut impl FnMut() -> Result<(), ProbeError>,
    ) -> Result<(Vec<f64>, u64), ProbeError> {
        let mut rounds = self.rounds(share)?;
        let mut work = |times: u64| (0..times).try_for_each(|_| work());
        let batch = match self.alternation {
            Some(_) => self.per_slice(least_of_three(&mut || timed(1, &mut work))?),
            None => 1,
        };
        let uncounted = self.uncounted(batch);
        rounds.begin = Instant::now();
        let mut values = Vec::new();
        while rounds.another(self)? {
            work(uncounted)?;
            values.push(timed(batch, &mut work)? / batch as f64);
        }
        Ok((values, batch))
    }

    /// Repeats rounds that time their parts themselves and returns each round's values, until the share is used. In
    /// an interleaved trial these are means over the rounds that fill a slice.
    ///
    /// # Errors
    /// Those of `once`; the other arms are gone.
    pub fn self_timed<const N: usize>(
        &mut self,
        share: f64,
        mut once: impl FnMut() -> Result<[f64; N], ProbeError>,
    ) -> Result<Vec<[f64; N]>, ProbeError> {
        let mut rounds = self.rounds(share)?;
        let batch = match self.alternation {
            Some(_) => self.per_slice(least_of_three(&mut || {
                timed(1, &mut |_| once().map(|_| ()))
            })?),
            None => 1,
        };
        let uncounted = self.uncounted(batch);
        rounds.begin = Instant::now();
        let mut values = Vec::new();
        while rounds.another(self)? {
            for _ in 0..uncounted {
                once()?;
            }
            let mut sums = [0.0; N];
            for _ in 0..batch {
                for (sum, value) in sums.iter_mut().zip(once()?) {
                    *sum += value;
                }
            }
            values.push(sums.map(|sum| sum / batch as f64));
        }
        Ok(values)
    }

    /// Records values that the probe timed itself, each over `batch` operations.
    pub fn record(&mut self, metric: &str, unit: Unit, values: Vec<f64>, batch: u64) {
        if let Some(alternation) = &mut self.alternation {
            alternation.is_open = false;
        }
        self.series.push(Series {
            metric: metric.to_owned(),
            unit,
            values,
            batch,
            linearity: None,
            notes: Vec::new(),
        });
    }

    /// Adds a note to the series recorded last.
    pub fn note(&mut self, text: impl Into<String>) {
        if let Some(series) = self.series.last_mut() {
            series.notes.push(text.into());
        }
    }

    /// Mixes a result of the work into the checksum that must be equal in every arm. Results that depend on the
    /// trial's length must not be included.
    pub fn checksum(&mut self, result: u64) {
        let before = self.checksum.unwrap_or(0xcbf2_9ce4_8422_2325);
        self.checksum = Some(
            (before ^ result)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(17),
        );
    }

    /// Returns the series, the checksum and the timer's properties.
    pub fn finish(self) -> (Vec<Series>, Option<u64>, BTreeMap<String, f64>) {
        let timer = [
            ("cost_ns", self.timer.cost_ns),
            ("resolution_ns", self.timer.resolution_ns),
        ];
        let timer = timer
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(name, value)| (name.to_owned(), value));
        (self.series, self.checksum, by_name(timer))
    }
}

fn timed(
    batch: u64,
    work: &mut impl FnMut(u64) -> Result<(), ProbeError>,
) -> Result<f64, ProbeError> {
    let start = Instant::now();
    work(batch)?;
    Ok(start.elapsed().as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_is_the_amount_divided_by_the_time_of_a_pass() {
        let mut meter = Meter::new(1, &std::env::temp_dir());
        meter
            .rate("x.y.rate", 1.0, Unit::BytePerSecond, 1_000, || {
                std::thread::sleep(Duration::from_millis(2));
                Ok(())
            })
            .unwrap();
        let (series, _, _) = meter.finish();
        assert_eq!(series[0].unit, Unit::BytePerSecond);
        assert_eq!(series[0].values.len(), FEWEST);
        for value in &series[0].values {
            // A sleep is never shorter than requested, but may be longer by any amount.
            assert!(*value > 0.0 && *value <= 500_000.0, "{value}");
        }
    }

    #[test]
    fn meter_waits_once_and_only_at_a_gate() {
        let mut meter = Meter::new(1, &std::env::temp_dir());
        meter.ready().unwrap();
        assert_eq!(meter.span(), None);
        let count = std::rc::Rc::new(std::cell::Cell::new(0));
        let waits = count.clone();
        meter.set_gate(Box::new(move || {
            waits.set(waits.get() + 1);
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        }));
        let before = Moment::now().ns;
        meter.ready().unwrap();
        meter.ready().unwrap();
        assert_eq!(count.get(), 1);
        let span = meter.span().unwrap();
        assert!(span.start_ns >= before + 2_000_000, "the wait is inside");
        assert!(span.end_ns >= span.start_ns);
    }

    #[test]
    fn a_gate_that_fails_ends_the_probe() {
        let mut meter = Meter::new(1, &std::env::temp_dir());
        let error = ProbeError::Failed(Failure::Lost("gone".to_owned()));
        let given = error.clone();
        meter.set_gate(Box::new(move || Err(given)));
        assert_eq!(meter.ready(), Err(error));
        assert_eq!(meter.span(), None);
    }

    #[test]
    fn a_pass_that_fails_leaves_no_series() {
        let mut meter = Meter::new(1, &std::env::temp_dir());
        let error = ProbeError::Failed(Failure::Probe("broken".to_owned()));
        let outcome = meter.rate("x.y.rate", 1.0, Unit::BytePerSecond, 1, || {
            Err(error.clone())
        });
        assert_eq!(outcome, Err(error));
        assert!(meter.finish().0.is_empty());
    }
}
