//! Runs the client of a server before planning, as often as a command would run.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport, Failure, Outcome, Reason};

use super::error::{how, output_tail};
use super::{Ask, WhyError};
use crate::cx::Context;
use crate::env::Instance;
use crate::report::terminal::time;
use crate::run::resident::{NoAnswer, ResidentServer};
use crate::service::ready::First;
use crate::service::request_plan::RequestPlan;
use crate::service::user::UserClient;

/// How long requests are sent at each of several rates, nanoseconds.
const AT_RATE_NS: u64 = 1_000_000_000;
/// A server keeps up with a rate if it answers this fraction.
const KEEPS_UP: f64 = 0.95;

/// The server in an instance, once it was started.
#[derive(Debug, Default)]
pub(super) struct AtServer(Option<ResidentServer>);

impl AtServer {
    /// Runs the client once against the server, which is started before the first run.
    pub(super) fn asked(
        &mut self,
        cx: &Context<'_>,
        instance: &mut dyn Instance,
        (place, call): (&str, &CommandCall),
        limit: Duration,
    ) -> Result<Outcome, WhyError> {
        let agent = |why: String| WhyError::Agent {
            place: place.to_owned(),
            why,
        };
        let client = UserClient::from_call(call)
            .map_err(agent)?
            .unwrap_or_default();
        let asked = (call, &client);
        let answered = match self.0.take() {
            Some(server) => Ok(server),
            None => ResidentServer::start(cx, instance, asked, 0),
        }
        .and_then(|server| {
            let outcome = server.ask(cx, instance.channel(), asked, limit);
            self.0 = Some(server);
            outcome
        });
        match answered.map_err(|why| unanswered(place, &client, why))? {
            Outcome::Failed(Failure::Probe(why)) if client.http.is_some() => {
                Err(WhyError::WrongAnswer {
                    place: place.to_owned(),
                    why,
                })
            }
            outcome => Ok(outcome),
        }
    }
}

/// Refuses a client that failed, if there is a client.
pub(super) fn check(
    place: &str,
    call: &CommandCall,
    report: &CommandReport,
) -> Result<(), WhyError> {
    if call.client.is_none() || report.exit.is_success() {
        return Ok(());
    }
    Err(WhyError::ClientFails {
        place: place.to_owned(),
        how: how(report.exit),
        said: output_tail(report),
    })
}

/// Refuses answers that are different pages; pages with dates and names may vary a little.
pub(super) fn alike(ask: &Ask, host: &CommandReport, env: &CommandReport) -> Result<(), WhyError> {
    let client = UserClient::from_call(&ask.call).ok().flatten();
    let answers = client
        .and_then(|client| client.http)
        .map(|_| (answer(host), answer(env)));
    let Some((Some(there), Some(here))) = answers else {
        return Ok(());
    };
    if here.status == there.status && here.is_as_long_as(there) {
        return Ok(());
    }
    Err(WhyError::WrongAnswer {
        place: ask.driver.clone(),
        why: format!(
            "status {} with {} bytes; what it is compared with answers {} with {} bytes",
            here.status, here.bytes, there.status, there.bytes
        ),
    })
}

/// The first answer, if Tare sent the requests.
fn answer(report: &CommandReport) -> Option<First> {
    let text = String::from_utf8_lossy(&report.stdout.0);
    let mut words = named(&text, "answer")?.split(' ');
    Some(First {
        status: words.next()?.parse().ok()?,
        bytes: words.next()?.parse().ok()?,
        varies: words.next().is_some(),
        digest: None,
    })
}

/// Result of a server at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtRate {
    /// Requests sent per second.
    rate: f64,
    /// Requests answered per second.
    answered: f64,
    /// Mean latency from the scheduled send time, nanoseconds.
    mean_ns: f64,
}

impl AtRate {
    /// Parses the report of a trial at this rate.
    pub(super) fn parse(rate: f64, report: &CommandReport) -> Option<Self> {
        let text = String::from_utf8_lossy(&report.stdout.0);
        let number = |name: &str| named(&text, name)?.parse().ok();
        Some(Self {
            rate,
            answered: number("throughput")?,
            mean_ns: number("mean_ns")?,
        })
    }

    /// Whether the server answered nearly all requests.
    pub(super) fn keeps_up(&self) -> bool {
        self.answered >= KEEPS_UP * self.rate
    }

    fn described(&self) -> String {
        let mean = time(self.mean_ns);
        if self.keeps_up() {
            mean
        } else {
            format!("{mean}, falls behind: {:.0} answered", self.answered)
        }
    }
}

/// The call of a server whose client sends `rate` requests per second.
pub(super) fn at_rate(call: &CommandCall, rate: f64) -> CommandCall {
    changed(call, |client, http| {
        http.rate = Some(rate);
        client.trial_ns = client.trial_ns.max(AT_RATE_NS);
    })
}

fn changed(
    call: &CommandCall,
    change: impl FnOnce(&mut UserClient, &mut RequestPlan),
) -> CommandCall {
    let mut call = call.clone();
    if let Some(mut client) = UserClient::from_call(&call).ok().flatten()
        && let Some(mut http) = client.http.take()
    {
        change(&mut client, &mut http);
        client.http = Some(http);
        call.client = Some(client.to_text());
    }
    call
}

/// Sets the question's rate to the highest that both sides keep up with. Returns the results at each rate, one line
/// each.
pub(super) fn settle_rate(ask: &mut Ask, sides: &[Vec<AtRate>; 2]) -> Vec<String> {
    let Some((lines, rate)) = at_all_rates(&ask.driver, sides) else {
        return Vec::new();
    };
    ask.call = changed(&ask.call, |_, http| http.rate = Some(rate));
    lines
}

/// The results of both sides at each rate, one line each, and the rate to use.
fn at_all_rates(env: &str, [there, here]: &[Vec<AtRate>; 2]) -> Option<(Vec<String>, f64)> {
    let last = |side: &[AtRate]| {
        let kept = side.iter().rev().find(|one| one.keeps_up());
        kept.map(|one| one.rate)
    };
    let lowest = there.first()?.rate;
    let longer = if there.len() > here.len() {
        there
    } else {
        here
    };
    let mut lines: Vec<String> = longer
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let side = |side: &[AtRate]| {
                side.get(at)
                    .map_or_else(|| "not asked".to_owned(), AtRate::described)
            };
            format!(
                "at {} requests a second the mean latency is {} bare; {} in `{env}`",
                one.rate,
                side(there),
                side(here)
            )
        })
        .collect();
    let both = last(there).zip(last(here));
    let rate = both.map(|(there, here)| there.min(here));
    lines.push(match rate {
        Some(rate) => format!(
            "asked at {rate} requests a second, the highest of these rates that both sides keep up with"
        ),
        None => format!(
            "asked at {lowest} requests a second, although a side falls behind at that rate: give lower ones"
        ),
    });
    Some((lines, rate.unwrap_or(lowest)))
}

/// The rest of the line that begins with a name.
pub(super) fn named<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(of, _)| *of == name).map(|(_, rest)| rest)
}

/// Converts the reason why a server was not queried to an error for the user.
fn unanswered(place: &str, client: &UserClient, why: NoAnswer) -> WhyError {
    let place = place.to_owned();
    let no_server = |place: String, why: String| WhyError::NoServer {
        place,
        why,
        port: client.port,
    };
    match why {
        NoAnswer::Cancelled => WhyError::Cancelled,
        NoAnswer::Channel(error) => WhyError::Agent {
            place,
            why: error.to_string(),
        },
        NoAnswer::Unavailable(reason @ Reason::MissingTool(_)) => WhyError::NotInside {
            env: place,
            why: reason.to_string(),
        },
        NoAnswer::Unavailable(reason) => no_server(place, format!("cannot be asked: {reason}")),
        NoAnswer::Server(why) => no_server(place, why),
        NoAnswer::TooLong(limit) => WhyError::ClientTooLong {
            place,
            limit_s: limit.as_secs(),
        },
        NoAnswer::Client(why) => WhyError::ClientFails {
            place,
            how: "could not be run".to_owned(),
            said: format!(": {why}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::http::Request;

    fn point(rate: f64, answered: f64) -> AtRate {
        AtRate {
            rate,
            answered,
            mean_ns: 2e6,
        }
    }

    #[test]
    fn highest_rate_both_sides_sustain_is_used() {
        let there = vec![
            point(100.0, 100.0),
            point(200.0, 199.0),
            point(400.0, 395.0),
        ];
        let here = vec![point(100.0, 99.0), point(200.0, 201.0), point(400.0, 250.0)];
        let (lines, rate) = at_all_rates("docker", &[there.clone(), here]).unwrap();
        assert_eq!((lines.len(), Some(rate)), (4, Some(200.0)));
        assert!(lines[2].contains("2.00 ms bare; 2.00 ms, falls behind: 250 answered in `docker`"));
        let (lines, rate) = at_all_rates("docker", &[there, vec![point(100.0, 50.0)]]).unwrap();
        assert_eq!(Some(rate), Some(100.0));
        assert!(lines[1].contains("not asked in `docker`"), "{lines:?}");
        assert!(lines[3].contains("give lower ones"), "{lines:?}");
        assert!(at_all_rates("docker", &[Vec::new(), Vec::new()]).is_none());
    }

    #[test]
    fn rate_is_read_from_a_trial_and_put_into_a_call() {
        let mut report = CommandReport::silent(Vec::new(), 1);
        report.stdout.0 = b"requests 9\nmean_ns 1500.5\nthroughput 98.500\n".to_vec();
        let one = AtRate::parse(100.0, &report).unwrap();
        assert_eq!((one.mean_ns, one.answered), (1500.5, 98.5));
        report.stdout.0.clear();
        assert_eq!(AtRate::parse(100.0, &report), None);
        let client = UserClient {
            http: Some(RequestPlan::closed_loop(Request::get("/")).unwrap()),
            ..UserClient::default()
        };
        let call = CommandCall {
            client: Some(client.to_text()),
            ..CommandCall::new::<&str>("server", [])
        };
        let client = UserClient::from_call(&at_rate(&call, 50.0))
            .unwrap()
            .unwrap();
        assert_eq!(client.http.unwrap().rate, Some(50.0));
        assert_eq!(client.trial_ns, AT_RATE_NS);
        let plain = CommandCall::new::<&str>("true", []);
        assert_eq!(at_rate(&plain, 1.0), plain);
    }
}
