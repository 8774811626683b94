//! Writes to a program that may have stopped reading.
//!
//! A pipe takes some 64 KiB that nothing reads; a writer of more to a stopped program would block for ever and miss a
//! request to stop. This end of the pipe is therefore made non-blocking: as much as fits is written at once, without
//! another thread, and the rest is retried until the program has read nothing for a while, or a stop is requested.
//! Limits: pipes cannot be made non-blocking on Windows; writing blocks there.

use std::io::{self, Write};
use std::time::Duration;

use super::Cancel;

/// The first and the longest pause between two attempts.
const FIRST_STEP: Duration = Duration::from_micros(100);
const LONGEST_STEP: Duration = Duration::from_millis(5);

/// A non-blocking end of a pipe that retries writes for a limited time.
pub(super) struct Patient<W> {
    inner: W,
    patience: Duration,
    cancel: Cancel,
}

impl<W: Write> Patient<W> {
    /// `inner` returns `WouldBlock` when it is full.
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

    /// Takes one byte after this many refusals.
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
    fn slow_reader_is_awaited_stalled_one_is_abandoned() {
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
    fn cancel_ends_waiting_but_ready_write_succeeds() {
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
