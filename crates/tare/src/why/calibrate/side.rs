//! Runs one of several compared commands before planning.
//!
//! Limits: a command that fails occasionally goes unnoticed.

use std::time::Duration;

use tare_model::{CommandCall, CommandReport};

use super::super::error::{how, output_tail};
use super::super::observed::SideLook;
use super::super::{Ask, HOST, WhyError};
use super::{SideRuns, TWICE_BELOW_NS, check_pick, in_started, inside_slices, observed};
use crate::cx::Context;
use crate::report::command_line;
use crate::workload::stoppable;

/// How often a run is repeated that was over before its observer saw it at work, on a busy machine.
const MORE_LOOKS: u32 = 3;
/// The observer gets into any run that takes longer: what it did not see of that one is not shown here.
const BRIEF_NS: u64 = 1_000_000_000;

impl SideRuns<'_, '_> {
    /// Repeats a run that was over before it was seen at work; takes from the repetitions only what was seen.
    pub(super) fn until_seen(
        &mut self,
        call: &CommandCall,
        report: &mut CommandReport,
    ) -> Result<(), WhyError> {
        let is_repeatable =
            report.wall_ns < BRIEF_NS && report.exit.is_success() && call.client.is_none();
        for _ in 0..MORE_LOOKS {
            if !is_repeatable || stoppable::was_seen(report) {
                break;
            }
            let (later, _) = self.reported(call)?;
            if !later.exit.is_success() {
                // Not repeatable; the next regular run reports that.
                break;
            }
            report.seen = later.seen;
        }
        Ok(())
    }
}

/// Runs one of several compared commands in its environment, after the given warm-ups, and a second time if
/// requested. `first_run` gets the time of its first run as soon as it is known.
///
/// # Errors
/// Why the command cannot be measured, with a hint.
pub fn look_at_side(
    cx: &Context<'_>,
    ask: &Ask,
    (warm_ups, is_twice): (u32, bool),
    first_run: &dyn Fn(u64),
) -> Result<SideLook, WhyError> {
    let call = CommandCall {
        observe: true,
        ..ask.call.clone()
    };
    let limit = Duration::from_nanos((ask.budget_ns / 2).max(5_000_000_000));
    let ((mut look, in_slices, prints_same), facts, _) =
        in_started(cx, ask, (&ask.driver, &ask.settings), limit, |tried| {
            for _ in 0..warm_ups {
                tried.reported(&ask.call)?;
            }
            let (mut report, counters) = tried.reported(&call)?;
            let exit = report.exit;
            if !(exit.is_success() || stoppable::is_tolerated(&report)) {
                return Err(WhyError::FailsAtSide {
                    command: command_line(&ask.command),
                    how: how(exit),
                    said: output_tail(&report),
                });
            }
            check_pick(ask, "of the command", &report)?;
            first_run(report.wall_ns);
            if is_twice {
                tried.until_seen(&call, &mut report)?;
            }
            let prints_same = if is_twice && report.wall_ns <= TWICE_BELOW_NS / 5 {
                Some(tried.again(&ask.call)?.0.stdout == report.stdout)
            } else {
                None
            };
            let look = observed((report, counters));
            let in_slices = if ask.driver == HOST {
                tried.stopped_on_host(&look)?
            } else {
                inside_slices(ask, &look)
            };
            Ok(((look, in_slices, prints_same), Vec::new()))
        })?;
    look.facts = facts;
    Ok(SideLook {
        observed: look,
        in_slices,
        prints_same,
    })
}
