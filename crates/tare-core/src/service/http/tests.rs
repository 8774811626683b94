//! Tests of responses as servers send them, whole and in pieces.

use super::*;

/// Reads an answer that arrives in parts of `step` bytes.
pub(super) fn read_with(
    mut reader: AnswerReader,
    answer: &[u8],
    step: usize,
) -> Result<Answered, Unreadable> {
    assert!(reader.is_untouched());
    let mut is_done = false;
    for bytes in answer.chunks(step) {
        assert!(!is_done, "{answer:?} ended early");
        is_done = reader.take(bytes)?;
    }
    if !is_done {
        reader.close()?;
    }
    Ok(reader.finish())
}

fn read(answer: &[u8], step: usize) -> Result<Answered, Unreadable> {
    read_with(AnswerReader::new(false, true), answer, step)
}

#[test]
fn answers_are_read_whatever_their_framing() {
    type Case = (&'static [u8], u16, &'static [u8], bool);
    let cases: [Case; 8] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", true),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n", 200, b"hello", true),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", 200, b"hello", false),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", false),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", true),
        (b"HTTP/1.1 500 No\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n", 500, b"", false),
        (b"HTTP/1.1 204 None\r\n\r\n", 204, b"", true),
        (b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", true),
    ];
    for (answer, status, body, keeps) in cases {
        for step in [1, 3, 4096] {
            let read = read(answer, step).unwrap();
            let shown = String::from_utf8_lossy(answer);
            assert_eq!(
                (read.status, read.bytes),
                (status, body.len() as u64),
                "{shown}"
            );
            assert_eq!(
                (read.excerpt.as_slice(), read.keeps),
                (body, keeps),
                "{shown}"
            );
            let mut digest = DefaultHasher::new();
            digest.write(body);
            if step == 4096 && body.len() < 2 {
                assert_eq!(read.digest, Some(digest.finish()), "{shown}");
            }
        }
    }
}

#[test]
fn the_answer_to_head_has_no_body() {
    let mut reader = AnswerReader::new(true, false);
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n";
    assert_eq!(reader.take(answer), Ok(true));
    assert_eq!(reader.finish().bytes, 0);
}

#[test]
fn redirect_reports_its_location() {
    let answer = b"HTTP/1.1 301 Moved\r\nLocation: https://a\x1b[31m/\r\nContent-Length: 0\r\n\r\n";
    // A header value has no control characters: the response is rejected, not printed.
    assert!(read(answer, 4096).is_err());
    let answer = b"HTTP/1.1 301 Moved\r\nLocation: https://a/\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        read(answer, 7).unwrap().location.as_deref(),
        Some("https://a/")
    );
}

#[test]
fn unreadable_answers_are_refused_with_a_reason() {
    let cases: [(&[u8], &str); 9] = [
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS"),
        (b"-ERR unknown command\r\n", "not HTTP"),
        (b"\x1b[2Jboo", "\\u{1b}"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "no number"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "two lengths",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "after 5 bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
            "more bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "chunk",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            "chunk",
        ),
    ];
    for (answer, said) in cases {
        let error = read(answer, 4096).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let endless = [b"HTTP/1.1 200 OK\r\nA: ".to_vec(), vec![b'x'; HEAD_BYTES]].concat();
    assert_eq!(read(&endless, 1000), Err(Unreadable::LongHead));
}

#[test]
fn requests_that_would_end_early_are_refused() {
    let with = |path: &str, header: (&str, &str)| Request {
        headers: vec![(header.0.to_owned(), header.1.to_owned())],
        ..Request::get(path)
    };
    assert!(with("/a?b=c", ("Accept", "text/html")).check().is_ok());
    for bad in [
        with("a", ("A", "b")),
        with("/a b", ("A", "b")),
        with("/a\r\nX: y", ("A", "b")),
        with("/", ("A", "b\r\nX: y")),
        with("/", ("A:", "b")),
        with("/", ("host", "b")),
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    let sent = with("/a", ("X", "y")).to_bytes("h:80", true);
    let text = "GET /a HTTP/1.1\r\nHost: h:80\r\nConnection: keep-alive\r\nX: y\r\n\r\n";
    assert_eq!(String::from_utf8(sent).unwrap(), text);
}
