//! `pi-numpy`: estimates π by random points, all at once with NumPy.
//!
//! Vectors of random numbers, passes over them in compiled code, and new memory for every vector, which for large
//! vectors comes from the kernel each time. The number of threads is each arm's default.
//! Limits: does not see how NumPy was built; its version is compared before the first trial.

use super::declared::described;
use super::pi::decode;
use super::python_tool::{PYTHON, PythonScript};

pub(super) static PI_NUMPY: PythonScript = PythonScript {
    declared: described! {
        "pi-numpy": "an estimate of π by random points with NumPy";
        params {
            "samples" = Int(1_000_000), Between(1000, 1_000_000_000): "points in one repeat, 1000 to 1000000000";
            "repeats" = Int(10), Between(1, 1000): "timed repeats, 1 to 1000; one more is warm-up";
            + PYTHON;
        }
        "python.pi-numpy.time", Nanosecond, Lower, Compute:
            "One point: two random numbers, their squares and a comparison, as vectors of `samples` points at once; the mean of all points.";
    },
    script: "pi_numpy.py",
    source: include_str!("python/pi_numpy.py"),
    // Not isolated: NumPy may be in the user's site-packages.
    options: &["-B"],
    modules: "json, platform, sysconfig, time, numpy, numpy.random",
    version: "; import numpy; print(numpy.__version__)",
    arguments: &["samples", "repeats"],
    decode,
};
