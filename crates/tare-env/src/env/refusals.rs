//! Explains engines' refusals by the wording of their messages.
//!
//! An engine passes on what its runtime and the kernel said, so one cause has several wordings.
//! Limits: two causes may share a wording, so an explanation claims only what the words prove.

use super::EnvError;

/// An explanation of a message.
pub(super) struct KnownRefusal {
    /// Wordings in lower case; the fragments between `…` must all occur.
    said: &'static [&'static str],
    /// What the wordings mean.
    pub(super) why: &'static str,
    /// Hint.
    pub(super) fix: &'static str,
    is_denied: bool,
}

impl KnownRefusal {
    /// For messages about something missing.
    pub(super) const fn absent(
        said: &'static [&'static str],
        why: &'static str,
        fix: &'static str,
    ) -> Self {
        Self {
            said,
            why,
            fix,
            is_denied: false,
        }
    }

    /// For messages about something not permitted.
    pub(super) const fn denied(
        said: &'static [&'static str],
        why: &'static str,
        fix: &'static str,
    ) -> Self {
        Self {
            is_denied: true,
            ..Self::absent(said, why, fix)
        }
    }

    /// Returns the first row of a table that explains these words.
    pub(super) fn find(table: &'static [Self], words: &str) -> Option<&'static Self> {
        table.iter().find(|known| known.explains(words))
    }

    /// Whether these words contain one of its wordings.
    pub(super) fn explains(&self, words: &str) -> bool {
        is_said(self.said, words)
    }

    /// Converts it to an error, with each placeholder of `filled` replaced.
    pub(super) fn error(&self, filled: &[(&str, &str)]) -> EnvError {
        let fill = |text: &str| {
            let texts = filled.iter();
            texts.fold(text.to_owned(), |text, (name, is)| text.replace(name, is))
        };
        let (why, fix) = (fill(self.why), fill(self.fix));
        let fix = (!fix.is_empty()).then_some(fix);
        if self.is_denied {
            EnvError::Denied { what: why, fix }
        } else {
            EnvError::Absent { why, fix }
        }
    }
}

/// Whether words contain one of these wordings in lower case: all of its fragments between `…`.
pub(super) fn is_said(wordings: &[&str], words: &str) -> bool {
    let words = words.to_lowercase();
    let is_said = |said: &&str| said.split(" … ").all(|fragment| words.contains(fragment));
    wordings.iter().any(is_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fragments_of_one_wording_must_occur() {
        const TABLE: &[KnownRefusal] = &[
            KnownRefusal::absent(&["a disk … full", "no space"], "full of WHAT", ""),
            KnownRefusal::denied(&["disk"], "disk", "mend WHAT"),
        ];
        let why = |words: &str| KnownRefusal::find(TABLE, words).map(|known| known.why);
        assert_eq!(why("A disk is FULL"), Some("full of WHAT"));
        assert_eq!(why("no space left"), Some("full of WHAT"));
        assert_eq!(why("a disk is slow"), Some("disk"));
        assert_eq!(why("nothing"), None);
        let error = |words: &str| {
            KnownRefusal::find(TABLE, words)
                .unwrap()
                .error(&[("WHAT", "it")])
        };
        let full = error("no space");
        assert!(matches!(full, EnvError::Absent { why, fix: None } if why == "full of it"));
        let denied = error("disk");
        assert!(matches!(denied, EnvError::Denied { fix: Some(fix), .. } if fix == "mend it"));
    }
}
