//! Tests the probe of environment variables, in a separate program because it replaces the variables of the whole
//! process.

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe;
use tare_model::Params;

#[test]
fn environment_probe_restores_variables() {
    let before: Vec<_> = std::env::vars_os().collect();
    let mut meter = Meter::new(5_000_000, &std::env::temp_dir());
    let probe = probe::find("environment").unwrap();
    match (probe.run)(&mut meter, &Params::new()) {
        Err(ProbeError::Unavailable(_)) if !cfg!(target_os = "linux") => return,
        outcome => outcome.unwrap(),
    }
    let after: Vec<_> = std::env::vars_os().collect();
    assert_eq!(after, before);
    let (series, _, _) = meter.finish();
    assert_eq!(series.len(), 4);
    for series in &series {
        assert!(series.values.len() >= 5, "{series:?}");
        for value in &series.values {
            assert!(value.is_finite() && *value > 0.0, "{series:?}");
        }
    }
}
