//! PostgreSQL's protocol: the start of a session, a query as bytes, and the end of its reply.
//!
//! A connection begins with a session of the user `postgres`, sent together with the first query. Each of the two is
//! answered by messages with a type and a length, up to the one that announces that the server is ready for the next
//! query. The body consists of the rows and the texts of errors. An error is the status 500, everything else 200.
//! Source: the protocol's specification, version 3.0, simple queries.
//! Limits: no password, no TLS, no COPY.

use super::{AnswerReader, ERROR, GOOD, Part, Unreadable, beginning};

/// Version 3.0, as in a session's first message.
const VERSION: u32 = 3 << 16;
/// The user and database of a new server.
const NAME: &str = "postgres";
/// Statements that may be sent twice.
const READING: [&str; 5] = ["SELECT", "SHOW", "VALUES", "TABLE", "EXPLAIN"];
/// Type and length of a message, in bytes.
const HEADER_BYTES: usize = 5;

/// Message types that are handled here.
const AUTHENTICATION: u8 = b'R';
const ERROR_RESPONSE: u8 = b'E';
const DATA_ROW: u8 = b'D';
const READY_FOR_QUERY: u8 = b'Z';
/// Those, and the others of a query, a session and a server's notices.
const KNOWN: &[u8] = b"REDZTCInASKN";
/// Bytes kept of a message about authentication or an error.
const KEPT_BYTES: usize = 4 << 10;

fn message(content: &[&[u8]]) -> Vec<u8> {
    let length = 4 + content.iter().map(|part| part.len()).sum::<usize>();
    // A query is a line of a study, far below 4 GiB.
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [&length[..], &content.concat()].concat()
}

/// Builds the message that starts a session.
pub(super) fn session() -> Vec<u8> {
    let names = ["user", NAME, "database", NAME, ""].map(|text| format!("{text}\0"));
    message(&[&VERSION.to_be_bytes(), names.concat().as_bytes()])
}

/// Encodes a query.
pub(super) fn to_bytes(query: &str) -> Vec<u8> {
    [b"Q", &message(&[query.as_bytes(), b"\0"])[..]].concat()
}

/// Whether sending a query twice has the same effect as once.
pub(super) fn is_reading(query: &str) -> bool {
    let first = query.split_whitespace().next().unwrap_or_default();
    READING.iter().any(|it| it.eq_ignore_ascii_case(first))
}

impl AnswerReader {
    /// Creates a reader for a query's reply; `has_digest` if it is to be compared.
    pub fn of_postgres(has_digest: bool) -> Self {
        Self::starting_with(Part::Messages(1), has_digest)
    }

    /// Marks the request as sent over a new connection: the reply to the session start is read first.
    pub fn expect_session(&mut self) {
        if self.part == Part::Messages(1) {
            self.part = Part::Messages(2);
        }
    }

    /// Reads type and length of a message; `missing` queries are unanswered.
    pub(super) fn take_header(&mut self, bytes: &[u8], missing: u8) -> Result<usize, Unreadable> {
        let used = bytes.len().min(HEADER_BYTES - self.pending.len());
        self.pending.extend(&bytes[..used]);
        let Ok([kind, length @ ..]) = <[u8; HEADER_BYTES]>::try_from(self.pending.as_slice())
        else {
            return Ok(used);
        };
        let left = u32::from_be_bytes(length).checked_sub(4);
        let Some(left) = left.filter(|_| KNOWN.contains(&kind)) else {
            let arrived = [&self.pending, &bytes[used..]].concat();
            return Err(Unreadable::NotPostgres(beginning(&arrived)));
        };
        self.pending.clear();
        if kind == ERROR_RESPONSE {
            self.answered.status = ERROR;
        } else if self.answered.status == 0 {
            self.answered.status = GOOD;
        }
        self.go_on(kind, left, missing)?;
        Ok(used)
    }

    /// Reads the content of a message.
    pub(super) fn take_message(
        &mut self,
        bytes: &[u8],
        (kind, left, missing): (u8, u32, u8),
    ) -> Result<usize, Unreadable> {
        let used = bytes
            .len()
            .min(usize::try_from(left).unwrap_or(bytes.len()));
        match kind {
            DATA_ROW => {
                self.take_body(&bytes[..used], u64::MAX);
            }
            AUTHENTICATION | ERROR_RESPONSE => {
                let room = KEPT_BYTES.saturating_sub(self.pending.len()).min(used);
                self.pending.extend(&bytes[..room]);
            }
            _ => {}
        }
        let left = left - u32::try_from(used).unwrap_or(left);
        self.go_on(kind, left, missing)?;
        Ok(used)
    }

    /// Ends a message of which no bytes are left, or waits for them.
    fn go_on(&mut self, kind: u8, left: u32, missing: u8) -> Result<(), Unreadable> {
        if left > 0 {
            self.part = Part::Message(kind, left, missing);
            return Ok(());
        }
        let content = std::mem::take(&mut self.pending);
        if kind == AUTHENTICATION && content != [0; 4] {
            return Err(Unreadable::Password);
        }
        if kind == ERROR_RESPONSE {
            let mut fields = content.split(|byte| *byte == 0);
            let text = fields.find_map(|field| field.strip_prefix(b"M"));
            self.take_body(text.unwrap_or(&content), u64::MAX);
        }
        self.part = match missing - u8::from(kind == READY_FOR_QUERY) {
            0 => Part::Done,
            missing => Part::Messages(missing),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Answered;
    use super::super::tests::read_with;
    use super::*;

    fn reply(kind: u8, content: &[u8]) -> Vec<u8> {
        [&[kind], &message(&[content])[..]].concat()
    }

    /// What a server sends when a session begins, and after it has answered a query.
    fn begun() -> Vec<u8> {
        let parts = [
            reply(AUTHENTICATION, &[0; 4]),
            reply(b'S', b"server_version\x0015.8\0"),
            reply(b'K', &[1; 8]),
            reply(READY_FOR_QUERY, b"I"),
        ];
        parts.concat()
    }

    fn answer(rows: &[&[u8]]) -> Vec<u8> {
        let rows = rows.iter().flat_map(|row| reply(DATA_ROW, row));
        let mut bytes = reply(b'T', &[0; 2]);
        bytes.extend(rows);
        bytes.extend(reply(b'C', b"SELECT\0"));
        bytes.extend(reply(READY_FOR_QUERY, b"I"));
        bytes
    }

    fn read(bytes: &[u8], is_new: bool, at_once: usize) -> Result<Answered, Unreadable> {
        let mut reader = AnswerReader::of_postgres(true);
        if is_new {
            reader.expect_session();
        }
        read_with(reader, bytes, at_once)
    }

    #[test]
    fn postgres_answer_ends_at_ready_for_any_chunking() {
        let error = [
            reply(ERROR_RESPONSE, b"SERROR\0Mno table\0\0"),
            reply(READY_FOR_QUERY, b"I"),
        ];
        for (bytes, is_new, status, length) in [
            (answer(&[b"one", b"two"]), false, 200, 6),
            (answer(&[]), false, 200, 0),
            ([begun(), answer(&[b"one"])].concat(), true, 200, 3),
            (error.concat(), false, 500, 8),
            ([begun(), error.concat()].concat(), true, 500, 8),
        ] {
            for at_once in [1, 7, 10_000] {
                let answered = read(&bytes, is_new, at_once).unwrap();
                assert_eq!((answered.status, answered.bytes), (status, length));
                assert!(answered.keeps);
            }
        }
        let digest = |rows: &[&[u8]]| read(&answer(rows), false, 10_000).unwrap().digest;
        assert_eq!(digest(&[b"one"]), digest(&[b"one"]));
        assert_ne!(digest(&[b"one"]), digest(&[b"two"]));
    }

    #[test]
    fn postgres_refusal_is_quoted_and_non_answer_fails() {
        // A server that refuses a session sends the reason and closes.
        let refused = reply(ERROR_RESPONSE, b"SFATAL\0Mno user \"postgres\"\0\0");
        let answered = read(&refused, true, 5).unwrap();
        assert_eq!((answered.status, answered.keeps), (500, false));
        assert_eq!(answered.excerpt, b"no user \"postgres\"");
        let password = reply(AUTHENTICATION, &[0, 0, 0, 10, 1, 2]);
        assert_eq!(read(&password, true, 3), Err(Unreadable::Password));
        for bytes in [&b"HTTP/1.1 400 Bad"[..], b"Z\0\0\0\x01x", b"+OK\r\n..."] {
            let error = read(bytes, false, 100).unwrap_err();
            assert!(matches!(error, Unreadable::NotPostgres(_)), "{error}");
        }
        let cut = &answer(&[b"one"])[..12];
        assert!(matches!(read(cut, false, 100), Err(Unreadable::Cut(_))));
    }

    #[test]
    fn query_is_sent_with_its_length() {
        assert_eq!(to_bytes("SELECT 1"), b"Q\0\0\0\x0dSELECT 1\0");
        let session = session();
        assert_eq!(session[..8], [0, 0, 0, 41, 0, 3, 0, 0]);
        assert_eq!(session.len(), 41);
        assert!(session.ends_with(b"database\0postgres\0\0"));
        assert!(is_reading("select 1") && !is_reading("INSERT INTO a VALUES (1)"));
    }
}
