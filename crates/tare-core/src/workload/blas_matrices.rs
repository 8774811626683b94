//! `blas-matrices`: transposes, inverts, adds and multiplies several matrices with NumPy, as an image program does.
//!
//! The counterpart of both matrix tests of Danilova and Sergeev (2024, section 1.1.1): two large matrices or sixteen
//! small ones of one byte per element; all are transposed, then inverted, then added and multiplied element by
//! element in pairs. As in the article, the number of busy processors and the memory used are measured too. For a
//! single operation see `blas-inverse` (the inverse) and `matrix` (without a library).
//! Inside the timed region: the four operations on all matrices, with their results kept. Outside: the interpreter,
//! the import of NumPy, creating or reading the matrices, starting the library's threads, a check of the first inverse.
//! Known bias: NumPy transposes by changing the strides, so that no element moves.
//! Limits: does not see which kernel the library chose for the processor, nor memory that the kernel holds for the
//! program.

use serde::Deserialize;
use tare_model::{RawOutput, Sample};

use super::DecodeError;
use super::blas::{self, Blas, PYTHON, THREADS};
use super::command_output::sample;
use super::declared::described;

pub(super) static ENTRY: Blas = Blas {
    declared: described! {
        "blas-matrices": "transposes, inverses, sums and products of several matrices by NumPy, with processors and memory used";
        params {
            "size" = Int(500), Between(16, 8_000): "order of the matrices, 16 to 8000";
            "pairs" = Int(8), Between(1, 64): "pairs of matrices, 1 to 64";
            "source" = Text("generator"), OneOf(&["generator", "pictures"]): "where the bytes come from: `generator`, or `pictures` (PGM), which are written and read before the time is taken";
            + THREADS;
            + PYTHON;
        }
        Nanosecond, Lower, Compute {
            "blas.matrices.time": "Time of all four operations on all matrices.";
            "blas.matrices-transpose.time": "Time of turning all matrices, which NumPy does without moving an element.";
            "blas.matrices-inverse.time": "Time of inverting all matrices, one after the other.";
            "blas.matrices-add.time": "Time of adding the matrices of all pairs.";
            "blas.matrices-multiply.time": "Time of multiplying the matrices of all pairs, element by element.";
        }
        Ratio, Lower, Compute {
            "blas.matrices.processors": "How many processors the operations kept busy: processor time of all threads over time passed.";
        }
        Byte, Lower, Compute {
            "blas.matrices.memory": "The most memory that the program held at once, interpreter and library included.";
        }
    },
    script: concat!(
        include_str!("blas_common.py"),
        include_str!("blas_matrices.py")
    ),
    arguments: &["size", "pairs", "source"],
    decode,
};

fn decode(raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    let printed: ProgramOutput = blas::parsed(raw)?;
    let parts = [
        printed.transpose_ns,
        printed.inverse_ns,
        printed.add_ns,
        printed.multiply_ns,
    ];
    let all_ns: f64 = parts.iter().sum();
    let mut values = vec![Some(all_ns)];
    values.extend(parts.map(Some));
    values.push(Some(printed.busy_ns / all_ns));
    // Absent on systems that do not report it.
    values.push(printed.memory_bytes);
    ENTRY
        .declared
        .metrics
        .iter()
        .zip(values)
        .filter_map(|(metric, value)| Some(sample(metric, vec![value?])))
        .collect()
}

/// The program's output, except the pool.
#[derive(Debug, Deserialize)]
struct ProgramOutput {
    transpose_ns: f64,
    inverse_ns: f64,
    add_ns: f64,
    multiply_ns: f64,
    /// CPU time of all threads.
    busy_ns: f64,
    memory_bytes: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::super::Workload as _;
    use super::super::command_output::tests::raw;
    use super::*;

    const OUTPUT: &str = r#"{"transpose_ns": 1000, "inverse_ns": 80000, "add_ns": 9000, "multiply_ns": 10000, "busy_ns": 150000,
        "memory_bytes": 52428800, "span_ns": [10, 110000], "threads": 4, "limit": null, "cpus": 2, "quota": null,
        "libraries": [], "numpy": "1.24.2"}"#;

    fn value(samples: &[Sample], metric: &str) -> Option<f64> {
        let found = samples.iter().find(|it| it.metric.as_str() == metric)?;
        Some(found.observations[0])
    }

    #[test]
    fn unknown_memory_is_omitted_and_other_metrics_stay() {
        let without = OUTPUT.replace("52428800", "null");
        let samples = ENTRY.decode(&raw(0, without.as_bytes(), b"")).unwrap();
        assert_eq!(value(&samples, "blas.matrices.memory"), None);
        assert_eq!(samples.len(), ENTRY.declared.metrics.len() - 1);
    }
}
