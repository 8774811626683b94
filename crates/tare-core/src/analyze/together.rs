//! Reduces a trial with several instances to one reading.
//!
//! The reading of a trial is the mean of what its instances took, because that is what an instance may expect: the
//! arithmetic mean of times, the harmonic mean of rates, so that inverting a rate changes nothing. What each of them
//! took is kept as well. A trial in which one instance failed has no reading: the mean of the others would be that of
//! another number of instances. Checks of the loop and the clock are left to the series' trials with one instance,
//! because instances that wait for each other's CPU fail them without being wrong.
//! Limits: does not check whether the instances ran at the same time; `concurrency` computes that.

use tare_model::command::UsageOverTime;
use tare_model::{
    Better, INSTANCES_FORMAT, Outcome, Params, RawOutput, Spread, Together, WorkSpan,
};

use super::decode::{decode, garbled, observations};
use super::kept_trial::{Joint, KeptTrial, Maybe, ProbeFacts, UsableTrial};
use super::reading::{Reading, mean, read};

use crate::workload::sanity::MORE_THREADS_THAN_CPUS;
use crate::workload::{DecodeError, Demand, Remark, Workload, unreadable};

/// Decodes a trial's bytes.
pub(super) fn decoded(
    workload: &'static dyn Workload,
    raw: &RawOutput,
) -> Result<UsableTrial, DecodeError> {
    if raw.format == INSTANCES_FORMAT {
        joint(workload, raw)
    } else {
        decode(workload, raw)
    }
}

/// The reading of a trial that was killed at its time limit, for workloads where that counts.
pub(super) fn cut_off(
    workload: &'static dyn Workload,
    params: &Params,
    limit_ns: u64,
) -> Option<UsableTrial> {
    let (samples, remark) = workload.cut_off(params, limit_ns)?;
    let metrics = workload.metrics();
    let observed = observations(&samples, metrics).into_iter().zip(metrics);
    let readings = observed.map(|(values, metric)| read(values?, metric.better, false));
    Some(UsableTrial {
        kept: KeptTrial {
            readings: readings.collect(),
            remarks: Box::new([remark]),
            ..KeptTrial::default()
        },
        timed_ns: Some(limit_ns),
        ..UsableTrial::default()
    })
}

/// Reads a trial of format `instances/1`.
fn joint(workload: &'static dyn Workload, raw: &RawOutput) -> Result<UsableTrial, DecodeError> {
    let garbled = |problem: String| garbled(raw, problem);
    let together: Together =
        serde_json::from_slice(&raw.stdout.0).map_err(|error| garbled(unreadable(&error)))?;
    if let Some(problem) = together.problem() {
        return Err(DecodeError::Unsuccessful { problem });
    }
    let count = together.instances.len();
    let named = |number: usize, what: &str| format!("instance {number} of {count}: {what}");
    let of_instance = |number: usize, mut error: DecodeError| {
        match &mut error {
            DecodeError::Garbled { problem, .. }
            | DecodeError::Unsuccessful { problem }
            | DecodeError::NoValue { problem, .. } => *problem = named(number, problem),
            // Every instance lacks the same.
            DecodeError::Unavailable(_) => {}
        }
        error
    };
    let mut each = Vec::with_capacity(count);
    let mut demands = Vec::new();
    let mut spans = Vec::with_capacity(count);
    for (number, record) in (1..).zip(&together.instances) {
        let Outcome::Completed(raw) = &record.outcome else {
            continue;
        };
        each.push(decode(workload, raw).map_err(|error| of_instance(number, error))?);
        demands.extend(workload.demand(raw));
        spans.push(workload.span(raw).or(each.last().and_then(|it| it.span)));
    }
    let Some(first) = each.first() else {
        return Err(garbled("it has no instance".to_owned()));
    };
    let mut merged = first.kept.probe.clone();
    for (number, other) in (2..).zip(&each[1..]) {
        merge(&mut merged, other.kept.probe.as_ref())
            .map_err(|what| garbled(named(number, &what)))?;
    }
    if let Some(probe) = &mut merged
        && count > 1
    {
        (probe.coarse, probe.linearity) = (false, None.into());
    }
    let metrics = workload.metrics();
    let mut readings = Vec::with_capacity(metrics.len());
    let mut values = Vec::with_capacity(metrics.len());
    for (place, metric) in metrics.iter().enumerate() {
        let of_metric: Option<Vec<Reading>> =
            each.iter().map(|it| it.kept.readings[place]).collect();
        let of_metric = of_metric.unwrap_or_default();
        readings.push(mean_reading(&of_metric, metric.better));
        values.push(of_metric.iter().map(|it| it.typical).collect());
    }
    let spans: Option<Box<[WorkSpan]>> = spans.into_iter().collect();
    let starts = together.instances.iter().filter_map(|it| it.start_ns);
    let ends = together.instances.iter().map(|it| it.end_ns);
    let host_ns = match (starts.min(), ends.max()) {
        (Some(start), Some(end)) => end.saturating_sub(start) as f64,
        _ => 0.0,
    };
    let mut remarks: Vec<Remark> = Vec::new();
    for remark in each.iter().flat_map(|it| &it.kept.remarks) {
        if !remarks.iter().any(|other| other.id == remark.id) {
            remarks.push(remark.clone());
        }
    }
    if let Some(label) = crowded(&demands, together.spread, count) {
        // It covers the remark on a single instance.
        remarks.retain(|remark| remark.id != MORE_THREADS_THAN_CPUS);
        remarks.push(Remark::new(MORE_THREADS_THAN_CPUS, label));
    }
    Ok(UsableTrial {
        // Several concurrent courses do not make one.
        kept: KeptTrial {
            readings: readings.into_boxed_slice(),
            probe: merged,
            remarks: remarks.into_boxed_slice(),
            joint: Some(Box::new(Joint {
                values: values.into_boxed_slice(),
                spans: spans.unwrap_or_default(),
                host_ns,
            })),
            usage: added_usage(&each).map(Box::new),
            ..KeptTrial::default()
        },
        unavailable: each.iter().flat_map(|it| it.unavailable.clone()).collect(),
        span: None,
        // They ran concurrently.
        timed_ns: each.iter().filter_map(|it| it.timed_ns).max(),
    })
}

/// What all instances used together; they start at the same time.
fn added_usage(each: &[UsableTrial]) -> Option<UsageOverTime> {
    let mut usages = each.iter().filter_map(|it| it.kept.usage.as_deref());
    let mut sum = usages.next()?.clone();
    usages.for_each(|usage| sum.add(usage));
    Some(sum)
}

/// The mean over the instances, of the typical values and of the best ones.
fn mean_reading(readings: &[Reading], better: Better) -> Option<Reading> {
    let of =
        |pick: fn(&Reading) -> f64| mean(&readings.iter().map(pick).collect::<Vec<f64>>(), better);
    Some(Reading {
        typical: of(|reading| reading.typical)?,
        floor: of(|reading| reading.floor)?,
        total: of(|reading| reading.total).unwrap_or(f64::NAN),
        unsteady: readings.iter().any(|reading| reading.unsteady),
    })
}

/// Merges another instance's facts. The machine's counters were seen by all, a program's by each.
fn merge(into: &mut Option<ProbeFacts>, other: Option<&ProbeFacts>) -> Result<(), String> {
    let (Some(into), Some(other)) = (into.as_mut(), other) else {
        return Ok(());
    };
    if into.revision != other.revision || into.checksum != other.checksum {
        return Err("it did other work than the first".to_owned());
    }
    let both = |a: &mut Maybe, b: Maybe, of: fn(f64, f64) -> f64| {
        *a = match (a.get(), b.get()) {
            (Some(a), Some(b)) => Some(of(a, b)),
            (a, b) => a.or(b),
        }
        .into();
    };
    into.elapsed_ns = into.elapsed_ns.max(other.elapsed_ns);
    both(&mut into.canary_ns, other.canary_ns, f64::min);
    both(&mut into.steal_ns, other.steal_ns, f64::max);
    both(&mut into.throttled_ns, other.throttled_ns, f64::max);
    both(&mut into.major_faults, other.major_faults, |a, b| a + b);
    Ok(())
}

/// `3 instances × 2 threads on 2 CPUs`, if that is more threads than CPUs.
fn crowded(demands: &[Demand], spread: Spread, count: usize) -> Option<String> {
    if demands.len() != count {
        return None;
    }
    let first = demands.first()?;
    let groups = match spread {
        Spread::Processes => 1,
        Spread::Environments => count,
    };
    let affinity = f64::from(demands.iter().map(|it| it.cpus).max()?);
    let quota = first.quota.map(|quota| quota * groups as f64);
    let cpus = quota.map_or(affinity, |quota| quota.min(affinity));
    let threads: f64 = demands.iter().map(|it| f64::from(it.threads)).sum();
    if threads <= cpus {
        return None;
    }
    let each = if demands.iter().all(|it| it.threads == first.threads) {
        first.threads.to_string()
    } else {
        let most = demands.iter().map(|it| it.threads).max()?;
        format!("up to {most}")
    };
    let n_cpus = (cpus * 100.0).round() / 100.0;
    let plural = |is_one: bool| if is_one { "" } else { "s" };
    #[allow(clippy::float_cmp, reason = "it is reported as `1`")]
    let is_one = cpus == 1.0;
    Some(format!(
        "{count} instance{} × {each} thread{} on {n_cpus} CPU{}",
        plural(count == 1),
        plural(each == "1"),
        plural(is_one)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(threads: u32, cpus: u32, quota: Option<f64>) -> Demand {
        Demand {
            threads,
            cpus,
            quota,
        }
    }

    #[test]
    fn crowding_compares_total_threads_with_usable_cpus() {
        let two = [demand(2, 2, None); 2];
        assert_eq!(
            crowded(&two, Spread::Processes, 2).unwrap(),
            "2 instances × 2 threads on 2 CPUs"
        );
        assert_eq!(crowded(&two[..1], Spread::Processes, 1), None);
        assert_eq!(
            crowded(&[demand(1, 2, None); 2], Spread::Processes, 2),
            None
        );
        // A single missing number leaves the sum unknown.
        assert_eq!(crowded(&two[..1], Spread::Processes, 2), None);
    }

    #[test]
    fn processes_share_cpu_quota_and_environments_do_not() {
        let limited = [demand(2, 8, Some(1.5)); 2];
        assert_eq!(
            crowded(&limited, Spread::Processes, 2).unwrap(),
            "2 instances × 2 threads on 1.5 CPUs"
        );
        assert_eq!(
            crowded(&limited, Spread::Environments, 2).unwrap(),
            "2 instances × 2 threads on 3 CPUs"
        );
        let enough = [demand(2, 8, Some(2.0)); 2];
        assert_eq!(crowded(&enough, Spread::Environments, 2), None);
    }

    #[test]
    fn the_mean_of_rates_is_the_rate_of_the_mean_time() {
        assert_eq!(mean(&[1.0, 3.0], Better::Lower), Some(2.0));
        assert_eq!(mean(&[1.0, 1.0 / 3.0], Better::Higher), Some(0.5));
        assert_eq!(mean(&[], Better::Lower), None);
        assert_eq!(mean(&[0.0, 1.0], Better::Higher), Some(0.0));
    }
}
