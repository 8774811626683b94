//! Quantities over several values of a parameter: one entry of a study file becomes one for each combination of them.

use super::{Publication, Quantity, Rule};
use crate::params::{Params, Value};

/// The quantities for which an entry stands: itself, or one for each combination of the values of its sweep, in their
/// order, the last parameter's values following each other.
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

/// The quantity with this value of the parameter.
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
    /// The same without sweeps: every entry with one is all that it stands for, also where its name stands in a list.
    #[must_use]
    pub fn unfolded(mut self) -> Self {
        let swept = self.quantities.clone();
        self.quantities = swept.iter().flat_map(unfolded).collect();
        self.unfold_names(&swept);
        self
    }

    /// Puts all that these entries stand for where their names stand in rows of tables and figures and in rules about
    /// several quantities.
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

/// What a name in a list stands for.
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
    fn a_sweep_is_a_quantity_for_each_combination_of_its_values() {
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
    fn its_name_in_a_list_stands_for_all_of_them() {
        let unfolded = publication().unfolded();
        assert_eq!(
            unfolded.tables[0].rows,
            ["1k-4", "2k-4", "1k-8", "2k-8", "one"]
        );
        let Rule::All(several) = &unfolded.claims[0].rule else {
            panic!("{:?}", unfolded.claims[0].rule);
        };
        assert_eq!(several.quantities.len(), 5);
        // Once more changes nothing.
        assert_eq!(unfolded.clone().unfolded(), unfolded);
    }
}
