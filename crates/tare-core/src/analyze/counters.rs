//! Keeps those counters of a trial that causes read.
//!
//! Kept for every trial, 8 bytes for each counter that was read, so that a million trials fit into memory. Other
//! counters stay in the store only.

use std::collections::HashMap;
use std::sync::LazyLock;

use tare_model::counter;

/// The counters that causes read.
pub(super) const NAMES: [&str; 34] = tare_model::rows! {
    counter::WALL, counter::UNITS, counter::USER, counter::SYS, counter::CHILDREN_USER, counter::CHILDREN_SYS,
    counter::MINFLT, counter::MAJFLT, counter::NVCSW, counter::NIVCSW, counter::ON_CPU, counter::RUN_DELAY,
    counter::NR_PERIODS, counter::NR_THROTTLED, counter::THROTTLED, counter::STEAL, counter::RCHAR,
    counter::WCHAR, counter::SYSCR, counter::SYSCW, counter::READ_BYTES, counter::WRITE_BYTES,
    counter::MEMORY_LIMIT_HITS, counter::TCP_RETRANSMITS, counter::IP_FRAGMENT_FAILURES,
    counter::PRESSURE_CPU, counter::PRESSURE_MEMORY, counter::PRESSURE_IO, counter::CHARGED_CPU,
    counter::CHARGED_NR_THROTTLED, counter::CHARGED_THROTTLED, counter::CHARGED_MEMORY_LIMIT_HITS,
    counter::CHARGED_READ, counter::CHARGED_WRITE,
};

/// One trial's counters that were read: the index in [`NAMES`] and the number. The 24 bits of an `f32` are more than
/// a median of single trials needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CounterRow(pub(super) Box<[(u8, f32)]>);

/// The index of a counter; `None` if no cause reads it. Called some twenty times a trial.
fn column(name: &str) -> Option<u8> {
    static COLUMNS: LazyLock<HashMap<&str, u8>> =
        LazyLock::new(|| NAMES.into_iter().zip(0..).collect());
    COLUMNS.get(name).copied()
}

impl CounterRow {
    /// Builds a row of these numbers; of two with the same name the later one counts.
    pub(crate) fn from_numbers<'a>(numbers: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let numbers = numbers.into_iter();
        let mut row = Vec::with_capacity(numbers.size_hint().0.min(NAMES.len()));
        for (name, value) in numbers {
            if let Some(column) = column(name) {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "24 bits are more than what a counter is compared by"
                )]
                put(&mut row, column, value as f32);
            }
        }
        Self(row.into_boxed_slice())
    }

    /// Inserts the numbers of another row, overwriting existing ones.
    pub(crate) fn put_row(&mut self, other: &Self) {
        if other.0.is_empty() {
            return;
        }
        let mut row = std::mem::take(&mut self.0).into_vec();
        row.reserve_exact(other.0.len());
        for (column, value) in &other.0 {
            put(&mut row, *column, *value);
        }
        self.0 = row.into_boxed_slice();
    }

    /// Each number that was read, with its index in [`NAMES`].
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, f32)> {
        self.0
            .iter()
            .map(|(column, value)| (usize::from(*column), *value))
    }
}

fn put(row: &mut Vec<(u8, f32)>, column: u8, value: f32) {
    match row.iter_mut().find(|(own, _)| *own == column) {
        Some((_, own)) => *own = value,
        None => row.push((column, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_row_holds_only_known_read_counters() {
        let mut row = CounterRow::from_numbers([("user_ns", 12.0), ("no_cause_reads_this", 7.0)]);
        assert_eq!(row.iter().count(), 1);
        row.put_row(&CounterRow::from_numbers([
            ("wall_ns", 30.0),
            ("user_ns", 13.0),
        ]));
        let value = |name: &str| {
            let mut all = row.iter();
            all.find_map(|(column, value)| (NAMES[column] == name).then_some(value))
        };
        assert_eq!(
            (value("user_ns"), value("wall_ns")),
            (Some(13.0), Some(30.0))
        );
        assert_eq!(value("steal_ticks"), None);
    }
}
