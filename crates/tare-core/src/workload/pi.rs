//! Shared code of `pi-loop` and `pi-numpy`: a script that estimates π by random points, and its output.
//!
//! They reproduce the two halves of a published comparison of Python in and out of containers, with Tare's scripts. A
//! reading whose points do not estimate π is rejected, because something else was done.
//! Not a workload itself.

use serde::Deserialize;
use tare_model::{MetricSpec, RawOutput, Sample};

use super::tool_text::{self, garbled};
use super::{DecodeError, command_output};

/// The format of both scripts' output.
const FORMAT: &str = "tare-pi/1";

/// The parts of the scripts' output that are read.
#[derive(Deserialize)]
struct ProgramOutput {
    samples: f64,
    inside: f64,
    ns: Vec<f64>,
}

/// Nanoseconds per point in every repeat.
///
/// # Errors
/// `Garbled` if the points do not estimate π: something else was done.
pub(super) fn decode(metrics: &[MetricSpec], raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    let printed: ProgramOutput = tool_text::printed(raw, FORMAT)?;
    let estimate = 4.0 * printed.inside / printed.samples;
    // The standard deviation of the estimate from n points is 1.64 / √n; six of them never occur.
    let limit = 6.0 * 1.642 / printed.samples.sqrt();
    if (estimate - std::f64::consts::PI).abs() <= limit {
        let per_point = printed.ns.iter().map(|ns| ns / printed.samples).collect();
        return Ok(vec![command_output::sample(&metrics[0], per_point)?]);
    }
    Err(garbled(FORMAT, format!("the estimate of π is {estimate}")))
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::super::{Workload as _, pi_loop::PI_LOOP};

    #[test]
    fn an_estimate_that_is_not_pi_is_no_reading() {
        let of = |inside: u32| {
            let text = format!(
                r#"{{"format":"tare-pi/1","samples":1000,"inside":{inside},"ns":[1000000,2000000]}}"#
            );
            PI_LOOP.decode(&raw(0, text.as_bytes(), b""))
        };
        assert_eq!(of(785).unwrap()[0].observations, [1000.0, 2000.0]);
        assert!(of(1000).is_err() && of(0).is_err());
        let other = br#"{"format":"tare-python-mix/1","samples":1000,"inside":785,"ns":[1]}"#;
        assert!(PI_LOOP.decode(&raw(0, other, b"")).is_err());
    }
}
