//! The channel to a guest's agent, which explains failures of the emulator, the guest and the server of its folder.
//!
//! Limits: a guest that hangs without output is not explained.

use std::path::PathBuf;

use super::boot::last_words;
use super::shared::Server;
use crate::cx::Running;
use crate::env::ChannelError;
use crate::env::channel::{Explaining, LAST_WORDS_LIMIT, StreamChannel, wait_for_last_words};

/// The stream, with the emulator, whose output and guest console explain why it ended.
pub(super) struct VmChannel {
    pub(super) stream: StreamChannel,
    pub(super) running: Box<dyn Running>,
    pub(super) console: PathBuf,
    /// The server of its shared folder, if any; ended after the machine.
    pub(super) server: Option<Server>,
}

impl Explaining for VmChannel {
    fn stream(&mut self) -> &mut StreamChannel {
        &mut self.stream
    }

    fn explain(&mut self, error: ChannelError) -> ChannelError {
        if matches!(error, ChannelError::Timeout(_))
            && let Some(words) = self.server.as_mut().and_then(Server::last_words)
        {
            // Without the server, the guest's accesses to the folder never return.
            return ChannelError::Closed(format!(
                "the program that serves its shared folder has ended; it said last: {words}"
            ));
        }
        let ChannelError::Closed(text) = error else {
            return error;
        };
        wait_for_last_words(self.running.as_mut(), LAST_WORDS_LIMIT);
        match last_words(self.running.as_ref(), &self.console) {
            None => ChannelError::Closed(text),
            Some(words) => ChannelError::Closed(format!("{text}; last on the console: {words}")),
        }
    }
}
