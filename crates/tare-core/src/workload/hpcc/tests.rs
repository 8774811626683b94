//! Tests of HPCC's recipe and decoder, with a real output and every kind of failure.

use tare_model::Value;
use tare_model::outcome::Bytes;

use super::*;

const GOLDEN_OUTPUT: &str =
    include_str!("../../../../tare/tests/golden/hpcc/1.5.0f/three-nodes/hpccoutf.txt");
const GOLDEN_INPUT: &str =
    include_str!("../../../../tare/tests/golden/hpcc/1.5.0f/three-nodes/hpccinf.txt");

/// The raw output of a trial that ended with `code` and left these files.
fn raw(code: i32, files: &[(&str, &str)]) -> RawOutput {
    command_output::tests::raw_with(code, |report| {
        report.stderr = Bytes(b"from mpirun".to_vec());
        for (name, text) in files {
            let bytes = Bytes(text.as_bytes().to_vec());
            report.files.insert((*name).to_owned(), bytes);
        }
    })
}

fn left(output: &str) -> RawOutput {
    raw(0, &[(OUTPUT, output), (INPUT, GOLDEN_INPUT)])
}

fn with(old: &str, new: &str) -> RawOutput {
    assert!(GOLDEN_OUTPUT.contains(old), "{old}");
    left(&GOLDEN_OUTPUT.replacen(old, new, 1))
}

/// The summary's line with this key.
fn line(key: &str) -> String {
    let mut lines = GOLDEN_OUTPUT.lines();
    let found = lines.find(|line| line.starts_with(&format!("{key}=")));
    found.unwrap().to_owned()
}

#[test]
fn a_real_output_gives_every_metric_in_our_units() {
    let samples = Hpcc.decode(&left(GOLDEN_OUTPUT)).unwrap();
    let ids: Vec<&str> = samples
        .iter()
        .map(|sample| sample.metric.as_str())
        .collect();
    let expected: Vec<&str> = Hpcc.metrics().iter().map(|metric| metric.id).collect();
    assert_eq!(ids, expected);
    for (sample, (key, factor)) in samples.iter().zip(ENTRIES) {
        let text = line(key);
        let (_, value) = text.split_once('=').unwrap();
        let value: f64 = value.parse().unwrap();
        assert!((sample.observations[0] / factor / value - 1.0).abs() < 1e-12);
    }
    // Three processes on two processors: between a megaflop and a teraflop.
    assert!((1e6..1e12).contains(&samples[0].observations[0]));
    // A latency of loopback in nanoseconds.
    assert!((1e3..1e9).contains(&samples[8].observations[0]));
}

#[test]
fn solved_problem_mismatch_is_an_error() {
    let problem = solved(&left(GOLDEN_OUTPUT)).unwrap();
    assert_eq!(Problem::of_input(GOLDEN_INPUT), Some(problem));
    assert_eq!(problem.processes(), 3);
    for (key, other) in [
        ("HPL_N", "64"),
        ("HPL_NB", "1"),
        ("HPL_npcol", "2"),
        ("CommWorldProcs", "2"),
    ] {
        let error = Hpcc
            .decode(&with(&line(key), &format!("{key}={other}")))
            .unwrap_err();
        assert!(
            matches!(&error, DecodeError::Unsuccessful { problem } if problem.contains("were to solve")),
            "{key}: {error}"
        );
    }
}

#[test]
fn anything_but_success_is_an_error() {
    let unsuccessful = |raw: &RawOutput| {
        let error = Hpcc.decode(raw).unwrap_err();
        let DecodeError::Unsuccessful { problem } = error else {
            panic!("{error}");
        };
        problem
    };
    assert!(unsuccessful(&with("Success=1", "Success=0")).contains("Success=0"));
    assert!(unsuccessful(&raw(0, &[(INPUT, GOLDEN_INPUT)])).contains(OUTPUT));
    assert!(unsuccessful(&left("")).contains("no summary"));
    let files = [(OUTPUT, GOLDEN_OUTPUT), (INPUT, GOLDEN_INPUT)];
    assert!(unsuccessful(&raw(1, &files)).contains("from mpirun"));
}

#[test]
fn damaged_summary_is_an_error_not_a_partial_trial() {
    let stream = line("StarSTREAM_Triad");
    for damaged in [
        with("Success=1\n", ""),
        with("End of Summary section.", ""),
        with(&stream, ""),
        with(&stream, "StarSTREAM_Triad="),
        with(&stream, "StarSTREAM_Triad=nan"),
        with(&stream, "StarSTREAM_Triad=0"),
        with(&stream, "StarSTREAM_Triad=-1"),
        with(&stream, "StarSTREAM_Triad=inf"),
        with(&stream, "HPL_N=1"),
        with(&stream, "\u{1b}[31m"),
        left(&GOLDEN_OUTPUT[..GOLDEN_OUTPUT.len() - 400]),
        raw(0, &[(OUTPUT, GOLDEN_OUTPUT), (INPUT, "x")]),
    ] {
        let error = Hpcc.decode(&damaged).unwrap_err();
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }
    // CRLF line ends are accepted.
    let other = GOLDEN_OUTPUT.replace('\n', "\r\n");
    assert!(Hpcc.decode(&left(&other)).is_ok());
}

#[test]
fn a_report_of_something_else_is_refused() {
    let other = RawOutput::of_probe(b"{}".to_vec());
    assert!(Hpcc.decode(&other).is_err());
}

#[test]
fn invalid_hpcc_parameters_are_refused_by_name() {
    let arm = Some(Path::ArmToArm);
    for (name, value) in [
        ("nodes", Value::Int(0)),
        ("cores", Value::Int(257)),
        ("scale", Value::Int(101)),
        ("memory", Value::Text("1g".into())),
        ("nb", Value::Int(64)),
    ] {
        let error = Hpcc
            .recipe(&Params::new().with(name, value), arm)
            .unwrap_err();
        assert_eq!(error.param, name);
    }
    let alone = Params::new().with("nodes", 1i64);
    assert_eq!(Hpcc.recipe(&alone, arm).unwrap_err().param, "nodes");
    let tiny = Params::new().with("memory", 1i64).with("scale", 1i64);
    assert_eq!(Hpcc.recipe(&tiny, arm).unwrap_err().param, "memory");
    assert_eq!(Hpcc.recipe(&Params::new(), None).unwrap_err().param, "path");
}

#[test]
fn recipe_has_node_count_and_derived_input() {
    let params = Params::new()
        .with("nodes", 2i64)
        .with("cores", 3i64)
        .with("memory", 64i64);
    let recipe = Hpcc.recipe(&params, Some(Path::ArmToArm)).unwrap();
    assert_eq!(recipe.nodes(Some(Path::ArmToArm)), 2);
    let Recipe::Cluster {
        slots,
        service,
        client,
        ..
    } = recipe
    else {
        panic!("of another kind");
    };
    assert_eq!(slots, 3);
    let client = CommandCall::from_args(&client.args).unwrap();
    let problem = Problem::of_input(&client.files[INPUT]).unwrap();
    assert_eq!((problem.p, problem.q), (2, 3));
    assert!(client.argv.windows(2).any(|pair| pair == ["-np", "6"]));
    let service = CommandCall::from_args(&service.args).unwrap();
    assert_eq!(service.listens, Some(Transport::Tcp));
    // The user's ssh files are not read.
    for text in [&service.files["node.sh"], &client.files["ssh_config"]] {
        assert!(!text.contains("HOME") && !text.contains(".ssh/"));
    }
}
