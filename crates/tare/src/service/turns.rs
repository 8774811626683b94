//! Interleaves requests to several servers in slices of milliseconds, so that the slices of a cycle see the same
//! machine state.
//!
//! First every server gets requests until it answers as expected, then all are warmed up, then measured in the orders
//! of a Williams square. A server that never answers as expected is left out. One that fails later spoils the block,
//! because the slices of the others have lost their partners.
//! Limits: background work of an idle server continues during the slices of all arms.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Cancelled;
use super::client::{Client, Slice, SliceError, SliceLength};
use super::ready::First;
use super::request_plan::RequestPlan;
use crate::cx::listeners::Bound;
use crate::cx::{Context, processor};

/// A percentile is reported if at least this many requests took longer.
pub const BEYOND: usize = 50;
/// Length of a slice; longer ones are not more precise.
pub const SLICE_NS: u64 = 3_000_000;
/// Warm-up takes at most this fraction (1/N) of the measuring time, but may always take the following time.
const WARM_UP_PART: u64 = 4;
const LEAST_WARM_UP_NS: u64 = 100_000_000;
/// A server whose first answer took longer is not queried twice before the warm-up.
const ONCE_NS: u64 = 1_000_000_000;
/// If the mean slice takes longer, the orders need not be balanced.
const SLOW_NS: u64 = 100_000_000;
/// Number of slices that must agree before a server counts as warm.
const SETTLED: usize = 5;
/// Minimum number of cycles.
const LEAST_CYCLES: usize = 4;

/// How to measure a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// The orders, by place: cycle `c` has row `c % rows.len()`.
    pub rows: Vec<Vec<u32>>,
    /// The baseline's place; without the baseline there is nothing to compare with.
    pub baseline: usize,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Total time of the slices of each server.
    pub target_ns: u64,
    /// When the start of each server was requested, by the client's clock.
    pub starts_ns: Vec<u64>,
    /// How long servers may take from there until they answer as expected.
    pub ready_ns: u64,
    /// Whether all were queried in an earlier block, so that one slice each is enough warm-up.
    pub are_warm: bool,
    /// The CPU of the client, of proxies on the route and of `servers`, if all share one: waking up an idle CPU takes
    /// longer than many requests.
    pub cpu: Option<u32>,
    /// Server processes that do not bind themselves to the CPU.
    pub servers: Vec<u32>,
}

/// Number of steps in the course of a trial with one slice.
const STEPS: usize = 100;

/// The course of the latency within a trial of one slice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// Requests per step.
    pub each: usize,
    /// Median latency of each step in send order, nanoseconds.
    pub typical_ns: Vec<f64>,
}

impl Course {
    fn new(slice: &Slice) -> Self {
        let mut sent: Vec<(u64, u64)> = slice
            .answers
            .iter()
            .map(|answer| (answer.from_ns, answer.latency_ns))
            .collect();
        sent.sort_unstable();
        let each = sent.len().div_ceil(STEPS).max(1);
        let steps = sent.chunks_exact(each).map(|step| {
            let mut latencies: Vec<u64> = step.iter().map(|(_, latency)| *latency).collect();
            latencies.sort_unstable();
            middle(&latencies)
        });
        Self {
            typical_ns: steps.collect(),
            each,
        }
    }
}

/// The median of sorted latencies; NaN if there are none.
fn middle(sorted: &[u64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle] as f64,
        _ => (sorted[middle - 1] + sorted[middle]) as f64 / 2.0,
    }
}

/// Measurements of one server in a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Median latency of each slice, nanoseconds. The same index is the same cycle for every server.
    pub typical_ns: Vec<f64>,
    /// Requests per second in each slice.
    pub rate: Vec<f64>,
    /// The course of the only slice; empty if there are several.
    pub course: Course,
    /// All counted latencies, sorted, nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// Time from its start to its first expected answer.
    pub ready_ns: u64,
    /// CPU time of the server per request, nanoseconds, if readable.
    pub cpu_ns: Option<f64>,
    /// Whether its last warm-up slices agreed.
    pub is_steady: bool,
    /// Connections that were reopened because the server had closed them.
    pub reopened: u64,
    /// All requests, including those that do not count.
    pub requests: u64,
    /// Its first answer.
    pub first: First,
    /// Whether its first answer has the length of the baseline's, but other contents.
    pub has_other_contents: bool,
}

impl Measured {
    /// The latency that `share` of all requests do not exceed, if at least [`BEYOND`] requests took longer.
    pub fn percentile_ns(&self, share: f64) -> Option<f64> {
        let count = self.latencies_ns.len();
        let place = tare_model::whole_place((count as f64 * share).ceil()).saturating_sub(1);
        (count > place + BEYOND).then(|| self.latencies_ns[place] as f64)
    }

    fn add(&mut self, slice: &Slice, slice_ns: u64) {
        self.reopened += slice.reopened;
        self.requests += slice.answers.len() as u64;
        let all = || slice.answers.iter().map(|answer| answer.latency_ns);
        let n_timed = slice.latencies().count();
        let mut counted: Vec<u64> = if n_timed == 0 {
            // Each connection answered once at most, so there are no other values.
            all().collect()
        } else {
            // In a request that fills the slice, cold caches matter little.
            let first = slice.answers.first();
            let long = first.filter(|it| !it.is_counted && it.latency_ns >= slice_ns);
            let long = long.map(|answer| answer.latency_ns);
            slice.latencies().chain(long).collect()
        };
        let rate = if n_timed > 0 && slice.counted_ns > 0 {
            n_timed as f64 / slice.counted_ns as f64 * 1e9
        } else {
            let longest = all().max().unwrap_or(1).max(1);
            slice.answers.len() as f64 / longest as f64 * 1e9
        };
        self.rate.push(rate);
        counted.sort_unstable();
        self.typical_ns.push(middle(&counted));
        self.course = if self.typical_ns.len() == 1 {
            Course::new(slice)
        } else {
            Course::default()
        };
        self.latencies_ns.extend(counted);
    }
}

/// Reads the CPU time that a server has used so far, nanoseconds.
pub type CpuMeter = Arc<dyn Fn() -> Option<f64> + Send + Sync>;

/// The measurements of each server, or why there are none.
pub type Outcomes = Vec<Result<Measured, String>>;

/// Measures these servers from a separate thread, which is bound to the block's CPU, if any.
///
/// # Errors
/// Ctrl-C.
pub fn ask(
    cx: &Context<'_>,
    servers: &[SocketAddr],
    asked: RequestPlan,
    block: &Block,
    meters: &[CpuMeter],
) -> Result<Outcomes, Cancelled> {
    let mut client = Client::new(cx.clock, cx.cancel, servers, asked);
    let listening: Vec<SocketAddr> = servers
        .iter()
        .copied()
        .filter(|address| address.ip().is_loopback())
        .collect();
    let joined = std::thread::scope(|scope| {
        let on_its_own = std::thread::Builder::new().spawn_scoped(scope, || {
            let _stay = block.cpu.and_then(processor::Stay::bind);
            let _others = block
                .cpu
                .map(|cpu| Bound::bind(cpu, &listening, &block.servers));
            measure(&mut client, block, meters)
        });
        on_its_own.map(std::thread::ScopedJoinHandle::join)
    });
    let all = |why: String| Ok(vec![Err(why); servers.len()]);
    match joined {
        Ok(Ok(outcomes)) => outcomes,
        Ok(Err(_)) => all("the client failed".to_owned()),
        Err(error) => all(format!("no thread for the client: {error}")),
    }
}

/// Measures one block.
///
/// # Errors
/// Ctrl-C.
fn measure(
    client: &mut Client<'_>,
    block: &Block,
    meters: &[CpuMeter],
) -> Result<Outcomes, Cancelled> {
    let count = client.servers();
    let mut all: Outcomes = (0..count).map(|_| Ok(Measured::default())).collect();
    for (place, one) in all.iter_mut().enumerate() {
        *one = ready(client, place, block.starts_ns[place], block.ready_ns)?;
    }
    compare_answers(&mut all, block.baseline);
    let warm = warm_up(client, block, &mut all)?;
    if all[block.baseline].is_err() || warm.is_some() || !all.iter().any(Result::is_ok) {
        return Ok(all);
    }
    let used = || meters.iter().map(|meter| meter()).collect::<Vec<_>>();
    let asked = |all: &Outcomes| {
        let requests = all
            .iter()
            .map(|one| one.as_ref().map_or(0, |it| it.requests));
        requests.collect::<Vec<_>>()
    };
    let before = (used(), asked(&all));
    let rows = block.rows.len().max(1);
    let begun_ns = client.clock().now_ns();
    let mut active: Vec<bool> = all.iter().map(Result::is_ok).collect();
    let n_active = active.iter().filter(|is_active| **is_active).count() as u64;
    let target_ns = block.target_ns.saturating_mul(n_active);
    for cycle in 0.. {
        let is_whole = cycle % rows == 0 && cycle >= LEAST_CYCLES.min(rows);
        let elapsed_ns = client.clock().now_ns().saturating_sub(begun_ns);
        let is_slow = cycle > 0 && elapsed_ns / (cycle as u64 * n_active.max(1)) > SLOW_NS;
        // With a rate the last request of a slice is sent before its end.
        let is_long = elapsed_ns.saturating_add(block.slice_ns / 2) >= target_ns;
        if is_long && (is_whole || is_slow) {
            break;
        }
        for place in &block.rows[cycle % rows] {
            let place = *place as usize;
            if !active[place] {
                continue;
            }
            match slice(client, place, SliceLength::For(block.slice_ns))? {
                Ok(slice) => {
                    if let Ok(measured) = &mut all[place] {
                        measured.add(&slice, block.slice_ns);
                    }
                }
                Err(why) => {
                    all[place] = Err(why);
                    active.fill(false);
                }
            }
        }
        if active.iter().all(|is_active| !is_active) {
            break;
        }
    }
    let after = (used(), asked(&all));
    for (place, one) in all.iter_mut().enumerate() {
        let Ok(measured) = one else {
            continue;
        };
        measured.latencies_ns.sort_unstable();
        let requests = after.1[place] - before.1[place];
        let used = |(ns, _): &(Vec<Option<f64>>, Vec<u64>)| ns.get(place).copied().flatten();
        let used_ns = used(&after)
            .zip(used(&before))
            .map(|(after, before)| after - before);
        measured.cpu_ns = used_ns
            .filter(|ns| *ns > 0.0 && requests > 0)
            .map(|ns| ns / requests as f64);
    }
    Ok(all)
}

/// Shortest and longest pause before a server that is not ready is queried again, nanoseconds.
const PAUSE_LEAST_NS: u64 = 500_000;
const PAUSE_MOST_NS: u64 = 100_000_000;

/// Runs a slice; an unexpected answer is an error.
fn slice(
    client: &mut Client<'_>,
    place: usize,
    how: SliceLength,
) -> Result<Result<Slice, String>, Cancelled> {
    match client.slice(place, how) {
        Ok(slice) => Ok(match &slice.unexpected {
            Some(unexpected) => Err(unexpected.clone()),
            None => Ok(slice),
        }),
        Err(SliceError::Cancelled) => Err(Cancelled),
        Err(trouble) => Ok(Err(trouble.to_string())),
    }
}

/// Returns the time from `begun_ns` to a server's first expected answer; `None` if it exceeds `limit_ns`.
///
/// # Errors
/// Ctrl-C.
pub fn ready_after(
    cx: &Context<'_>,
    server: SocketAddr,
    asked: RequestPlan,
    (begun_ns, limit_ns): (u64, u64),
) -> Result<Option<u64>, Cancelled> {
    let mut client = Client::new(cx.clock, cx.cancel, &[server], asked);
    let found = ready(&mut client, 0, begun_ns, limit_ns)?;
    Ok(found.ok().map(|measured| measured.ready_ns))
}

/// Sends requests until the answer is as expected.
fn ready(
    client: &mut Client<'_>,
    place: usize,
    begun_ns: u64,
    limit_ns: u64,
) -> Result<Result<Measured, String>, Cancelled> {
    let mut measured = Measured::default();
    let mut last: Option<First> = None;
    loop {
        client.forget(place);
        let why = match slice(client, place, SliceLength::Count(1))? {
            Ok(slice) => {
                let Some(answer) = slice.answers.first() else {
                    continue;
                };
                let now_ns = client.clock().now_ns();
                let first = First {
                    status: answer.status,
                    bytes: answer.bytes,
                    digest: answer.digest,
                    varies: false,
                };
                let Some(before) = last.replace(first) else {
                    measured.ready_ns = now_ns.saturating_sub(begun_ns);
                    if answer.latency_ns > ONCE_NS {
                        measured.first = First {
                            digest: None,
                            ..first
                        };
                        return Ok(Ok(measured));
                    }
                    continue;
                };
                measured.first = First {
                    digest: first.digest.filter(|_| before == first),
                    varies: !before.is_as_long_as(first),
                    ..first
                };
                return Ok(Ok(measured));
            }
            Err(why) => why,
        };
        let waited_ns = client.clock().now_ns().saturating_sub(begun_ns);
        if waited_ns >= limit_ns {
            let seconds = limit_ns as f64 / 1e9;
            return Ok(Err(match limit_ns {
                // It was ready before.
                0 => why,
                _ => format!("not ready after {seconds} s: {why}"),
            }));
        }
        // A fiftieth of the time so far; that is also the resolution of the measured time.
        client.clock().sleep(Duration::from_nanos(
            (waited_ns / 50).clamp(PAUSE_LEAST_NS, PAUSE_MOST_NS),
        ));
    }
}

/// Voids servers whose answer differs from the baseline's; marks answers of the same length with other contents.
fn compare_answers(all: &mut Outcomes, baseline: usize) {
    let Some(Ok(Measured { first, .. })) = all.get(baseline) else {
        return;
    };
    let there = *first;
    for one in all {
        let Ok(measured) = one else {
            continue;
        };
        let here = measured.first;
        if here.status == there.status && here.is_as_long_as(there) {
            let digests = here.digest.zip(there.digest);
            measured.has_other_contents = digests.is_some_and(|(here, there)| here != there);
        } else {
            *one = Err(format!(
                "the answer differs from the baseline's: status {} with {} bytes, there {} with {} bytes",
                here.status, here.bytes, there.status, there.bytes
            ));
        }
    }
}

/// Warms up all servers, interleaved, until the last slices of each agree. Returns the server that failed, if any;
/// the block is spoiled then.
fn warm_up(
    client: &mut Client<'_>,
    block: &Block,
    all: &mut Outcomes,
) -> Result<Option<usize>, Cancelled> {
    let mut courses: Vec<Vec<f64>> = vec![Vec::new(); all.len()];
    let begun_ns = client.clock().now_ns();
    let warm_up_ns = (block.target_ns / WARM_UP_PART).max(LEAST_WARM_UP_NS);
    let limit_ns = warm_up_ns.saturating_mul(all.len() as u64);
    let slice_ns = block.slice_ns.min(warm_up_ns / (2 * SETTLED as u64));
    loop {
        for (place, one) in all.iter_mut().enumerate() {
            let Ok(measured) = one else {
                continue;
            };
            match slice(client, place, SliceLength::For(slice_ns))? {
                Ok(slice) => {
                    let mut warm = Measured::default();
                    warm.add(&slice, slice_ns);
                    measured.reopened += warm.reopened;
                    measured.requests += warm.requests;
                    courses[place].extend(warm.typical_ns);
                    measured.is_steady = block.are_warm || has_settled(&courses[place]);
                }
                Err(why) => {
                    *one = Err(why);
                    return Ok(Some(place));
                }
            }
        }
        let are_steady = all.iter().flatten().all(|measured| measured.is_steady);
        let is_over = client.clock().now_ns().saturating_sub(begun_ns) >= limit_ns;
        if are_steady || is_over || block.are_warm {
            return Ok(None);
        }
    }
}

/// Whether the latency has stopped falling: the median of the last five slices is within the range of the five before
/// them.
fn has_settled(course: &[f64]) -> bool {
    let Some(from) = course.len().checked_sub(2 * SETTLED) else {
        return false;
    };
    let (before, last) = course[from..].split_at(SETTLED);
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[SETTLED / 2]
    };
    let least = before.iter().copied().fold(f64::INFINITY, f64::min);
    let most = before.iter().copied().fold(0.0, f64::max);
    let slack = median(before) * 0.01;
    (least - slack..=most + slack).contains(&median(last))
}

#[cfg(test)]
mod tests;
