//! Standard output and standard error, and the text that may go there.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use tare_model::dossier::Dossier;

use crate::cx::files;
use crate::failed::Failed;
use crate::report::{self, terminal::plain};
use tare_core::foreign::{harmless, steers};

/// Writes text for people to stdout, in characters that the locale has.
pub(crate) fn text(text: &str) -> io::Result<()> {
    written(&readable(text))
}

/// Writes data to stdout unchanged, except on a terminal: control characters are escaped as in JSON, with the same
/// meaning.
pub(crate) fn data(text: &str) -> io::Result<()> {
    if is_terminal() {
        written(&visible(text))
    } else {
        written(text)
    }
}

/// Escapes control characters as JSON does.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if steers(letter) && !matches!(letter, '\n' | '\t') {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(letter);
        }
    }
    out
}

fn written(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes binary data to stdout.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Files for an answer.
#[derive(Debug, clap::Args)]
pub(crate) struct DossierFiles {
    /// Write the dossier to FILE; `-` prints only it on stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl DossierFiles {
    /// Checks that both are writable.
    pub(crate) fn check(&self) -> Result<(), Failed> {
        let json = self.json.iter().filter(|file| !is_dash(file));
        check_files(json.chain(&self.html))
    }

    /// Writes both; returns whether the dossier went to stdout, which then must hold nothing else.
    pub(crate) fn write(&self, dossier: &Dossier) -> Result<bool, Failed> {
        if let Some(file) = &self.html {
            files::write_output(file, report::html::page(dossier).as_bytes())?;
        }
        match &self.json {
            Some(file) => write_json(file, &report::json::to_string(dossier)),
            None => Ok(false),
        }
    }
}

/// Writes JSON to a file, or to stdout if it is `-`; returns whether it is.
pub(crate) fn write_json(file: &Path, json: &str) -> Result<bool, Failed> {
    if is_dash(file) {
        data(json)?;
    } else {
        files::write_output(file, json.as_bytes())?;
    }
    Ok(is_dash(file))
}

/// Checks that files are writable, before a long measurement rather than after it.
pub(crate) fn check_files<'a>(all: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failed> {
    for file in all {
        files::may_write(file)
            .map_err(|error| Failed::usage(error).hint("name a file that you may write, or `-`"))?;
    }
    Ok(())
}

pub(crate) fn is_dash(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Whether stdout is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Prints a message to stderr; it may contain untrusted names and texts.
pub(crate) fn tell(text: &str) {
    drawn(&printable(text));
}

/// Prints what could not be removed.
pub(crate) fn left_behind<'a>(lines: impl IntoIterator<Item = &'a String>) {
    for line in lines {
        tell(&format!("left behind: {line}; `tare clean` tries again"));
    }
}

fn drawn(text: &str) {
    // A closed stderr cannot be reported.
    let _ = writeln!(anstream::stderr().lock(), "{}", readable(text));
}

/// Prints help and version to stdout, and usage errors to stderr.
pub(crate) fn usage(told: &clap::Error) {
    let drawn = told.render().ansi().to_string();
    if told.use_stderr() {
        self::drawn(drawn.trim_end());
    } else {
        // A closed stdout is not an error.
        let _ = text(&drawn);
    }
}

/// Returns `text` in characters that the locale has.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || has_unicode() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(plain(text))
    }
}

/// Prints why a command ended, with its hint.
pub(crate) fn error(failed: &Failed) {
    tell(&format!("error: {}", failed.message));
    if let Some(hint) = &failed.hint {
        tell(&format!("hint: {hint}"));
    }
}

/// Whether standard output is a terminal that wants colour.
pub(crate) fn wants_colour() -> bool {
    is_terminal() && crate::cx::vars::text("NO_COLOR").is_none()
}

/// Whether the locale uses Unicode. Without a locale it is assumed to.
pub(crate) fn has_unicode() -> bool {
    let set = |name| crate::cx::vars::text(name).filter(|text| !text.is_empty());
    let locale = set("LC_ALL")
        .or_else(|| set("LC_CTYPE"))
        .or_else(|| set("LANG"));
    locale.is_none_or(|locale| is_of_unicode(&locale))
}

fn is_of_unicode(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Returns the width in columns: `COLUMNS`, which shells seldom export, else that of the terminal on stdout or, if a
/// pager is used, on stderr; else 100.
pub(crate) fn width() -> usize {
    let asked = crate::cx::vars::text("COLUMNS").and_then(|text| text.parse().ok());
    let of_terminal = || {
        let size = terminal_size::terminal_size_of(io::stdout())
            .or_else(|| terminal_size::terminal_size_of(io::stderr()));
        // A terminal without a size reports 0.
        size.map(|(width, _)| usize::from(width.0))
            .filter(|width| *width > 0)
    };
    let columns = asked.or_else(of_terminal).unwrap_or(100).clamp(20, 200);
    if has_unicode() {
        return columns;
    }
    // ASCII replacements may be wider.
    columns - columns / 20
}

/// Returns the style for this stdout.
pub(crate) fn style() -> crate::report::terminal::Style {
    crate::report::terminal::Style {
        width: width(),
        colour: wants_colour(),
    }
}

/// Escapes untrusted text of one or more lines: control characters and bidirectional overrides become visible.
pub(crate) fn printable(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(harmless).collect();
    lines.join("\n")
}

/// Formats rows as columns, each as wide as its widest entry; the last is not padded.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let entries = rows.iter().filter_map(|row| row.get(column));
        entries.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let entries = row.iter().zip(&widths);
        let entries = entries.map(|(entry, &width)| format!("{entry:<width$}"));
        let line = entries.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// `90 s`, `9 min`.
pub(crate) fn lasting(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    if seconds < 120 {
        format!("{seconds} s")
    } else {
        format!("{} min", seconds.div_ceil(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}"), "a\\u{1b}[31mb\\u{7}");
        assert_eq!(printable("a\nb\u{202e}c"), "a\nb\\u{202e}c");
    }

    #[test]
    fn terminal_escaped_json_keeps_its_meaning() {
        let text = "a\u{202e}b\u{9b}c\u{e0041}\"\n";
        let json = serde_json::to_string(&[text]).unwrap();
        let shown = visible(&json);
        assert!(!shown.chars().any(steers), "{shown}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [text]);
        assert_eq!(visible("a\n\tb"), "a\n\tb");
    }

    #[test]
    fn short_times_are_in_seconds_and_long_ones_in_minutes() {
        assert_eq!(
            [90_000_000_000, 539_500_000_000, 1].map(lasting),
            ["90 s", "9 min", "1 s"]
        );
    }

    #[test]
    fn unicode_locale_is_detected_from_name() {
        for (locale, is) in [
            ("C", false),
            ("POSIX", false),
            ("de_DE.ISO-8859-1", false),
            ("en_US", false),
            ("C.UTF-8", true),
            ("en_GB.utf8", true),
            ("UTF-8", true),
        ] {
            assert_eq!(is_of_unicode(locale), is, "{locale}");
        }
    }

    #[test]
    fn columns_align_without_trailing_blanks() {
        let rows = vec![
            vec!["a".into(), "bb".into()],
            vec!["ccc".into(), "d".into()],
        ];
        assert_eq!(columns(&rows), "a    bb\nccc  d\n");
    }
}
