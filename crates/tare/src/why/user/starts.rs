//! What starting a container of the user's takes where that is long, and the difference that carries it.
//!
//! It is in none of the command's numbers, and so much longer than usual that a few starts tell. Every difference that an
//! engine deals with at a start is removed once; the one without which a start is shortest is removed once more, next to a
//! start with all of them.
//! What it cannot see: what two differences cost together only.

use tare_model::Params;

use crate::cx::Context;
use crate::env::own;
use crate::report::terminal::time;
use crate::why::own::Asks;
use crate::why::{Ask, First, Trouble, calibrate};

/// A start is long from here on, nanoseconds.
const LONG_NS: u64 = 1_500_000_000;
/// So many differences are tried.
const MOST: usize = 4;

/// What is said of it, if starting takes long and one difference carries at least half of that.
///
/// # Errors
/// Ctrl-C, or something of a start may be left.
pub(super) fn described(
    cx: &Context<'_>,
    ask: &Ask,
    asks: &Asks,
    first: &First,
) -> Result<Option<String>, Trouble> {
    if first.life_ns < LONG_NS {
        return Ok(None);
    }
    let life = |settings: &Params| match calibrate::life(cx, ask, settings) {
        Ok(ns) => Ok(Some(ns)),
        Err(trouble) if trouble.may_have_left() || cx.cancel.is_requested() => Err(trouble),
        // Without it there is no container.
        Err(_) => Ok(None),
    };
    let without = |id: &str| own::without(&ask.settings, &[id.to_owned()]);
    let tried = asks
        .differences
        .iter()
        .filter(|it| own::is_of_starts(&it.id));
    let mut least: Option<(u64, &own::Difference)> = None;
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
            own::STARTING,
            time(first.life_ns),
            time(with),
            difference.what,
            time(ns),
            time(again)
        )
    }))
}
