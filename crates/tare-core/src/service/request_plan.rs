//! The requests to every server, and the load.

use serde::{Deserialize, Serialize};
use tare_model::Params;
use tare_model::outcome::Bytes;

use super::http::Request;
use super::mix;

/// The name by which a recipe selects Tare as its client, and that of its reports.
pub const CLIENT: &str = "http";

/// The requests to every server, and the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Sent one after the other, and again from the first; at least one.
    pub requests: Vec<Request>,
    /// The `Host` header; `None` for the server's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Number of concurrent connections to the server, at least 1.
    pub connections: u32,
    /// Requests per second, sent whether or not earlier ones were answered (open loop); `None`: each connection sends
    /// when it has its answer (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Whether connections are used for more than one request.
    pub keep_alive: bool,
    /// The only accepted status; `None`: 200 to 299, and 304.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<u16>,
}

/// An invalid parameter, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The parameter.
    pub param: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The parameters of the requests.
const PARAMS: [&str; 12] = [
    "url",
    "urls",
    "commands",
    "queries",
    "method",
    "headers",
    "data",
    "connections",
    "rate",
    "keep_alive",
    "expect",
    "ready_ms",
];

/// Returns those of a workload's parameters that concern the requests.
pub fn only(params: &Params) -> Params {
    let mut only = params.clone();
    only.0.retain(|name, _| PARAMS.contains(&name.as_str()));
    only
}

impl RequestPlan {
    /// Repeats one request over one connection in a closed loop.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn closed_loop(request: Request) -> Result<Self, String> {
        request.check()?;
        Ok(Self {
            requests: vec![request],
            host: None,
            connections: 1,
            rate: None,
            keep_alive: true,
            expect: None,
        })
    }

    /// Reads complete parameters.
    ///
    /// # Errors
    /// The invalid parameter.
    pub fn from_params(params: &Params) -> Result<Self, Wrong> {
        let text = |name| params.text(name).unwrap_or_default();
        let number = |name| params.int(name).unwrap_or_default();
        let wrong = |param| move |problem| Wrong { param, problem };
        let mut request = Request::get(text("url"));
        request.check().map_err(wrong("url"))?;
        text("method").clone_into(&mut request.method);
        request.check().map_err(wrong("method"))?;
        let lines = text("headers").lines();
        for line in lines.filter(|line| !line.trim().is_empty()) {
            request.add_header(line).map_err(wrong("headers"))?;
        }
        request.body = Bytes(text("data").as_bytes().to_vec());
        request.check().map_err(wrong("data"))?;
        let requests = match ["commands", "queries", "urls"].map(text) {
            ["", "", ""] => vec![request],
            ["", "", list] => mix::requests(list, &request).map_err(wrong("urls"))?,
            ["", list, _] => mix::lines(list, Request::query).map_err(wrong("queries"))?,
            [list, ..] => mix::lines(list, Request::command).map_err(wrong("commands"))?,
        };
        let expect = u16::try_from(number("expect")).ok();
        Ok(Self {
            requests,
            host: None,
            connections: u32::try_from(number("connections")).unwrap_or(1).max(1),
            rate: Some(number("rate") as f64).filter(|rate| *rate > 0.0),
            keep_alive: text("keep_alive") != "off",
            expect: expect.filter(|status| *status > 0),
        })
    }

    /// Whether a status is accepted.
    pub fn is_expected(&self, status: u16) -> bool {
        match self.expect {
            Some(wanted) => status == wanted,
            None => (200..300).contains(&status) || status == 304,
        }
    }

    /// Describes the load.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_described_as_loop_and_connections() {
        let mut asked = RequestPlan::closed_loop(Request::get("/")).unwrap();
        assert_eq!(asked.load(), "closed loop, one connection");
        asked.connections = 8;
        asked.rate = Some(500.0);
        asked.keep_alive = false;
        let load = asked.load();
        assert!(load.starts_with("open loop at 500 requests a second over 8 connections"));
        assert!(load.ends_with("new connection for each request"));
    }
}
