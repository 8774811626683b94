//! Refusals of engines that are known by their words.
//!
//! An engine passes on what its runtime and the kernel said, so one cause has several wordings.
//! What it cannot see: whether two causes share a wording; explanations say only what the words prove.

use super::EnvError;

/// An explanation.
pub(super) struct Known {
    /// Wordings in lower case, each as fragments that must all occur, with `…` between them.
    said: &'static [&'static str],
    /// What they mean.
    pub(super) why: &'static str,
    /// What would help.
    pub(super) fix: &'static str,
    is_denied: bool,
}

impl Known {
    /// Words by which something is missing.
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

    /// Words by which something is not allowed.
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

    /// The first of a table that explains these words.
    pub(super) fn find(table: &'static [Self], words: &str) -> Option<&'static Self> {
        table.iter().find(|known| known.explains(words))
    }

    /// Whether one of its wordings is in these words.
    pub(super) fn explains(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        let is_said = |said: &&str| said.split(" … ").all(|fragment| words.contains(fragment));
        self.said.iter().any(is_said)
    }

    /// As an error, each name of `filled` replaced by what it stands for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fragments_of_one_wording_must_occur() {
        const TABLE: &[Known] = &[
            Known::absent(&["a disk … full", "no space"], "full of WHAT", ""),
            Known::denied(&["disk"], "disk", "mend WHAT"),
        ];
        let why = |words: &str| Known::find(TABLE, words).map(|known| known.why);
        assert_eq!(why("A disk is FULL"), Some("full of WHAT"));
        assert_eq!(why("no space left"), Some("full of WHAT"));
        assert_eq!(why("a disk is slow"), Some("disk"));
        assert_eq!(why("nothing"), None);
        let error = |words: &str| Known::find(TABLE, words).unwrap().error(&[("WHAT", "it")]);
        let full = error("no space");
        assert!(matches!(full, EnvError::Absent { why, fix: None } if why == "full of it"));
        let denied = error("disk");
        assert!(matches!(denied, EnvError::Denied { fix: Some(fix), .. } if fix == "mend it"));
    }
}
