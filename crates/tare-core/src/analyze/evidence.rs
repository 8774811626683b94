//! Builds the evidence for the catalogue of causes: each arm with its facts and the medians of its counters.
//!
//! Medians over the trials of a workload. Where trials are sized by time, `units` is the number of operations in one,
//! so that arms are compared per operation.
//! Limits: sees only counters that the agent takes, and only trials that left a probe's report.

use std::collections::BTreeMap;

use tare_stats::median;

use super::collect::Collector;
use super::counters::{CounterRow, NAMES};
use super::input::ArmData;
use crate::cause::ArmEvidence;

/// Builds the evidence of an arm.
pub(crate) fn evidence_of(arm: &ArmData, collected: &Collector<'_>) -> ArmEvidence {
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
        let known = of_arm.filter_map(|kept| Some(&kept.probe.as_ref()?.counters));
        rows.entry(&group.name).or_default().extend(known);
    }
    rows.into_iter()
        .map(|(workload, rows)| {
            let mut values = vec![Vec::new(); NAMES.len()];
            for (column, value) in rows.into_iter().flat_map(CounterRow::iter) {
                if value.is_finite() {
                    values[column].push(f64::from(value));
                }
            }
            let counters = NAMES.iter().zip(&values);
            let counters =
                counters.filter_map(|(name, values)| Some(((*name).to_owned(), median(values)?)));
            (workload.to_owned(), counters.collect())
        })
        .collect()
}
