//! Sends an agent a request that is not a trial, and waits for the answer while checking for Ctrl-C.
//!
//! Limits: whether the answer belongs to this request is not checked.

use crate::env::prelude::*;

/// The longest wait without a check for Ctrl-C.
pub const SLICE: Duration = Duration::from_millis(250);

/// Why there is no answer.
pub enum NoAnswer {
    /// Ctrl-C was pressed.
    Cancelled,
    /// The channel broke, or the time limit has passed.
    Channel(ChannelError),
}

/// Sends a request and waits up to `limit` for the answer.
///
/// # Errors
/// The reason why there is no answer.
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
