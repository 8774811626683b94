//! `python-mix`: a mix of what Python programs do, each kind timed by itself.
//!
//! After the manner of PyBench, which a published comparison used: calls, arithmetic, look-ups, loops, texts,
//! lists, dictionaries, exceptions and so on, in the standard interpreter, with nothing but its own library.
//! The sections are timed one after another, round by round, so that what drifts hits all of them alike; the
//! first round is warm-up. A section has the same number of operations in every arm.
//! What it cannot see: extension modules, threads, and input and output, of which there is none inside.

use std::collections::BTreeMap;

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

const ID: &str = "python-mix";
const FORMAT: &str = "tare-python-mix/1";
const SOURCE: &str = include_str!("python/mix.py");

const fn of(id: &'static str, doc: &'static str) -> MetricSpec {
    MetricSpec {
        id,
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Compute,
        floor_ok: false,
        doc,
    }
}

const ROUND: MetricSpec = of(
    "python.mix-round.time",
    "One round: the fixed number of operations of every section, the sum of their times.",
);

/// The sections in the order of the script, each with the name that it has there.
const SECTIONS: &[(&str, MetricSpec)] = &[
    (
        "calls",
        of(
            "python.call.time",
            "One call of a function of two arguments.",
        ),
    ),
    (
        "method_calls",
        of(
            "python.method-call.time",
            "One call of a method through an instance.",
        ),
    ),
    (
        "builtin_calls",
        of(
            "python.builtin-call.time",
            "One call of a built-in function.",
        ),
    ),
    (
        "integers",
        of(
            "python.integer.time",
            "One step of arithmetic with small whole numbers.",
        ),
    ),
    (
        "big_integers",
        of(
            "python.big-integer.time",
            "One multiplication and reduction of numbers of some hundred bits.",
        ),
    ),
    (
        "floats",
        of(
            "python.float.time",
            "One step of floating-point arithmetic.",
        ),
    ),
    (
        "comparisons",
        of(
            "python.comparison.time",
            "One comparison of numbers or texts.",
        ),
    ),
    (
        "globals",
        of(
            "python.global-lookup.time",
            "One reading of a name of the module.",
        ),
    ),
    (
        "attributes",
        of(
            "python.attribute.time",
            "One reading or writing of an attribute of an instance.",
        ),
    ),
    (
        "instances",
        of(
            "python.instance.time",
            "Making one instance of a class with two attributes.",
        ),
    ),
    (
        "nested_loops",
        of(
            "python.nested-loop.time",
            "One pass of the inner of three nested loops.",
        ),
    ),
    (
        "branches",
        of(
            "python.branch.time",
            "One pass through a chain of conditions.",
        ),
    ),
    (
        "strings",
        of(
            "python.string.time",
            "One joining, splitting, replacing or finding within short texts.",
        ),
    ),
    (
        "formatting",
        of(
            "python.format.time",
            "Formatting one text from numbers and texts.",
        ),
    ),
    (
        "lists",
        of(
            "python.list.time",
            "One appending, slicing or reading of a list.",
        ),
    ),
    (
        "sorting",
        of(
            "python.sort-item.time",
            "Making a list of 200 numbers out of order and sorting it, per item.",
        ),
    ),
    (
        "comprehensions",
        of(
            "python.comprehension.time",
            "One item of a list comprehension with a condition.",
        ),
    ),
    (
        "tuples",
        of("python.tuple.time", "Making and unpacking one tuple."),
    ),
    (
        "dicts",
        of(
            "python.dict.time",
            "One writing, reading or removing of an entry of a dictionary.",
        ),
    ),
    (
        "sets",
        of(
            "python.set.time",
            "One adding to, asking, or uniting of sets.",
        ),
    ),
    (
        "exceptions",
        of(
            "python.exception.time",
            "Raising and catching one exception.",
        ),
    ),
    (
        "generators",
        of("python.generator.time", "One value drawn from a generator."),
    ),
    (
        "closures",
        of("python.closure.time", "Making one closure and calling it."),
    ),
];

/// All of them, as the trait wants them.
const METRICS: [MetricSpec; SECTIONS.len() + 1] = {
    let mut all = [ROUND; SECTIONS.len() + 1];
    let mut place = 0;
    while place < SECTIONS.len() {
        all[place + 1] = SECTIONS[place].1;
        place += 1;
    }
    all
};

/// The registered workload.
#[derive(Debug)]
pub struct PythonMix;

impl Workload for PythonMix {
    fn id(&self) -> &'static str {
        ID
    }

    fn about(&self) -> &'static str {
        "a mix of calls, arithmetic, look-ups, loops, texts and containers in Python"
    }

    fn params(&self) -> &'static [ParamSpec] {
        &[
            ParamSpec {
                name: "rounds",
                default: DefaultValue::Int(5),
                doc: "timed rounds, 1 to 10000; one more is warm-up",
            },
            ParamSpec {
                name: "scale",
                default: DefaultValue::Int(1),
                doc: "by how much every section's number of operations is multiplied, 1 to 1000",
            },
            PYTHON,
        ]
    }

    fn metrics(&self) -> &'static [MetricSpec] {
        &METRICS
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        one_end(ID, path)?;
        let params = checked(
            ID,
            params,
            self.params(),
            &[Accepts::Between(1, 10_000), Accepts::Between(1, 1000)],
        )?;
        let arguments = [whole(&params, "rounds"), whole(&params, "scale")];
        let call = python_tool::call(&params, &["-I", "-B"], "mix.py", SOURCE, &arguments)?;
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![python_tool::tool(params, "json, platform, sysconfig, time")]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let printed: Printed = python_tool::printed(raw, FORMAT)?;
        let mut rounds: Vec<f64> = Vec::new();
        let mut samples = Vec::with_capacity(METRICS.len());
        for (name, metric) in SECTIONS {
            let section = printed
                .sections
                .get(*name)
                .ok_or_else(|| garbled(FORMAT, format!("there is no section `{name}`")))?;
            if section.operations == 0 || section.ns.len() != printed.rounds {
                return Err(garbled(
                    FORMAT,
                    format!("the section `{name}` has not been run in every round"),
                ));
            }
            rounds.resize(section.ns.len(), 0.0);
            for (sum, value) in rounds.iter_mut().zip(&section.ns) {
                *sum += value;
            }
            let each = section.operations as f64;
            let values = section.ns.iter().map(|value| value / each).collect();
            samples.push(command_output::sample(metric, values)?);
        }
        samples.insert(0, command_output::sample(&ROUND, rounds)?);
        Ok(samples)
    }
}

/// What `mix.py` prints, as far as it is read here.
#[derive(Deserialize)]
struct Printed {
    rounds: usize,
    sections: BTreeMap<String, Section>,
}

#[derive(Deserialize)]
struct Section {
    operations: u64,
    ns: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_the_sections_that_are_read_and_no_others() {
        for (name, _) in SECTIONS {
            assert!(SOURCE.contains(&format!("def {name}(")), "{name}");
        }
        let n_sections = SOURCE.matches("\n@section(").count();
        assert_eq!(n_sections, SECTIONS.len());
    }
}
