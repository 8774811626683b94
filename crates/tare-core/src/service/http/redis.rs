//! Redis's protocol: encodes a command and finds the end of its reply.
//!
//! A reply is one line, which may announce a number of bytes or of further replies. An error counts as status 500,
//! everything else as 200.
//! Source: the protocol's specification, RESP2 and the types of RESP3 that have the same form.

use super::{AnswerReader, ERROR, GOOD, Part, Unreadable, beginning};

/// Commands that can be sent twice without side effects.
const READING: [&str; 12] = [
    "GET", "MGET", "EXISTS", "PING", "ECHO", "STRLEN", "HGET", "HGETALL", "LRANGE", "SMEMBERS",
    "ZRANGE", "TTL",
];

/// Splits a command into words; quotes hold spaces together.
///
/// # Errors
/// A quote is not closed, or there is no word.
pub(super) fn words(command: &str) -> Result<Vec<String>, String> {
    shlex::split(command)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("`{}` is no command", command.escape_debug()))
}

/// Encodes a command for sending.
pub(super) fn to_bytes(words: &[String]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend(word.bytes());
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Whether a command only reads, so that it can be sent again.
pub(super) fn is_reading(words: &[String]) -> bool {
    let first = words.first().map(|word| word.to_ascii_uppercase());
    first.is_some_and(|first| READING.contains(&first.as_str()))
}

impl AnswerReader {
    /// A reader for the reply to a command; `has_digest` if replies are compared.
    pub fn of_redis(has_digest: bool) -> Self {
        Self::starting_with(Part::Reply(1), has_digest)
    }

    /// Reads the first line of a reply; `missing` replies are still expected.
    pub(super) fn take_reply(&mut self, bytes: &[u8], missing: u64) -> Result<usize, Unreadable> {
        let (used, has_ended) = self.take_line(bytes)?;
        if !has_ended {
            return Ok(used);
        }
        let line = std::mem::take(&mut self.pending);
        let text = line.strip_suffix(b"\r\n").unwrap_or(&line);
        let not_redis = || Unreadable::NotRedis(beginning(text));
        let (kind, rest) = text.split_first().ok_or_else(not_redis)?;
        let number = || -> Result<i64, Unreadable> {
            let number = std::str::from_utf8(rest)
                .ok()
                .and_then(|it| it.parse().ok());
            number.ok_or_else(not_redis)
        };
        let missing = missing - 1;
        if self.answered.status == 0 {
            self.answered.status = GOOD;
        }
        self.part = match kind {
            b'-' | b'+' | b':' | b'_' | b'#' | b',' | b'(' => {
                if *kind == b'-' {
                    self.answered.status = ERROR;
                }
                self.take_body(text, u64::MAX);
                Part::Reply(missing)
            }
            b'$' | b'=' | b'!' => match u64::try_from(number()?) {
                Ok(length) => Part::Bulk(length + 2, missing),
                Err(_) => Part::Reply(missing),
            },
            b'*' | b'~' | b'>' | b'%' => {
                let each = if *kind == b'%' { 2 } else { 1 };
                let count = u64::try_from(number()?).unwrap_or(0);
                Part::Reply(missing.saturating_add(count.saturating_mul(each)))
            }
            _ => return Err(not_redis()),
        };
        if self.part == Part::Reply(0) {
            self.part = Part::Done;
        }
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Answered;
    use super::super::tests::read_with;
    use super::*;

    fn read(bytes: &[u8], at_once: usize) -> Result<Answered, Unreadable> {
        read_with(AnswerReader::of_redis(true), bytes, at_once)
    }

    #[test]
    fn redis_reply_ends_at_its_length_for_any_chunking() {
        for (bytes, status, length) in [
            (&b"+OK\r\n"[..], 200, 3),
            (b":12\r\n", 200, 3),
            (b"$5\r\nhello\r\n", 200, 7),
            (b"$0\r\n\r\n", 200, 2),
            (b"$-1\r\n", 200, 0),
            (b"*2\r\n$1\r\na\r\n:1\r\n", 200, 5),
            (b"*0\r\n", 200, 0),
            (b"*1\r\n*2\r\n+a\r\n+b\r\n", 200, 4),
            (b"%1\r\n+a\r\n_\r\n", 200, 3),
            (b"-ERR unknown command\r\n", 500, 20),
        ] {
            for at_once in [1, 3, 100] {
                let answered = read(bytes, at_once).unwrap();
                assert_eq!(
                    (answered.status, answered.bytes),
                    (status, length),
                    "{bytes:?}"
                );
                assert!(answered.keeps);
            }
        }
        assert_eq!(read(b"-ERR x\r\n", 9).unwrap().excerpt, b"-ERR x");
    }

    #[test]
    fn invalid_redis_reply_is_an_error() {
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"$x\r\n", b"\r\n"] {
            let error = read(bytes, 100).unwrap_err();
            assert!(matches!(error, Unreadable::NotRedis(_)), "{error}");
        }
        // Counts whose sum overflows stay unfinished replies.
        let mut reader = AnswerReader::of_redis(false);
        let many = format!("*{0}\r\n%{0}\r\n%{0}\r\n", i64::MAX);
        assert_eq!(reader.take(many.as_bytes()), Ok(false));
        let mut reader = AnswerReader::of_redis(false);
        assert_eq!(reader.take(b"+OK\r\n+OK\r\n"), Err(Unreadable::Surplus));
    }

    #[test]
    fn command_is_sent_with_the_lengths_of_its_words() {
        let words = words("SET page 'two words'").unwrap();
        let bytes = to_bytes(&words);
        assert_eq!(
            bytes,
            b"*3\r\n$3\r\nSET\r\n$4\r\npage\r\n$9\r\ntwo words\r\n"
        );
        assert!(!is_reading(&words) && is_reading(&["get".to_owned()]));
        assert!(super::words("").is_err() && super::words("GET 'x").is_err());
    }
}
