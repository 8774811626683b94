//! Runs the command inside alone first, and checks whether its first run in a new container is like the next.

use std::collections::BTreeSet;
use std::time::Duration;

use tare_model::{CommandCall, CommandReport, Params, whole_ns};

use super::super::fresh::{self, Fresh};
use super::super::observed::{Inside, Observed};
use super::super::{Ask, WhyError};
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

/// Where the command runs inside.
const CONTAINER: &str = "new container";

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
) -> Result<(Inside, Option<Fresh>), WhyError> {
    let is_server = ask.call.client.is_some();
    let call = CommandCall {
        observe: true,
        end_after_ns: (!is_server).then(|| whole_ns(limit)),
        ..ask.call.clone()
    };
    // The client of a server does not read data of an earlier run.
    let has_copies = !is_server && !env::user_container::is_inside(&ask.settings);
    let place = (ask.driver.as_str(), &ask.settings);
    let ((mut look, next, paths), facts, life_ns) =
        in_started(cx, ask, place, REPORTED_WITHIN * limit, |tried| {
            let look = tried.inside(&call)?;
            let is_brief = !look.report.is_ended_early && look.wall_ns <= TWICE_BELOW_NS;
            let next = if has_copies && is_brief {
                tried.next_run(&ask.call)?
            } else {
                None
            };
            let mut paths = paths(&call, &ask.settings);
            paths.extend(folders(&look.report));
            let all = paths.iter().cloned().collect();
            Ok(((look, next, paths), all))
        })?;
    let differs = next.and_then(|next| {
        look.wall_ns = look.wall_ns.min(next.wall_ns);
        fresh::differs(CONTAINER, [&look.report, &next], Vec::new())
    });
    look.facts = facts;
    let fresh = if differs.is_some() {
        // The first run was observed.
        differs_again(cx, ask, (CONTAINER, place), &ask.call, limit)?
    } else {
        None
    };
    if let Some(Fresh {
        first_run: Some(run),
        ..
    }) = &fresh
    {
        look.wall_ns = run.first_ns;
    }
    let inside = Inside {
        look,
        life_ns,
        paths,
    };
    Ok((inside, fresh))
}

/// The observation inside: the known one, if it is about the same paths or another run would take long.
pub(super) fn in_environment(
    cx: &Context<'_>,
    ask: &Ask,
    settings: &Params,
    (seen, host): (Option<&Inside>, &Observed),
    (call, paths, limit): (&CommandCall, &BTreeSet<String>, Duration),
) -> Result<(Observed, u64), WhyError> {
    let is_known = |seen: &&Inside| {
        // A server's first answers are slower.
        let is_seen = ask.call.client.is_none() && paths.is_subset(&seen.paths);
        is_seen || seen.is_long(TWICE_BELOW_NS)
    };
    if let Some(seen) = seen.filter(is_known) {
        return Ok((seen.as_whole(host), seen.life_ns));
    }
    let place = (ask.driver.as_str(), settings);
    let (mut env, facts, life_ns) = in_started(cx, ask, place, limit, |tried| {
        Ok((tried.inside(call)?, paths.iter().cloned().collect()))
    })?;
    env.facts = facts;
    Ok((env, life_ns))
}

/// How the first two runs after another start differ, if they do: a single difference may be chance.
pub(super) fn differs_again(
    cx: &Context<'_>,
    ask: &Ask,
    (name, place): (&str, (&str, &Params)),
    call: &CommandCall,
    limit: Duration,
) -> Result<Option<Fresh>, WhyError> {
    let (differs, ..) = in_started(cx, ask, place, limit, |tried| {
        let before = tried.instance.written(cx);
        let (first, _) = tried.reported(call)?;
        let written = fresh::places(&before, &tried.instance.written(cx));
        let next = tried.next_run(call)?;
        let differs = next.and_then(|next| fresh::differs(name, [&first, &next], written));
        Ok((differs, Vec::new()))
    })?;
    Ok(differs)
}

impl SideRuns<'_, '_> {
    /// One more run; `None` if it takes too long.
    fn next_run(&mut self, call: &CommandCall) -> Result<Option<CommandReport>, WhyError> {
        match self.reported(call) {
            Ok((next, _)) => Ok(Some(next)),
            Err(WhyError::TooLong { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
