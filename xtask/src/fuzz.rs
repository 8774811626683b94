//! `cargo xtask fuzz [--seconds N] [WORKLOAD]`: a long search for output that a decoder cannot take.
//!
//! The search itself is a test of `tare` (`tests/tools/fuzz.rs`), short there; here it gets as long as it is
//! told, for all workloads of which there are captures or for one. It needs no other toolchain.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, step};

/// How long it searches unless told, seconds.
const SECONDS: f64 = 30.0;

/// Searches.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let mut seconds = SECONDS;
    let mut workload = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => {
                let text = rest.next().context("`--seconds` needs a number")?;
                seconds = text
                    .parse()
                    .ok()
                    .filter(|seconds: &f64| *seconds > 0.0 && *seconds <= 1e6)
                    .with_context(|| format!("`{text}` is no number of seconds"))?;
            }
            option if option.starts_with('-') => {
                bail!("unknown option `{option}`; usage: cargo xtask fuzz [--seconds N] [WORKLOAD]")
            }
            id if workload.is_none() => workload = Some(id),
            other => bail!("`{other}`: one workload at a time"),
        }
    }
    step(&format!(
        "searching {} for {seconds} s",
        workload.unwrap_or("all decoders")
    ));
    let mut search = cargo(&[
        "test",
        "--quiet",
        "--package",
        "tare",
        "--test",
        "tools",
        "--",
        "--exact",
        "fuzz::whatever_a_tool_prints_gives_an_error_or_finite_positive_numbers",
        "--nocapture",
    ])
    .variable("TARE_FUZZ_SECONDS", seconds.to_string());
    if let Some(workload) = workload {
        search = search.variable("TARE_FUZZ_WORKLOAD", workload);
    }
    search.run()?;
    Ok(ExitCode::SUCCESS)
}
