//! Tests of complete, damaged and impossible reports, and of valid and invalid parameters.

use tare_model::{Series, Unit, metrics};

use super::*;
use crate::workload::declared::params;

const METRICS: &[MetricSpec] = metrics! {
    "area.first.time", Nanosecond, Lower, Kernel, floor: "The first.";
    "area.second.rate", BytePerSecond, Higher, Kernel: "The second.";
};

static WORKLOAD: ProbeWorkload = ProbeWorkload(Declared {
    id: "thing",
    about: "a thing",
    params: params! {
        "mib" = Int(32), Between(1, 64): "MiB";
        "size" = Text("small"), OneOf(&["small", "large"]): "Size";
    },
    metrics: METRICS,
});

fn series(metric: &str, unit: Unit, values: &[f64]) -> Series {
    Series {
        metric: metric.to_owned(),
        unit,
        values: values.to_vec(),
        batch: 1,
        linearity: None,
        notes: Vec::new(),
    }
}

fn good() -> ProbeReport {
    ProbeReport {
        // Intentionally not in the order of the metrics.
        series: vec![
            series("area.second.rate", Unit::BytePerSecond, &[1e9]),
            series("area.first.time", Unit::Nanosecond, &[2.0, 2.5]),
        ],
        canary_ns: [1.0, 1.0],
        elapsed_ns: 1,
        ..ProbeReport::empty("thing", 1)
    }
}

fn raw(stdout: Vec<u8>) -> RawOutput {
    RawOutput::of_probe(stdout)
}

fn written(report: &ProbeReport) -> RawOutput {
    raw(serde_json::to_vec(report).unwrap())
}

#[test]
fn valid_report_yields_all_metrics_in_order() {
    let samples = WORKLOAD.decode(&written(&good())).unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0].metric.as_str(), "area.first.time");
    assert_eq!(samples[0].observations, [2.0, 2.5]);
    assert_eq!(samples[1].metric.as_str(), "area.second.rate");
    assert_eq!(decode(&written(&good()), METRICS).unwrap(), samples);
}

#[test]
fn report_with_any_defect_is_refused_entirely() {
    type Change = fn(&mut ProbeReport);
    let changes: [(&str, Change); 10] = [
        ("another probe", |report| report.probe = "other".to_owned()),
        ("a series less", |report| drop(report.series.pop())),
        ("a series twice", |report| {
            report.series.push(report.series[0].clone());
        }),
        ("an unknown series", |report| {
            report
                .series
                .push(series("area.third.time", Unit::Nanosecond, &[1.0]));
        }),
        ("no values", |report| report.series[0].values.clear()),
        ("a zero", |report| report.series[1].values[1] = 0.0),
        ("a negative value", |report| {
            report.series[1].values[0] = -1.0;
        }),
        ("measured and unavailable", |report| {
            report.unavailable.insert(
                "area.first.time".to_owned(),
                Reason::NeedsPrivilege("luck".to_owned()),
            );
        }),
        ("an unknown metric unavailable", |report| {
            report.unavailable.insert(
                "area.third.time".to_owned(),
                Reason::NeedsPrivilege("luck".to_owned()),
            );
        }),
        ("another unit", |report| report.series[0].unit = Unit::Byte),
    ];
    for (what, change) in changes {
        let mut report = good();
        change(&mut report);
        assert!(WORKLOAD.decode(&written(&report)).is_err(), "{what}");
    }
}

#[test]
fn unavailable_metric_is_omitted_others_are_read() {
    let mut report = good();
    report.series.remove(0);
    report.unavailable.insert(
        "area.second.rate".to_owned(),
        Reason::BlockedSyscall("io_uring_setup".to_owned()),
    );
    let samples = WORKLOAD.decode(&written(&report)).unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].metric.as_str(), "area.first.time");
}

#[test]
fn values_that_json_cannot_hold_are_refused() {
    // JSON has neither NaN nor infinity: serde writes `null`, others write words, and 1e999 overflows.
    let text = serde_json::to_string(&good()).unwrap();
    for word in ["null", "NaN", "nan", "inf", "-Infinity", "1e999", "\"2.0\""] {
        let text = text.replace("2.5", word);
        assert!(text.contains(word));
        assert!(
            matches!(
                WORKLOAD.decode(&raw(text.into_bytes())),
                Err(DecodeError::Garbled { .. } | DecodeError::NoValue { .. })
            ),
            "{word}"
        );
    }
}

#[test]
fn wrong_format_or_failed_worker_is_refused() {
    let mut other = written(&good());
    other.format = "fio/3".to_owned();
    assert!(WORKLOAD.decode(&other).is_err());
    for exit in [Exit::Code(1), Exit::Signal(9)] {
        let mut bad = written(&good());
        bad.exit = exit;
        assert!(WORKLOAD.decode(&bad).is_err(), "{exit:?}");
    }
}

#[test]
fn a_recipe_fills_in_the_defaults_and_names_the_probe() {
    let Recipe::Probe(call) = WORKLOAD
        .recipe(&Params::new().with("size", "large"), None)
        .unwrap()
    else {
        panic!("not a probe");
    };
    assert_eq!(call.name, "thing");
    assert_eq!(
        call.args,
        Params::new().with("mib", 32i64).with("size", "large")
    );
}

#[test]
fn invalid_probe_parameter_is_refused_with_a_hint() {
    for (params, param, hint) in tare_model::rows! {
        (Params::new().with("mbi", 3i64), "mbi", "it has `mib`, `size`"),
        (Params::new().with("mib", 65i64), "mib", "use a whole number from 1 to 64"),
        (Params::new().with("mib", "3"), "mib", "use a whole number from 1 to 64"),
        (Params::new().with("size", "huge"), "size", "use one of `small`, `large`"),
    } {
        let error = WORKLOAD.recipe(&params, None).unwrap_err();
        assert_eq!(error.param, param);
        assert_eq!(error.hint.as_deref(), Some(hint));
    }
    assert_eq!(
        WORKLOAD
            .recipe(&Params::new(), Some(Path::Loopback))
            .unwrap_err()
            .param,
        "path"
    );
}

#[test]
fn control_characters_in_parse_error_are_escaped() {
    let raw = RawOutput::of_probe(b"{\"unavailable\":{\"x\":{\"reason\":\"c\x7fde\"}}}".to_vec());
    let text = report(&raw).unwrap_err().to_string();
    assert!(text.contains("c\\u{7f}de"), "{text}");
    assert!(!text.contains('\u{7f}'), "{text:?}");
}
