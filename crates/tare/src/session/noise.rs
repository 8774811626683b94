//! How noisy this machine is: a fixed integer loop on the host, and how its trials differ.

use std::time::Duration;

use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, Facts, Params, ProbeCall, ProbeReport, counter, whole_place};

use crate::cx::Context;
use crate::env::{self, Channel, ChannelError, Instance, StartMode};
use crate::failed::Failed;

/// Trials of the noise check.
pub(crate) const N_TRIALS: u64 = 24;
/// Timed work of each, nanoseconds.
const TRIAL_NS: u64 = 40_000_000;

/// The result of the noise check.
pub(crate) struct Noise {
    pub(crate) typical_ns: f64,
    pub(crate) best_ns: f64,
    /// Half the distance between the upper and lower quartile of the trials' medians, relative to the median.
    pub(crate) spread: f64,
    pub(crate) stolen_ticks: Option<f64>,
    pub(crate) timer_cost_ns: Option<f64>,
}

/// A plain process on this machine whose agent has answered.
fn host_instance(cx: &Context<'_>) -> Result<Box<dyn Instance>, Failed> {
    fn failed(error: impl std::fmt::Display) -> Failed {
        Failed::failure(format!("the agent does not run on this machine: {error}"))
    }
    let driver = env::find("host")
        .ok_or_else(|| Failed::failure("this program has no `host` environment"))?;
    let arm = ArmId::new("doctor").expect("the constant is a name");
    let mut environment = driver.configure(arm, &Params::new()).map_err(failed)?;
    environment.prepare(cx).map_err(failed)?;
    let mut instance = environment.start(cx, StartMode::Resident).map_err(failed)?;
    let hello = Request::Hello { protocol: PROTOCOL };
    let limit = Duration::from_secs(5);
    match ask(instance.channel(), &hello, limit).map_err(failed)? {
        Reply::Hello {
            protocol, build, ..
        } => {
            cx.agents.greeted(protocol, &build).map_err(failed)?;
            Ok(instance)
        }
        other => Err(failed(format!("unexpected answer {other:?}"))),
    }
}

fn ask(
    channel: &mut dyn Channel,
    request: &Request,
    limit: Duration,
) -> Result<Reply, ChannelError> {
    channel.send(request)?;
    channel.receive(limit)
}

/// Runs a fixed integer loop on the host and measures how its trials differ.
pub(crate) fn noise(cx: &Context<'_>) -> Result<(Noise, Facts), Failed> {
    let mut instance = host_instance(cx)?;
    let workdir = instance.workdir();
    let measured = measure(instance.channel(), &workdir);
    let stopped = instance.stop(cx);
    let measured = measured?;
    stopped.map_err(Failed::failure)?;
    Ok(measured)
}

fn measure(channel: &mut dyn Channel, workdir: &str) -> Result<(Noise, Facts), Failed> {
    let failed = |what: String| {
        Failed::failure(format!(
            "the noise of this machine could not be measured: {what}"
        ))
    };
    let mut ask = |request: &Request| {
        let answer = ask(channel, request, Duration::from_secs(20));
        answer.map_err(|error| failed(error.to_string()))
    };
    let facts = match ask(&Request::Facts {
        paths: vec![workdir.to_owned()],
        tools: Vec::new(),
    })? {
        Reply::Facts { facts } => facts,
        other => return Err(failed(format!("{other:?}"))),
    };
    let mut typical_ns = Vec::new();
    let mut best_ns = f64::INFINITY;
    let mut stolen_ticks: Option<f64> = None;
    let mut timer_cost_ns = None;
    for trial in 0..N_TRIALS {
        let call = ProbeCall {
            name: "integer".into(),
            args: Params::new(),
        };
        let request = Request::Run {
            trial,
            call,
            target_ns: TRIAL_NS,
            limit_ns: 10_000_000_000,
            workdir: workdir.to_owned(),
            hold: false,
            turns: None,
            cpu: None,
        };
        let Reply::Done { raw, .. } = ask(&request)? else {
            return Err(failed("a trial failed".into()));
        };
        let report: ProbeReport =
            serde_json::from_slice(&raw.stdout.0).map_err(|error| failed(error.to_string()))?;
        let series = report.series.into_iter().next();
        let mut values = series.map_or_else(Vec::new, |series| series.values);
        values.sort_by(f64::total_cmp);
        let (Some(best), Some(middle)) = (values.first(), values.get(values.len() / 2)) else {
            return Err(failed("a trial gave no value".into()));
        };
        best_ns = best_ns.min(*best);
        typical_ns.push(*middle);
        if let Some(ticks) = report.counters.get(counter::STEAL) {
            *stolen_ticks.get_or_insert(0.0) += ticks;
        }
        timer_cost_ns = report.timer.get("cost_ns").copied().or(timer_cost_ns);
    }
    typical_ns.sort_by(f64::total_cmp);
    let quantile = |part: f64| {
        let place = ((typical_ns.len() - 1) as f64 * part).round();
        typical_ns[whole_place(place)]
    };
    let noise = Noise {
        typical_ns: quantile(0.5),
        best_ns,
        spread: (quantile(0.75) - quantile(0.25)) / 2.0 / quantile(0.5),
        stolen_ticks,
        timer_cost_ns,
    };
    Ok((noise, facts))
}
