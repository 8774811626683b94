//! `python-mix`: a mix of typical Python operations, each kind timed separately.
//!
//! Modelled on PyBench, which a published comparison used: calls, arithmetic, look-ups, loops, texts, lists,
//! dictionaries, exceptions and so on, with only the standard interpreter and library. The sections are timed one
//! after another, round by round, so that drift affects all of them equally; the first round is warm-up. A section
//! has the same number of operations in every arm.
//! Limits: does not test extension modules, threads, or input and output.

use std::collections::BTreeMap;

use serde::Deserialize;
use tare_model::{MetricSpec, RawOutput, Sample};

use super::declared::described;
use super::python_tool::{ISOLATED, PYTHON, PythonScript};
use super::tool_text::{self, garbled};
use super::{DecodeError, command_output};

const FORMAT: &str = "tare-python-mix/1";
const SOURCE: &str = include_str!("python/mix.py");

/// The sections' names in the script.
const SECTIONS: &[&str] = &tare_model::rows! {
    "calls", "method_calls", "builtin_calls", "integers", "big_integers", "floats", "comparisons", "globals",
    "attributes", "instances", "nested_loops", "branches", "strings", "formatting", "lists", "sorting",
    "comprehensions", "tuples", "dicts", "sets", "exceptions", "generators", "closures",
};

pub(super) static ENTRY: PythonScript = PythonScript {
    declared: described! {
        "python-mix": "a mix of calls, arithmetic, look-ups, loops, texts and containers in Python";
        params {
            "rounds" = Int(5), Between(1, 10_000): "timed rounds, 1 to 10000; one more is warm-up";
            "scale" = Int(1), Between(1, 1000): "by how much every section's number of operations is multiplied, 1 to 1000";
            + PYTHON;
        }
        // A round, then the sections in the order of the script.
        Nanosecond, Lower, Compute {
            "python.mix-round.time": "One round: the fixed number of operations of every section, the sum of their times.";
            "python.call.time": "One call of a function of two arguments.";
            "python.method-call.time": "One call of a method through an instance.";
            "python.builtin-call.time": "One call of a built-in function.";
            "python.integer.time": "One step of arithmetic with small whole numbers.";
            "python.big-integer.time": "One multiplication and reduction of numbers of some hundred bits.";
            "python.float.time": "One step of floating-point arithmetic.";
            "python.comparison.time": "One comparison of numbers or texts.";
            "python.global-lookup.time": "One reading of a name of the module.";
            "python.attribute.time": "One reading or writing of an attribute of an instance.";
            "python.instance.time": "Making one instance of a class with two attributes.";
            "python.nested-loop.time": "One pass of the inner of three nested loops.";
            "python.branch.time": "One pass through a chain of conditions.";
            "python.string.time": "One joining, splitting, replacing or finding within short texts.";
            "python.format.time": "Formatting one text from numbers and texts.";
            "python.list.time": "One appending, slicing or reading of a list.";
            "python.sort-item.time": "Making a list of 200 numbers out of order and sorting it, per item.";
            "python.comprehension.time": "One item of a list comprehension with a condition.";
            "python.tuple.time": "Making and unpacking one tuple.";
            "python.dict.time": "One writing, reading or removing of an entry of a dictionary.";
            "python.set.time": "One adding to, asking, or uniting of sets.";
            "python.exception.time": "Raising and catching one exception.";
            "python.generator.time": "One value drawn from a generator.";
            "python.closure.time": "Making one closure and calling it.";
        }
    },
    script: "mix.py",
    source: SOURCE,
    options: ISOLATED,
    modules: "json, platform, sysconfig, time",
    version: "",
    arguments: &["rounds", "scale"],
    decode,
};

fn decode(metrics: &[MetricSpec], raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    let printed: ProgramOutput = tool_text::printed(raw, FORMAT)?;
    let mut rounds: Vec<f64> = Vec::new();
    let mut samples = Vec::with_capacity(metrics.len());
    for (name, metric) in SECTIONS.iter().zip(&metrics[1..]) {
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
    samples.insert(0, command_output::sample(&metrics[0], rounds)?);
    Ok(samples)
}

/// The parts of `mix.py`'s output that are read.
#[derive(Deserialize)]
struct ProgramOutput {
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
    fn script_sections_match_expected_sections() {
        for name in SECTIONS {
            assert!(SOURCE.contains(&format!("def {name}(")), "{name}");
        }
        let n_sections = SOURCE.matches("\n@section(").count();
        assert_eq!(n_sections, SECTIONS.len());
        assert_eq!(ENTRY.declared.metrics.len(), SECTIONS.len() + 1);
    }
}
