//! `blas-inverse`: inverts a dense matrix with NumPy and the BLAS it is linked with.
//!
//! The agent's matrix probe has no thread pool. A BLAS has one, with a thread for each processor that it sees, and
//! these wait for each other by spinning. Alone that is fast, but with a second instance threads wait for processors
//! that others waste by spinning. Danilova & Sergeev (2024, table 1) measured a slowdown of 45 times with a second
//! instance and 106 times with a third, on small matrices. The pool's size is therefore a parameter, and every trial
//! reports the number of threads and of processors.
//! Inside the timed region: one call of `numpy.linalg.inv` each, by `perf_counter_ns`. Outside: the interpreter, the
//! import of NumPy, creating the matrix, a first inversion whose result is checked.
//! Several instances start together as processes. Their inversions begin when each has imported NumPy, so that they
//! overlap better with more repeats. The program prints when its inversions began and ended.
//! Both the time of one inversion and the total are metrics, because waiting threads make a few of many small
//! inversions last hundreds of times longer: the typical time shows none of it, the sum, which is what a user waits
//! for, all.
//! Known bias: the interpreter's time in each call, about a microsecond.
//! Limits: does not see which kernel the library chose for the processor.

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
    arguments: &["size", "repeats"],
    decode,
};

fn decode(raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    let printed: ProgramOutput = blas::parsed(raw)?;
    let all_ns = printed.times_ns.iter().sum();
    Ok(vec![
        sample(&METRIC, printed.times_ns)?,
        sample(&ALL, vec![all_ns])?,
    ])
}

/// The program's output; fields that only a reader of the raw output needs are omitted.
#[derive(Debug, Deserialize)]
struct ProgramOutput {
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
    fn pool_larger_than_cpu_quota_is_remarked() {
        let limited = OUTPUT.replace("\"quota\": null", "\"quota\": 1.5");
        let remarks = ENTRY.remarks(&raw(0, limited.as_bytes(), b""));
        assert_eq!(remarks[0].id, MORE_THREADS_THAN_CPUS);
        assert_eq!(remarks[0].detail, "2 threads on 1.5 CPUs");
    }
}
