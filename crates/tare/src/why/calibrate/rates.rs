//! Measures servers under load before planning: how does each side answer at increasing rates?

use std::time::Duration;

use tare_model::{CommandCall, Params};

use super::super::served::{self, AtRate};
use super::super::{Ask, WhyError};
use super::in_started;
use crate::cx::Context;

/// Sends requests to the servers of both sides at these increasing rates, each until it falls behind.
///
/// # Errors
/// Why a server cannot be queried, with a hint.
pub fn look_at_rates(
    cx: &Context<'_>,
    ask: &Ask,
    rates: &[f64],
) -> Result<[Vec<AtRate>; 2], WhyError> {
    let limit = Duration::from_nanos(ask.budget_ns);
    let on = |place: (&str, &Params), call: &CommandCall| {
        let (seen, ..) = in_started(cx, ask, place, limit, |tried| {
            let mut seen: Vec<AtRate> = Vec::new();
            for rate in rates {
                let call = served::at_rate(call, *rate);
                let (report, _) = tried.reported(&call)?;
                seen.extend(AtRate::parse(*rate, &report));
                if seen.last().is_none_or(|last| !last.keeps_up()) {
                    break;
                }
            }
            Ok((seen, Vec::new()))
        })?;
        Ok(seen)
    };
    let base = ask.base();
    let (there, here) = (base.change, ask.change());
    Ok([
        on(
            (&base.driver, &base.settings),
            &there.changed(ask.call.clone()),
        )?,
        on(
            (&ask.driver, &ask.settings),
            &here.changed(ask.call.clone()),
        )?,
    ])
}
