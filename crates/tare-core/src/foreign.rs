//! Escapes untrusted text, and defines the non-breaking space.

/// Keeps a number and its unit on one line.
pub const NO_BREAK: char = '\u{a0}';

/// Unicode's category Cf, invisible characters that format others, with the line and paragraph separators: inclusive
/// ranges. As of Unicode 17, which has added none of them for years.
const FORMATS: [(char, char); 22] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{2066}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// Whether a character could move the cursor, change colours or reorder the line.
pub fn steers(letter: char) -> bool {
    let is_format = || {
        FORMATS
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&letter))
    };
    letter.is_control() || (!letter.is_ascii() && is_format())
}

/// Escapes everything in `text` that could move the cursor, change colours or reorder the line.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if steers(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        let text = harmless("a\u{1b}[31m\r\n\u{202e}b\u{7}");
        assert_eq!(text, "a\\u{1b}[31m\\r\\n\\u{202e}b\\u{7}");
        assert_eq!(harmless("µs → <b> \"ü\" &"), "µs → <b> \"ü\" &");
        assert_eq!(
            harmless("a\u{61c}\u{ad}\u{e0041}\u{2028}\u{9b}"),
            "a\\u{61c}\\u{ad}\\u{e0041}\\u{2028}\\u{9b}"
        );
        // Combining accents and non-breaking spaces are visible.
        assert_eq!(harmless("e\u{301}\u{a0}x"), "e\u{301}\u{a0}x");
    }
}
