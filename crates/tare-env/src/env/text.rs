//! Escapes foreign text, and combines an error with a failed cleanup.
//!
//! Messages of an engine, a runtime or the kernel may contain anything; before they are printed, terminal control
//! characters are escaped.

use serde_json::Value;

use super::EnvError;

/// Makes foreign text safe to print: one line, without control or invisible characters, at most 2 000 bytes.
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

/// Returns the entries of a JSON list; none if it is anything else.
pub(crate) fn entries_of(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Returns the texts of a JSON list.
pub(crate) fn texts_of(list: &Value) -> impl Iterator<Item = &str> {
    entries_of(list).filter_map(Value::as_str)
}

/// Returns the entries of a JSON object with their names; none if it is anything else.
pub(crate) fn members_of(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// Escapes another program's output for a terminal.
pub(crate) fn escaped(output: impl AsRef<[u8]>) -> String {
    let text = String::from_utf8_lossy(output.as_ref());
    text.trim().escape_debug().to_string()
}

/// Returns the first error, with that of the cleanup if it failed too.
pub(crate) fn and_cleanup(first: EnvError, cleanup: Result<(), EnvError>) -> EnvError {
    match cleanup {
        Ok(()) => first,
        Err(then) => EnvError::AndCleanup {
            first: Box::new(first),
            then: Box::new(then),
        },
    }
}

/// Returns the error that a temporary object could not be removed, although everything else succeeded.
pub(super) fn not_removed(name: &str, error: EnvError) -> EnvError {
    let first = EnvError::refused(
        format!("`{name}`, which was only looked at"),
        "it is still there",
    );
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
