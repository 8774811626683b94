//! Reads the fixtures for the tests.

#![allow(dead_code, reason = "each test binary uses a part")]

use serde_json::Value;
use std::path::PathBuf;
use tare_stats::{Interval, hodges_lehmann_paired};

/// Reads a file of `fixtures/stats`.
pub(crate) fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/stats")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the golden values of the method.
pub(crate) fn golden() -> Value {
    serde_json::from_str(&fixture("golden.json")).expect("golden.json is JSON")
}

/// Returns the default interval of differences that are enough for one.
pub(crate) fn interval_at(d: &[f64], level: f64) -> Interval {
    let found = hodges_lehmann_paired(d, level);
    found.expect("enough finite differences").interval
}

/// Parses an array of numbers.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let array = value
        .as_array()
        .unwrap_or_else(|| panic!("not an array: {value}"));
    array
        .iter()
        .map(|item| item.as_f64().expect("a number"))
        .collect()
}

/// Fails unless `ours` is within `tolerance` of the expected value, relative above one.
pub(crate) fn assert_close(ours: f64, expected: &Value, tolerance: f64, what: &str) {
    let theirs = expected
        .as_f64()
        .unwrap_or_else(|| panic!("{what}: expected {expected}"));
    let off = (ours - theirs).abs() / theirs.abs().max(1.0);
    assert!(
        off <= tolerance,
        "{what}: {ours} is not {theirs} (off by {off:e})"
    );
}
