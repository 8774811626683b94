//! The frames that an agent writes, as they come.

use std::io::Read;
use std::sync::mpsc::{self, Receiver};

use tare_model::wire::{FrameError, Reply, read_frame};

/// Every reply until there is none, read beside the test.
pub(crate) fn replies(
    mut output: impl Read + Send + 'static,
) -> Receiver<Result<Reply, FrameError>> {
    let (sender, replies) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            let reply = read_frame(&mut output);
            let is_last = reply.is_err();
            if sender.send(reply).is_err() || is_last {
                return;
            }
        }
    });
    replies
}
