//! Renders reports: pure functions of a dossier, or of a comparison ([`compared`]).
//!
//! Nothing here opens a database, reads a clock or queries the terminal: output depends only on the dossier and the
//! style, so the same dossier gives the same report everywhere. Each format is one file; `tare report --format` and
//! its help are built from [`FORMATS`] alone. To add one, write a file with a [`Format`] and add a line there.

mod answer;
mod axis;
pub mod compared;
pub mod csv;
mod failures;
pub mod format;
mod groups;
pub mod html;
pub mod json;
pub mod jsonl;
pub mod latex;
pub mod markdown;
mod method;
mod number;
pub mod parquet;
mod phrases;
pub mod png;
mod published;
mod shift;
mod starting;
pub mod svg;
pub mod terminal;
mod waterfall;
mod words;

pub use format::{File, Format, Material, ReportOutput};
pub use words::{called, command_line};

/// All formats, in the order of the help text.
pub static FORMATS: &[&Format] = &[
    &terminal::TABLE,
    &terminal::FULL,
    &html::HTML,
    &markdown::MARKDOWN,
    &latex::LATEX,
    &svg::SVG,
    &png::PNG,
    &csv::CSV,
    &jsonl::JSON_LINES,
    &parquet::PARQUET,
    &json::JSON,
];

/// Returns the format of this name or alias.
pub fn find(name: &str) -> Option<&'static Format> {
    let is_called = |format: &&Format| format.name == name || format.alias == Some(name);
    FORMATS.iter().copied().find(is_called)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_listed_once_and_found_by_its_name() {
        for format in FORMATS {
            for name in [Some(format.name), format.alias].into_iter().flatten() {
                let same = FORMATS
                    .iter()
                    .filter(|it| it.name == name || it.alias == Some(name));
                assert_eq!(same.count(), 1, "{name}");
                assert_eq!(find(name).unwrap().name, format.name);
            }
            assert!(format.about.len() > 10 && !format.about.ends_with('.'));
        }
        assert_eq!(find("md").unwrap().name, "markdown");
        assert!(find("word").is_none());
    }
}
