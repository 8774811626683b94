//! The numbers of a publication that no study carries: whether each is one that nobody would look for here.
//!
//! `uncarried.txt` lists, by file and reason, what such lines have in common: addresses, headings, settings of a tool. A
//! number counts as carried where it lies within the characters of a `printed`, and as set aside where its line holds
//! one of these. Digits that belong to a word, such as those of `node01`, are no number.
//! What it cannot see: numbers in words, and whether a number that is carried twice should be.

use std::ops::Range;

/// Groups of a file's lines: `= FILE: reason`, then what a line holds, one a line.
const ASIDE: &str = include_str!("uncarried.txt");

/// What of a publication's numbers is carried.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub(super) carried: usize,
    pub(super) aside: usize,
    /// Neither, each with its line.
    pub(super) left: Vec<String>,
}

impl Rest {
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

/// Looks at every number of a publication's text, of which these ranges are carried.
pub(super) fn of(file: &str, text: &str, carried: &[Range<usize>]) -> Rest {
    let fragments = fragments(file);
    let mut is_carried = vec![false; text.len()];
    for range in carried {
        is_carried[range.clone()].fill(true);
    }
    let mut rest = Rest::default();
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

/// What the lines of a file hold that are set aside.
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

/// The numbers of a line: digits with points and commas between them, and no letter before.
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
    fn a_number_is_carried_or_set_aside_or_left_with_its_line() {
        let text = "it took 7,25 s\nScopus ASCC: 1701.\nand 9 s";
        let rest = of("000.txt", text, std::slice::from_ref(&(8..12)));
        assert_eq!((rest.carried, rest.aside), (1, 1));
        assert_eq!(
            rest.left,
            ["000.txt:3: `9` is in no study and in no line that is set aside"]
        );
        assert!(rest.line().ends_with("1 carried, 1 set aside, 1 left"));
        // Part of a number is not the number.
        assert_eq!(
            of("000.txt", "7,25", std::slice::from_ref(&(0..3)))
                .left
                .len(),
            1
        );
    }

    #[test]
    fn what_is_set_aside_is_listed_by_file_and_reason() {
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
