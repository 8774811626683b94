//! A question to an agent that is not a trial: asked, and its answer waited for so that Ctrl-C is heard meanwhile.
//!
//! What it cannot see: whether the answer is one to this question.

use crate::env::prelude::*;

use super::ChannelError;

/// The longest that the host waits without looking for Ctrl-C.
pub const SLICE: Duration = Duration::from_millis(250);

/// Why there is no answer.
pub enum NoAnswer {
    /// Somebody pressed Ctrl-C.
    Cancelled,
    /// The channel broke, or the limit has passed.
    Channel(ChannelError),
}

/// Asks, and waits for the answer as long as `limit`.
///
/// # Errors
/// Why there is none.
pub fn ask(
    cx: &Context<'_>,
    channel: &mut dyn Channel,
    request: &Request,
    limit: Duration,
) -> Result<Reply, NoAnswer> {
    channel.send(request).map_err(NoAnswer::Channel)?;
    let asked_ns = cx.clock.now_ns();
    loop {
        match channel.receive(SLICE) {
            Ok(reply) => return Ok(reply),
            Err(ChannelError::Timeout(_)) => {
                if cx.cancel.is_requested() {
                    return Err(NoAnswer::Cancelled);
                }
                let waited_ns = cx.clock.now_ns().saturating_sub(asked_ns);
                if u128::from(waited_ns) >= limit.as_nanos() {
                    return Err(NoAnswer::Channel(ChannelError::Timeout(limit)));
                }
            }
            Err(error) => return Err(NoAnswer::Channel(error)),
        }
    }
}
