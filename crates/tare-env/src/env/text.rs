//! Foreign text and failures that come in pairs, as every driver meets them.
//!
//! What an engine, a runtime or the kernel says may hold anything; before it is printed, what could move a
//! terminal's cursor is escaped. What cannot be seen from here is whether the words are true.

use super::EnvError;

/// Foreign text made safe to print: one line, without control or invisible characters, at most 2 000 bytes.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::new();
    for character in text.trim().chars() {
        if matches!(character, '"' | '\'' | '\\') {
            safe.push(character);
        } else {
            safe.extend(character.escape_debug());
        }
        if safe.len() > 2_000 {
            safe.push('…');
            break;
        }
    }
    safe
}

/// Another program's words, harmless for a terminal.
pub(super) fn escaped(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim()
        .escape_debug()
        .to_string()
}

/// The first error, with the second where cleaning up failed too.
pub(super) fn and_cleanup(first: EnvError, cleanup: Result<(), EnvError>) -> EnvError {
    match cleanup {
        Ok(()) => first,
        Err(then) => EnvError::AndCleanup {
            first: Box::new(first),
            then: Box::new(then),
        },
    }
}

/// That all went well with something of ours until it was to be removed.
pub(super) fn not_removed(name: &str, error: EnvError) -> EnvError {
    let first = EnvError::Refused {
        what: format!("`{name}`, which was only looked at"),
        answer: "it is still there".to_owned(),
    };
    and_cleanup(first, Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_move_the_cursor_or_hide() {
        let text = printable("  a\u{1b}[2Jb\nc\r\u{202e}d \"quoted\" é\u{0}  ");
        assert_eq!(text, "a\\u{1b}[2Jb\\nc\\r\\u{202e}d \"quoted\" é\\0");
        assert!(printable(&"x".repeat(10_000)).len() < 2_010);
    }
}
