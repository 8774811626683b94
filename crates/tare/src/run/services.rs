//! Sends requests from this process to servers in arms.
//!
//! The servers of a block start like those of any pair. Then requests go to one of them at a time, from a thread that
//! is bound to the same CPU as the servers. A single server is queried in whole trials.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tare_model::probe_report::Series;
use tare_model::together::ended_with_another;
use tare_model::{
    Failure, Outcome, ProbeCall, ProbeReport, RawOutput, Recipe, Sliced, Unit, counter, whole_count,
};

use super::charges;
use super::exchange::{Cancelled, Dispatcher};
use super::group::{Group, State};
use super::turn_state::Cycle;
use crate::cx::{Context, listeners};
use crate::env::Charged;
use crate::service::client::own_cost_ns;
use crate::service::request_plan::{CLIENT, RequestPlan};
use crate::service::turns::{self, CpuMeter, Measured, SLICE_NS};
use crate::workload::sanity::{NOT_STEADY, OTHER_ANSWERS, RECONNECTS};
use crate::workload::service::{COURSE, CPU, PERCENTILES, RATE, READY, TYPICAL};

/// Whether requests are interleaved between servers. With a rate they are not, because the load is to be sustained.
pub(super) fn is_interleaved(recipe: &Recipe) -> bool {
    match recipe {
        Recipe::Pair { client, .. } => {
            RequestPlan::from_params(&client.args).is_ok_and(|asked| asked.rate.is_none())
        }
        _ => false,
    }
}

/// The client's share in the latency of a request, as a sentence.
pub fn own_cost(cx: &Context<'_>) -> Option<String> {
    let us = own_cost_ns(cx.clock).ok()? as f64 / 1e3;
    Some(format!(
        "of the latency of a request {us:.1} µs are the client's own, in every arm alike"
    ))
}

/// A server that was started in a block.
pub(super) struct Started {
    /// Index of its arm in the block.
    pub(super) place: usize,
    /// The client's call.
    pub(super) call: ProbeCall,
    /// When its start was requested.
    pub(super) sent_ns: u64,
    /// Time until it answered as expected; `None` if it did not.
    pub(super) ready_ns: Option<u64>,
    meter: CpuMeter,
}

/// Returns a meter of a server's CPU time: from its arm's cgroups, or from the process that listens at its address.
fn meter(charged: &Charged, call: &ProbeCall) -> CpuMeter {
    if let Charged::Groups(_) = charged {
        let charged = charged.clone();
        return Arc::new(move || charges::read(&charged).get(counter::CHARGED_CPU).copied());
    }
    let own = address(call).filter(|address| address.ip().is_loopback());
    let pids = own.map_or_else(Vec::new, |address| listeners::listening(&[address]));
    Arc::new(move || listeners::run_ns(&pids))
}

impl Started {
    /// Waits until the server answers as expected. The next one starts after that, because servers that start
    /// together compete for the CPU.
    pub(super) fn once_ready(
        group: &Group<'_, '_, '_>,
        (place, end): (usize, usize),
        call: ProbeCall,
        sent_ns: u64,
    ) -> Result<Self, Cancelled> {
        let cx = &group.dispatcher.cx;
        let found = match (RequestPlan::from_params(&call.args), address(&call)) {
            (Ok(asked), Some(server)) => {
                turns::ready_after(cx, server, asked, (sent_ns, ready_ns(&[&call])))
            }
            _ => Ok(None),
        };
        Ok(Self {
            place,
            ready_ns: found?,
            meter: meter(&group.ends[end].charged(), &call),
            call,
            sent_ns,
        })
    }
}

/// Sends requests to these servers, interleaved.
pub(super) fn ask(
    group: &mut Group<'_, '_, '_>,
    cycle: &Cycle,
    started: &[Started],
) -> Result<(), Cancelled> {
    let places: Vec<usize> = started.iter().map(|one| one.place).collect();
    let at = |place: usize| places.iter().position(|one| *one == place);
    let rows = cycle.rows.iter();
    let rows = rows.map(|row| {
        row.iter()
            .filter_map(|place| at(*place as usize))
            .map(whole_count)
    });
    let rows: Vec<Vec<u32>> = rows.map(Iterator::collect).collect();
    let outcomes = match at(cycle.baseline) {
        Some(baseline) => {
            let calls: Vec<&ProbeCall> = started.iter().map(|one| &one.call).collect();
            let block = turns::Block {
                rows,
                baseline,
                slice_ns: SLICE_NS,
                target_ns: cycle.target_ns,
                starts_ns: started.iter().map(|one| one.sent_ns).collect(),
                ready_ns: ready_ns(&calls),
                cpu: cycle.cpu,
                ..turns::Block::default()
            };
            let meters: Vec<CpuMeter> = started.iter().map(|one| one.meter.clone()).collect();
            let known: Vec<Option<u64>> = started.iter().map(|one| one.ready_ns).collect();
            measure(&group.dispatcher.cx, &calls, &block, (&known, &meters))?
        }
        None => vec![Outcome::Failed(ended_with_another()); places.len()],
    };
    let at_ns = group.now_ns();
    for (place, outcome) in places.into_iter().zip(outcomes) {
        group.members[place].state = State::Ended { outcome, at_ns };
    }
    Ok(())
}

impl Dispatcher<'_> {
    /// Sends requests to one server for a whole trial. Its start was requested at `start_ns`.
    pub(super) fn ask_alone(
        &self,
        call: &ProbeCall,
        start_ns: u64,
        charged: &Charged,
    ) -> Result<Outcome, Cancelled> {
        let is_sustained =
            RequestPlan::from_params(&call.args).is_ok_and(|asked| asked.rate.is_some());
        let block = turns::Block {
            rows: vec![vec![0]],
            slice_ns: if is_sustained {
                self.target_ns
            } else {
                SLICE_NS
            },
            target_ns: self.target_ns,
            starts_ns: vec![start_ns],
            ready_ns: ready_ns(&[call]),
            ..turns::Block::default()
        };
        let mut outcomes = measure(
            &self.cx,
            &[call],
            &block,
            (&[None], &[meter(charged, call)]),
        )?;
        Ok(outcomes.remove(0))
    }
}

/// How long servers may take until they answer.
fn ready_ns(calls: &[&ProbeCall]) -> u64 {
    let ms = calls.first().and_then(|call| call.args.int("ready_ms"));
    u64::try_from(ms.unwrap_or_default()).unwrap_or_default() * 1_000_000
}

/// Sends requests to the servers of these calls. `known_ns` holds the time that each took to become ready, if known.
fn measure(
    cx: &Context<'_>,
    calls: &[&ProbeCall],
    block: &turns::Block,
    (known_ns, meters): (&[Option<u64>], &[CpuMeter]),
) -> Result<Vec<Outcome>, Cancelled> {
    let all = |why: String| Ok(vec![Outcome::Failed(Failure::Probe(why)); calls.len()]);
    let asked = match calls
        .first()
        .map(|call| RequestPlan::from_params(&call.args))
    {
        Some(Ok(asked)) => asked,
        Some(Err(wrong)) => return all(format!("`{}`: {}", wrong.param, wrong.problem)),
        None => return Ok(Vec::new()),
    };
    let servers = calls.iter().map(|call| address(call));
    let Some(servers) = servers.collect::<Option<Vec<SocketAddr>>>() else {
        return all("the server has no address".to_owned());
    };
    let begun_ns = cx.clock.now_ns();
    let outcomes = turns::ask(cx, &servers, asked, block, meters)?;
    let elapsed_ns = cx.clock.now_ns().saturating_sub(begun_ns);
    let has_turns = calls.len() > 1;
    let sliced = has_turns.then_some(Sliced {
        slice_ns: block.slice_ns,
        by_page: false,
        cpu: block.cpu,
        stage: None,
    });
    let outcome = |(one, known_ns): (Result<Measured, String>, &Option<u64>)| match one {
        Ok(measured) if measured.typical_ns.is_empty() => Outcome::Failed(ended_with_another()),
        Ok(mut measured) => {
            measured.ready_ns = known_ns.unwrap_or(measured.ready_ns);
            Outcome::Completed(report(&measured, sliced.clone(), elapsed_ns))
        }
        Err(why) => Outcome::Failed(Failure::Probe(why)),
    };
    Ok(outcomes.into_iter().zip(known_ns).map(outcome).collect())
}

/// The address of a call's server.
fn address(call: &ProbeCall) -> Option<SocketAddr> {
    let address: IpAddr = call.args.text("address")?.parse().ok()?;
    let port = u16::try_from(call.args.int("port")?).ok()?;
    Some((address, port).into())
}

/// Converts the measurements of one server to a trial's raw output.
fn report(measured: &Measured, sliced: Option<Sliced>, elapsed_ns: u64) -> RawOutput {
    let series = |metric: &str, unit, values| Series {
        metric: metric.to_owned(),
        unit,
        values,
        batch: 1,
        linearity: None,
        notes: Vec::new(),
    };
    let mut typical = series(TYPICAL, Unit::Nanosecond, measured.typical_ns.clone());
    typical.batch = (measured.latencies_ns.len() / measured.typical_ns.len().max(1)).max(1) as u64;
    if !measured.is_steady {
        let note = format!("{NOT_STEADY}: its latency still changed when the warm-up was over");
        typical.notes.push(note);
    }
    if measured.has_other_contents {
        let note = format!(
            "{OTHER_ANSWERS}: its answer is as long as the baseline's, with other contents"
        );
        typical.notes.push(note);
    }
    if measured.reopened > 0 {
        let (reopened, requests) = (measured.reopened, measured.requests);
        let note = format!(
            "{RECONNECTS}: it closed a connection before {reopened} of {requests} requests"
        );
        typical.notes.push(note);
    }
    let mut report = ProbeReport::empty(CLIENT, 1);
    report.series = vec![
        typical,
        series(RATE, Unit::OperationPerSecond, measured.rate.clone()),
        series(READY, Unit::Nanosecond, vec![measured.ready_ns as f64]),
    ];
    let cpu = measured
        .cpu_ns
        .map(|ns| series(CPU, Unit::Nanosecond, vec![ns]));
    report.series.extend(cpu);
    if !measured.course.typical_ns.is_empty() {
        let course = series(COURSE, Unit::Nanosecond, measured.course.typical_ns.clone());
        report.series.push(Series {
            batch: measured.course.each as u64,
            ..course
        });
    }
    let percentile = |(metric, share)| {
        let value = measured.percentile_ns(share)?;
        Some(series(metric, Unit::Nanosecond, vec![value]))
    };
    let percentiles = PERCENTILES.into_iter().filter_map(percentile);
    report.series.extend(percentiles);
    report.elapsed_ns = elapsed_ns;
    report.timed_ns = Some(measured.latencies_ns.iter().sum());
    report.sliced = sliced;
    RawOutput::of_probe(serde_json::to_vec(&report).expect("finite numbers are always JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload as _;
    use crate::workload::service::Service;

    #[test]
    fn report_is_read_back_with_the_percentiles_it_has() {
        let measured = Measured {
            typical_ns: vec![30_000.0, 31_000.0],
            rate: vec![33_000.0, 32_000.0],
            latencies_ns: (1..=600).collect(),
            ready_ns: 5,
            reopened: 2,
            requests: 700,
            cpu_ns: Some(9_000.0),
            ..Measured::default()
        };
        let raw = report(&measured, None, 1);
        let course = Service.course(&raw).unwrap();
        assert_eq!((course.axis, course.values.len()), ("slice", 2));
        let alone = Measured {
            course: turns::Course {
                each: 7,
                typical_ns: vec![1.0, 2.0, 3.0],
            },
            typical_ns: vec![2.0],
            rate: vec![1.0],
            ready_ns: 5,
            ..Measured::default()
        };
        let alone = report(&alone, None, 1);
        let course = Service.course(&alone).unwrap();
        assert_eq!(
            (course.axis, course.step, course.values.len()),
            ("request", 7.0, 3)
        );
        assert_eq!(Service.decode(&alone).unwrap().len(), 3);
        let samples = Service.decode(&raw).unwrap();
        let values: Vec<(&str, f64)> = samples
            .iter()
            .map(|sample| (sample.metric.as_str(), sample.observations[0]))
            .collect();
        let expected = [
            (TYPICAL, 30_000.0),
            (RATE, 33_000.0),
            (READY, 5.0),
            (CPU, 9_000.0),
            ("service.latency.p50", 300.0),
            ("service.latency.p90", 540.0),
        ];
        assert_eq!(values, expected);
        let remarks: Vec<&str> = Service.remarks(&raw).iter().map(|it| it.id).collect();
        assert_eq!(remarks, [NOT_STEADY, RECONNECTS]);
    }
}
