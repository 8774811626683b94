//! Runs the command inside alone first, and checks whether its first run in a new container is like the next.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport, whole_ns};

use super::super::observed::Inside;
use super::super::{Ask, WhyError, fresh};
use super::{SideRuns, TWICE_BELOW_NS, folders, in_started, paths};
use crate::cx::Context;
use crate::env;
use crate::workload::user_command;

/// A first run inside ends after this time if that may show an obvious slowdown.
const SHORT: Duration = Duration::from_secs(8);
/// Otherwise it may take this fraction (1/N) of the budget.
const INSIDE_PART: u64 = 3;

/// The time until the report of a run that is ended early, as a multiple of its limit: its agent may have as little of
/// the processor as the command.
const REPORTED_WITHIN: u32 = 3;

/// Returns after which time the first run inside is ended at first, and after which time if that shows too little.
pub fn inside_limits(ask: &Ask) -> [Duration; 2] {
    let long = Duration::from_nanos((ask.budget_ns / INSIDE_PART).max(5_000_000_000));
    // A server keeps running, and a run that is ended early prints no number.
    let is_whole = ask.call.client.is_some() || ask.metric != user_command::WALL;
    [if is_whole { long } else { SHORT.min(long) }, long]
}

/// Runs the command inside alone: does it work, and does it end within `limit`? Also returns why each of its runs
/// needs a new container, if so.
///
/// # Errors
/// Why the command cannot be measured, with a hint.
pub fn look_inside(
    cx: &Context<'_>,
    ask: &Ask,
    limit: Duration,
) -> Result<(Inside, Option<String>), WhyError> {
    let is_server = ask.call.client.is_some();
    let call = CommandCall {
        observe: true,
        end_after_ns: (!is_server).then(|| whole_ns(limit)),
        ..ask.call.clone()
    };
    // The client of a server does not read data of an earlier run.
    let has_copies = !is_server && !env::user_container::is_inside(&ask.settings);
    let ((mut look, differs), facts, life_ns) =
        in_started(cx, ask, &ask.driver, &ask.settings, |instance| {
            let mut tried = SideRuns::new(cx, ask, instance, REPORTED_WITHIN * limit);
            let look = tried.inside(&call)?;
            let is_brief = !look.report.is_ended_early && look.wall_ns <= TWICE_BELOW_NS;
            let differs = if has_copies && is_brief {
                tried.differs_from(&look.report)?
            } else {
                None
            };
            let mut paths = paths(&call, &ask.settings);
            paths.extend(folders(&look.report));
            Ok(((look, differs), paths.into_iter().collect()))
        })?;
    look.facts = facts;
    let inside = Inside { look, life_ns };
    if differs.is_none() {
        return Ok((inside, None));
    }
    // A single difference may be chance, and the first run was observed.
    let (again, ..) = in_started(cx, ask, &ask.driver, &ask.settings, |instance| {
        let mut tried = SideRuns::new(cx, ask, instance, limit);
        let (first, _) = tried.reported(&ask.driver, &ask.call)?;
        Ok((tried.differs_from(&first)?, Vec::new()))
    })?;
    Ok((inside, again))
}

impl SideRuns<'_, '_> {
    /// How one more run differs from the first, if it does.
    fn differs_from(&mut self, first: &CommandReport) -> Result<Option<String>, WhyError> {
        match self.reported(&self.ask.driver, &self.ask.call) {
            Ok((next, _)) => Ok(fresh::differs(first, &next)),
            Err(WhyError::TooLong { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
