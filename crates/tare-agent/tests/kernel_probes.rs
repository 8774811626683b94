//! Runs the probes of processor, memory and kernel for a few milliseconds each, with small arguments.
//!
//! Checks that they work and repeat their checksum, not their speed, which no test may assert. `spawn` starts this
//! very program with the argument `true`, which here means: the tests whose name contains that word. No test of this
//! file may contain it.

use std::path::Path;

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe;
use tare_model::{Params, Reason, Series};

use tare_testkit::skip::skip;

/// The probes that report a checksum.
const WITH_CHECKSUM: &str = "chase des float integer matrix random-access regex triad";

/// Returns the probes, with arguments that make their set-up short.
fn probes() -> Vec<(&'static str, Params)> {
    let plain = "allocate chase clock date des directory files float getppid integer mounts mutex pipe random regex \
                 socket spawn stat tasks tcp-connect threads timer touch udp-round-trip";
    let few_lines = Params::new().with("lines", 1_000i64);
    let small = Params::new().with("mib", 1i64);
    let short = Params::new().with("kib", 100i64);
    let with_arguments = [
        ("lines", few_lines.clone()),
        ("lines", few_lines.with("files", 3i64)),
        ("matrix", Params::new().with("size", "small")),
        ("matrix", Params::new().with("size", "source-small")),
        ("page-load", Params::new().with("files", 60i64)),
        ("pipe", Params::new().with("placement", "free")),
        ("random-access", small.clone()),
        ("random-access", small.clone().with("pages", "huge")),
        ("read-files", short.clone()),
        ("read-files", short.with("files", 3i64).with("how", "lines")),
        ("triad", small),
    ];
    let plain = plain.split(' ').map(|name| (name, Params::new()));
    plain.chain(with_arguments).collect()
}

fn measured(name: &str, params: &Params) -> Result<(Vec<Series>, Option<u64>), ProbeError> {
    let mut meter = Meter::new(5_000_000, &std::env::temp_dir());
    let probe = probe::find(name).expect("it is registered");
    (probe.run)(&mut meter, params)?;
    let (series, checksum, _) = meter.finish();
    Ok((series, checksum))
}

#[test]
fn probes_give_positive_values_and_stable_checksum() {
    for (name, params) in probes() {
        let has_checksum = WITH_CHECKSUM.split(' ').any(|with| with == name);
        let outcomes = [measured(name, &params), measured(name, &params)];
        let [first, second] = match outcomes {
            [Err(ProbeError::Unavailable(reason)), _] => {
                skip("probe", &format!("{name}: {reason}"));
                continue;
            }
            outcomes => {
                outcomes.map(|outcome| outcome.unwrap_or_else(|error| panic!("{name}: {error:?}")))
            }
        };
        for (series, _) in [&first, &second] {
            assert!(!series.is_empty(), "{name}");
            for series in series {
                assert!(series.values.len() >= 5, "{name}: {series:?}");
                assert!(series.batch >= 1, "{name}");
                for value in &series.values {
                    assert!(value.is_finite() && *value > 0.0, "{name}: {series:?}");
                }
                if let Some(linearity) = series.linearity {
                    assert!(linearity.is_finite(), "{name}: {linearity}");
                    if !(1.6..=2.4).contains(&linearity) {
                        println!("flag: {}: linearity {linearity:.2}", series.metric);
                    }
                }
            }
        }
        assert_eq!(first.1, second.1, "{name}");
        assert_eq!(first.1.is_some(), has_checksum, "{name}");
    }
}

#[test]
fn checksum_is_independent_of_trial_length() {
    for name in ["chase", "float", "integer"] {
        let sums = [1_000u64, 20_000_000].map(|target_ns| {
            let mut meter = Meter::new(target_ns, &std::env::temp_dir());
            (probe::find(name).unwrap().run)(&mut meter, &Params::new()).unwrap();
            meter.finish().1
        });
        assert_eq!(sums[0], sums[1], "{name}");
    }
}

#[test]
fn probe_with_nonsense_argument_fails() {
    for (name, key) in [
        ("matrix", "size"),
        ("lines", "files"),
        ("page-load", "bytes"),
        ("pipe", "placement"),
        ("random-access", "pages"),
        ("read-files", "how"),
        ("udp-round-trip", "bytes"),
    ] {
        let outcome = measured(name, &Params::new().with(key, "nonsense"));
        if cfg!(target_os = "linux") || !["page-load", "pipe"].contains(&name) {
            assert!(matches!(outcome, Err(ProbeError::Failed(_))), "{name}");
        }
    }
}

/// The probes that create files.
const WITH_FILES: [&str; 6] = tare_model::rows! {
    "directory", "files", "lines", "page-load", "read-files", "stat",
};

#[test]
fn file_probes_in_unwritable_folder_do_not_measure() {
    // Not even root can create a directory here.
    let read_only = Path::new("/proc/self");
    if !read_only.exists() {
        return skip("proc", "there is no /proc here");
    }
    for name in WITH_FILES {
        let mut meter = Meter::new(1_000_000, read_only);
        let outcome = (probe::find(name).unwrap().run)(&mut meter, &Params::new());
        match outcome {
            Err(ProbeError::Failed(_) | ProbeError::Unavailable(Reason::NeedsPrivilege(_))) => {}
            other => panic!("{name}: {other:?}"),
        }
        assert!(meter.finish().0.is_empty(), "{name}");
    }
}

#[test]
fn file_probes_leave_working_directory_empty() {
    let folder = std::env::temp_dir().join(format!("tare-test-left-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    for name in WITH_FILES {
        let mut meter = Meter::new(2_000_000, &folder);
        match (probe::find(name).unwrap().run)(&mut meter, &Params::new()) {
            Ok(()) | Err(ProbeError::Unavailable(Reason::Unsupported(_))) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    let left = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(left, 0);
}
