//! `tare doctor`: what works here, what is missing and how to get it, and how noisy this machine is.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use tare_model::facts::emulation;
use tare_model::{Facts, fact};

use super::{Exit, Failed, output};
use crate::cx::Context;
use crate::cx::observer::Silent;
use crate::env::{self, Availability};
use crate::session::Session;
use crate::session::home::GivenPaths;
use crate::session::noise::{N_TRIALS, Noise, noise};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        Session::within(place, |session, _| {
            self.examine(&session.context(&Silent))?;
            Ok((Exit::Done, Vec::new()))
        })
    }

    fn examine(&self, cx: &Context<'_>) -> Result<(), Failed> {
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
        Ok(())
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
    match noise.stolen_ticks {
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
    let environment = |(id, availability): &(&str, Availability)| match availability {
        Availability::Ready(known) => json!({"id": id, "ready": true, "facts": known}),
        Availability::Absent { why, fix } => {
            json!({"id": id, "ready": false, "why": why, "fix": fix})
        }
    };
    let environments: Vec<_> = found.iter().map(environment).collect();
    json!({
        "environments": environments,
        "machine": facts,
        "noise": {"typical_ns": noise.typical_ns, "best_ns": noise.best_ns, "spread": noise.spread,
                  "steal_ticks": noise.stolen_ticks, "timer_cost_ns": noise.timer_cost_ns},
    })
}
