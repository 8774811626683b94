//! Flags of development commands, and what several of them ask `tare`.

use std::path::Path;
use std::process::{Command, ExitCode, Output, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask_build::shell::{Program, program};

/// Returns the values of a command's flags, each of which takes one: the given value, else the default.
pub(crate) fn flags<const N: usize>(
    command: &str,
    arguments: &[String],
    known: [(&str, &str); N],
) -> Result<[String; N]> {
    let mut values = known.map(|(_, default)| default.to_owned());
    for pair in arguments.chunks(2) {
        let place = known.iter().position(|(flag, _)| *flag == pair[0]);
        let (Some(place), Some(value)) = (place, pair.get(1)) else {
            let usage = known.map(|(flag, default)| format!("[{flag} {default}]"));
            bail!("usage: cargo xtask {command} {}", usage.join(" "));
        };
        values[place].clone_from(value);
    }
    Ok(values)
}

/// Parses a flag's value as a number.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse()
        .map_err(|_| anyhow::anyhow!("`{text}` is no number"))
}

/// Runs `tare why` in `folder`, with its home next to `work`; `engine` is the address of Docker.
pub(crate) fn why(mut command: Command, folder: &Path, engine: Option<&str>) -> Result<Output> {
    if let Some(engine) = engine {
        command.env("DOCKER_HOST", engine);
    }
    command
        .current_dir(folder.join("work"))
        .env("TARE_HOME", folder.join("home"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run `tare why`")
}

/// Returns the exit status of a command that found everything right, or not.
pub(crate) fn exit_status(is_right: bool) -> ExitCode {
    if is_right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns `tare` with its home in `folder`.
pub(crate) fn tare_in(folder: &Path, tare: &Path, arguments: &[&str]) -> Program {
    program(tare, arguments).variable("TARE_HOME", folder.join("home"))
}

/// Runs `tare run` with its home in `folder`, proves nothing, and returns the dossier.
pub(crate) fn run_in(folder: &Path, tare: &Path, arguments: &[&str]) -> Result<Value> {
    tare_in(folder, tare, &["run"])
        .arguments(arguments)
        .arguments(&["--prove", "0s", "--json", "-"])
        .json()
}

/// Returns the cells in a list of a dossier.
pub(crate) fn cells<'v>(dossier: &'v Value, list: &str) -> Result<&'v Vec<Value>> {
    let cells = dossier[list].as_array();
    cells.with_context(|| format!("the dossier has no {list}"))
}

/// Returns the ratio of a cell: point, low and high end.
pub(crate) fn ratio(cell: &Value) -> Option<[f64; 3]> {
    let end = |name: &str| cell["ratio"][name].as_f64();
    Some([end("point")?, end("low")?, end("high")?])
}

/// A program that prints JSON.
pub(crate) trait Json {
    /// Runs it and returns the JSON that it printed; an error if it fails or prints something else.
    fn json(&self) -> Result<Value>;
}

impl Json for Program {
    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.output()?).with_context(|| format!("`{self}` printed no JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_defaults_and_others_are_refused() {
        let read = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
            flags("aa", &arguments, [("-n", "100"), ("--budget", "1m")])
        };
        assert_eq!(read(&[]).unwrap(), ["100", "1m"]);
        assert_eq!(read(&["--budget", "15s"]).unwrap(), ["100", "15s"]);
        for wrong in [&["-n"][..], &["-m", "3"], &["-n", "3", "x"]] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("[-n 100] [--budget 1m]"), "{error}");
        }
        assert!(number::<u64>("x").is_err());
    }
}
