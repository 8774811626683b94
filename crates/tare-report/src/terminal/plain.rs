//! Converts output to ASCII for terminals that cannot show other characters.
//!
//! Most characters have a substitute of the same width. Extra width of longer ones is taken from the next gap between
//! two columns, so that columns stay aligned. A character without a substitute becomes `?`.

/// Converts `text` to ASCII; ASCII characters stay unchanged.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Extra characters that substitutes have added so far.
    let mut debt = 0;
    let mut is_raised = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let digit = raised(letter);
        let first_raised = digit.is_some() && !is_raised;
        is_raised = digit.is_some();
        if let Some(digit) = digit {
            if first_raised {
                out.push('^');
                debt += 1;
            }
            out.push(digit);
            continue;
        }
        match letter {
            '\n' => debt = 0,
            // The last space of a gap is kept.
            ' ' if debt > 0 && letters.peek() == Some(&' ') => {
                debt -= 1;
                continue;
            }
            _ => {}
        }
        if letter.is_ascii() {
            out.push(letter);
        } else {
            let substitute = substitute(letter);
            debt += substitute.len() - 1;
            out.push_str(substitute);
        }
    }
    out
}

fn raised(letter: char) -> Option<char> {
    let value = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|it| it == letter)?;
    char::from_digit(u32::try_from(value).ok()?, 10)
}

fn substitute(letter: char) -> &'static str {
    match letter {
        '▲' | '✓' => "+",
        '▼' | '–' | '—' | '─' | '−' => "-",
        '●' | '○' => "o",
        '├' | '┤' | '│' | '┼' | '▏' => "|",
        '┊' => ":",
        '▶' => ">",
        '◀' => "<",
        '→' => "->",
        '×' | '✗' => "x",
        '÷' => "/",
        'µ' => "u",
        '±' => "+/-",
        '≤' => "<=",
        '≥' => ">=",
        '≠' => "!=",
        '√' => "sqrt",
        'π' => "pi",
        '′' | '’' | '‘' => "'",
        '“' | '”' => "\"",
        '·' | '•' => "*",
        '…' => "...",
        '█' => "#",
        '▒' => "=",
        '░' => ".",
        '\u{a0}' => " ",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_that_is_printed_has_a_plain_one() {
        assert_eq!(
            plain("▲ 1.02 × [µs] ├──●──┤ “a” A′ → … – 2 ± 1, ≤ 10⁶ 10¹² ÷ π"),
            "+ 1.02 x [us] |--o--| \"a\" A' -> ... - 2 +/- 1, <= 10^6 10^12 / pi"
        );
        assert_eq!(plain("漢"), "?");
        let ascii = "a\tb  c\n\u{1b}[1md   e";
        assert_eq!(plain(ascii), ascii);
    }

    #[test]
    fn columns_stay_where_they_are() {
        let text = "a → b   12 ± 3 ns   end\na > b   12 + 3 ns   end…  x";
        let shown = plain(text);
        let ends: Vec<_> = shown.lines().map(|line| line.find("end")).collect();
        assert_eq!(ends, [Some(20), Some(20)], "{shown}");
        assert!(shown.ends_with("end... x"), "{shown}");
    }
}
