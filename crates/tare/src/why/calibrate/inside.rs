//! Runs the command inside alone first, and checks whether its first run in a new container is like the next.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport, whole_ns};

use super::super::observed::Inside;
use super::super::{Ask, WhyError, fresh};
use super::{TWICE_BELOW_NS, Tried, at};
use crate::cx::Context;
use crate::env;

/// The first run inside may take this fraction (1/N) of the budget.
const INSIDE_PART: u64 = 3;

/// Runs the command inside alone: does it work, and does it end within a part of the budget? Also returns why each of
/// its runs needs a new container, if so.
///
/// # Errors
/// Why the command cannot be measured, with a hint.
pub fn look_inside(cx: &Context<'_>, ask: &Ask) -> Result<(Inside, Option<String>), WhyError> {
    let limit = Duration::from_nanos((ask.budget_ns / INSIDE_PART).max(5_000_000_000));
    let call = CommandCall {
        observe: true,
        ..ask.call.clone()
    };
    let is_server = ask.call.client.is_some();
    // A server keeps running, and its client does not read data of an earlier run.
    let has_copies = !is_server && !env::own::is_inside(&ask.settings);
    let ((mut look, differs), facts, _) = at(cx, ask, &ask.driver, &ask.settings, |instance| {
        let mut tried = Tried::new(cx, ask, instance, limit);
        let look = match tried.inside(&call) {
            Ok(look) => Inside::Ended(Box::new(look)),
            Err(WhyError::TooLong { .. }) if !is_server => Inside::CutOff(whole_ns(limit)),
            Err(other) => return Err(other),
        };
        let differs = match &look {
            Inside::Ended(look) if has_copies && look.wall_ns <= TWICE_BELOW_NS => {
                tried.differs_from(&look.report)?
            }
            _ => None,
        };
        Ok(((look, differs), Vec::new()))
    })?;
    if let Inside::Ended(look) = &mut look {
        look.facts = facts;
    }
    if differs.is_none() {
        return Ok((look, None));
    }
    // A single difference may be chance, and the first run was observed.
    let (again, ..) = at(cx, ask, &ask.driver, &ask.settings, |instance| {
        let mut tried = Tried::new(cx, ask, instance, limit);
        let (first, _) = tried.reported(&ask.driver, &ask.call)?;
        Ok((tried.differs_from(&first)?, Vec::new()))
    })?;
    Ok((look, again))
}

impl Tried<'_, '_> {
    /// How one more run differs from the first, if it does.
    fn differs_from(&mut self, first: &CommandReport) -> Result<Option<String>, WhyError> {
        match self.reported(&self.ask.driver, &self.ask.call) {
            Ok((next, _)) => Ok(fresh::differs(first, &next)),
            Err(WhyError::TooLong { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
