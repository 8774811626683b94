//! `pi-loop`: estimates π by random points, one at a time in a Python loop.
//!
//! There is no syscall inside the timed region, so an overhead means that the environment changes the behaviour of
//! the processor or the interpreter, not of the kernel.
//! Limits: does not show the reason; the arm's mitigations and the interpreter's build are among its facts.

use super::declared::described;
use super::pi::decode;
use super::python_tool::{ISOLATED, PYTHON, PythonScript};

pub(super) static PI_LOOP: PythonScript = PythonScript {
    declared: described! {
        "pi-loop": "an estimate of π by random points in a Python loop";
        params {
            "samples" = Int(200_000), Between(1000, 1_000_000_000): "points in one repeat, 1000 to 1000000000";
            "repeats" = Int(5), Between(1, 1000): "timed repeats, 1 to 1000; one more is warm-up";
            + PYTHON;
        }
        "python.pi-loop.time", Nanosecond, Lower, Compute: "One point: two random numbers, their squares, a comparison and a pass of the loop; the mean of `samples` points.";
    },
    script: "pi_loop.py",
    source: include_str!("python/pi_loop.py"),
    options: ISOLATED,
    modules: "json, platform, random, sysconfig, time",
    version: "",
    arguments: &["samples", "repeats"],
    decode,
};
