//! Frames out of a stream that arrives in pieces.
//!
//! [`read_frame`](crate::wire::read_frame) blocks until a frame is whole; whoever serves several streams, or waits no
//! longer than a while, may not. This holds what has arrived and gives out frames as they become whole.

use crate::wire::{FRAME_LIMIT_BYTES, FrameError, Json};

/// Bytes that have arrived and are not yet a frame.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// How many of them are the frame that was given out last.
    given: usize,
}

impl Frames {
    /// Adds what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the stream could end here: nothing is left over.
    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// What has arrived and was not given out.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.given..]
    }

    /// The frame that was given out last, as it arrived; to be asked for before anything else is.
    pub fn last(&self) -> &[u8] {
        &self.bytes[..self.given]
    }

    /// The next whole frame; `None` when more must arrive first.
    ///
    /// # Errors
    /// [`FrameError::Garbled`] when this is not a frame; the stream is useless from here on.
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
    fn two_frames_that_arrive_byte_by_byte_come_out_whole_and_in_order() {
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
