//! The client of the user's server: Tare's own requests, or a program, one run per trial.
//!
//! Either produces what a command would: lines of text, from which one number is picked.
//! Limits: additional requests of a browser are not sent.

use serde::{Deserialize, Serialize};
use tare_model::command::{COMMAND_PROBE, Pick};
use tare_model::{CommandCall, CommandReport, Outcome, ProbeReport, RawOutput, Recipe, Sliced};

use super::ready::Ready;
use super::request_plan::RequestPlan;

/// Placeholder in a client's arguments for the address of the arm's server.
pub const HOST: &str = "{host}";
/// Placeholder for the port.
pub const PORT: &str = "{port}";

/// A client of the user's server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UserClient {
    /// The program and its arguments; [`HOST`] and [`PORT`] are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The requests that Tare sends instead of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<RequestPlan>,
    /// How long requests are sent to each server in a trial, nanoseconds, after an uncounted warm-up.
    #[serde(default)]
    pub trial_ns: u64,
    /// Whether a trial's typical time is the mean and not the median: a quota stops few requests, but for long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_mean: bool,
    /// The port on which the server listens inside the arm.
    pub port: u16,
    /// The condition for the server to be ready.
    pub ready: Ready,
    /// Time limit for the server to become ready, nanoseconds.
    pub ready_ns: u64,
}

impl UserClient {
    /// Returns the client of a call, if its command is a server.
    ///
    /// # Errors
    /// What is not understood.
    pub fn from_call(call: &CommandCall) -> Result<Option<Self>, String> {
        let wrong = |what: &dyn std::fmt::Display| format!("`client`: {what}");
        let Some(text) = call.client.as_deref() else {
            return Ok(None);
        };
        let client: Self = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        match &client.http {
            Some(http) if http.requests.is_empty() => Err(wrong(&"there is no request in it")),
            _ => Ok(Some(client)),
        }
    }

    /// Encodes the client for a call.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are always JSON")
    }

    /// The requests, if they are interleaved between servers. With a rate they are not, because the load is to be
    /// sustained; nor with a quota, which takes effect only if one server works for seconds.
    pub fn in_turn(&self) -> Option<&RequestPlan> {
        let is_in_turn = |asked: &&RequestPlan| asked.rate.is_none() && !self.by_mean;
        self.http.as_ref().filter(is_in_turn)
    }
}

/// The server and its client, if the recipe has one.
pub fn asked(recipe: &Recipe) -> Option<(CommandCall, UserClient)> {
    let Recipe::Probe(probe) = recipe else {
        return None;
    };
    let call = CommandCall::from_args(&probe.args).ok()?;
    let client = UserClient::from_call(&call).ok()??;
    Some((call, client))
}

/// Converts a report to a trial's outcome, as an agent's probe would.
pub fn outcome(report: CommandReport, pick: Option<Pick>, sliced: Option<Sliced>) -> Outcome {
    let report = ProbeReport {
        elapsed_ns: report.wall_ns,
        command: Some(CommandReport { pick, ..report }),
        sliced,
        ..ProbeReport::empty(COMMAND_PROBE, 1)
    };
    let json = serde_json::to_vec(&report).expect("text keys and finite numbers are JSON");
    Outcome::Completed(RawOutput::of_probe(json))
}

#[cfg(target_os = "linux")]
pub use linux::ask;

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt::Write as _;
    use std::net::SocketAddr;

    use tare_model::outcome::Bytes;
    use tare_model::together::ended_with_another;
    use tare_model::{CommandReport, Failure, Outcome, Sliced};

    use super::super::Cancelled;
    use super::super::turns::{self, Block, Measured, SLICE_NS};
    use super::{Pick, RequestPlan, UserClient, outcome};
    use crate::cx::Context;

    /// Sends requests to the servers, interleaved if there are several; returns the outcome of each one's trial. Of
    /// `block` it takes the order and the placement.
    ///
    /// # Errors
    /// Ctrl-C.
    pub fn ask(
        cx: &Context<'_>,
        client: &UserClient,
        asked: &RequestPlan,
        (servers, block): (&[SocketAddr], Block),
        pick: Option<&Pick>,
    ) -> Result<Vec<Outcome>, Cancelled> {
        let has_turns = servers.len() > 1;
        let begun_ns = cx.clock.now_ns();
        let block = Block {
            slice_ns: if has_turns { SLICE_NS } else { client.trial_ns },
            target_ns: client.trial_ns,
            starts_ns: vec![begun_ns; servers.len()],
            // They were ready before.
            ready_ns: 0,
            ..block
        };
        let outcomes = turns::ask(cx, servers, asked.clone(), &block, &[])?;
        let elapsed_ns = cx.clock.now_ns().saturating_sub(begun_ns);
        let wall_ns = elapsed_ns / servers.len().max(1) as u64;
        let of_one = |(way, one): (&SocketAddr, Result<Measured, String>)| {
            let argv = asked.requests.first().map(|request| {
                vec![
                    request.method.clone(),
                    format!("http://{way}{}", request.path),
                ]
            });
            let report = CommandReport::silent(argv.unwrap_or_default(), wall_ns);
            let report = match one {
                Ok(measured) if measured.latencies_ns.is_empty() => {
                    return Outcome::Failed(ended_with_another());
                }
                Ok(measured) => CommandReport {
                    stdout: Bytes(lines(&measured, client.by_mean).into_bytes()),
                    ..report
                },
                Err(why) => return Outcome::Failed(Failure::Probe(why)),
            };
            let sliced = has_turns.then_some(Sliced {
                slice_ns: SLICE_NS,
                by_page: false,
                cpu: block.cpu,
                stage: None,
            });
            outcome(report, pick.cloned(), sliced)
        };
        Ok(servers.iter().zip(outcomes).map(of_one).collect())
    }

    /// Formats a trial's latencies, one line per value.
    fn lines(measured: &Measured, by_mean: bool) -> String {
        let all = &measured.latencies_ns;
        let count = all.len().max(1) as f64;
        let mean = all.iter().map(|ns| *ns as f64).sum::<f64>() / count;
        let median = all.get(all.len() / 2).map_or(0.0, |ns| *ns as f64);
        let typical = if by_mean { mean } else { median };
        let rate = measured.rate.iter().sum::<f64>() / measured.rate.len().max(1) as f64;
        let mut text = format!(
            "requests {}\ntypical_ns {typical:.1}\nmean_ns {mean:.1}\n",
            all.len()
        );
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            if let Some(value) = measured.percentile_ns(share) {
                let _ = writeln!(text, "{name}_ns {value}");
            }
        }
        let first = measured.first;
        let varies = if first.varies { " varies" } else { "" };
        text + &format!(
            "throughput {rate:.3}\nanswer {} {}{varies}\n",
            first.status, first.bytes
        )
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn trial_is_lines_with_the_percentiles_it_has() {
            let of = |latencies_ns: Vec<u64>| Measured {
                latencies_ns,
                rate: vec![2.0, 3.0],
                ..Measured::default()
            };
            let text = lines(&of((1..=1000).collect()), false);
            assert_eq!(
                text,
                "requests 1000\ntypical_ns 501.0\nmean_ns 500.5\np50_ns 500\np90_ns 900\nthroughput 2.500\nanswer 0 0\n"
            );
            let one = lines(&of(vec![7]), true);
            assert!(one.starts_with("requests 1\ntypical_ns 7.0\nmean_ns 7.0\nthroughput"));
            assert!(lines(&of((1..=5000).collect()), false).contains("p99_ns 4950\n"));
        }
    }
}
