//! HTTP/1.1 as bytes: writes a request, parses a response as it arrives. No socket and no clock.
//!
//! Bodies are counted and not kept: a response may be larger than memory. Only its beginning is kept, for messages.
//! Everything that a server sends is untrusted: its size is bounded here, and it is escaped in every message.

use std::hash::{DefaultHasher, Hasher as _};

mod postgres;
mod redis;
mod request;

pub use request::Request;

/// The longest head of a response, in bytes.
pub const HEAD_BYTES: usize = 64 << 10;
/// How much of a body is kept for messages, in bytes.
const EXCERPT_BYTES: usize = 160;
/// The longest line with a chunk's length, in bytes.
const CHUNK_LINE_BYTES: usize = 4 << 10;
const HEADERS: usize = 128;
/// The status of a successful and of a failed reply, for protocols without one.
const GOOD: u16 = 200;
const ERROR: u16 = 500;

/// Why a response cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It begins like TLS.
    #[error("the server speaks TLS on this port, not plain HTTP")]
    Tls,
    /// It is not HTTP.
    #[error("the answer is not HTTP/1.1: {0}")]
    NotHttp(String),
    /// It is not a Redis reply.
    #[error("the answer is not Redis's: `{0}`")]
    NotRedis(String),
    /// It is not a PostgreSQL reply.
    #[error("the answer is not PostgreSQL's: `{0}`")]
    NotPostgres(String),
    /// The server requires a password.
    #[error("the server wants a password; let the user `postgres` in without one (`trust`)")]
    Password,
    /// Its head does not end.
    #[error("the head of the answer is longer than {HEAD_BYTES} bytes")]
    LongHead,
    /// There is more data than announced.
    #[error("the server sent more bytes than its answer announced")]
    Surplus,
    /// The connection ended within it.
    #[error("the connection was closed within the answer, after {0} bytes of its body")]
    Cut(u64),
}

/// The result of a complete response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// Its status.
    pub status: u16,
    /// Length of its body without the framing, in bytes.
    pub bytes: u64,
    /// Digest of the body, if requested.
    pub digest: Option<u64>,
    /// Whether the connection can be reused.
    pub keeps: bool,
    /// Target of a redirect, if any.
    pub location: Option<String>,
    /// The beginning of the body.
    pub excerpt: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    /// This many bytes are missing.
    Length(u64),
    /// The line with a chunk's length, and the missing bytes of a chunk.
    ChunkLine,
    Chunk(u64),
    /// The line end after a chunk: this many bytes of it are missing.
    ChunkEnd(u8),
    /// The lines after the last chunk.
    Trailer,
    /// Until the connection is closed.
    Rest,
    /// This many Redis replies are missing.
    Reply(u64),
    /// This many bytes of one, and this many replies after it.
    Bulk(u64, u64),
    /// This many PostgreSQL queries are unanswered.
    Messages(u8),
    /// A message of this type: its missing bytes, and the number of unanswered queries.
    Message(u8, u32, u8),
    Done,
}

/// Reads one response from bytes as they arrive.
#[derive(Debug)]
pub struct AnswerReader {
    part: Part,
    /// Bytes of an incomplete head or line.
    pending: Vec<u8>,
    is_head_request: bool,
    answered: Answered,
    digest: Option<DefaultHasher>,
}

impl AnswerReader {
    /// Creates a reader for a request's response; `has_digest` if its body is to be compared.
    pub fn new(is_head_request: bool, has_digest: bool) -> Self {
        Self {
            is_head_request,
            ..Self::starting_with(Part::Head, has_digest)
        }
    }

    /// Creates a reader that starts with this part; protocols other than HTTP keep their connection.
    fn starting_with(part: Part, has_digest: bool) -> Self {
        Self {
            part,
            pending: Vec::new(),
            is_head_request: false,
            answered: Answered {
                keeps: part != Part::Head,
                ..Answered::default()
            },
            digest: has_digest.then(DefaultHasher::new),
        }
    }

    /// Whether nothing has arrived yet.
    pub fn is_untouched(&self) -> bool {
        let is_first = matches!(self.part, Part::Head | Part::Reply(1) | Part::Messages(_));
        is_first && self.pending.is_empty() && self.answered.status == 0
    }

    /// The status, once the head is complete.
    pub fn status(&self) -> Option<u16> {
        Some(self.answered.status).filter(|status| *status > 0)
    }

    /// Number of body bytes so far.
    pub fn body_bytes(&self) -> u64 {
        self.answered.bytes
    }

    /// Consumes received bytes and returns whether the response is complete.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<bool, Unreadable> {
        while !bytes.is_empty() {
            let used = match self.part {
                Part::Done => return Err(Unreadable::Surplus),
                Part::Head => self.take_head(bytes)?,
                Part::Length(left) | Part::Chunk(left) => {
                    let used = self.take_body(bytes, left);
                    self.part = match (self.part, left - used as u64) {
                        (Part::Length(_), 0) => Part::Done,
                        (Part::Length(_), left) => Part::Length(left),
                        (_, 0) => Part::ChunkEnd(2),
                        (_, left) => Part::Chunk(left),
                    };
                    used
                }
                Part::ChunkEnd(left) => {
                    let (wanted, next) = if left == 2 {
                        (b'\r', Part::ChunkEnd(1))
                    } else {
                        (b'\n', Part::ChunkLine)
                    };
                    if bytes[0] != wanted {
                        return Err(not_http("a chunk does not end with its line"));
                    }
                    self.part = next;
                    1
                }
                Part::ChunkLine => self.take_chunk_line(bytes)?,
                Part::Trailer => self.take_trailer(bytes)?,
                Part::Rest => self.take_body(bytes, u64::MAX),
                Part::Reply(missing) => self.take_reply(bytes, missing)?,
                Part::Messages(missing) => self.take_header(bytes, missing)?,
                Part::Message(kind, left, missing) => {
                    self.take_message(bytes, (kind, left, missing))?
                }
                Part::Bulk(left, missing) => {
                    let used = self.take_body(bytes, left);
                    self.part = match (left - used as u64, missing) {
                        (0, 0) => Part::Done,
                        (0, missing) => Part::Reply(missing),
                        (left, missing) => Part::Bulk(left, missing),
                    };
                    used
                }
            };
            bytes = &bytes[used..];
        }
        Ok(self.part == Part::Done)
    }

    /// Handles a closed connection.
    ///
    /// # Errors
    /// If the response is incomplete.
    pub fn close(&mut self) -> Result<(), Unreadable> {
        // A refused session ends with the reason.
        let is_refused = matches!(self.part, Part::Messages(_)) && self.answered.status == ERROR;
        if !is_refused && !matches!(self.part, Part::Rest | Part::Done) {
            return Err(Unreadable::Cut(self.answered.bytes));
        }
        self.part = Part::Done;
        self.answered.keeps = false;
        Ok(())
    }

    /// Returns the response.
    pub fn finish(self) -> Answered {
        Answered {
            digest: self.digest.map(|digest| digest.finish()),
            ..self.answered
        }
    }

    fn take_body(&mut self, bytes: &[u8], left: u64) -> usize {
        let used = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let bytes = &bytes[..used];
        self.answered.bytes += used as u64;
        let room = EXCERPT_BYTES.saturating_sub(self.answered.excerpt.len());
        self.answered.excerpt.extend(&bytes[..used.min(room)]);
        if let Some(digest) = &mut self.digest {
            digest.write(bytes);
        }
        used
    }

    /// Collects `bytes` up to and including the first line end; returns their number, and whether the line has ended.
    fn take_line(&mut self, bytes: &[u8]) -> Result<(usize, bool), Unreadable> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        self.pending.extend(&bytes[..used]);
        if self.pending.len() > CHUNK_LINE_BYTES {
            return Err(not_http("a line between chunks does not end"));
        }
        Ok((used, end.is_some()))
    }

    fn take_chunk_line(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        let (used, has_ended) = self.take_line(bytes)?;
        if has_ended {
            let Ok(httparse::Status::Complete((_, size))) =
                httparse::parse_chunk_size(&self.pending)
            else {
                return Err(not_http("a chunk has no length"));
            };
            self.pending.clear();
            self.part = if size == 0 {
                Part::Trailer
            } else {
                Part::Chunk(size)
            };
        }
        Ok(used)
    }

    fn take_trailer(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        let (used, has_ended) = self.take_line(bytes)?;
        if has_ended {
            let is_empty = matches!(self.pending.as_slice(), b"\r\n" | b"\n");
            self.pending.clear();
            if is_empty {
                self.part = Part::Done;
            }
        }
        Ok(used)
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, Unreadable> {
        let before = self.pending.len();
        let arrived = &bytes[..bytes.len().min(HEAD_BYTES - before)];
        // Usually all of it arrives at once, and is parsed in place.
        let found = if before == 0 {
            let found = head(arrived)?;
            if found.is_none() {
                self.pending.extend(arrived);
            }
            found
        } else {
            self.pending.extend(arrived);
            head(&self.pending)?
        };
        let Some(found) = found else {
            return Ok(bytes.len());
        };
        self.pending.clear();
        let used = found.length - before;
        let status = found.status;
        if (100..200).contains(&status) && status != 101 {
            // An interim response; the final one follows.
            return Ok(used);
        }
        self.answered.status = status;
        self.answered.keeps = found.keeps;
        self.answered.location = found.location;
        let has_no_body = self.is_head_request || matches!(status, 101 | 204 | 304);
        self.part = match found.part {
            _ if has_no_body => Part::Done,
            Part::Length(0) => Part::Done,
            part => part,
        };
        if self.part == Part::Rest {
            self.answered.keeps = false;
        }
        Ok(used)
    }
}

/// A complete head.
struct Head {
    /// Its length in bytes, with the empty line.
    length: usize,
    status: u16,
    part: Part,
    keeps: bool,
    location: Option<String>,
}

/// Parses the head at the start of a response; `None` if it is incomplete.
fn head(bytes: &[u8]) -> Result<Option<Head>, Unreadable> {
    if matches!(bytes, [0x15 | 0x16, 0x03, ..]) {
        return Err(Unreadable::Tls);
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    match answer.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => complete_head(&answer, length).map(Some),
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_BYTES => Err(Unreadable::LongHead),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Unreadable::LongHead),
        Err(error) => Err(not_http(&format!("{error}, in `{}`", beginning(bytes)))),
    }
}

/// The beginning of what arrived, escaped, for messages.
fn beginning(bytes: &[u8]) -> String {
    let seen = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
    seen.escape_debug().to_string()
}

fn complete_head(
    answer: &httparse::Response<'_, '_>,
    length_of_head: usize,
) -> Result<Head, Unreadable> {
    let mut keeps = answer.version == Some(1);
    let (mut length, mut is_chunked, mut location) = (None, false, None);
    for header in answer.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        let has = |word: &str| {
            let mut words = value.split(',').map(str::trim);
            words.any(|it| it.eq_ignore_ascii_case(word))
        };
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let found: u64 = value
                .trim()
                .parse()
                .map_err(|_| not_http("its length is no number"))?;
            if length.is_some_and(|length| length != found) {
                return Err(not_http("it has two lengths"));
            }
            length = Some(found);
        } else if is("transfer-encoding") {
            is_chunked |= has("chunked");
        } else if is("connection") && has("close") {
            keeps = false;
        } else if is("connection") && has("keep-alive") {
            keeps = true;
        } else if is("location") {
            location = Some(value.escape_debug().to_string());
        }
    }
    let part = match (is_chunked, length) {
        (true, _) => Part::ChunkLine,
        (false, Some(length)) => Part::Length(length),
        (false, None) => Part::Rest,
    };
    Ok(Head {
        length: length_of_head,
        status: answer.code.unwrap_or_default(),
        part,
        keeps,
        location,
    })
}

fn not_http(what: &str) -> Unreadable {
    Unreadable::NotHttp(what.to_owned())
}

#[cfg(test)]
mod tests;
