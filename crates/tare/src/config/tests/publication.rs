//! Tests of studies that inherit the publication of a built-in one.

use super::{WITH_PUBLICATION, read};
use crate::config::read_recorded;

/// A study with one of the programs of `cluster`, in one of its arms.
const ONE: &str = r#"
id = "s"
arm = [{ id = "host" }, { id = "docker", driver = "docker" }]
workload = [{ id = "iozone", params = { size = "128k", record = "4k" } }]
[publication_of]
study = "cluster"
quantity = [{ name = "iozone-read-128k-4k", label = "read", metric = "disk.iozone-read.throughput" }]
[[publication_of.table]]
title = "Network test"
rows = ["iozone-read-128k-4k"]
columns = [{ label = "containers", arm = "docker" }]
"#;

#[test]
fn study_may_measure_part_of_publication_and_more() {
    let publication = read(ONE)
        .unwrap_or_else(|error| panic!("{error}"))
        .publication
        .unwrap();
    // A table with the same title is replaced; the others stay.
    let titles: Vec<&str> = publication
        .tables
        .iter()
        .map(|it| it.title.as_str())
        .collect();
    assert_eq!(titles.iter().filter(|it| **it == "Network test").count(), 1);
    assert!(titles.contains(&"HPCC"), "{titles:?}");
    let shown: Vec<&str> = publication
        .numbers
        .iter()
        .filter(|it| it.quantity.as_deref() == Some("iozone-read-128k-4k"))
        .filter(|it| publication.has_place_for(it))
        .map(|it| it.printed.as_str())
        .collect();
    assert_eq!(shown, ["8548124"]);
}

#[test]
fn invalid_publication_override_is_refused() {
    for (from, to, said) in tare_model::rows! {
        ("name = \"iozone-read-128k-4k\"", "name = \"iozone-raed-128k-4k\"", "has no quantity"),
        ("disk.iozone-read.throughput", "disk.iozone-raed.throughput", "has the metric"),
        ("arm = \"docker\" }]", "arm = \"dokcer\" }]", "speaks of an arm"),
        ("rows = [\"iozone", "rows = [\"ioz", "has no quantity"),
        ("label = \"read\"", "label = \"read\", factor = 0.0", "a factor"),
        ("label = \"read\"", "label = \"read\", inverse = true", "is inverse"),
        ("label = \"read\"", "label = \"read\", sweep = { record = [\"4k\", \"8k\"] }", "two quantities"),
    } {
        let text = ONE.replacen(from, to, 1);
        assert_ne!(text, ONE, "{from}");
        let error = read(&text).unwrap_err();
        assert!(error.to_string().contains(said), "{said}: {error}");
    }
}

#[test]
fn claim_share_must_be_above_half_and_below_one() {
    for (share, is_right) in [("0.9", true), ("0.4", false), ("1.0", false)] {
        let text = WITH_PUBLICATION.replace(
            "kind = \"cost\", quantity = \"compute\"",
            &format!("kind = \"most\", share = {share}, quantities = [\"compute\"]"),
        );
        let parsed = read(&text);
        assert_eq!(parsed.is_ok(), is_right, "{share}");
    }
}

#[test]
fn recorded_arm_needs_values_and_known_workload() {
    let study = |recorded: &str| {
        let text = format!("{ONE}[[publication_of.recorded]]\narm = \"laptop\"\n{recorded}");
        read(&text)
    };
    for (recorded, said) in [
        ("workload = \"sysbench-cpu\"", "needs either `file`"),
        (
            "workload = \"sysbench-cpu\"\nfile = \"f\"\nvalues = { \"sysbench.cpu.rate\" = [1.0] }",
            "needs either `file`",
        ),
        (
            "workload = \"sysbench-cpu\"\nvalues = { \"sysbench.cpu.rat\" = [1.0] }",
            "did you mean `sysbench.cpu.rate`",
        ),
        (
            "workload = \"sysbench-cp\"\nfile = \"f\"",
            "did you mean `sysbench-cpu`",
        ),
    ] {
        let error = study(recorded).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let log = include_str!("../../../tests/golden/tools/sysbench-cpu/unnamed-container/stdout");
    let recorded = |workload: &str| {
        let mut study = study(&format!("workload = \"{workload}\"\nfile = \"log\"")).unwrap();
        read_recorded(&mut study, |file| {
            assert_eq!(file, "log");
            Ok(log.to_owned())
        })
        .map(|()| study.publication.unwrap().recorded.remove(0).values)
    };
    assert_eq!(
        recorded("sysbench-cpu").unwrap()["sysbench.cpu.rate"],
        [3089.76]
    );
    let error = recorded("fio").unwrap_err();
    assert!(error.starts_with("log, recorded of `laptop`: "), "{error}");
}
