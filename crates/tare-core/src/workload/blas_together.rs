//! `blas-together`: runs `blas-matrices` several times at once, as threads of one interpreter or as processes.
//!
//! Danilova and Sergeev (2024, section 2) say that for small matrices threads would be faster than the processes they
//! used. Here both run the same program on the same matrices, and the time ends when the last one is done.
//! Inside the timed region: the four operations on all matrices, in each worker. Outside: the interpreter, the import
//! of NumPy, creating the matrices, and starting threads or processes, which wait until all are ready.
//! Known bias: threads hold the interpreter's lock between calls of the library, as in any program.
//! Limits: does not measure the start of a process or thread; `start-up` and `spawn` do.

use serde::Deserialize;
use tare_model::{RawOutput, Sample};

use super::DecodeError;
use super::blas::{self, Blas, PYTHON, THREADS};
use super::command_output::sample;
use super::declared::described;

pub(super) static ENTRY: Blas = Blas {
    declared: described! {
        "blas-together": "operations on matrices by NumPy, by several at once as threads of one interpreter or as processes";
        params {
            "size" = Int(500), Between(16, 8_000): "order of the matrices, 16 to 8000";
            "pairs" = Int(8), Between(1, 64): "pairs of matrices of each, 1 to 64";
            "workers" = Int(2), Between(1, 64): "how many do the work at once, 1 to 64";
            "processes" = Int(0), Between(0, 1): "0: threads of one interpreter; 1: a process each";
            + THREADS;
            + PYTHON;
        }
        "blas.together.time", Nanosecond, Lower, Compute: "Time until the last one has done all four operations on all of its matrices.";
    },
    script: concat!(
        include_str!("blas_common.py"),
        include_str!("blas_together.py")
    ),
    arguments: &["size", "pairs", "workers", "processes"],
    decode,
};

fn decode(raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    #[derive(Deserialize)]
    struct ProgramOutput {
        all_ns: f64,
    }
    let printed: ProgramOutput = blas::parsed(raw)?;
    let metric = &ENTRY.declared.metrics[0];
    Ok(vec![sample(metric, vec![printed.all_ns])?])
}
