//! Tests of parameter sweeps.

use crate::config::{Adjustments, parse};

fn study(workload: &str) -> Result<tare_model::Study, String> {
    let text = format!(
        "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"page-load\"\n{workload}"
    );
    parse("mine.toml", &text, &Adjustments::default()).map_err(|error| error.to_string())
}

#[test]
fn sweep_expands_combinations_keeping_other_params() {
    let study =
        study("[workload.params]\nbytes = 512\n[workload.sweep]\nfiles = [10, 100, 1000]\n")
            .unwrap();
    let params: Vec<(Option<i64>, Option<i64>)> = study
        .workloads
        .iter()
        .map(|spec| (spec.params.int("files"), spec.params.int("bytes")))
        .collect();
    assert_eq!(
        params,
        [
            (Some(10), Some(512)),
            (Some(100), Some(512)),
            (Some(1000), Some(512))
        ]
    );
    let grid = "[workload.sweep]\nbytes = [0, 4096]\nfiles = [1, 2, 3]\n";
    assert_eq!(self::study(grid).unwrap().workloads.len(), 6);
}

#[test]
fn empty_or_excessive_sweep_error_has_location() {
    let many: Vec<String> = (1..=5000).map(|n| n.to_string()).collect();
    for (sweep, says) in [
        ("[workload.sweep]\nfiles = 3\n".to_owned(), "must be a list"),
        (
            "[workload.sweep]\nfiles = []\n".to_owned(),
            "must be a list",
        ),
        ("[workload.sweep]\nfiles = [1, 2, 1]\n".to_owned(), "twice"),
        (
            "[workload.sweep]\nfiels = [1, 2]\n".to_owned(),
            "did you mean",
        ),
        (
            "[workload.sweep]\nfiles = [1, 0]\n".to_owned(),
            "`files` cannot be `0`",
        ),
        (
            "[workload.params]\nfiles = 1\n[workload.sweep]\nfiles = [1, 2]\n".to_owned(),
            "leave out one",
        ),
        (
            format!("[workload.sweep]\nfiles = [{}]\n", many.join(", ")),
            "5000 points",
        ),
    ] {
        let error = study(&sweep).unwrap_err();
        assert!(error.contains(says), "{sweep}: {error}");
        assert!(error.contains("mine.toml:"), "{error}");
    }
}
