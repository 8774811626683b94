//! `pi-loop`: an estimate of π by random points, one at a time in a Python loop.
//!
//! The slow half of a published comparison of Python in and out of containers, with our own script. It makes no
//! system call inside the timed region, so an environment that costs something here changes the processor's or
//! the interpreter's behaviour, not the kernel's.
//! What it cannot see: why; the arm's mitigations and the interpreter's build are among its facts.

use serde::Deserialize;
use tare_model::{
    Better, MetricSpec, Params, Path, RawOutput, Recipe, ResourceClass, Sample, Unit,
};

use super::probe_output::{Accepts, checked};
use super::python_tool::{self, PYTHON};
use super::tool_text::{garbled, whole};
use super::{
    DecodeError, DefaultValue, ParamError, ParamSpec, Tool, Workload, command_output, one_end,
};

const ID: &str = "pi-loop";
/// What both scripts print.
const FORMAT: &str = "tare-pi/1";
const SOURCE: &str = include_str!("python/pi_loop.py");

const TIME: MetricSpec = MetricSpec {
    id: "python.pi-loop.time",
    unit: Unit::Nanosecond,
    better: Better::Lower,
    class: ResourceClass::Compute,
    floor_ok: false,
    doc: "One point: two random numbers, their squares, a comparison and a pass of the loop; the mean of `samples` points.",
};

/// The registered workload.
#[derive(Debug)]
pub struct PiLoop;

impl Workload for PiLoop {
    fn id(&self) -> &'static str {
        ID
    }

    fn about(&self) -> &'static str {
        "an estimate of π by random points in a Python loop"
    }

    fn params(&self) -> &'static [ParamSpec] {
        &[
            ParamSpec {
                name: "samples",
                default: DefaultValue::Int(200_000),
                doc: "points in one repeat, 1000 to 1000000000",
            },
            ParamSpec {
                name: "repeats",
                default: DefaultValue::Int(5),
                doc: "timed repeats, 1 to 1000; one more is warm-up",
            },
            PYTHON,
        ]
    }

    fn metrics(&self) -> &'static [MetricSpec] {
        &[TIME]
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        one_end(ID, path)?;
        let params = checked(
            ID,
            params,
            self.params(),
            &[
                Accepts::Between(1000, 1_000_000_000),
                Accepts::Between(1, 1000),
            ],
        )?;
        let arguments = [whole(&params, "samples"), whole(&params, "repeats")];
        let call = python_tool::call(&params, &["-I", "-B"], "pi_loop.py", SOURCE, &arguments)?;
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![python_tool::tool(
            params,
            "json, platform, random, sysconfig, time",
        )]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let values = per_point(raw)?;
        Ok(vec![command_output::sample(&TIME, values)?])
    }
}

/// What the scripts print, as far as it is read.
#[derive(Deserialize)]
struct Printed {
    samples: f64,
    inside: f64,
    ns: Vec<f64>,
}

/// Nanoseconds per point in every repeat.
///
/// # Errors
/// `Garbled` where the points do not estimate π: then something else was done.
pub(super) fn per_point(raw: &RawOutput) -> Result<Vec<f64>, DecodeError> {
    let printed: Printed = python_tool::printed(raw, FORMAT)?;
    let estimate = 4.0 * printed.inside / printed.samples;
    // The standard deviation of the estimate of n points is 1.64 / √n; six of them never happen.
    let limit = 6.0 * 1.642 / printed.samples.sqrt();
    if (estimate - std::f64::consts::PI).abs() <= limit {
        return Ok(printed
            .ns
            .iter()
            .map(|value| value / printed.samples)
            .collect());
    }
    Err(garbled(FORMAT, format!("the estimate of π is {estimate}")))
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::*;

    #[test]
    fn an_estimate_that_is_not_pi_is_no_reading() {
        let of = |inside: u32| {
            let text = format!(
                r#"{{"format":"tare-pi/1","samples":1000,"inside":{inside},"ns":[1000000,2000000]}}"#
            );
            PiLoop.decode(&raw(0, text.as_bytes(), b""))
        };
        assert_eq!(of(785).unwrap()[0].observations, [1000.0, 2000.0]);
        assert!(of(1000).is_err() && of(0).is_err());
        let other = br#"{"format":"tare-python-mix/1","samples":1000,"inside":785,"ns":[1]}"#;
        assert!(PiLoop.decode(&raw(0, other, b"")).is_err());
    }
}
