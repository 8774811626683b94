//! `tare doctor`: what works here, what is missing and how to get it, and how noisy this machine is.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tare_model::facts::emulation;
use tare_model::wire::{Reply, Request};
use tare_model::{Facts, Params, ProbeCall, ProbeReport, whole_place};
use tare_model::{counter, fact};

use super::{Exit, Failed, output};
use crate::cx::Context;
use crate::cx::observer::Silent;
use crate::env::{self, Availability, Channel};
use crate::session::home::GivenPaths;
use crate::session::{self, Session};

/// Trials of the noise check.
const N_TRIALS: u64 = 24;
/// Timed work of each, nanoseconds.
const TRIAL_NS: u64 = 40_000_000;

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The result of the noise check.
struct Noise {
    typical_ns: f64,
    best_ns: f64,
    /// Half the distance between the upper and lower quartile of the trials' medians, relative to the median.
    spread: f64,
    steal_ticks: Option<f64>,
    timer_cost_ns: Option<f64>,
}

impl Doctor {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let session = Session::begin(place, None)?;
        let result = self.examine(&session.context(&Silent));
        session.end()?;
        result
    }

    fn examine(&self, cx: &Context<'_>) -> Result<Exit, Failed> {
        let found: Vec<(&str, Availability)> = env::DRIVERS
            .iter()
            .map(|driver| (driver.id(), driver.detect(cx)))
            .collect();
        let (noise, facts) = noise(cx)?;
        if self.json {
            output::data(&format!("{:#}\n", as_json(&found, &noise, &facts)))?;
        } else {
            output::text(&as_text(&found, &noise, &facts))?;
        }
        Ok(Exit::Done)
    }
}

fn as_text(found: &[(&str, Availability)], noise: &Noise, facts: &Facts) -> String {
    let mut text = String::from("Environments\n");
    for (id, availability) in found {
        match availability {
            Availability::Ready(known) => {
                let emulated = emulation(known).map(|detail| format!("EMULATED: {detail}"));
                let mut known = worth_knowing(known);
                known.extend(emulated.map(|text| output::printable(&text)));
                let _ = writeln!(
                    text,
                    "  {id}: ready{}{}",
                    if known.is_empty() { "" } else { ": " },
                    known.join(", ")
                );
            }
            Availability::Absent { why, fix } => {
                let _ = writeln!(
                    text,
                    "  {id}: not available here: {}",
                    output::printable(why)
                );
                if let Some(fix) = fix {
                    let _ = writeln!(text, "    hint: {}", output::printable(fix));
                }
            }
        }
    }
    let _ = writeln!(text, "\nThis machine");
    let fact = |name: &str| {
        facts
            .get(name)
            .map_or("unknown".to_owned(), |value| output::printable(value))
    };
    let _ = writeln!(
        text,
        "  {} processors, kernel {}, clock source {}",
        fact(fact::CPU_COUNT),
        fact(fact::KERNEL_RELEASE),
        fact(fact::CLOCKSOURCE_CURRENT)
    );
    if let Some(cost_ns) = noise.timer_cost_ns {
        let note = if cost_ns > 150.0 {
            " (slow: the clock is read by a system call)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  one reading of the clock costs {cost_ns:.0} ns{note}"
        );
    }
    let _ = writeln!(
        text,
        "  noise: {N_TRIALS} trials of an integer loop spread by ±{:.1} % around their middle, which is {:.1} % above the best",
        noise.spread * 100.0,
        (noise.typical_ns / noise.best_ns - 1.0) * 100.0
    );
    match noise.steal_ticks {
        Some(ticks) if ticks > 0.0 => {
            let _ = writeln!(
                text,
                "  the hypervisor took {ticks:.0} clock ticks away meanwhile: other machines compete for the processors"
            );
        }
        Some(_) => {
            let _ = writeln!(text, "  no time was stolen by a hypervisor meanwhile");
        }
        None => {}
    }
    let _ = writeln!(text, "  {}", advice(noise.spread));
    text
}

/// Returns the facts that identify an environment; `--json` has all of them.
fn worth_knowing(facts: &Facts) -> Vec<String> {
    const TELLING: [&str; 7] = tare_model::rows! {
        "accelerator", "version", "cgroup", "storage", "rootless", "user_namespace", "missing",
    };
    const LONGEST: usize = 60;
    let shown = |name: &str, value: &str| {
        // Capabilities that an engine cannot give its containers because it lacks them.
        if name == fact::ENGINE_CAPABILITIES_MISSING {
            return format!("without {value}, which it was not given itself");
        }
        let name = name.split_once('.').map_or(name, |(_, name)| name);
        format!("{} {}", name.replace('_', " "), output::printable(value))
    };
    let mut telling: Vec<(usize, String)> = facts
        .iter()
        .filter(|(_, value)| value.chars().count() <= LONGEST)
        .filter_map(|(name, value)| {
            let place = TELLING.iter().position(|word| name.contains(word))?;
            // Its version before those of its dependencies.
            let is_own = matches!(name.split_once('.'), Some((_, "version")));
            let place = if is_own { 0 } else { place + 1 };
            Some((place, shown(name, value)))
        })
        .collect();
    telling.sort_by_key(|(place, _)| *place);
    telling.into_iter().take(4).map(|(_, text)| text).collect()
}

/// Explains the spread: ten blocks resolve about 2.5 times the spread of a pair's difference.
fn advice(spread: f64) -> &'static str {
    if spread < 0.005 {
        "quiet: differences of 2 % in processor work are found in the default budget"
    } else if spread < 0.03 {
        "usable: allow a longer `--budget` for differences below 5 %"
    } else {
        "noisy: small differences will stay open; stop other work or allow a much longer `--budget`"
    }
}

fn as_json(found: &[(&str, Availability)], noise: &Noise, facts: &Facts) -> serde_json::Value {
    let environments: Vec<serde_json::Value> = found
        .iter()
        .map(|(id, availability)| match availability {
            Availability::Ready(known) => json!({"id": id, "ready": true, "facts": known}),
            Availability::Absent { why, fix } => {
                json!({"id": id, "ready": false, "why": why, "fix": fix})
            }
        })
        .collect();
    json!({
        "environments": environments,
        "machine": facts,
        "noise": {"typical_ns": noise.typical_ns, "best_ns": noise.best_ns, "spread": noise.spread,
                  "steal_ticks": noise.steal_ticks, "timer_cost_ns": noise.timer_cost_ns},
    })
}

/// Runs a fixed integer loop on the host and measures how its trials differ.
fn noise(cx: &Context<'_>) -> Result<(Noise, Facts), Failed> {
    let mut instance = session::host_instance(cx)?;
    let workdir = instance.workdir();
    let measured = measure(instance.channel(), &workdir);
    let stopped = instance.stop(cx);
    let measured = measured?;
    stopped.map_err(|error| Failed::new(Exit::Failure, error))?;
    Ok(measured)
}

fn measure(channel: &mut dyn Channel, workdir: &str) -> Result<(Noise, Facts), Failed> {
    let failed = |what: String| {
        Failed::new(
            Exit::Failure,
            format!("the noise of this machine could not be measured: {what}"),
        )
    };
    let mut ask = |request: &Request| {
        channel
            .send(request)
            .and_then(|()| channel.receive(Duration::from_secs(20)))
            .map_err(|error| failed(error.to_string()))
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
    let mut steal_ticks: Option<f64> = None;
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
        let mut values = report
            .series
            .into_iter()
            .next()
            .map(|series| series.values)
            .unwrap_or_default();
        values.sort_by(f64::total_cmp);
        let (Some(best), Some(middle)) = (values.first(), values.get(values.len() / 2)) else {
            return Err(failed("a trial gave no value".into()));
        };
        best_ns = best_ns.min(*best);
        typical_ns.push(*middle);
        if let Some(ticks) = report.counters.get(counter::STEAL) {
            steal_ticks = Some(steal_ticks.unwrap_or(0.0) + ticks);
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
        steal_ticks,
        timer_cost_ns,
    };
    Ok((noise, facts))
}
