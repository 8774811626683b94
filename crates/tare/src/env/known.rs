//! Refusals of engines that are known by their words.
//!
//! An engine passes on what its runtime and the kernel said, so one cause has several wordings.
//! What it cannot see: whether two causes share a wording; explanations say only what the words prove.

/// An explanation.
pub(super) struct Known {
    /// Wordings, each as fragments in lower case that must all occur.
    pub(super) said: &'static [&'static [&'static str]],
    /// What they mean.
    pub(super) why: &'static str,
    /// What would help.
    pub(super) fix: &'static str,
}

impl Known {
    /// The first of a table that explains these words.
    pub(super) fn find(table: &'static [Self], words: &str) -> Option<&'static Self> {
        let words = words.to_lowercase();
        let is_said = |said: &&[&str]| said.iter().all(|fragment| words.contains(fragment));
        table.iter().find(|known| known.said.iter().any(is_said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fragments_of_one_wording_must_occur() {
        const TABLE: &[Known] = &[
            Known {
                said: &[&["a disk", "full"], &["no space"]],
                why: "full",
                fix: "",
            },
            Known {
                said: &[&["disk"]],
                why: "disk",
                fix: "",
            },
        ];
        let why = |words: &str| Known::find(TABLE, words).map(|known| known.why);
        assert_eq!(why("A disk is FULL"), Some("full"));
        assert_eq!(why("no space left"), Some("full"));
        assert_eq!(why("a disk is slow"), Some("disk"));
        assert_eq!(why("nothing"), None);
    }
}
