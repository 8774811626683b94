//! "Did you mean …": finds the nearest known word.

/// The known word nearest to `word`, if it is near enough to be a typo.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// A hint with the nearest word, or with all of them.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "known are: {}",
            known.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_finds_nearest_word_and_nonsense_finds_no_word() {
        let known = ["docker", "container", "host"];
        assert_eq!(nearest("dokcer", known), Some("docker"));
        assert_eq!(nearest("contaner", known), Some("container"));
        assert_eq!(nearest("zzz", known), None);
    }
}
