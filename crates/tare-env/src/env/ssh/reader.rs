//! A reader that starts after the mark.
//!
//! Start-up files of a login shell may print to stdout before our command, even without a final line break; that must
//! not garble frames. Skipped bytes are counted, and their beginning is kept for the error if the mark never comes.
//! Limits: output of background processes of the start-up files does garble frames, and the channel reports that.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::script::MARK;
use crate::env::text::escaped;

/// Limit for output before the mark, bytes.
const NOISE_LIMIT: usize = 1 << 20;

/// How much of that output is shown, bytes.
const SHOWN: usize = 300;

/// Returns the position after the mark.
pub(super) fn after_mark(bytes: &[u8]) -> Option<usize> {
    let line = format!("\n{MARK}\n");
    bytes
        .windows(line.len())
        .position(|window| window == line.as_bytes())
        .map(|at| at + line.len())
}

/// Formats the output before, or instead of, the mark for a terminal.
pub(super) fn shown(noise: &[u8]) -> String {
    escaped(&noise[..noise.len().min(SHOWN)])
}

/// Reads everything after the mark.
pub(super) struct AfterMark {
    inner: Box<dyn Read + Send>,
    /// Bytes read and not yet passed on: before the mark is found, skipped output.
    held: Vec<u8>,
    is_found: bool,
    n_skipped: Arc<AtomicUsize>,
}

impl AfterMark {
    pub(super) fn new(inner: Box<dyn Read + Send>) -> Self {
        Self {
            inner,
            held: Vec::new(),
            is_found: false,
            n_skipped: Arc::default(),
        }
    }

    /// Returns the number of skipped bytes; final after the first byte was read.
    pub(super) fn skipped(&self) -> Arc<AtomicUsize> {
        self.n_skipped.clone()
    }

    fn skip(&mut self) -> io::Result<()> {
        let mut buffer = [0u8; 4096];
        // The earliest position of the mark: checked bytes are not checked again after every read.
        let mut from = 0;
        loop {
            if let Some(at) = after_mark(&self.held[from..]).map(|at| from + at) {
                // The mark and the line break before it are not counted.
                self.n_skipped.store(at - MARK.len() - 2, Ordering::Relaxed);
                self.held.drain(..at);
                self.is_found = true;
                return Ok(());
            }
            from = self.held.len().saturating_sub(MARK.len() + 1);
            if self.held.len() > NOISE_LIMIT {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "the login shell printed {} bytes, beginning with `{}`, and has not come to the command",
                        self.held.len(),
                        shown(&self.held)
                    ),
                ));
            }
            match self.inner.read(&mut buffer) {
                Ok(0) if self.held.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        format!("it answered `{}` and ended", shown(&self.held)),
                    ));
                }
                Ok(count) => self.held.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Read for AfterMark {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_found {
            self.skip()?;
        }
        if self.held.is_empty() {
            return self.inner.read(buffer);
        }
        let count = self.held.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.held[..count]);
        self.held.drain(..count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, as a slow connection may.
    struct Drip(Vec<u8>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            buffer[0] = self.0.remove(0);
            Ok(1)
        }
    }

    fn read(text: &str) -> (io::Result<String>, usize) {
        let mut reader = AfterMark::new(Box::new(Drip(text.into())));
        let skipped = reader.skipped();
        let mut found = String::new();
        let result = reader.read_to_string(&mut found).map(|_| found);
        (result, skipped.load(Ordering::Relaxed))
    }

    #[test]
    fn login_shell_output_is_skipped_and_counted() {
        let (text, skipped) = read("\ntare-begins-here\nframes\n\n");
        assert_eq!((text.unwrap().as_str(), skipped), ("frames\n\n", 0));
        let (text, skipped) = read("hello, no line break\ntare-begins-here\nx");
        assert_eq!((text.unwrap().as_str(), skipped), ("x", 20));
        // The mark within a line does not count.
        let (text, _) = read("echo tare-begins-here\n\ntare-begins-here\ny");
        assert_eq!(text.unwrap(), "y");
    }

    #[test]
    fn end_without_marker_shows_received_output() {
        let (text, _) = read("This account is not available.\u{1b}[2J\n");
        let error = text.unwrap_err().to_string();
        assert!(error.contains("This account is not available."), "{error}");
        assert!(!error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn endless_noise_is_given_up() {
        let mut reader = AfterMark::new(Box::new(io::repeat(b'x')));
        let error = reader.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
