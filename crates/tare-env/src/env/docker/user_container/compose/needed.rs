//! Lists the dependencies of a compose service in start order.
//!
//! Pure: the input is the plugin's output.
//! Limits: dependencies that a service does not declare are not found.

use serde_json::Value;

use crate::env::text::members_of;

/// A dependency and its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) name: String,
    /// Whether it must have ended rather than be running.
    pub(crate) ends: bool,
    /// Whether it is optional for all services that depend on it.
    pub(crate) may_be_missing: bool,
}

/// The dependencies of a service, each after its own dependencies.
pub(crate) fn needed(config: &Value, name: &str) -> Vec<Needed> {
    let mut all = Vec::new();
    let services = &config["services"];
    collect(services, name, &mut all, &mut vec![name.to_owned()]);
    all
}

fn collect(services: &Value, name: &str, all: &mut Vec<Needed>, above: &mut Vec<String>) {
    for (other, how) in members_of(&services[name]["depends_on"]) {
        let ends = how["condition"] == "service_completed_successfully";
        let may_be_missing = how["required"] == false;
        if let Some(known) = all.iter_mut().find(|needed| needed.name == *other) {
            known.ends |= ends;
            known.may_be_missing &= may_be_missing;
        } else if !services[other].is_null() && !above.contains(other) {
            above.push(other.clone());
            collect(services, other, all, above);
            above.pop();
            all.push(Needed {
                name: other.clone(),
                ends,
                may_be_missing,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(config: &Value, name: &str) -> Vec<String> {
        let all = needed(config, name).into_iter();
        all.map(|needed| needed.name).collect()
    }

    #[test]
    fn dependencies_precede_service_and_cycles_end() {
        let config: Value = serde_json::from_str(include_str!("captured.json")).unwrap();
        // The job depends on the web, and the web on the database.
        assert_eq!(names(&config, "job"), ["db", "web"]);
        assert!(names(&config, "db").is_empty() && names(&config, "none").is_empty());
        let ring = json!({"services": {
            "a": {"depends_on": {"b": {}}}, "b": {"depends_on": {"a": {}, "gone": {}}}
        }});
        assert_eq!(names(&ring, "a"), ["b"]);
    }

    #[test]
    fn service_needed_twice_merges_conditions() {
        let config = json!({"services": {
            "job": {"depends_on": {
                "mid": {},
                "seed": {"condition": "service_completed_successfully", "required": true}
            }},
            "mid": {"depends_on": {"seed": {"condition": "service_started", "required": false}}},
            "seed": {}
        }});
        let all = needed(&config, "job");
        let seed = all.iter().find(|needed| needed.name == "seed").unwrap();
        assert!(seed.ends && !seed.may_be_missing, "{seed:?}");
    }
}
