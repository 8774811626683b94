//! `cargo xtask fuzz [--seconds N] [WORKLOAD]`: searches at length for output that crashes a decoder.
//!
//! The search is a test of `tare` (`tests/tools/fuzz.rs`), which is short there. Here every decoder, or the named
//! one, is searched for `--seconds`. The test prints a line for each decoder, and this command adds them up. It needs
//! no other toolchain.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use xtask_build::shell::{cargo, step};

/// Default search time of each decoder, seconds.
const SECONDS: f64 = 5.0;

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
    step(&match workload {
        Some(workload) => format!("searching the decoder of {workload} for {seconds} s"),
        None => format!("searching every decoder for {seconds} s"),
    });
    let mut search = cargo(&[
        "test",
        "--quiet",
        "--package",
        "tare",
        "--test",
        "tools",
        "--",
        "--exact",
        "fuzz::tool_output_gives_error_or_finite_positive_numbers",
        "--nocapture",
    ])
    .variable("TARE_FUZZ_SECONDS", seconds.to_string());
    if let Some(workload) = workload {
        search = search.variable("TARE_FUZZ_WORKLOAD", workload);
    }
    let mut total = Total::default();
    let result = search.pass_on(|line| total.add(line));
    println!("{}", total.summary());
    result?;
    if total.decoders == 0 {
        bail!("the search told of no decoder");
    }
    Ok(ExitCode::SUCCESS)
}

/// The sum over all decoders.
#[derive(Debug, Default)]
struct Total {
    decoders: u64,
    inputs: u64,
    panics: u64,
}

impl Total {
    /// Adds a decoder's line: name, seconds, inputs, how many were read, panics. Ignores any other line.
    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, seconds, inputs, read, panics] = words[..] else {
            return;
        };
        if let (Ok(_), Ok(inputs), Ok(_), Ok(panics)) = (
            seconds.parse::<f64>(),
            inputs.parse::<u64>(),
            read.parse::<u64>(),
            panics.parse::<u64>(),
        ) {
            self.decoders += 1;
            self.inputs += inputs;
            self.panics += panics;
        }
    }

    fn summary(&self) -> String {
        format!(
            "fuzz {} decoders, {} inputs, {} panics",
            self.decoders, self.inputs, self.panics
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decoder_lines_are_summed() {
        let mut total = Total::default();
        for line in [
            "decoder             seconds     inputs       read  panics",
            "fio                     5.0      12345       8001       0",
            "hpcc                    5.0        100          7       2",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out",
            "",
        ] {
            total.add(line);
        }
        assert_eq!(total.summary(), "fuzz 2 decoders, 12445 inputs, 2 panics");
    }
}
