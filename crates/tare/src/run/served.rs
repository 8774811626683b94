//! Runs trials against the user's server, which stays in its instance; the client runs on this machine.
//!
//! Limits: background activity of an idle server between its arm's trials goes unnoticed.

#[cfg(target_os = "linux")]
use std::net::SocketAddr;
use std::time::Duration;

use tare_model::together::ended_with_another;
use tare_model::{CommandCall, Failure, Outcome, Recipe};

use super::alternate::Part;
use super::exchange::{Cancelled, Dispatcher, Measured};
use super::resident::{NoAnswer, ResidentServer};
use super::testbed::Arm;
use super::turn_state::Cycle;
#[cfg(target_os = "linux")]
use crate::service::turns::Block;
use crate::service::user::{self, UserClient};

/// Whether the recipe is a server whose requests are interleaved between the arms.
pub(super) fn is_in_turn(recipe: &Recipe) -> bool {
    cfg!(target_os = "linux")
        && user::asked(recipe).is_some_and(|(_, client)| client.in_turn().is_some())
}

impl Dispatcher<'_> {
    /// Sends requests to the servers of these arms, interleaved in slices; each server starts at its arm's first
    /// trial. Returns the results in the order of the arms.
    #[cfg(target_os = "linux")]
    pub(super) fn served_in_turn(
        &self,
        recipe: &Recipe,
        parts: Vec<Part<'_>>,
        cycle: &Cycle,
    ) -> Result<Vec<Measured>, Cancelled> {
        let started_unix_ns = self.cx.clock.unix_ns();
        let mut measured = Vec::new();
        let (mut there, mut arms, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        let (mut of_all, mut are_warm) = (None, true);
        for (place, part) in parts.into_iter().enumerate() {
            measured.push(self.nothing(Outcome::Failed(ended_with_another()), false));
            let (number, arm) = (part.number, part.arm);
            are_warm &= arm.server.is_some();
            match self.resident(recipe, number, arm) {
                Ok((way, call, client)) => {
                    there.push(place);
                    ways.push(way);
                    arms.push(arm);
                    of_all.get_or_insert((call, client));
                }
                Err(why) => measured[place] = self.unanswered(why)?,
            }
        }
        let started_ns = self.cx.clock.now_ns();
        let at = |place: u32| there.iter().position(|one| *one == place as usize);
        let rows = cycle.rows.iter().map(|row| {
            let places = row.iter().filter_map(|place| at(*place));
            places.map(tare_model::whole_count).collect()
        });
        let Some((call, client)) = of_all else {
            return Ok(measured);
        };
        let Some(asked) = client.in_turn() else {
            return Ok(measured);
        };
        let block = Block {
            rows: rows.collect(),
            baseline: match there.iter().position(|place| *place == cycle.baseline) {
                Some(baseline) => baseline,
                None => return Ok(measured),
            },
            are_warm,
            // Several connections are meant to keep several CPUs busy.
            cpu: cycle.cpu.filter(|_| asked.connections == 1),
            servers: arms
                .iter()
                .flat_map(|arm| arm.charged().processes())
                .collect(),
            ..Block::default()
        };
        let pick = call.pick.as_ref();
        let outcomes = user::ask(&self.cx, &client, asked, (&ways, block), pick)?;
        let elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        for ((place, arm), outcome) in there.into_iter().zip(arms).zip(outcomes) {
            measured[place] = self.after_block(arm, outcome)?;
            measured[place].started_unix_ns = started_unix_ns;
            measured[place].elapsed_ns = elapsed_ns;
        }
        Ok(measured)
    }

    /// Starts the arm's server if it does not run; returns its address and how to query it.
    #[cfg(target_os = "linux")]
    fn resident(
        &self,
        recipe: &Recipe,
        number: u64,
        arm: &mut Arm,
    ) -> Result<(SocketAddr, CommandCall, UserClient), NoAnswer> {
        let asked = user::asked(&arm.spec.change.laid_into(recipe, None));
        let (Some(instance), Some((call, client))) = (arm.instance.as_mut(), asked) else {
            return Err(NoAnswer::Server("is not running".to_owned()));
        };
        let server = if let Some(server) = arm.server.take() {
            server
        } else {
            ResidentServer::start(&self.cx, instance.as_mut(), (&call, &client), number)?
        };
        // If it has ended since, this returns why.
        server.check(instance.channel(), Duration::ZERO)?;
        let way = server.way;
        arm.server = Some(server);
        Ok((way, call, client))
    }

    /// The result of an arm in a block, unless its server ended during the block.
    #[cfg(target_os = "linux")]
    fn after_block(&self, arm: &mut Arm, outcome: Outcome) -> Result<Measured, Cancelled> {
        let is_failed = matches!(outcome, Outcome::Failed(Failure::Probe(_)));
        if let (Some(server), Some(instance)) = (&arm.server, arm.instance.as_mut())
            && let Err(why) = server.check_after(instance.channel(), is_failed)
        {
            arm.server = None;
            return self.unanswered(why);
        }
        Ok(self.nothing(outcome, false))
    }

    /// Never called: nothing is interleaved on this system.
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

    /// Runs the client once against the arm's server, which starts at the arm's first trial.
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
        let limit = Duration::from_nanos(self.limit_ns);
        let (answered, started_unix_ns, elapsed_ns) =
            self.timed(|| server.ask(&self.cx, instance.channel(), asked, limit));
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
