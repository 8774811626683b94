//! A trial's counters as a row of fixed columns.
//!
//! Kept for every trial, 4 bytes each, so that a million trials fit into memory.
//! What it cannot see: counters that no cause reads; they are left where they are stored.

use std::sync::LazyLock;

use tare_model::counter;

/// The counters that causes read.
pub(super) const NAMES: [&str; 34] = [
    counter::WALL,
    counter::UNITS,
    counter::USER,
    counter::SYS,
    counter::CHILDREN_USER,
    counter::CHILDREN_SYS,
    counter::MINFLT,
    counter::MAJFLT,
    counter::NVCSW,
    counter::NIVCSW,
    counter::ON_CPU,
    counter::RUN_DELAY,
    counter::NR_PERIODS,
    counter::NR_THROTTLED,
    counter::THROTTLED,
    counter::STEAL,
    counter::RCHAR,
    counter::WCHAR,
    counter::SYSCR,
    counter::SYSCW,
    counter::READ_BYTES,
    counter::WRITE_BYTES,
    counter::MEMORY_LIMIT_HITS,
    counter::TCP_RETRANSMITS,
    counter::IP_FRAGMENT_FAILURES,
    counter::PRESSURE_CPU,
    counter::PRESSURE_MEMORY,
    counter::PRESSURE_IO,
    counter::CHARGED_CPU,
    counter::CHARGED_NR_THROTTLED,
    counter::CHARGED_THROTTLED,
    counter::CHARGED_MEMORY_LIMIT_HITS,
    counter::CHARGED_READ,
    counter::CHARGED_WRITE,
];

/// One trial's counters in the order of [`NAMES`]; not a number where one was not read. The 24 bits of a `f32`
/// are more than a median of single trials deserves.
pub(crate) type CounterRow = [f32; NAMES.len()];

/// The place of a counter in a row; `None` for those that no cause reads.
fn column(name: &str) -> Option<usize> {
    static SORTED: LazyLock<Vec<(&str, usize)>> = LazyLock::new(|| {
        let mut places: Vec<_> = NAMES.iter().copied().zip(0..).collect();
        places.sort_unstable();
        places
    });
    let place = SORTED.binary_search_by(|(own, _)| (*own).cmp(name)).ok()?;
    Some(SORTED[place].1)
}

/// A row of these numbers.
pub(crate) fn row<'a>(numbers: impl IntoIterator<Item = (&'a str, f64)>) -> CounterRow {
    let mut row = [f32::NAN; NAMES.len()];
    put(&mut row, numbers);
    row
}

/// Puts these numbers in, in place of those that were there.
pub(crate) fn put<'a>(row: &mut CounterRow, numbers: impl IntoIterator<Item = (&'a str, f64)>) {
    for (name, value) in numbers {
        if let Some(column) = column(name) {
            row[column] = value as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_what_was_read_and_nothing_else() {
        let mut row = row([("user_ns", 12.0), ("no_cause_reads_this", 7.0)]);
        assert_eq!(row.iter().filter(|value| value.is_finite()).count(), 1);
        put(&mut row, [("wall_ns", 30.0)]);
        let column = |name: &str| NAMES.iter().position(|known| *known == name).unwrap();
        assert_eq!(
            (row[column("user_ns")], row[column("wall_ns")]),
            (12.0, 30.0)
        );
        assert!(row[column("steal_ticks")].is_nan());
    }
}
