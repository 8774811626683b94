//! `pi-loop`: an estimate of π by random points, one at a time in a Python loop.
//!
//! It makes no system call inside the timed region, so an environment that costs something here changes the
//! processor's or the interpreter's behaviour, not the kernel's.
//! What it cannot see: why; the arm's mitigations and the interpreter's build are among its facts.

use super::pi::{Pi, params, time};

/// The registered workload.
pub static PI_LOOP: Pi = Pi {
    id: "pi-loop",
    about: "an estimate of π by random points in a Python loop",
    script: "pi_loop.py",
    source: include_str!("python/pi_loop.py"),
    options: &["-I", "-B"],
    modules: "json, platform, random, sysconfig, time",
    version: "",
    params: &params(200_000, 5),
    metrics: &[time(
        "python.pi-loop.time",
        "One point: two random numbers, their squares, a comparison and a pass of the loop; the mean of `samples` points.",
    )],
};
