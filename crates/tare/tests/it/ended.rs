//! How a call of the product ended, and what tests ask of that.

use serde_json::Value;

/// Asserts that a text contains this part.
#[track_caller]
pub(crate) fn assert_says(text: &str, part: &str) {
    assert!(text.contains(part), "{part} is not in: {text}");
}

/// Asserts that a text does not contain this part.
#[track_caller]
pub(crate) fn assert_lacks(text: &str, part: &str) {
    assert!(!text.contains(part), "{part} is in: {text}");
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts that it ended with this status and did not panic.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self.does_not_complain("panicked");
        self
    }

    /// Asserts that stderr contains this.
    #[track_caller]
    pub(crate) fn complains(&self, of: &str) -> &Self {
        self.has(&self.stderr, of)
    }

    /// Asserts that stderr does not contain this.
    #[track_caller]
    pub(crate) fn does_not_complain(&self, of: &str) {
        assert!(!self.stderr.contains(of), "{of}: {self}");
    }

    /// Asserts that stdout contains this.
    #[track_caller]
    pub(crate) fn shows(&self, part: &str) -> &Self {
        self.has(&self.stdout, part)
    }

    /// Asserts that the hint contains this.
    #[track_caller]
    pub(crate) fn advises(&self, part: &str) -> &Self {
        self.has(self.hint(), part)
    }

    #[track_caller]
    fn has(&self, text: &str, part: &str) -> &Self {
        assert!(text.contains(part), "nothing of {part}: {self}");
        self
    }

    /// Parses stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns the line of stderr that begins with `hint:`.
    #[track_caller]
    pub(crate) fn hint(&self) -> &str {
        let mut lines = self.stderr.lines().map(str::trim_start);
        let hint = lines.find_map(|line| line.strip_prefix("hint: "));
        hint.unwrap_or_else(|| panic!("no hint: {self}"))
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            code,
            stdout,
            stderr,
        } = self;
        write!(out, "code {code:?}\n{stdout}\n--- stderr ---\n{stderr}")
    }
}
