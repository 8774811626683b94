//! `pi-numpy`: an estimate of π by random points, all at once with NumPy.
//!
//! Vectors of random numbers and passes over them in compiled code, and new memory for every vector, which large
//! vectors get from the kernel each time. The numbers of threads stay as each arm sets them.
//! What it cannot see: how NumPy was built; its version is compared before the first trial.

use super::pi::{Pi, params, time};

/// The registered workload.
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
