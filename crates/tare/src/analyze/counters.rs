//! A trial's counters, those that causes read.
//!
//! Kept for every trial, 8 bytes for each that was read, so that a million trials fit into memory.
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

/// One trial's counters: the place in [`NAMES`] and the number, of those that were read. The 24 bits of a `f32`
/// are more than a median of single trials deserves.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CounterRow(pub(super) Box<[(u8, f32)]>);

/// The place of a counter; `None` for those that no cause reads.
fn column(name: &str) -> Option<u8> {
    static SORTED: LazyLock<Vec<(&str, u8)>> = LazyLock::new(|| {
        let mut places: Vec<_> = NAMES.iter().copied().zip(0..).collect();
        places.sort_unstable();
        places
    });
    let place = SORTED.binary_search_by(|(own, _)| (*own).cmp(name)).ok()?;
    Some(SORTED[place].1)
}

impl CounterRow {
    /// A row of these numbers; of two with the same name the later one counts.
    pub(crate) fn of<'a>(numbers: impl IntoIterator<Item = (&'a str, f64)>) -> Self {
        let mut row = Vec::new();
        for (name, value) in numbers {
            if let Some(column) = column(name) {
                put(&mut row, column, value as f32);
            }
        }
        Self(row.into_boxed_slice())
    }

    /// Puts the numbers of another row in, in place of those that were there.
    pub(crate) fn put_row(&mut self, other: &Self) {
        if other.0.is_empty() {
            return;
        }
        let mut row = std::mem::take(&mut self.0).into_vec();
        for (column, value) in &other.0 {
            put(&mut row, *column, *value);
        }
        self.0 = row.into_boxed_slice();
    }

    /// Whether every number belongs to a counter.
    pub(super) fn is_sound(&self) -> bool {
        self.0
            .iter()
            .all(|(column, _)| usize::from(*column) < NAMES.len())
    }

    /// Each number that was read, with its place in [`NAMES`].
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
    fn a_row_holds_what_was_read_and_nothing_else() {
        let mut row = CounterRow::of([("user_ns", 12.0), ("no_cause_reads_this", 7.0)]);
        assert_eq!(row.iter().count(), 1);
        row.put_row(&CounterRow::of([("wall_ns", 30.0), ("user_ns", 13.0)]));
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
