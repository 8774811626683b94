//! `blas-inverse`: inversions of a dense matrix by NumPy and whichever BLAS it is linked with.
//!
//! Why beside the agent's own matrix probe: a BLAS brings a pool of threads of its own, one for each processor
//! that it sees, and these wait for each other by spinning. Alone that is fast; a second instance makes threads
//! wait for processors that others use up waiting. Danilova & Sergeev (2024, table 1) saw a second instance cost
//! 45 times as much and a third 106 times, on small matrices. So the pool's size is a parameter, and every trial
//! tells how many threads there were and how many processors they had.
//! Inside the timed region: one call of `numpy.linalg.inv` each, by `perf_counter_ns`. Outside: the interpreter,
//! the import of NumPy, the making of the matrix, a first inversion whose result is checked.
//! Several instances are started together as processes; their inversions begin when each has imported NumPy, so
//! that they overlap the better, the more repeats there are. The program tells when its inversions began and ended.
//! One inversion is told beside all of them together, because threads that wait make a few of many small inversions
//! last hundreds of times longer: the typical one shows none of it, and the sum, which is what a user waits, all.
//! Known bias: the interpreter's own time in each call, about a microsecond.
//! What it cannot see: which kernel the library chose for the processor.

use serde::Deserialize;
use tare_model::{RawOutput, Sample, metrics};

use super::DecodeError;
use super::blas::{self, Blas, PYTHON, THREADS};
use super::command_output::sample;
use super::declared::{Declared, params};

metrics! {
    METRIC = "blas.inverse.time", Nanosecond, Lower, Compute, floor: "Time of one inversion of a dense matrix of 64-bit floating-point numbers by NumPy.";
    ALL = "blas.inversions.time", Nanosecond, Lower, Compute: "Time of all inversions of a trial together, the pauses among them left out.";
}

pub(super) static ENTRY: Blas = Blas {
    declared: Declared {
        id: "blas-inverse",
        about: "Inversions of a dense matrix by NumPy, with the BLAS library's own pool of threads.",
        params: params! {
            "size" = Int(200), Between(2, 8_000): "order of the matrix, 2 to 8000";
            "repeats" = Int(300), Between(1, 100_000): "inversions in one trial, 1 to 100000";
            + THREADS;
            + PYTHON;
        },
        metrics: &[METRIC, ALL],
    },
    script: concat!(
        include_str!("blas_common.py"),
        include_str!("blas_inverse.py")
    ),
    numbers: &["size", "repeats"],
    decode,
};

fn decode(raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    let printed: Printed = blas::parsed(raw)?;
    let all_ns = printed.times_ns.iter().sum();
    Ok(vec![
        sample(&METRIC, printed.times_ns)?,
        sample(&ALL, vec![all_ns])?,
    ])
}

/// What the program prints; what only a reader of the raw output needs is left out.
#[derive(Debug, Deserialize)]
struct Printed {
    times_ns: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::super::Workload as _;
    use super::super::command_output::tests::raw;
    use super::super::sanity::MORE_THREADS_THAN_CPUS;
    use super::*;

    const OUTPUT: &str = r#"{"times_ns": [1000, 3000, 2000], "span_ns": [10, 7000], "threads": 2, "limit": null, "cpus": 2,
        "quota": null, "libraries": ["/usr/lib/libblas.so.3"], "numpy": "1.24.2"}"#;

    #[test]
    fn every_inversion_is_an_observation() {
        let samples = ENTRY.decode(&raw(0, OUTPUT.as_bytes(), b"")).unwrap();
        assert_eq!(samples[0].observations, [1000.0, 3000.0, 2000.0]);
        assert_eq!(samples[1].metric.as_str(), ALL.id);
        assert_eq!(samples[1].observations, [6000.0]);
        let demand = ENTRY.demand(&raw(0, OUTPUT.as_bytes(), b"")).unwrap();
        assert_eq!((demand.threads, demand.cpus, demand.quota), (2, 2, None));
        let span = ENTRY.span(&raw(0, OUTPUT.as_bytes(), b"")).unwrap();
        assert_eq!((span.start_ns, span.end_ns), (10, 7_000));
        assert!(ENTRY.remarks(&raw(0, OUTPUT.as_bytes(), b"")).is_empty());
    }

    #[test]
    fn a_pool_that_is_larger_than_what_it_may_run_on_is_remarked() {
        let limited = OUTPUT.replace("\"quota\": null", "\"quota\": 1.5");
        let remarks = ENTRY.remarks(&raw(0, limited.as_bytes(), b""));
        assert_eq!(remarks[0].id, MORE_THREADS_THAN_CPUS);
        assert_eq!(remarks[0].detail, "2 threads on 1.5 CPUs");
    }
}
