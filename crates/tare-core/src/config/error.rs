//! An error in a study file, shown at its place.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// One error in a study file or in the choice of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    /// The file's name.
    pub file: String,
    /// The file's text.
    pub text: String,
    /// The byte range in the text, if known.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub problem: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
}

impl fmt::Display for StudyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, problem) = (printable(&self.file), printable(&self.problem));
        if let Some(span) = &self.span {
            // Escaping a control character changes its length, so the caret is positioned in the cleaned text.
            let before = printable(self.text.get(..span.start).unwrap_or_default());
            let inside = printable(self.text.get(span.clone()).unwrap_or_default());
            let source = printable(&self.text);
            let clean = before.len()..before.len() + inside.len();
            let snippet = Snippet::source(&source)
                .path(&file)
                .annotation(AnnotationKind::Primary.span(clean));
            let report = [Level::ERROR.primary_title(&problem).element(snippet)];
            let drawn = Renderer::plain().render(&report);
            // The caller already prints `error:`.
            out.write_str(drawn.strip_prefix("error: ").unwrap_or(&drawn))?;
        } else {
            write!(out, "{file}: {problem}")?;
        }
        match &self.hint {
            Some(hint) => write!(out, "\nhint: {}", printable(hint)),
            None => Ok(()),
        }
    }
}

/// Replaces control characters other than line ends and tabs.
fn printable(text: &str) -> String {
    let is_hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.replace(is_hidden, "\u{fffd}")
}

impl std::error::Error for StudyError {}

/// The text of a study file, for messages about it.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// A command-line option, which has no places to point at.
    pub(super) fn of_option(name: &'static str) -> Self {
        Self { name, text: "" }
    }
    pub(super) fn error(
        &self,
        span: Option<Range<usize>>,
        problem: impl Into<String>,
        hint: Option<String>,
    ) -> StudyError {
        StudyError {
            file: self.name.to_owned(),
            text: self.text.to_owned(),
            span,
            problem: problem.into(),
            hint,
        }
    }
}
