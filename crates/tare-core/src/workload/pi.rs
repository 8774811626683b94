//! Shared code of `pi-loop` and `pi-numpy`: a script that estimates π by random points, and its output.
//!
//! They reproduce the two halves of a published comparison of Python in and out of containers, with Tare's scripts. A
//! reading whose points do not estimate π is rejected, because something else was done.
//! Not a workload itself.

use serde::Deserialize;
use tare_model::{Params, Path, RawOutput, Recipe, Sample};

use super::declared::Declared;
use super::python_tool;
use super::tool_text::{garbled, whole};
use super::{DecodeError, ParamError, Tool, Workload, command_output};

/// The format of both scripts' output.
const FORMAT: &str = "tare-pi/1";

/// An estimate of π by a script.
#[derive(Debug)]
pub(super) struct Pi {
    pub(super) declared: Declared,
    /// The script's file name.
    pub(super) script: &'static str,
    pub(super) source: &'static str,
    /// The interpreter's options.
    pub(super) options: &'static [&'static str],
    /// What the script imports.
    pub(super) modules: &'static str,
    /// Code appended to the one that prints the version.
    pub(super) version: &'static str,
}

impl Workload for Pi {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
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
        Ok(vec![command_output::sample(&self.metrics()[0], values)?])
    }
}

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
fn per_point(raw: &RawOutput) -> Result<Vec<f64>, DecodeError> {
    let printed: ProgramOutput = python_tool::printed(raw, FORMAT)?;
    let estimate = 4.0 * printed.inside / printed.samples;
    // The standard deviation of the estimate from n points is 1.64 / √n; six of them never occur.
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
    use super::super::pi_loop::PI_LOOP;
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
