//! The first look at a server: its client is run as often as a command would be.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport, Failure, Outcome, Reason};

use super::trouble::{absent, how, said};
use super::{Ask, Trouble};
use crate::cx::Context;
use crate::env::Instance;
use crate::run::resident::{NoAnswer, ResidentServer};
use crate::service::ready::First;
use crate::service::user::UserClient;

/// A server in an instance, once it was started.
#[derive(Debug, Default)]
pub(super) struct AtServer(Option<ResidentServer>);

impl AtServer {
    /// One run of the client against the server, which is started before the first.
    pub(super) fn asked(
        &mut self,
        cx: &Context<'_>,
        instance: &mut dyn Instance,
        (place, call): (&str, &CommandCall),
        limit: Duration,
    ) -> Result<Outcome, Trouble> {
        let agent = |why: String| Trouble::Agent {
            place: place.to_owned(),
            why,
        };
        let client = UserClient::of(call).map_err(agent)?.unwrap_or_default();
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
                Err(Trouble::WrongAnswer {
                    place: place.to_owned(),
                    why,
                })
            }
            outcome => Ok(outcome),
        }
    }
}

/// Refuses a client that failed, where there is one.
pub(super) fn check(
    place: &str,
    call: &CommandCall,
    report: &CommandReport,
) -> Result<(), Trouble> {
    if call.client.is_none() || report.exit.is_success() {
        return Ok(());
    }
    Err(Trouble::ClientFails {
        place: place.to_owned(),
        how: how(report.exit),
        said: said(report),
    })
}

/// Refuses answers of which one is another page than the other; pages with dates and names differ a little.
pub(super) fn alike(ask: &Ask, host: &CommandReport, env: &CommandReport) -> Result<(), Trouble> {
    let client = UserClient::of(&ask.call).ok().flatten();
    let answers = client
        .and_then(|client| client.http)
        .map(|_| (answer(host), answer(env)));
    let Some((Some(there), Some(here))) = answers else {
        return Ok(());
    };
    if here.status == there.status && here.is_as_long_as(there) {
        return Ok(());
    }
    Err(Trouble::WrongAnswer {
        place: ask.driver.clone(),
        why: format!(
            "status {} with {} bytes; what it is compared with answers {} with {} bytes",
            here.status, here.bytes, there.status, there.bytes
        ),
    })
}

/// The first answer, where Tare asked itself.
fn answer(report: &CommandReport) -> Option<First> {
    let text = String::from_utf8_lossy(&report.stdout.0);
    let line = text.lines().find_map(|line| line.strip_prefix("answer "))?;
    let mut words = line.split(' ');
    Some(First {
        status: words.next()?.parse().ok()?,
        bytes: words.next()?.parse().ok()?,
        varies: words.next().is_some(),
        digest: None,
    })
}

/// Why a server was not asked, for the user.
fn unanswered(place: &str, client: &UserClient, why: NoAnswer) -> Trouble {
    let place = place.to_owned();
    let no_server = |place: String, why: String| Trouble::NoServer {
        place,
        why,
        port: client.port,
    };
    match why {
        NoAnswer::Cancelled => Trouble::Cancelled,
        NoAnswer::Channel(error) => Trouble::Agent {
            place,
            why: error.to_string(),
        },
        NoAnswer::Unavailable(reason @ Reason::MissingTool(_)) => Trouble::NotInside {
            env: place,
            why: absent(&reason),
        },
        NoAnswer::Unavailable(reason) => {
            no_server(place, format!("cannot be asked: {}", absent(&reason)))
        }
        NoAnswer::Server(why) => no_server(place, why),
        NoAnswer::TooLong(limit) => Trouble::ClientTooLong {
            place,
            limit_s: limit.as_secs(),
        },
        NoAnswer::Client(why) => Trouble::ClientFails {
            place,
            how: "could not be run".to_owned(),
            said: format!(": {why}"),
        },
    }
}
