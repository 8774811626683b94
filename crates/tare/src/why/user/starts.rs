//! Finds the difference that makes the user's container start slowly.
//!
//! The start is not part of the command's times, and so much longer than usual that a few starts are enough.
//! Differences that an engine applies at a start are removed once each; the one without which the start is fastest is
//! removed once more, next to a start with all of them. Limits: slow starts that two differences cause only together
//! are not found.

use tare_model::Params;

use crate::cx::Context;
use crate::env::user_container;
use crate::report::terminal::time;
use crate::why::user_container::ContainerQuestion;
use crate::why::{Ask, First, WhyError, calibrate};

/// From this time on a start is slow, nanoseconds.
const LONG_NS: u64 = 1_500_000_000;
/// Most differences that are tried.
const MOST: usize = 4;

/// A note about a slow start, if one difference causes at least half of it.
///
/// # Errors
/// Ctrl-C, or something of a start may be left.
pub(super) fn described(
    cx: &Context<'_>,
    ask: &Ask,
    asks: &ContainerQuestion,
    first: &First,
) -> Result<Option<String>, WhyError> {
    if first.life_ns < LONG_NS {
        return Ok(None);
    }
    let life = |settings: &Params| match calibrate::life(cx, ask, settings) {
        Ok(ns) => Ok(Some(ns)),
        Err(trouble) if trouble.may_have_left() || cx.cancel.is_requested() => Err(trouble),
        // Without this difference the container does not start.
        Err(_) => Ok(None),
    };
    let without = |id: &str| user_container::without(&ask.settings, &[id.to_owned()]);
    let tried = asks
        .differences
        .iter()
        .filter(|it| user_container::is_of_starts(&it.id));
    let mut least: Option<(u64, &user_container::Difference)> = None;
    for difference in tried.take(MOST) {
        if let Some(ns) = life(&without(&difference.id))?
            && least.is_none_or(|(known, _)| ns < known)
        {
            least = Some((ns, difference));
        }
    }
    let Some((ns, difference)) = least.filter(|(ns, _)| 2 * ns <= first.life_ns) else {
        return Ok(None);
    };
    let (Some(with), Some(again)) = (life(&ask.settings)?, life(&without(&difference.id))?) else {
        return Ok(None);
    };
    let time = |ns: u64| time(ns as f64);
    Ok((2 * again <= with).then(|| {
        format!(
            "{}{} and {}; without {} {} and {}; it is not in these numbers",
            user_container::STARTING,
            time(first.life_ns),
            time(with),
            difference.what,
            time(ns),
            time(again)
        )
    }))
}
