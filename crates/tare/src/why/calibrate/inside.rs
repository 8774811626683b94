//! The very first look: the command inside alone, and whether its first run in a new container is like the next.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport, whole_ns};

use super::super::observed::Inside;
use super::super::{Ask, Trouble, fresh};
use super::{TWICE_BELOW_NS, Tried, at};
use crate::cx::Context;
use crate::env;

/// The part of the budget that the very first look inside may take.
const INSIDE_PART: u64 = 3;

/// Looks at the command inside alone: whether it works there at all, whether it ends within a part of the time, and why
/// each of its runs needs a new container, if it does.
///
/// # Errors
/// Why it cannot be measured, with what helps.
pub fn look_inside(cx: &Context<'_>, ask: &Ask) -> Result<(Inside, Option<String>), Trouble> {
    let limit = Duration::from_nanos((ask.budget_ns / INSIDE_PART).max(5_000_000_000));
    let call = CommandCall {
        observe: true,
        ..ask.call.clone()
    };
    let is_server = ask.call.client.is_some();
    // A server stays, and its client does not read what an earlier run wrote.
    let has_copies = !is_server && !env::own::is_inside(&ask.settings);
    let ((mut look, differs), facts, _) = at(cx, ask, &ask.driver, &ask.settings, |instance| {
        let mut tried = Tried::new(cx, ask, instance, limit);
        let look = match tried.inside(&call) {
            Ok(look) => Inside::Ended(Box::new(look)),
            Err(Trouble::TooLong { .. }) if !is_server => Inside::CutOff(whole_ns(limit)),
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
    // Once may be chance, and the first run was looked at.
    let (again, ..) = at(cx, ask, &ask.driver, &ask.settings, |instance| {
        let mut tried = Tried::new(cx, ask, instance, limit);
        let (first, _) = tried.reported(&ask.driver, &ask.call)?;
        Ok((tried.differs_from(&first)?, Vec::new()))
    })?;
    Ok((look, again))
}

impl Tried<'_, '_> {
    /// In what one more run differs from the first.
    fn differs_from(&mut self, first: &CommandReport) -> Result<Option<String>, Trouble> {
        match self.reported(&self.ask.driver, &self.ask.call) {
            Ok((next, _)) => Ok(fresh::differs(first, &next)),
            Err(Trouble::TooLong { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
