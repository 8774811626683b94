//! Tests that the dossier and its schema agree.

use serde_json::{Value, json};
use tare::analyze::analyze;
use tare::report::json::to_string;
use tare_model::dossier::Dossier;
use tare_model::{Failure, Outcome, Trial};

use super::concurrency::with_series;
use super::generator::{Effect, Plan, decide, find, is_of_arm};
use tare_testkit::schema::Checker;

/// Fails unless the dossier, as printed, matches the schema.
pub(crate) fn assert_fits(dossier: &Dossier) {
    let json: Value = serde_json::from_str(&to_string(dossier)).unwrap();
    if let Err(error) = Checker::of_dossier().check(&json) {
        panic!("{error}");
    }
}

fn full() -> Dossier {
    let plan = Plan::default().workloads(["integer", "syscall", "files", "stream"]);
    let mut run = plan
        .with("box", "syscall.getppid.time", Effect::Times(1.5))
        .run();
    let is_last = |trial: &Trial| is_of_arm("box")(trial) && trial.workload_index == 3;
    let killed = Outcome::Failed(Failure::Killed { signal: 11 });
    decide(&mut run, is_last, &killed);
    analyze(&run, &find)
}

/// Whether two values are equal except for the last digit of numbers, which reading JSON may lose.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs(),
            _ => false,
        },
        _ => a == b,
    }
}

#[test]
fn dossiers_match_schema() {
    let checker = Checker::of_dossier();
    let one_block = Plan::default().blocks(1);
    let mut absent = Plan::default().run();
    for arm in &mut absent.head.arms {
        arm.available = false;
    }
    absent.trials.clear();
    for dossier in [
        full(),
        Plan::default().dossier(),
        one_block.dossier(),
        with_series(),
        analyze(&absent, &find),
    ] {
        let text = to_string(&dossier);
        let value: Value = serde_json::from_str(&text).unwrap();
        if let Err(problem) = checker.check(&value) {
            panic!("{problem}\n{text}");
        }
        let back: Dossier = serde_json::from_str(&text).unwrap();
        let again = serde_json::to_value(&back).unwrap();
        assert!(same(&again, &value), "{again}\n{value}");
    }
}

#[test]
fn schema_violations_are_refused() {
    let checker = Checker::of_dossier();
    let good = serde_json::to_value(full()).unwrap();
    assert_eq!(checker.check(&good), Ok(()));
    let changes: &[(&str, Value)] = &[
        ("/dossier", json!(2)),
        ("/started", json!("yesterday")),
        ("/stopped_by", json!("boredom")),
        ("/study/plan_sha256", Value::Null),
        ("/cells/0/verdict", json!("faster")),
        ("/cells/0/better", json!("sideways")),
        ("/cells/0/p", json!(1.5)),
        ("/cells/0/ratio/low", json!("1.0")),
        ("/cells/0/n_blocks", json!(-1)),
        ("/arms/0/available", json!("yes")),
        ("/failures/0/kind", json!("ignored")),
        ("/checklist/0/result", json!("maybe")),
        ("/cost/trials", json!(1.5)),
    ];
    for (place, wrong) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place)
            .unwrap_or_else(|| panic!("no {place}")) = wrong.clone();
        assert!(checker.check(&bad).is_err(), "{place} = {wrong} passed");
    }
    for (place, name) in [("", "cells"), ("/cells/0", "verdict"), ("/arms/0", "facts")] {
        let mut bad = good.clone();
        let object = bad.pointer_mut(place).unwrap().as_object_mut().unwrap();
        assert!(object.remove(name).is_some(), "{place}/{name}");
        assert!(
            checker.check(&bad).is_err(),
            "{place}/{name} may be missing"
        );
    }
}

#[test]
fn fields_of_a_later_tare_are_accepted() {
    let mut later = serde_json::to_value(full()).unwrap();
    later["cells"][0]["colour"] = json!("red");
    assert_eq!(Checker::of_dossier().check(&later), Ok(()));
}
