//! One run of Tare's own HTTP client: a slice of requests, and what came of it as lines of text.
//!
//! What it cannot see: what a browser would ask for besides.

use serde::{Deserialize, Serialize};
use tare_model::CommandReport;
use tare_model::outcome::{Bytes, Exit};

use std::net::SocketAddr;

use super::NoAnswer;
use super::ask::{Outside, report};

/// Requests and how they are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// `GET`, `POST` …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// What stands in the header `Host`.
    pub host: String,
    /// Further headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: Bytes,
    /// Connections at once.
    pub connections: u32,
    /// Requests a second in an open loop; a closed loop without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Whether connections are used for more than one request.
    pub keep_alive: bool,
    /// The only good status; 200 to 299 and 304 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<u16>,
    /// How long requests are sent in a trial, nanoseconds; a fifth more before it is not counted.
    pub trial_ns: u64,
    /// Whether the mean of a trial is its typical time and not the median: a quota stops few requests, for long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_mean: bool,
}

impl Http {
    /// The load, in words.
    pub fn load(&self) -> String {
        let connections = match self.connections {
            1 => "one connection".to_owned(),
            n => format!("{n} connections"),
        };
        let how = match self.rate {
            Some(rate) => format!("open loop at {rate} requests a second over {connections}"),
            None => format!("closed loop, {connections}"),
        };
        let kept = if self.keep_alive {
            ""
        } else {
            ", a new connection for each request"
        };
        format!("{how}{kept}")
    }
}

/// A percentile needs so many requests beyond it.
const BEYOND: f64 = 50.0;

/// What is reported of a trial's latencies, a line each.
fn lines(latencies: &[u64], throughput: f64, by_mean: bool) -> String {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let mean = sorted.iter().map(|ns| *ns as f64).sum::<f64>() / sorted.len().max(1) as f64;
    let median = sorted.get(sorted.len() / 2).map_or(0.0, |ns| *ns as f64);
    let typical = if by_mean { mean } else { median };
    let mut text = format!(
        "requests {}\ntypical_ns {typical:.1}\nmean_ns {mean:.1}\n",
        sorted.len()
    );
    for percent in [50_usize, 90, 99] {
        let beyond = sorted.len() * (100 - percent) / 100;
        if beyond as f64 >= BEYOND {
            let value = sorted[sorted.len() - 1 - beyond];
            text.push_str(&format!("p{percent}_ns {value}\n"));
        }
    }
    text.push_str(&format!("throughput {throughput:.3}\n"));
    text
}

/// Asks the server at this address; what a client program would have reported.
#[cfg(target_os = "linux")]
pub(super) fn run(
    (_, clock, cancel): Outside<'_>,
    http: &Http,
    way: SocketAddr,
) -> Result<CommandReport, NoAnswer> {
    use crate::service::client::{Address, Client, Expect, How, Load, Server, Slice, Trouble};
    use crate::service::http::Request;
    use crate::service::mix::Mix;

    let server = Server {
        label: "the server".to_owned(),
        address: Address::Tcp(way),
        host: Some(http.host.clone()),
    };
    let request = Request {
        method: http.method.clone(),
        path: http.path.clone(),
        headers: http.headers.clone(),
        body: http.body.0.clone(),
    };
    let mix = Mix::one(request).map_err(NoAnswer::Client)?;
    let load = Load {
        connections: http.connections,
        rate: http.rate,
        keep_alive: http.keep_alive,
    };
    let expect = http.expect.map_or(Expect::Good, Expect::Status);
    let mut client = Client::new(clock, cancel, vec![server], mix, load, expect);
    let mut begun_ns = clock.now_ns();
    let asked = (|| -> Result<Slice, Trouble> {
        client.slice(0, How::For(http.trial_ns / 5))?;
        begun_ns = clock.now_ns();
        let slice = client.slice(0, How::For(http.trial_ns))?;
        if slice.latencies().next().is_some() {
            return Ok(slice);
        }
        // The first request of a connection does not count, and there was no time for a second.
        client.slice(0, How::Count(2 * u64::from(http.connections)))
    })();
    let wall_ns = clock.now_ns().saturating_sub(begun_ns);
    let argv = vec![http.method.clone(), format!("http://{way}{}", http.path)];
    let failed = |why: String| CommandReport {
        exit: Exit::Code(1),
        stderr: Bytes(why.into_bytes()),
        ..report(argv.clone(), wall_ns)
    };
    Ok(match asked {
        Err(Trouble::Cancelled) => return Err(NoAnswer::Cancelled),
        Err(trouble) => failed(trouble.to_string()),
        Ok(Slice {
            unexpected: Some(why),
            ..
        }) => failed(why),
        Ok(slice) => {
            let latencies: Vec<u64> = slice.latencies().collect();
            let seconds = slice.counted_ns.max(1) as f64 / 1e9;
            let mut text = lines(&latencies, latencies.len() as f64 / seconds, http.by_mean);
            if let Some(answer) = slice.answers.first() {
                text.push_str(&format!("answer {} {}\n", answer.status, answer.bytes));
            }
            CommandReport {
                stdout: Bytes(text.into_bytes()),
                ..report(argv.clone(), wall_ns)
            }
        }
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: Outside<'_>, _: &Http, _: SocketAddr) -> Result<CommandReport, NoAnswer> {
    Err(NoAnswer::Client(
        "HTTP is asked by Tare itself on Linux only; `--client CMD` asks with another program"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_needs_requests_beyond_it() {
        let latencies: Vec<u64> = (1..=1000).rev().collect();
        let text = lines(&latencies, 2.5, false);
        assert_eq!(
            text,
            "requests 1000\ntypical_ns 501.0\nmean_ns 500.5\np50_ns 500\np90_ns 900\nthroughput 2.500\n"
        );
        let one = lines(&[7], 1.0, true);
        assert!(one.starts_with("requests 1\ntypical_ns 7.0\nmean_ns 7.0\nthroughput"));
        let many: Vec<u64> = (1..=5000).collect();
        assert!(lines(&many, 1.0, false).contains("p99_ns 4950\n"));
    }

    #[test]
    fn load_is_described_as_loop_and_connections() {
        let mut http = Http {
            connections: 1,
            keep_alive: true,
            ..Http::default()
        };
        assert_eq!(http.load(), "closed loop, one connection");
        http.connections = 8;
        http.rate = Some(500.0);
        http.keep_alive = false;
        let load = http.load();
        assert!(load.starts_with("open loop at 500 requests a second over 8 connections"));
        assert!(load.ends_with("new connection for each request"));
    }
}
