//! Text layout for terminals: wrapped lines and columns.
//!
//! Widths count characters, because everything that Tare prints in a column is one cell wide. External text is only
//! in wrapped paragraphs, where a wide character at worst makes a line too long.

use super::Style;
use crate::words::Tone;
use tare_core::foreign::{NO_BREAK, harmless};

/// Counts the characters of `text`.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks `text` at spaces into lines of at most `limit` characters; a longer word is split. Words joined by a
/// no-break space stay together, and the space is printed as a plain one.
pub(super) fn wrapped(text: &str, limit: usize) -> Vec<String> {
    let limit = limit.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let mut letters: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + letters.len() > limit {
            lines.push(String::new());
            used = 0;
        } else if used > 0 {
            push(&mut lines, [' ']);
            used += 1;
        }
        while letters.len() > limit - used {
            let rest = letters.split_off(limit - used);
            push(&mut lines, letters);
            lines.push(String::new());
            used = 0;
            letters = rest;
        }
        used += letters.len();
        push(&mut lines, letters);
    }
    lines
        .into_iter()
        .map(|line| line.replace(NO_BREAK, " "))
        .collect()
}

fn push(lines: &mut [String], letters: impl IntoIterator<Item = char>) {
    if let Some(last) = lines.last_mut() {
        last.extend(letters);
    }
}

/// The minimum readable width of a paragraph.
const LEAST_TEXT: usize = 10;

/// Writes text in bold, wrapped.
pub(super) fn bold(out: &mut String, text: &str, style: Style) {
    painted(out, Paint::Bold, text, style);
}

/// Writes text in a colour, wrapped.
pub(super) fn painted(out: &mut String, paint: Paint, text: &str, style: Style) {
    for line in wrapped(&harmless(text), style.width) {
        out.push_str(&paint.apply(&line, style.colour));
        out.push('\n');
    }
}

/// Writes a paragraph: `first` before its first line, as many spaces before the others. If that leaves no room,
/// `first` becomes part of the text.
pub(super) fn paragraph(out: &mut String, first: &str, text: &str, style: Style) {
    let mut indent = width(first);
    let mut first = first.to_owned();
    let mut text = harmless(text);
    if style.width < indent + LEAST_TEXT {
        text = format!("{}{text}", first.trim_start());
        first.clear();
        indent = 0;
    }
    let lines = wrapped(&text, style.width.saturating_sub(indent));
    for (place, line) in lines.iter().enumerate() {
        let before = if place == 0 {
            first.clone()
        } else {
            " ".repeat(indent)
        };
        out.push_str(format!("{before}{line}").trim_end());
        out.push('\n');
    }
}

/// Terminal colours; the words carry every meaning as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    /// No colour.
    Plain,
    /// Headings.
    Bold,
    /// Overhead beyond the margin.
    Red,
    /// Overhead of unresolved size.
    Yellow,
    /// Equivalent, or negligible.
    Green,
    /// A gain.
    Cyan,
    /// Inconclusive.
    Dim,
}

impl Paint {
    /// Returns the colour of a verdict.
    pub(super) fn for_tone(tone: Tone) -> Self {
        match tone {
            Tone::Cost => Self::Red,
            Tone::SomeCost => Self::Yellow,
            Tone::Nothing => Self::Green,
            Tone::Less => Self::Cyan,
            Tone::Open => Self::Dim,
        }
    }

    pub(super) fn apply(self, text: &str, colour: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => "1",
            Self::Red => "1;31",
            Self::Yellow => "33",
            Self::Green => "32",
            Self::Cyan => "36",
            Self::Dim => "2",
        };
        if colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A table column.
pub(super) struct Column {
    pub(super) title: String,
    /// Whether the column is right-aligned, as for numbers.
    pub(super) right: bool,
    /// The minimum width when there is too little room; `None` if it never shrinks.
    pub(super) least: Option<usize>,
}

impl Column {
    /// Creates a column of numbers, which never shrinks.
    pub(super) fn number(title: &str) -> Self {
        Self {
            title: harmless(title),
            right: true,
            least: None,
        }
    }

    /// Creates a column of words, which shrinks to at least this many letters.
    pub(super) fn words(title: &str, least: usize) -> Self {
        Self {
            title: harmless(title),
            right: false,
            least: Some(least),
        }
    }
}

/// A table cell.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) paint: Paint,
}

impl Text {
    pub(super) fn plain(text: impl AsRef<str>) -> Self {
        Self::painted(text, Paint::Plain)
    }

    pub(super) fn painted(text: impl AsRef<str>, paint: Paint) -> Self {
        Self {
            text: harmless(text.as_ref()),
            paint,
        }
    }
}

/// Spaces between two columns.
const GAP: usize = 2;

/// Appends the table, or each row by itself where the minimum widths do not fit.
pub(super) fn table_or(
    out: &mut String,
    columns: &[Column],
    rows: &[Vec<Text>],
    style: Style,
    narrow: impl Fn(&mut String, &[Text], Style),
) {
    match table(columns, rows, style) {
        Some(drawn) => out.push_str(&drawn),
        None => rows.iter().for_each(|row| narrow(out, row, style)),
    }
}

/// Appends a row as one paragraph.
pub(super) fn row_in_line(out: &mut String, row: &[Text], style: Style) {
    let texts: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
    paragraph(out, "", &texts.join(" · "), style);
}

/// Lays out a table; `None` if even its minimum widths do not fit.
pub(super) fn table(columns: &[Column], rows: &[Vec<Text>], style: Style) -> Option<String> {
    let widths = widths(columns, rows, style.width)?;
    let mut out = String::new();
    let titles: Vec<Text> = columns
        .iter()
        .map(|column| Text::painted(&column.title, Paint::Dim))
        .collect();
    for row in std::iter::once(&titles).chain(rows) {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| wrapped(&cell.text, *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = String::new();
            let mut pending = 0;
            for (place, column) in columns.iter().enumerate() {
                let here = cells[place].get(line).map_or("", String::as_str);
                let blank = widths[place] - width(here);
                let (before, after) = if column.right { (blank, 0) } else { (0, blank) };
                pending += before;
                if !here.is_empty() {
                    text.extend(std::iter::repeat_n(' ', pending));
                    text.push_str(&row[place].paint.apply(here, style.colour));
                    pending = 0;
                }
                pending += after + GAP;
            }
            out.push_str(&text);
            out.push('\n');
        }
    }
    Some(out)
}

fn widths(columns: &[Column], rows: &[Vec<Text>], limit: usize) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let cells = rows.iter().map(|row| width(&row[place].text));
            let title = width(&column.title).min(column.least.unwrap_or(usize::MAX));
            cells.max().unwrap_or(0).max(title).max(1)
        })
        .collect();
    let room = limit.checked_sub(GAP * (columns.len() - 1))?;
    // The widest shrinkable column shrinks first.
    while widths.iter().sum::<usize>() > room {
        let gives_way = (0..columns.len())
            .filter(|place| {
                columns[*place]
                    .least
                    .is_some_and(|least| widths[*place] > least)
            })
            .max_by_key(|place| widths[*place])?;
        widths[gives_way] -= 1;
    }
    Some(widths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_inside() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    #[test]
    fn a_table_never_exceeds_its_width() {
        let columns = [Column::words("name", 4), Column::number("n")];
        let rows = vec![vec![
            Text::plain("a long name of things"),
            Text::plain("12.5"),
        ]];
        let drawn = |width| {
            let style = Style {
                width,
                colour: false,
            };
            table(&columns, &rows, style)
        };
        for limit in 10..40 {
            let drawn = drawn(limit).unwrap();
            assert!(drawn.lines().all(|line| width(line) <= limit), "{drawn}");
            assert!(drawn.contains("12.5"));
        }
        assert!(drawn(9).is_none());
    }
}
