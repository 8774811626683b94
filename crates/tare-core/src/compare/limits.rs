//! Margins and floors of rows, and the selection of gated rows.

use serde::{Deserialize, Serialize};

/// The unit of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Time.
    Nanoseconds,
    /// Memory or transferred data.
    Bytes,
    /// Anything else.
    #[default]
    Count,
}

/// The command line's limits for rows; patterns may contain `*`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// The margin of rows that no pattern matches, as a fraction.
    pub margin: f64,
    /// Margins by pattern.
    pub max: Vec<(String, f64)>,
    /// Absolute differences by pattern below which nothing counts, in the row's unit.
    pub floor: Vec<(String, f64)>,
    /// Patterns of gated rows; all judged ones if empty.
    pub only: Vec<String>,
    /// Patterns of rows that are not gated.
    pub skip: Vec<String>,
    /// Prefix of the rows' names: the entry of a suite and a dot, or nothing.
    pub entry: String,
    /// How many comparisons share the rate of false alarms; 0 counts as 1.
    pub shares: usize,
}

/// Rate of false alarms of a whole gate or comparison, over all of its rows.
pub const ALARM_RATE: f64 = 0.01;
/// A time difference below which no row is red: less than the variation of starting a process.
const FLOOR_NS: f64 = 50_000.0;
/// A memory difference below which no row is red: the address layout changes usage by a few pages.
const FLOOR_BYTES: f64 = 131_072.0;

impl Limits {
    /// The margin of a row.
    pub fn margin_of(&self, row: &str) -> f64 {
        last_fitting(&self.max, row).unwrap_or(self.margin)
    }

    /// The absolute difference of a row below which nothing counts.
    pub fn floor_of(&self, row: &str, unit: Unit) -> f64 {
        last_fitting(&self.floor, row).unwrap_or(match unit {
            Unit::Nanoseconds => FLOOR_NS,
            Unit::Bytes => FLOOR_BYTES,
            Unit::Count => 0.0,
        })
    }

    /// Whether a row is gated.
    pub fn gates(&self, row: &str) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| fits(glob, row));
        (self.only.is_empty() || any(&self.only)) && !any(&self.skip)
    }

    /// Rate of false alarms of this comparison, over all of its rows.
    pub fn alarm_rate(&self) -> f64 {
        ALARM_RATE / self.shares.max(1) as f64
    }
}

/// The number of the last pattern that matches a row.
fn last_fitting(numbers: &[(String, f64)], row: &str) -> Option<f64> {
    let mut numbers = numbers.iter().rev();
    Some(numbers.find(|(glob, _)| fits(glob, row))?.1)
}

/// Whether a pattern matches a row by its whole name, or without its suite's entry and its side.
fn fits(glob: &str, row: &str) -> bool {
    let ends = row.match_indices('.').map(|(at, _)| &row[at + 1..]);
    std::iter::once(row)
        .chain(ends)
        .any(|name| matches(glob, name))
}

/// Whether a text matches a pattern in which `*` stands for anything.
fn matches(glob: &str, text: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f64], wanted: &[f64]) -> bool {
        let mut pairs = found.iter().zip(wanted);
        found.len() == wanted.len() && pairs.all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn pattern_fits_a_row_with_and_without_its_entry() {
        let limits = Limits {
            only: vec!["wall".into()],
            skip: vec!["slow.*".into()],
            entry: "parse.".into(),
            ..Limits::default()
        };
        assert!(limits.gates("parse.wall") && !limits.gates("parse.cpu"));
        assert!(limits.gates("c.wall") && limits.gates("parse.c.wall"));
        let slow = Limits {
            entry: "slow.".into(),
            ..limits
        };
        assert!(!slow.gates("slow.wall"));
    }

    #[test]
    fn last_pattern_that_fits_a_row_decides() {
        let limits = Limits {
            margin: 0.02,
            max: vec![("*".into(), 0.05), ("b.wall".into(), 0.1)],
            floor: vec![("*.memory".into(), 1.0)],
            only: vec!["*.wall".into()],
            skip: vec!["c.*".into()],
            ..Limits::default()
        };
        let margins = ["b.wall", "b.cpu"].map(|row| limits.margin_of(row));
        assert!(near(&margins, &[0.1, 0.05]));
        let floors = [("b.memory", Unit::Bytes), ("b.wall", Unit::Nanoseconds)];
        let floors = floors.map(|(row, unit)| limits.floor_of(row, unit));
        assert!(near(&floors, &[1.0, FLOOR_NS]));
        assert!(limits.gates("b.wall") && !limits.gates("c.wall") && !limits.gates("b.cpu"));
        assert!(matches("a*c*", "abcd") && !matches("a*e", "abcd") && matches("*ü*", "grün"));
    }
}
