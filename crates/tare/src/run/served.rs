//! A trial of a server: it stays in its instance, and a client of this machine asks it.
//!
//! What it cannot see: whether an idle server does something between its arm's trials.

use std::time::Duration;

use tare_model::together::ended_with_another;
use tare_model::{CommandCall, Failure, Outcome, Recipe};

use super::alternate::Part;
use super::exchange::{Cancelled, Dispatcher, Measured};
use super::resident::{NoAnswer, ResidentServer};
use super::testbed::Arm;
use super::turn_state::Cycle;
use crate::service::user::{self, UserClient};

/// Whether the servers that a recipe is are asked a slice at a time.
pub(super) fn is_in_turn(recipe: &Recipe) -> bool {
    cfg!(target_os = "linux")
        && user::asked(recipe).is_some_and(|(_, client)| client.in_turn().is_some())
}

impl Dispatcher<'_> {
    /// Asks the servers of these arms a slice at a time; each is started at its arm's first trial. What came of each, in
    /// their order.
    #[cfg(target_os = "linux")]
    pub(super) fn served_in_turn(
        &self,
        recipe: &Recipe,
        parts: Vec<Part<'_>>,
        cycle: &Cycle,
    ) -> Result<Vec<Measured>, Cancelled> {
        let started_unix_ns = self.cx.clock.unix_ns();
        let lost = || Outcome::Failed(Failure::Lost("it is not running".into()));
        let mut measured = Vec::new();
        let (mut there, mut arms, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        let (mut of_all, mut started_ns) = (None, 0);
        for (place, part) in parts.into_iter().enumerate() {
            let arm = part.arm;
            measured.push(self.nothing(Outcome::Failed(ended_with_another()), false));
            let (Some(instance), Some((call, client))) = (
                arm.instance.as_mut(),
                user::asked(&arm.spec.change.laid_into(recipe, None)),
            ) else {
                measured[place] = self.nothing(lost(), true);
                continue;
            };
            let server = match arm.server.take() {
                Some(server) => Ok(server),
                None => ResidentServer::start(
                    &self.cx,
                    instance.as_mut(),
                    (&call, &client),
                    part.number,
                ),
            };
            // One that has ended since has said why.
            let server = server.and_then(|server| {
                server.check(instance.channel(), Duration::ZERO)?;
                Ok(server)
            });
            match server {
                Ok(server) => {
                    there.push(place);
                    ways.push(server.way);
                    arm.server = Some(server);
                    arms.push(arm);
                    of_all.get_or_insert((call, client));
                }
                Err(why) => measured[place] = self.unanswered(why)?,
            }
            started_ns = self.cx.clock.now_ns();
        }
        let at = |place: u32| there.iter().position(|one| *one == place as usize);
        let rows = cycle.rows.iter().map(|row| {
            let places = row.iter().filter_map(|place| at(*place));
            places.map(tare_model::whole_count).collect()
        });
        let order = user::Order {
            rows: rows.collect(),
            baseline: match there.iter().position(|place| *place == cycle.baseline) {
                Some(baseline) => baseline,
                None => return Ok(measured),
            },
        };
        let Some((call, client)) = of_all else {
            return Ok(measured);
        };
        let Some(asked) = client.in_turn() else {
            return Ok(measured);
        };
        let outcomes = user::ask(
            &self.cx,
            &client,
            asked,
            (&ways, &order),
            call.pick.as_ref(),
        );
        let outcomes = outcomes.map_err(|_| Cancelled)?;
        let elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        for ((place, arm), outcome) in there.into_iter().zip(arms).zip(outcomes) {
            let ended = match (arm.server.as_ref(), arm.instance.as_mut()) {
                (Some(server), Some(instance)) => server.check(instance.channel(), Duration::ZERO),
                _ => Ok(()),
            };
            measured[place] = match ended {
                Ok(()) => self.nothing(outcome, false),
                Err(why) => {
                    arm.server = None;
                    self.unanswered(why)?
                }
            };
            measured[place].started_unix_ns = started_unix_ns;
            measured[place].elapsed_ns = elapsed_ns;
        }
        Ok(measured)
    }

    /// Never called: nothing is interleaved here.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn served_in_turn(
        &self,
        _: &Recipe,
        parts: Vec<Part<'_>>,
        _: &Cycle,
    ) -> Result<Vec<Measured>, Cancelled> {
        let nothing = |_| self.nothing(Outcome::Failed(ended_with_another()), false);
        Ok(parts.into_iter().map(nothing).collect())
    }

    /// One run of the client against the arm's server, which is started at the arm's first trial.
    pub(super) fn served(
        &self,
        number: u64,
        asked: (&CommandCall, &UserClient),
        arm: &mut Arm,
    ) -> Result<Measured, Cancelled> {
        let Some(instance) = arm.instance.as_mut() else {
            let outcome = Outcome::Failed(Failure::Lost("it is not running".into()));
            return Ok(self.nothing(outcome, true));
        };
        let server = match arm.server.take() {
            Some(server) => server,
            None => match ResidentServer::start(&self.cx, instance.as_mut(), asked, number) {
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
