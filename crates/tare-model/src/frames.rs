//! Extracts frames from a stream that arrives in pieces.
//!
//! [`read_frame`](crate::wire::read_frame) blocks until a frame is complete; code that serves several streams or
//! waits with a time limit cannot do that. This buffer holds received bytes and returns frames as they become
//! complete.

use crate::wire::{FRAME_LIMIT_BYTES, FrameError, Json};

/// Received bytes that are not a frame yet.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Length of the frame returned last, which is at the beginning of `bytes`.
    given: usize,
}

impl Frames {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the stream could end here, with no bytes left over.
    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Returns the received bytes that were not returned as a frame.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.given..]
    }

    /// Returns the raw bytes of the frame that was returned last; call it before any other method.
    pub fn last(&self) -> &[u8] {
        &self.bytes[..self.given]
    }

    /// Returns the next complete frame; `None` if more bytes must arrive first.
    ///
    /// # Errors
    /// [`FrameError::Garbled`] if this is not a frame; the stream is unusable from here on.
    pub fn take<T: Json>(&mut self) -> Result<Option<T>, FrameError> {
        self.bytes.drain(..std::mem::take(&mut self.given));
        let Some(head) = self.bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head);
        if length > FRAME_LIMIT_BYTES {
            let start = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(200)]);
            return Err(FrameError::Garbled(format!("starts with {start:?}")));
        }
        let end = 4 + length as usize;
        let Some(body) = self.bytes.get(4..end) else {
            return Ok(None);
        };
        let frame = T::from_json(body).map_err(|error| FrameError::Garbled(error.to_string()))?;
        self.given = end;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Request, write_frame};

    #[test]
    fn frames_received_byte_by_byte_stay_whole_in_order() {
        let mut stream = Vec::new();
        write_frame(&mut stream, &Request::Cancel { trial: 1 }).unwrap();
        write_frame(&mut stream, &Request::Bye).unwrap();
        let mut frames = Frames::default();
        let mut out = Vec::new();
        let mut passed_on = Vec::new();
        for byte in &stream {
            frames.push(&[*byte]);
            if let Some(request) = frames.take::<Request>().unwrap() {
                out.push(request);
                passed_on.extend_from_slice(frames.last());
            }
        }
        assert_eq!(passed_on, stream);
        assert_eq!(out, [Request::Cancel { trial: 1 }, Request::Bye]);
        assert!(frames.is_empty());
    }

    #[test]
    fn text_is_no_frame() {
        let mut frames = Frames::default();
        frames.push(b"hello, world");
        assert!(matches!(
            frames.take::<Request>(),
            Err(FrameError::Garbled(_))
        ));
    }
}
