//! Expands quantities over several values of a parameter: one entry of a study file becomes one per combination.

use super::{Publication, Quantity, Rule};
use crate::params::{Params, Value};

/// Returns the quantities that an entry stands for: itself, or one per combination of the values of its sweep, in
/// order, the last parameter varying fastest.
pub fn unfolded(entry: &Quantity) -> Vec<Quantity> {
    let mut points = vec![Quantity {
        sweep: std::collections::BTreeMap::new(),
        ..entry.clone()
    }];
    for (name, values) in &entry.sweep {
        points = points
            .iter()
            .flat_map(|point| values.iter().map(|value| with(point, name, value)))
            .collect();
    }
    points
}

/// Returns the quantity with this value of the parameter.
fn with(point: &Quantity, name: &str, value: &Value) -> Quantity {
    let place = format!("{{{name}}}");
    let text = value.to_string();
    let Params(mut params) = point.params.clone();
    params.insert(name.to_owned(), value.clone());
    Quantity {
        name: point.name.replace(&place, &text),
        label: point.label.replace(&place, &text),
        params: Params(params),
        ..point.clone()
    }
}

impl Publication {
    /// Expands all sweeps: replaces every entry that has one with its quantities, also where its name is in a list.
    #[must_use]
    pub fn unfolded(mut self) -> Self {
        let swept = self.quantities.clone();
        self.quantities = swept.iter().flat_map(unfolded).collect();
        self.unfold_names(&swept);
        self
    }

    /// Replaces the names of these entries with the names of their quantities, in rows of tables and figures and in
    /// rules about several quantities.
    pub fn unfold_names(&mut self, entries: &[Quantity]) {
        let unfold = |names: &mut Vec<String>| {
            *names = names.iter().flat_map(|name| meant(name, entries)).collect();
        };
        self.tables.iter_mut().for_each(|it| unfold(&mut it.rows));
        self.figures.iter_mut().for_each(|it| unfold(&mut it.rows));
        for claim in &mut self.claims {
            if let Rule::Most(several) | Rule::All(several) = &mut claim.rule {
                unfold(&mut several.quantities);
            }
        }
    }
}

/// Returns the names that a name in a list stands for.
fn meant(name: &str, entries: &[Quantity]) -> Vec<String> {
    let mut swept = entries.iter().filter(|it| !it.sweep.is_empty());
    match swept.find(|entry| entry.name == name) {
        Some(entry) => unfolded(entry).into_iter().map(|it| it.name).collect(),
        None => vec![name.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication() -> Publication {
        serde_json::from_str(
            r#"{
"title": "t", "where": "w", "machine": "m",
"quantity": [
  { "name": "one", "label": "One", "metric": "m" },
  {
    "name": "{size}-{record}", "label": "of {size} by {record}", "metric": "m",
    "params": { "direct": 0 }, "sweep": { "record": [4, 8], "size": ["1k", "2k"] }
  }
],
"claim": [{
  "id": "c", "published": "p", "at": "a",
  "rule": { "kind": "all", "quantities": ["one", "{size}-{record}"], "arm": "host", "at_most": 1.0 }
}],
"table": [{ "title": "T", "rows": ["{size}-{record}", "one"], "columns": [] }]
}"#,
        )
        .unwrap()
    }

    #[test]
    fn sweep_expands_to_each_value_combination() {
        let unfolded = publication().unfolded();
        let names: Vec<&str> = unfolded
            .quantities
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, ["one", "1k-4", "2k-4", "1k-8", "2k-8"]);
        let last = &unfolded.quantities[4];
        assert_eq!(last.label, "of 2k by 8");
        let params = Params::new()
            .with("direct", 0i64)
            .with("record", 8i64)
            .with("size", "2k");
        assert_eq!(last.params, params);
        assert!(unfolded.quantities.iter().all(|it| it.sweep.is_empty()));
    }

    #[test]
    fn sweep_name_in_list_expands_to_all_members() {
        let unfolded = publication().unfolded();
        assert_eq!(
            unfolded.tables[0].rows,
            ["1k-4", "2k-4", "1k-8", "2k-8", "one"]
        );
        let Rule::All(several) = &unfolded.claims[0].rule else {
            panic!("{:?}", unfolded.claims[0].rule);
        };
        assert_eq!(several.quantities.len(), 5);
        // A second expansion changes nothing.
        assert_eq!(unfolded.clone().unfolded(), unfolded);
    }
}
