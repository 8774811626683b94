//! `pi-numpy`: an estimate of π by random points, all at once with NumPy.
//!
//! The fast half of a published comparison of Python in and out of containers, with our own script: vectors of
//! random numbers and passes over them in compiled code, and new memory for every vector, which large vectors
//! get from the kernel each time. The numbers of threads stay as each arm sets them.
//! What it cannot see: how NumPy was built; its version is compared before the first trial.

use tare_model::{
    Better, MetricSpec, Params, Path, RawOutput, Recipe, ResourceClass, Sample, Unit,
};

use super::pi_loop::per_point;
use super::probe_output::{Accepts, checked};
use super::python_tool::{self, PYTHON};
use super::tool_text::whole;
use super::{
    DecodeError, DefaultValue, ParamError, ParamSpec, Tool, Workload, command_output, one_end,
};

const ID: &str = "pi-numpy";
const SOURCE: &str = include_str!("python/pi_numpy.py");

const TIME: MetricSpec = MetricSpec {
    id: "python.pi-numpy.time",
    unit: Unit::Nanosecond,
    better: Better::Lower,
    class: ResourceClass::Compute,
    floor_ok: false,
    doc: "One point: two random numbers, their squares and a comparison, as vectors of `samples` points at once; the mean of all points.",
};

/// The registered workload.
#[derive(Debug)]
pub struct PiNumpy;

impl Workload for PiNumpy {
    fn id(&self) -> &'static str {
        ID
    }

    fn about(&self) -> &'static str {
        "an estimate of π by random points with NumPy"
    }

    fn params(&self) -> &'static [ParamSpec] {
        &[
            ParamSpec {
                name: "samples",
                default: DefaultValue::Int(1_000_000),
                doc: "points in one repeat, 1000 to 1000000000",
            },
            ParamSpec {
                name: "repeats",
                default: DefaultValue::Int(10),
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
        // Not isolated: NumPy may be where the user's settings say.
        let call = python_tool::call(&params, &["-B"], "pi_numpy.py", SOURCE, &arguments)?;
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        let modules = "json, platform, sysconfig, time, numpy, numpy.random";
        let mut tool = python_tool::tool(params, modules);
        if let Some(code) = tool.version.last_mut() {
            code.push_str("; import numpy; print(numpy.__version__)");
        }
        vec![tool]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let values = per_point(raw)?;
        Ok(vec![command_output::sample(&TIME, values)?])
    }
}
