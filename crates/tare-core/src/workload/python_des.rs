//! `python-des`: encrypts a text with DES in plain Python, like Danilova and Sergeev (2024).
//!
//! Integers, look-ups and shifts in the interpreter, without a syscall inside the timed region: another Python
//! changes the result, another kernel setting hardly does. `des` is the same cipher as machine code. A reading whose
//! cipher does not match the standard's example is rejected.
//! Limits: does not show the reason; the interpreter's version and build are among the arm's tools.

use serde::Deserialize;
use tare_model::{MetricSpec, RawOutput, Sample};

use super::declared::described;
use super::python_tool::{ISOLATED, PYTHON, PythonScript};
use super::tool_text::{self, garbled};
use super::{DecodeError, command_output};

const FORMAT: &str = "tare-des/1";
/// The example's block, encrypted with its key.
const EXAMPLE: &str = "85e813540f0ab405";

pub(super) static ENTRY: PythonScript = PythonScript {
    declared: described! {
        "python-des": "DES encryption of a text in plain Python";
        params {
            "characters" = Int(8_000), Between(8, 100_000_000): "characters in the text, 8 to 100000000; eight are a block";
            "repeats" = Int(3), Between(1, 1000): "timed repeats, 1 to 1000; one more is warm-up";
            + PYTHON;
        }
        "python.des.time", Nanosecond, Lower, Compute: "DES encryption of a text in electronic codebook mode, key schedule prepared.";
    },
    script: "des.py",
    source: include_str!("python/des.py"),
    options: ISOLATED,
    modules: "json, platform, sysconfig, time",
    version: "",
    arguments: &["characters", "repeats"],
    decode,
};

fn decode(metrics: &[MetricSpec], raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
    let printed: ProgramOutput = tool_text::printed(raw, FORMAT)?;
    if printed.example != EXAMPLE {
        return Err(garbled(FORMAT, format!("`{}` is not DES", printed.example)));
    }
    Ok(vec![command_output::sample(&metrics[0], printed.ns)?])
}

/// The parts of `des.py`'s output that are read.
#[derive(Deserialize)]
struct ProgramOutput {
    example: String,
    ns: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::super::{Workload as _, command_output::tests::raw};
    use super::*;

    #[test]
    fn another_cipher_is_no_reading() {
        let of = |example: &str| {
            let text = format!(r#"{{"format":"tare-des/1","example":"{example}","ns":[5,7]}}"#);
            ENTRY.decode(&raw(0, text.as_bytes(), b""))
        };
        assert_eq!(of(EXAMPLE).unwrap()[0].observations, [5.0, 7.0]);
        assert!(of("85e813540f0ab406").is_err());
    }
}
