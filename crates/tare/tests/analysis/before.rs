//! Tests that stores of earlier versions are read as before: a comparison and a `tare why` with its studies, against
//! the dossiers rendered at the time.
//!
//! If the analysis itself changes, `TARE_BLESS=1 cargo test` rewrites the dossiers; the difference is then reviewed
//! like any other change.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tare_model::dossier::Dossier;

const RUNS: [&str; 2] = ["20261122-210539-1f5a", "20261122-210603-620a"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/before")
}

fn dossier(run: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{run}.json"))).unwrap()
}

/// Asserts equality; floating-point numbers may differ in the last bits, because logarithms differ between
/// processors' instruction sets.
fn assert_same(before: &Value, now: &Value, place: &str) {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            // A later version may say more.
            for (name, value) in before {
                let now = now.get(name).unwrap_or(&Value::Null);
                assert_same(value, now, &format!("{place}/{name}"));
            }
        }
        (Value::Array(before), Value::Array(now)) => {
            assert_eq!(before.len(), now.len(), "{place}");
            for (index, value) in before.iter().enumerate() {
                assert_same(value, &now[index], &format!("{place}/{index}"));
            }
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-12 * a.abs(), "{place}: {a} and {b}");
        }
        _ => assert_eq!(before, now, "{place}"),
    }
}

#[test]
fn a_store_from_before_gives_the_dossiers_of_its_day() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store.db");
    std::fs::copy(folder().join("store.db"), &store).unwrap();
    for run in RUNS {
        let shown = Command::new(env!("CARGO_BIN_EXE_tare"))
            .args(["show", run, "--json", "--store"])
            .arg(&store)
            .env("TARE_HOME", home.path())
            .output()
            .unwrap();
        assert!(shown.status.success(), "{shown:?}");
        if std::env::var_os("TARE_BLESS").is_some() {
            std::fs::write(folder().join(format!("{run}.json")), &shown.stdout).unwrap();
        }
        let now = serde_json::from_slice(&shown.stdout).unwrap();
        assert_same(&serde_json::from_str(&dossier(run)).unwrap(), &now, run);
    }
}

#[test]
fn a_dossier_from_before_is_read_and_written_again() {
    for run in RUNS {
        let text = dossier(run);
        let read: Dossier = serde_json::from_str(&text).unwrap();
        let again = tare::report::json::to_string(&read);
        let [text, again] = [text, again].map(|text| serde_json::from_str(&text).unwrap());
        assert_same(&text, &again, run);
    }
}
