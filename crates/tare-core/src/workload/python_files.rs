//! `python-files`: writes text line by line, or reads it into a variable, in Python.
//!
//! The counterpart of the four disk tests of Danilova and Sergeev (2024, section 1.2), in their language and with
//! processes where they use processes. Writing: `lines = 8000000` for their large file, `lines = 800000` and `files =
//! 10` for their small ones. Reading: `what = "read"` for the large one, with `kib = 1247`, `files = 10` and `how =
//! "lines"` for the small ones. `lines` and `read-files` do the same without an interpreter.
//! Limits: does not reach the device; neither did theirs. Excludes the start of the writing processes; the article
//! does not say whether it counts.

use serde::Deserialize;
use tare_model::{Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::python_tool::{self, ISOLATED, PYTHON};
use super::tool_text::{self, garbled, whole};
use super::{DecodeError, ParamError, Tool, Workload, command_output};

/// The format of the script's output.
const FORMAT: &str = "tare-files/1";
/// The modules that it imports.
const MODULES: &str = "fileinput, json, os, platform, subprocess, sys, sysconfig, time, encodings.utf_8, encodings.ascii";

metrics! {
    WRITE = "python.files-write.time", Nanosecond, Lower, Disk: "Writing all files line by line, opening and closing included, each in a process of its own.";
    READ = "python.files-read.time", Nanosecond, Lower, Disk: "Reading all files into a variable, opening and closing included.";
}

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct PythonFiles;

impl Workload for PythonFiles {
    declared! {
        "python-files": "text written line by line by processes, or read into a variable, by Python";
        params {
            "what" = Text("write"), OneOf(&["write", "read"]): "write or read";
            "files" = Int(1), Between(1, 64): "files, 1 to 64; several are written at the same time";
            "lines" = Int(200_000), Between(100, 100_000_000): "lines that are written to each file, 100 to 100000000";
            "line_bytes" = Int(31), Between(2, 4096): "characters in a line that is written, its end included, 2 to 4096";
            "kib" = Int(12_464), Between(1, 4_194_304): "size of each file that is read, KiB, 1 to 4194304";
            "how" = Text("whole"), OneOf(&["whole", "lines"]): "how it is read: whole: at a stretch; lines: line by line";
            + PYTHON;
        }
        metrics &[WRITE, READ];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let text = |name| params.text(name).unwrap_or_default().to_owned();
        let number = |name| whole(&params, name);
        let arguments = if params.text("what") == Some("read") {
            let bytes = params.int("kib").unwrap_or_default() * 1024;
            [
                text("what"),
                number("files"),
                bytes.to_string(),
                text("how"),
            ]
        } else {
            [
                text("what"),
                number("files"),
                number("lines"),
                number("line_bytes"),
            ]
        };
        let source = include_str!("python/files.py");
        let call = python_tool::call(&params, ISOLATED, "files.py", source, &arguments)?;
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        vec![python_tool::tool(params, MODULES)]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let printed: ProgramOutput = tool_text::printed(raw, FORMAT)?;
        if printed.bytes != printed.wanted_bytes {
            return Err(garbled(
                FORMAT,
                format!(
                    "{} bytes instead of {}",
                    printed.bytes, printed.wanted_bytes
                ),
            ));
        }
        let metric = match printed.what.as_str() {
            "write" => &WRITE,
            "read" => &READ,
            other => {
                let other = other.escape_debug();
                return Err(garbled(FORMAT, format!("it did `{other}`")));
            }
        };
        Ok(vec![command_output::sample(metric, vec![printed.ns])?])
    }
}

/// The parts of the script's output that are read.
#[derive(Deserialize)]
struct ProgramOutput {
    what: String,
    bytes: u64,
    wanted_bytes: u64,
    ns: f64,
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::{call_of, raw};
    use super::*;

    fn printed(what: &str, bytes: u32) -> RawOutput {
        let text = format!(
            r#"{{"format":"tare-files/1","what":"{what}","bytes":{bytes},"wanted_bytes":310,"ns":5000}}"#
        );
        raw(0, text.as_bytes(), b"")
    }

    #[test]
    fn wrong_file_size_or_unknown_work_is_an_error() {
        assert!(PythonFiles.decode(&printed("write", 309)).is_err());
        assert!(PythonFiles.decode(&printed("delete", 310)).is_err());
    }

    #[test]
    fn script_gets_only_the_arguments_of_its_work() {
        let arguments = |params: &Params| call_of(&PythonFiles, params).unwrap().argv[4..].to_vec();
        let write = Params::new().with("files", 10).with("lines", 800_000);
        assert_eq!(arguments(&write), ["write", "10", "800000", "31"]);
        let read = Params::new()
            .with("what", "read")
            .with("files", 10)
            .with("kib", 1247)
            .with("how", "lines");
        assert_eq!(arguments(&read), ["read", "10", "1276928", "lines"]);
        let error = PythonFiles.recipe(&Params::new().with("what", "sing"), None);
        assert_eq!(error.unwrap_err().param, "what");
    }
}
