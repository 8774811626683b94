//! The way to a guest's agent, which knows who else there is: the emulator, the console and the server of a folder.
//!
//! What it cannot see: what a guest does that says nothing.

use std::path::PathBuf;

use super::boot::last_words;
use super::shared::Server;
use crate::cx::Running;
use crate::env::ChannelError;
use crate::env::channel::{Explaining, LAST_WORDS_LIMIT, StreamChannel, wait_for_last_words};

/// The stream together with the emulator, whose last words and whose guest's explain why it ended.
pub(super) struct VmChannel {
    pub(super) stream: StreamChannel,
    pub(super) running: Box<dyn Running>,
    pub(super) console: PathBuf,
    /// What serves its shared folder; ended after the machine.
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
            // Whatever the guest does with the folder never ends.
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
