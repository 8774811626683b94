//! The first look at a server: its client is run as often as a command would be.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport, Outcome, Reason};

use super::Trouble;
use super::trouble::{absent, how, said};
use crate::cx::Context;
use crate::env::Instance;
use crate::run::resident::{NoAnswer, ResidentServer};
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
        answered.map_err(|why| unanswered(place, &client, why))
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
