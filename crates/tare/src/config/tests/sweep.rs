//! Tests of parameter sweeps.

use super::read;

fn study(workload: &str) -> Result<tare_model::Study, String> {
    let text = format!(
        "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"page-load\"\n{workload}"
    );
    read(&text).map_err(|error| error.to_string())
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

#[test]
fn condition_keeps_combinations_for_which_it_holds() {
    let grid = |condition: &str| {
        let sweep = "[workload.params]\ntests = \"random\"\n[workload.sweep]\nsize = [\"64k\", \"1m\"]\nrecord = [\"4k\", \"64k\", \"128k\"]\n";
        let text = format!(
            "id = \"mine\"\n[[arm]]\nid = \"host\"\n[[workload]]\nid = \"iozone\"\nwhere = \"{condition}\"\n{sweep}"
        );
        read(&text).map_err(|error| error.to_string())
    };
    for (condition, left) in [
        ("record <= size", 5),
        ("size > record", 4),
        ("record == size", 1),
        ("record < 65536", 2),
    ] {
        assert_eq!(
            grid(condition).unwrap().workloads.len(),
            left,
            "{condition}"
        );
    }
    for (condition, says) in [
        ("record", "compares nothing"),
        ("recrod <= size", "`recrod` has no number or size here"),
        ("tests <= size", "`tests` has no number or size here"),
        ("record > 1g", "holds for no combination"),
    ] {
        let error = grid(condition).unwrap_err();
        assert!(
            error.contains(says) && error.contains("mine.toml:"),
            "{error}"
        );
    }
}
