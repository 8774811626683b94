//! Tests that after a run of a study the suspected mechanism is really switched off, and that every report of the run
//! shows the result.

use crate::prelude::*;

/// A tenth of one processor: nothing else makes a loop take ten times as long. The loop is longer than the quota of
/// one period on any machine; a shorter one would not notice it.
const NARROW: &str = r#"
id = "narrow"
baseline = "host"

[design]
# Two more than it takes, so that one that the machine disturbed decides nothing.
blocks_min = 8
blocks_max = 8

[[arm]]
id = "host"
driver = "host"

[[arm]]
id = "narrow"
driver = "container"
required = true
[arm.settings]
cpus = 0.1

[[workload]]
id = "command"
params.argv = ["awk", "BEGIN { for (i = 0; i < 1500000; i++) x += i * i; print x }"]
"#;

const QUOTA: &str = "cpu.cfs-quota-throttle";

fn quota(dossier: &Value) -> &Value {
    let findings = dossier["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["cause"] == QUOTA)
        .unwrap_or_else(|| panic!("{findings:#?}"))
}

#[test]
fn suspect_after_run_is_tested_and_stored_with_run() {
    if !needs_container() {
        return;
    }
    let product = Product::new();
    let file = product.file("narrow.toml", NARROW);

    // Without time for it nothing is tried.
    let plain = product.tare(&format!("run {file} --prove 0s --json -"), &[]);
    let plain = plain.expect(0).json();
    assert_eq!(quota(&plain)["status"], "supported");
    assert_eq!(quota(&plain)["tried"], Value::Null);

    let ended = product.tare(&format!("run {file} --prove 3m --json -"), &[]);
    let ended = ended.expect(0);
    assert!(ended.stderr.contains("trying"), "{}", ended.stderr);
    let dossier = ended.json();
    assert_valid_dossier(&dossier);
    let finding = quota(&dossier);
    assert_eq!(finding["status"], "confirmed", "{finding:#}");
    assert!(finding["share"]["point"].as_f64().unwrap() > 0.5);
    assert!(finding["arm"].as_str().unwrap().starts_with("off-"));

    // It is stored: the run is shown with it, by name and as the latest, and the proof is a separate run.
    let run = dossier["run"].as_str().unwrap();
    for name in [run, "latest"] {
        let shown = product.run(["show", name, "--json"]).expect(0).json();
        assert_eq!(shown["run"], run);
        assert_eq!(shown["findings"], dossier["findings"]);
    }
    let text = product.run(["show", "latest"]).expect(0).stdout;
    assert_says(&text, "confirmed");
    let ids = product.stored("SELECT json_extract(study, '$.id') FROM run");
    assert_eq!(ids.iter().filter(|id| *id == "proof").count(), 1, "{ids:?}");
    product.assert_nothing_left();
}
