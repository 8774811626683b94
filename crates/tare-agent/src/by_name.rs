//! Pairs put into a map one by one.
//!
//! To collect them would be shorter, and would compile a sort of its own for each kind of pair: five kilobytes each in
//! a program that is copied into every arm.

use std::collections::BTreeMap;

/// The pairs by name; of two with the same name the later one counts.
pub(crate) fn by_name<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    for (name, value) in pairs {
        map.insert(name, value);
    }
    map
}
