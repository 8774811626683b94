//! Checks that the numbers of a publication that no study carries are known to be irrelevant.
//!
//! `uncarried.txt` lists, by file and reason, text fragments of such lines: addresses, headings, settings of a tool.
//! A number counts as carried if it is within the characters of a `printed`, and as set aside if its line contains
//! one of these fragments. Digits that belong to a word, such as those of `node01`, are no number.
//! Limits: ignores numbers in words, and does not judge whether a number that is carried twice should be.

use std::ops::Range;

/// Groups of a file's lines: `= FILE: reason`, then fragments, one a line.
const ASIDE: &str = include_str!("uncarried.txt");

/// Counts of a publication's numbers.
#[derive(Debug, Default)]
pub(super) struct CarriedNumbers {
    pub(super) carried: usize,
    pub(super) aside: usize,
    /// Neither carried nor set aside, each with its line.
    pub(super) left: Vec<String>,
}

impl CarriedNumbers {
    pub(super) fn add(&mut self, other: Self) {
        self.carried += other.carried;
        self.aside += other.aside;
        self.left.extend(other.left);
    }

    pub(super) fn line(&self) -> String {
        format!(
            "of {} numbers in the publications {} carried, {} set aside, {} left",
            self.carried + self.aside + self.left.len(),
            self.carried,
            self.aside,
            self.left.len()
        )
    }
}

/// Classifies every number of a publication's text, of which these ranges are carried.
pub(super) fn classify(file: &str, text: &str, carried: &[Range<usize>]) -> CarriedNumbers {
    let fragments = fragments(file);
    let mut is_carried = vec![false; text.len()];
    for range in carried {
        is_carried[range.clone()].fill(true);
    }
    let mut rest = CarriedNumbers::default();
    let mut begin = 0;
    for (number, line) in text.split('\n').enumerate() {
        let is_aside = fragments.iter().any(|fragment| line.contains(fragment));
        for range in numbers(line) {
            let here = begin + range.start..begin + range.end;
            if is_carried[here].iter().all(|it| *it) {
                rest.carried += 1;
            } else if is_aside {
                rest.aside += 1;
            } else {
                rest.left.push(format!(
                    "{file}:{}: `{}` is in no study and in no line that is set aside",
                    number + 1,
                    &line[range]
                ));
            }
        }
        begin += line.len() + 1;
    }
    rest
}

/// Returns the fragments that set a line of this file aside.
fn fragments(file: &str) -> Vec<&'static str> {
    let mut is_of_file = false;
    let mut found = Vec::new();
    for line in ASIDE.lines() {
        if let Some(group) = line.strip_prefix("= ") {
            is_of_file = group.split(':').next() == Some(file);
        } else if is_of_file {
            found.push(line);
        }
    }
    found
}

/// Returns the numbers of a line: digits with points and commas between them, and no letter before.
fn numbers(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut letters = line.char_indices().peekable();
    let mut before = ' ';
    while let Some((start, letter)) = letters.next() {
        let is_of_word = before.is_alphanumeric() || "_.-/".contains(before);
        before = letter;
        if !letter.is_ascii_digit() || is_of_word {
            continue;
        }
        let mut end = start + 1;
        while let Some((at, next)) = letters.peek().copied() {
            if next.is_ascii_digit() {
                end = at + 1;
            } else if !matches!(next, '.' | ',') {
                break;
            }
            before = next;
            letters.next();
        }
        found.push(start..end);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_digits_that_belong_to_no_word() {
        let of = |line: &'static str| -> Vec<&str> {
            numbers(line)
                .into_iter()
                .map(|range| &line[range])
                .collect()
        };
        assert_eq!(of("1,445 ns, 60s and 3."), ["1,445", "60", "3"]);
        assert_eq!(of("node01 x86_64 v1.2 2024-05 a-7 µ5 7"), ["2024", "7"]);
        assert_eq!(of(""), [""; 0]);
    }

    #[test]
    fn number_is_carried_set_aside_or_left_with_line() {
        let text = "it took 7,25 s\nScopus ASCC: 1701.\nand 9 s";
        let rest = classify("000.txt", text, std::slice::from_ref(&(8..12)));
        assert_eq!((rest.carried, rest.aside), (1, 1));
        assert_eq!(
            rest.left,
            ["000.txt:3: `9` is in no study and in no line that is set aside"]
        );
        assert!(rest.line().ends_with("1 carried, 1 set aside, 1 left"));
        // Part of a number is not the number.
        assert_eq!(
            classify("000.txt", "7,25", std::slice::from_ref(&(0..3)))
                .left
                .len(),
            1
        );
    }

    #[test]
    fn set_aside_lines_are_listed_by_file_and_reason() {
        let mut groups = 0;
        for line in ASIDE.lines() {
            if let Some(group) = line.strip_prefix("= ") {
                groups += 1;
                let (file, reason) = group.split_once(": ").unwrap();
                assert!(super::super::SOURCES.iter().any(|(_, name)| *name == file));
                assert!(reason.len() > 10, "{line}");
            } else {
                assert!(line.len() > 3, "{line:?}");
            }
        }
        assert!(groups > 10);
    }
}
