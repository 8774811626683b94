//! `pi-loop` and `pi-numpy`: an estimate of π by random points, one at a time in a Python loop or all at once.
//!
//! The two halves of a published comparison of Python in and out of containers, with our own scripts. The loop
//! makes no system call inside the timed region, so an environment that costs something there changes the
//! processor's or the interpreter's behaviour, not the kernel's. NumPy passes over vectors of random numbers in
//! compiled code and takes new memory for every one, which large vectors get from the kernel each time; the
//! numbers of threads stay as each arm sets them.
//! What they cannot see: why. The arm's mitigations and the interpreter's build are among its facts; how NumPy
//! was built is not, its version is compared before the first trial.

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

/// What both scripts print.
const FORMAT: &str = "tare-pi/1";

/// An estimate of π by a script.
#[derive(Debug)]
pub struct Pi {
    id: &'static str,
    about: &'static str,
    script: &'static str,
    source: &'static str,
    /// The interpreter's options.
    options: &'static [&'static str],
    /// What the script imports.
    modules: &'static str,
    /// Added to the code that prints the version.
    version: &'static str,
    params: &'static [ParamSpec],
    metrics: &'static [MetricSpec],
}

/// One point at a time.
pub static PI_LOOP: Pi = Pi {
    id: "pi-loop",
    about: "an estimate of π by random points in a Python loop",
    script: "pi_loop.py",
    source: include_str!("python/pi_loop.py"),
    options: &["-I", "-B"],
    modules: "json, platform, random, sysconfig, time",
    version: "",
    params: &params(200_000, 5),
    metrics: &[time(
        "python.pi-loop.time",
        "One point: two random numbers, their squares, a comparison and a pass of the loop; the mean of `samples` points.",
    )],
};

/// All points of a repeat as vectors.
pub static PI_NUMPY: Pi = Pi {
    id: "pi-numpy",
    about: "an estimate of π by random points with NumPy",
    script: "pi_numpy.py",
    source: include_str!("python/pi_numpy.py"),
    // Not isolated: NumPy may be where the user's settings say.
    options: &["-B"],
    modules: "json, platform, sysconfig, time, numpy, numpy.random",
    version: "; import numpy; print(numpy.__version__)",
    params: &params(1_000_000, 10),
    metrics: &[time(
        "python.pi-numpy.time",
        "One point: two random numbers, their squares and a comparison, as vectors of `samples` points at once; the mean of all points.",
    )],
};

const fn params(samples: i64, repeats: i64) -> [ParamSpec; 3] {
    [
        ParamSpec {
            name: "samples",
            default: DefaultValue::Int(samples),
            doc: "points in one repeat, 1000 to 1000000000",
        },
        ParamSpec {
            name: "repeats",
            default: DefaultValue::Int(repeats),
            doc: "timed repeats, 1 to 1000; one more is warm-up",
        },
        PYTHON,
    ]
}

const fn time(id: &'static str, doc: &'static str) -> MetricSpec {
    MetricSpec {
        id,
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Compute,
        floor_ok: false,
        doc,
    }
}

impl Workload for Pi {
    fn id(&self) -> &'static str {
        self.id
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn params(&self) -> &'static [ParamSpec] {
        self.params
    }

    fn metrics(&self) -> &'static [MetricSpec] {
        self.metrics
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        one_end(self.id, path)?;
        let params = checked(
            self.id,
            params,
            self.params,
            &[
                Accepts::Between(1000, 1_000_000_000),
                Accepts::Between(1, 1000),
            ],
        )?;
        let arguments = [whole(&params, "samples"), whole(&params, "repeats")];
        let call = python_tool::call(&params, self.options, self.script, self.source, &arguments)?;
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        let mut tool = python_tool::tool(params, self.modules);
        if let Some(code) = tool.version.last_mut() {
            code.push_str(self.version);
        }
        vec![tool]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let values = per_point(raw)?;
        Ok(vec![command_output::sample(&self.metrics[0], values)?])
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
fn per_point(raw: &RawOutput) -> Result<Vec<f64>, DecodeError> {
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
            PI_LOOP.decode(&raw(0, text.as_bytes(), b""))
        };
        assert_eq!(of(785).unwrap()[0].observations, [1000.0, 2000.0]);
        assert!(of(1000).is_err() && of(0).is_err());
        let other = br#"{"format":"tare-python-mix/1","samples":1000,"inside":785,"ns":[1]}"#;
        assert!(PI_LOOP.decode(&raw(0, other, b"")).is_err());
    }
}
