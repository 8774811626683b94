//! What is asked of every server, from the parameters of a workload.

use tare_model::Params;

use super::http::Request;
use super::mix::Mix;

/// The name by which a recipe says that the client is Tare itself, and that of its reports.
pub const CLIENT: &str = "http";

/// What is asked of every server.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The requests.
    pub mix: Mix,
    /// Connections at once.
    pub connections: u32,
    /// Requests a second; `None`: each connection waits for its answer.
    pub rate: Option<f64>,
    /// Whether connections stay open.
    pub keep_alive: bool,
    /// The status of the answers; `None`: any good one.
    pub expect: Option<u16>,
    /// How long a server may take until it answers, nanoseconds.
    pub ready_ns: u64,
}

/// Which parameter is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The parameter.
    pub param: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The parameters that are about the requests.
const PARAMS: [&str; 10] = [
    "url",
    "urls",
    "method",
    "headers",
    "data",
    "connections",
    "rate",
    "keep_alive",
    "expect",
    "ready_ms",
];

/// Of a workload's parameters those that are about the requests.
pub fn only(params: &Params) -> Params {
    let mut only = params.clone();
    only.0.retain(|name, _| PARAMS.contains(&name.as_str()));
    only
}

impl Asked {
    /// From complete parameters.
    ///
    /// # Errors
    /// Which is wrong.
    pub fn from_params(params: &Params) -> Result<Self, Wrong> {
        let text = |name| params.text(name).unwrap_or_default();
        let number = |name| params.int(name).unwrap_or_default();
        let wrong = |param| move |problem| Wrong { param, problem };
        let mut request = Request::get(text("url"));
        request.check().map_err(wrong("url"))?;
        text("method").clone_into(&mut request.method);
        request.check().map_err(wrong("method"))?;
        for line in text("headers")
            .lines()
            .filter(|line| !line.trim().is_empty())
        {
            let Some((name, value)) = line.split_once(':') else {
                let problem = format!("`{}` is no `Name: value`", line.escape_debug());
                return Err(wrong("headers")(problem));
            };
            let header = (name.trim().to_owned(), value.trim().to_owned());
            request.headers.push(header);
        }
        request.check().map_err(wrong("headers"))?;
        request.body = text("data").as_bytes().to_vec();
        if !request.body.is_empty() && request.is_safe() {
            let problem = format!("a body belongs to POST or PUT, not to {}", request.method);
            return Err(wrong("data")(problem));
        }
        let mix = match text("urls") {
            "" => Mix::one(request).map_err(wrong("url"))?,
            list => Mix::from_text(list, &request).map_err(wrong("urls"))?,
        };
        let rate = number("rate");
        Ok(Self {
            mix,
            connections: u32::try_from(number("connections")).unwrap_or(1).max(1),
            rate: (rate > 0).then_some(rate as f64),
            keep_alive: text("keep_alive") != "off",
            expect: u16::try_from(number("expect"))
                .ok()
                .filter(|status| *status > 0),
            ready_ns: u64::try_from(number("ready_ms")).unwrap_or_default() * 1_000_000,
        })
    }
}
