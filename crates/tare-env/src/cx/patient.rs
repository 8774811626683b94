//! Writing to a program that may have stopped reading.
//!
//! A pipe takes some 64 KiB that nobody reads; whoever writes more to a program that was stopped waits for ever, and
//! hears nobody. Here the pipe's end of this process is made not to block: what there is room for is written at
//! once, without another thread in between, and the rest is tried again until the program has taken nothing for
//! a while, or somebody asks to stop.
//! What it cannot do: anything where pipes cannot be told not to block (Windows); there writing waits.

use std::io::{self, Write};
use std::time::Duration;

use super::Cancel;

/// The pauses between two attempts: the first, and the longest.
const FIRST_STEP: Duration = Duration::from_micros(100);
const LONGEST_STEP: Duration = Duration::from_millis(5);

/// A pipe's end that does not block, with the patience to write to it.
pub(super) struct Patient<W> {
    inner: W,
    patience: Duration,
    cancel: Cancel,
}

impl<W: Write> Patient<W> {
    /// `inner` says `WouldBlock` where it has no room.
    pub(super) fn new(inner: W, patience: Duration, cancel: &Cancel) -> Self {
        Self {
            inner,
            patience,
            cancel: cancel.clone(),
        }
    }
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (mut waited, mut step) = (Duration::ZERO, FIRST_STEP);
        loop {
            match self.inner.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
            let why = if self.cancel.is_requested() {
                "it was not waited for any longer, because a stop was requested".to_owned()
            } else if waited >= self.patience {
                format!("it has read nothing for {} s", self.patience.as_secs_f64())
            } else {
                std::thread::sleep(step);
                waited += step;
                step = (step * 2).min(LONGEST_STEP);
                continue;
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one byte after so many refusals.
    struct Slow(u32);

    impl Write for Slow {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Err(io::ErrorKind::WouldBlock.into())
                }
                None => Ok(1),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_is_slow_is_waited_for_and_one_that_has_stopped_is_given_up() {
        let cancel = Cancel::new();
        let write = |refusals, patience, cancel: &Cancel| {
            Patient::new(Slow(refusals), patience, cancel).write(b"x")
        };
        assert_eq!(write(5, Duration::from_secs(60), &cancel).unwrap(), 1);
        let error = write(u32::MAX, Duration::from_millis(1), &cancel).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("read nothing"), "{error}");
    }

    #[test]
    fn whoever_asks_to_stop_is_heard_and_still_may_say_what_there_is_room_for() {
        let cancel = Cancel::new();
        cancel.request();
        let long = Duration::from_secs(3_600);
        let error = Patient::new(Slow(u32::MAX), long, &cancel)
            .write(b"x")
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(
            Patient::new(Slow(0), long, &cancel).write(b"x").unwrap(),
            1,
            "the farewell of an agent that listens"
        );
    }
}
