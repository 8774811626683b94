//! What the catalogue of causes is given: each arm with its facts and the medians of its counters.
//!
//! Counters are kept for every trial as a row of fixed columns, 4 bytes each, so that a million trials fit into
//! memory. Medians over the trials of a workload; where they are sized by time, `units` tells how many operations
//! one holds, so that arms are compared per operation.
//! What it cannot see: counters that the agent does not take, and trials that left no probe's report.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tare_stats::median;

use super::collect::Collector;
use super::input::ArmData;
use crate::cause::ArmEvidence;

/// The counters that causes read.
const NAMES: [&str; 34] = [
    "wall_ns",
    "units",
    "user_ns",
    "sys_ns",
    "children_user_ns",
    "children_sys_ns",
    "minflt",
    "majflt",
    "nvcsw",
    "nivcsw",
    "on_cpu_ns",
    "run_delay_ns",
    "nr_periods",
    "nr_throttled",
    "throttled_ns",
    "steal_ticks",
    "rchar",
    "wchar",
    "syscr",
    "syscw",
    "read_bytes",
    "write_bytes",
    "memory_limit_hits",
    "tcp_retransmits",
    "ip_fragment_failures",
    "pressure_cpu_ns",
    "pressure_memory_ns",
    "pressure_io_ns",
    "charged_cpu_ns",
    "charged_nr_throttled",
    "charged_throttled_ns",
    "charged_memory_limit_hits",
    "charged_read_bytes",
    "charged_write_bytes",
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

/// An arm as the causes see it.
pub(crate) fn of(arm: &ArmData, collected: &Collector<'_>) -> ArmEvidence {
    ArmEvidence {
        arm: arm.spec.id.to_string(),
        driver: arm.spec.driver.clone(),
        settings: arm.spec.settings.clone(),
        facts: arm.facts.clone(),
        counters: collected
            .arm_index(arm.spec.id.as_str())
            .map(|index| medians(collected, index))
            .unwrap_or_default(),
    }
}

fn medians(collected: &Collector<'_>, arm: usize) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut rows: BTreeMap<&str, Vec<&CounterRow>> = BTreeMap::new();
    for group in collected.groups.values() {
        let of_arm = group.arms[arm].values();
        let known = of_arm.filter_map(|kept| Some(&*kept.probe.as_ref()?.counters));
        rows.entry(&group.name).or_default().extend(known);
    }
    rows.into_iter()
        .map(|(workload, rows)| {
            let counters = NAMES.iter().enumerate().filter_map(|(column, name)| {
                let values: Vec<f64> = rows
                    .iter()
                    .map(|row| f64::from(row[column]))
                    .filter(|value| value.is_finite())
                    .collect();
                Some(((*name).to_owned(), median(&values)?))
            });
            (workload.to_owned(), counters.collect())
        })
        .collect()
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
