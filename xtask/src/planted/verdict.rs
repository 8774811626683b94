//! Judges the answer about a plant.

use super::Plant;

/// The result of one plant.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) is_right: bool,
    pub(super) told: String,
}

impl Verdict {
    pub(super) fn wrong(told: String) -> Self {
        Self {
            is_right: false,
            told,
        }
    }
}

/// Judges whether the answer is right.
pub(super) fn judged(plant: &Plant, dossier: &serde_json::Value) -> Verdict {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("–").to_owned();
    let outcome = text(&dossier["why"]["outcome"]);
    let first = &dossier["findings"][0];
    let (cause, status) = (text(&first["cause"]), text(&first["status"]));
    // Every environment takes time to create; that is not a false accusation.
    let confirmed = causes(dossier, "confirmed").any(|cause| !cause.starts_with("startup."));
    let answer = text(&dossier["why"]["answer"]);
    match &plant.cause {
        Some(wanted) => {
            let wrong = wrongly_confirmed(wanted, dossier);
            let accused = if wrong.is_empty() {
                String::new()
            } else {
                format!(", WRONGLY CONFIRMED: {}", wrong.join(", "))
            };
            Verdict {
                is_right: *wanted == cause && status == plant.status && wrong.is_empty(),
                told: format!(
                    "wanted {wanted}, first is {cause} ({status}), outcome {outcome}{accused}: {answer}"
                ),
            }
        }
        None => Verdict {
            is_right: !confirmed && outcome != "cost",
            told: format!("outcome {outcome}, first is {cause} ({status}): {answer}"),
        },
    }
}

/// Parses a budget such as `75s` or `2m` into seconds.
pub(super) fn seconds_of(budget: &str) -> Option<f64> {
    let (number, unit) = budget.split_at(budget.len().checked_sub(1)?);
    let number: f64 = number.parse().ok()?;
    match unit {
        "s" => Some(number),
        "m" => Some(60.0 * number),
        _ => None,
    }
}

/// Returns what is wrong in any answer, whatever was planted: an untested cause in its first two lines, or undecided
/// with a third of its time left. `used` is the fraction of the budget that it took.
pub(super) fn careless(dossier: &serde_json::Value, used: f64) -> Vec<String> {
    let why = &dossier["why"];
    let head = [&why["answer"], &why["lines"][0]["text"]];
    let head: Vec<&str> = head.iter().filter_map(|text| text.as_str()).collect();
    let is_named = |cause: &&str| {
        let id = cause.strip_prefix("own.").unwrap_or(cause);
        head.iter()
            .any(|text| text.contains(&format!("`{id}`")) || text.contains(cause))
    };
    let mut wrong: Vec<String> = causes(dossier, "untested")
        .filter(is_named)
        .map(|cause| format!("names `{cause}`, which was not tested"))
        .collect();
    let is_open = why["outcome"] == "undecided" || why["reason"] == "not-found";
    if is_open && used < 2.0 / 3.0 {
        wrong.push(format!("undecided after {:.0} % of its time", 100.0 * used));
    }
    wrong
}

/// Returns the confirmed differences of a user container other than the planted one.
fn wrongly_confirmed(wanted: &str, dossier: &serde_json::Value) -> Vec<String> {
    let is_wrong = |cause: &&str| cause.starts_with("own.") && *cause != wanted;
    let causes = causes(dossier, "confirmed").filter(is_wrong);
    causes.map(str::to_owned).collect()
}

/// Returns the causes of the findings with this status.
fn causes<'v>(dossier: &'v serde_json::Value, status: &str) -> impl Iterator<Item = &'v str> {
    let findings = dossier["findings"].as_array().into_iter().flatten();
    findings
        .filter(move |finding| finding["status"] == status)
        .filter_map(|finding| finding["cause"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_expected_cause_first_and_confirmed_is_right() {
        let plant = |cause: Option<&str>| -> Plant {
            let text = "what = 'x'\nenv = 'container'\nbudget = '1m'\ncommand = ['x']";
            Plant {
                cause: cause.map(str::to_owned),
                ..toml::from_str(text).unwrap()
            }
        };
        let dossier = |outcome: &str, cause: &str, status: &str| {
            json!({
                "why": {"outcome": outcome},
                "findings": [{"cause": cause, "status": status}]
            })
        };
        let planted = plant(Some("cpu.quota"));
        assert!(judged(&planted, &dossier("cost", "cpu.quota", "confirmed")).is_right);
        assert!(!judged(&planted, &dossier("cost", "cpu.quota", "supported")).is_right);
        assert!(!judged(&planted, &dossier("cost", "cpu.other", "confirmed")).is_right);
        assert!(!judged(&planted, &json!({"findings": []})).is_right);
        let both = json!({
            "why": {"outcome": "cost"},
            "findings": [{"cause": "own.cpus", "status": "confirmed"}, {"cause": "own.dns", "status": "confirmed"}]
        });
        let verdict = judged(&plant(Some("own.cpus")), &both);
        assert!(
            !verdict.is_right && verdict.told.contains("own.dns"),
            "{verdict:?}"
        );
        let clean = plant(None);
        assert!(judged(&clean, &json!({"why": {"outcome": "none"}, "findings": []})).is_right);
        assert!(!judged(&clean, &dossier("cost", "cpu.quota", "untested")).is_right);
        assert!(!judged(&clean, &dossier("none", "cpu.quota", "confirmed")).is_right);
    }
    #[test]
    fn untested_cause_in_head_or_unused_time_is_careless() {
        let dossier = |answer: &str, line: &str, reason: &str| {
            json!({
                "why": {"outcome": "cost", "reason": reason, "answer": answer, "lines": [{"text": line}]},
                "findings": [{"cause": "own.cpus", "status": "untested"}, {"cause": "network.dns", "status": "refuted"}]
            })
        };
        let wrong = |dossier: &Value, used: f64| careless(dossier, used).join(", ");
        let found = dossier("2× slower.", "`dns`: confirmed", "confirmed");
        assert_eq!(wrong(&found, 0.1), "");
        assert!(
            wrong(&dossier("2× slower.", "`cpus` perhaps", "confirmed"), 0.1).contains("own.cpus")
        );
        let open = dossier("2× slower.", "not found yet", "not-found");
        assert_eq!(wrong(&open, 0.9), "");
        assert!(wrong(&open, 0.4).contains("40 %"));
        assert_eq!(
            (seconds_of("75s"), seconds_of("2m"), seconds_of("s")),
            (Some(75.0), Some(120.0), None)
        );
    }
}
