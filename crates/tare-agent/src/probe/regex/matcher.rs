//! A small backtracking matcher: instructions, and a recursion that tries them.
//!
//! It matches greedily from one position, over bytes. It has no groups, alternatives or anchors; the probe does not
//! need them.

/// One instruction; jumps are relative to it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// One of these bytes, as a bit set.
    Class([u64; 4]),
    /// Tries the first target, and if that fails the second.
    Split(isize, isize),
    /// The whole pattern has matched.
    End,
}

/// A regular expression.
#[derive(Debug)]
pub(super) struct Pattern(Vec<Step>);

/// Matches one of these characters.
pub(super) fn class(characters: &str) -> Vec<Step> {
    let mut bits = [0u64; 4];
    for byte in characters.bytes() {
        bits[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    vec![Step::Class(bits)]
}

/// Matches these characters in this order.
pub(super) fn literal(characters: &str) -> Vec<Step> {
    characters
        .chars()
        .flat_map(|character| class(character.encode_utf8(&mut [0; 4])))
        .collect()
}

/// Matches the parts one after the other.
pub(super) fn sequence(parts: impl IntoIterator<Item = Vec<Step>>) -> Vec<Step> {
    parts.into_iter().flatten().collect()
}

/// Matches a part once or more, as often as possible.
pub(super) fn many(mut part: Vec<Step>) -> Vec<Step> {
    let back = part.len().cast_signed();
    part.push(Step::Split(-back, 1));
    part
}

impl Pattern {
    /// Builds an expression from its steps.
    pub(super) fn new(mut steps: Vec<Step>) -> Self {
        steps.push(Step::End);
        Self(steps)
    }

    /// Returns the end of a match that begins at `place`, if any.
    pub(super) fn matches(&self, text: &[u8], place: usize) -> Option<usize> {
        self.from(0, text, place)
    }

    fn from(&self, mut step: usize, text: &[u8], mut place: usize) -> Option<usize> {
        loop {
            match &self.0[step] {
                Step::End => return Some(place),
                Step::Class(bits) => {
                    let byte = *text.get(place)?;
                    if bits[usize::from(byte >> 6)] >> (byte & 63) & 1 == 0 {
                        return None;
                    }
                    place += 1;
                    step += 1;
                }
                Step::Split(first, second) => {
                    let end = self.from(step.wrapping_add_signed(*first), text, place);
                    if end.is_some() {
                        return end;
                    }
                    step = step.wrapping_add_signed(*second);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_is_greedy_and_backtracks() {
        let pattern = Pattern::new(sequence([many(class("ab")), literal("b")]));
        assert_eq!(pattern.matches(b"aabab!", 0), Some(5));
        assert_eq!(pattern.matches(b"aab", 0), Some(3));
        assert_eq!(pattern.matches(b"b", 0), None);
        assert_eq!(pattern.matches(b"", 0), None);
        assert_eq!(pattern.matches(b"xxab", 2), Some(4));
    }
}
