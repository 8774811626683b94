//! `regex`: matches regular expressions by backtracking.
//!
//! Inside the timed regions: `cpu.regex.time`, finding all mail addresses in a text of 2 000 characters;
//! `cpu.regex-heavy.time`, rejecting a text of 14 letters with an expression whose nested repetition makes a
//! backtracking matcher try some ten thousand ways; `cpu.regex-threads.time`, the same by two threads in parallel,
//! the time divided by the operations of both. Outside: building the expressions and the text, starting threads. No
//! system call, no allocation within.
//! Known bias: data-dependent branches that are hard to predict, recursion, tables in the L1 cache: what interpreters
//! are like. Two threads on one processor take twice the time, and so does each of their operations.
//! Correspondence: "Regex Match", "Regex Match - Heavy" and "- Heavy - Multithreaded" of a published comparison of
//! containers (2019).
//! Source: the matcher is ours, after Cox, "Regular Expression Matching: the Virtual Machine Approach" (2009).

use std::hint::black_box;

use tare_model::{Failure, Params};

use crate::meter::{Meter, ProbeError};
use crate::team::Team;

mod matcher;

use matcher::{Pattern, class, literal, many, sequence};

super::probe! {
    "regex": "backtracking regular expressions: many matches in a text, one hard refusal, and that by two threads";
    revision 1, cut LOOP
}

const THREADS: usize = 2;
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789._";

/// `[a-z0-9._]+@[a-z0-9._]+\.[a-z0-9._]+`
fn mail() -> Pattern {
    Pattern::new(sequence([
        many(class(LETTERS)),
        literal("@"),
        many(class(LETTERS)),
        literal("."),
        many(class(LETTERS)),
    ]))
}

/// `(x+x+)+y`
fn nested() -> Pattern {
    let both = sequence([many(literal("x")), many(literal("x"))]);
    Pattern::new(sequence([many(both), literal("y")]))
}

/// Returns words with a mail address in every ten, 2 000 characters.
fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0.. {
        let word = match number % 10 {
            7 => format!("user{number}@host.example.org "),
            place => format!("word-{} ", "abcdefghi".get(..place + 1).unwrap_or("j")),
        };
        text.extend_from_slice(word.as_bytes());
        if text.len() >= 2_000 {
            break;
        }
    }
    text.truncate(2_000);
    text
}

/// Counts the successive matches of the pattern in the text.
fn count(pattern: &Pattern, text: &[u8]) -> u64 {
    let (mut place, mut found) = (0, 0);
    while place < text.len() {
        match pattern.matches(text, place) {
            Some(end) if end > place => {
                found += 1;
                place = end;
            }
            _ => place += 1,
        }
    }
    found
}

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let (mail, nested, text) = (mail(), nested(), text());
    let hard = b"xxxxxxxxxxxxxx";
    let expected = count(&mail, &text);
    meter.checksum(expected);
    meter.loops("cpu.regex.time", 0.3, |times| {
        for _ in 0..times {
            if count(black_box(&mail), black_box(&text)) != expected {
                return Err(wrong());
            }
        }
        Ok(())
    })?;
    meter.loops("cpu.regex-heavy.time", 0.3, |times| {
        for _ in 0..times {
            if black_box(&nested).matches(black_box(hard), 0).is_some() {
                return Err(wrong());
            }
        }
        Ok(())
    })?;
    let team = Team::new(THREADS, move |_, times| {
        for _ in 0..times {
            black_box(black_box(&nested).matches(black_box(hard), 0));
        }
    })?;
    meter.loops("cpu.regex-threads.time", 0.4, |times| {
        team.run(times.div_ceil(THREADS as u64));
        Ok(())
    })
}

fn wrong() -> ProbeError {
    ProbeError::Failed(Failure::Void("a match went wrong".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regex_counts_addresses_and_rejects_hard_text() {
        let text = text();
        assert_eq!(text.len(), 2_000);
        let at = text.split(|letter| *letter == b'@').count() as u64 - 1;
        let found = count(&mail(), &text);
        assert!(
            found >= at - 1 && found <= at && found > 5,
            "{found} of {at}"
        );
        assert_eq!(nested().matches(b"xxxxxxxxxxxxxx", 0), None);
        assert_eq!(nested().matches(b"xxxxy", 0), Some(5));
    }
}
