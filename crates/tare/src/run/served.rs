//! A trial of a server: it stays in its instance, and a client of this machine asks it.
//!
//! What it cannot see: whether an idle server does something between its arm's trials.

use std::time::Duration;

use tare_model::{CommandCall, Failure, Outcome};

use super::exchange::{Cancelled, Dispatcher, Measured};
use super::testbed::Arm;
use crate::serving::{Client, NoAnswer, Server};

impl Dispatcher<'_> {
    /// One run of the client against the arm's server, which is started at the arm's first trial.
    pub(super) fn served(
        &self,
        number: u64,
        asked: (&CommandCall, &Client),
        arm: &mut Arm,
    ) -> Result<Measured, Cancelled> {
        let Some(instance) = arm.instance.as_mut() else {
            let outcome = Outcome::Failed(Failure::Lost("it is not running".into()));
            return Ok(self.nothing(outcome, true));
        };
        let server = match arm.server.take() {
            Some(server) => server,
            None => match Server::start(&self.cx, instance.as_mut(), asked, number) {
                Ok(server) => server,
                Err(why) => return self.unanswered(why),
            },
        };
        let started_unix_ns = self.cx.clock.unix_ns();
        let started_ns = self.cx.clock.now_ns();
        let limit = Duration::from_nanos(self.limit_ns);
        let answered = server.ask(&self.cx, instance.channel(), asked, limit);
        let elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        let is_there = matches!(
            answered,
            Ok(_) | Err(NoAnswer::TooLong(_) | NoAnswer::Client(_))
        );
        arm.server = is_there.then_some(server);
        let measured = match answered {
            Ok(outcome) => self.nothing(outcome, false),
            Err(why) => self.unanswered(why)?,
        };
        Ok(Measured {
            started_unix_ns,
            elapsed_ns,
            ..measured
        })
    }

    fn unanswered(&self, why: NoAnswer) -> Result<Measured, Cancelled> {
        let (failure, is_arm_lost) = match why {
            _ if self.cx.cancel.is_requested() => return Err(Cancelled),
            NoAnswer::Cancelled => return Err(Cancelled),
            NoAnswer::Unavailable(reason) => {
                return Ok(self.nothing(Outcome::Unavailable(reason), false));
            }
            NoAnswer::Channel(error) => (Failure::Lost(error.to_string()), true),
            NoAnswer::Server(why) => (Failure::Lost(format!("the server {why}")), true),
            NoAnswer::TooLong(_) => (
                Failure::TimedOut {
                    limit_ns: self.limit_ns,
                },
                false,
            ),
            NoAnswer::Client(why) => (Failure::Probe(format!("the client: {why}")), false),
        };
        Ok(self.nothing(Outcome::Failed(failure), is_arm_lost))
    }
}
