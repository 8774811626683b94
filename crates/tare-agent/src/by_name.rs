//! Builds a map by inserting pairs one by one.
//!
//! `collect` would be shorter, but compiles a separate sort for each pair type: five kilobytes each in a program that
//! is copied into every arm.

use std::collections::BTreeMap;

/// Collects the pairs by name; for duplicate names the last pair wins.
pub(crate) fn by_name<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        map.insert(name, value);
    }
    map
}
