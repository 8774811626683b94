//! Runs programs and prints progress on stderr.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::workspace::root;

/// Prints the next step, with the time since the first one.
pub(crate) fn step(what: &str) {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let seconds = FIRST.get_or_init(Instant::now).elapsed().as_secs();
    if seconds == 0 {
        eprintln!("== {what}");
    } else {
        eprintln!("== {what} (after {seconds} s)");
    }
}

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

/// A program to run, by default in the repository's root.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    name: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

/// Returns the program `name` with `arguments`.
pub(crate) fn program(name: impl AsRef<OsStr>, arguments: &[&str]) -> Program {
    Program {
        name: name.as_ref().to_owned(),
        arguments: Vec::new(),
        variables: Vec::new(),
        folder: root().to_owned(),
    }
    .arguments(arguments)
}

/// Returns the cargo that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Program {
    program(
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        arguments,
    )
}

impl Program {
    /// Adds arguments.
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// Sets an environment variable.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables
            .push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Returns another program without arguments, with the same variables.
    pub(crate) fn instead(&self, name: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.as_ref().to_owned(),
            arguments: Vec::new(),
            ..self.clone()
        }
    }

    /// Sets the working directory.
    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Gives the program the lowest priority.
    pub(crate) fn politely(mut self) -> Self {
        let program = std::mem::replace(&mut self.name, "nice".into());
        self.arguments
            .splice(0..0, ["-n".into(), "19".into(), program]);
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command
            .args(&self.arguments)
            .envs(self.variables.iter().cloned())
            .current_dir(&self.folder);
        command
    }

    /// Runs it to its end; an error if it fails.
    pub(crate) fn run(&self) -> Result<()> {
        let status = self
            .command()
            .status()
            .with_context(|| format!("cannot run `{self}`"))?;
        if status.success() {
            Ok(())
        } else {
            bail!("`{self}` ended with {status}")
        }
    }

    /// Runs it to its end and passes on its output line by line; an error if it fails.
    pub(crate) fn pass_on(&self, mut each: impl FnMut(&str)) -> Result<()> {
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run `{self}`"))?;
        for line in BufReader::new(child.stdout.take().context("no standard output")?).split(b'\n')
        {
            each(&String::from_utf8_lossy(&line?));
        }
        let status = child.wait()?;
        if status.success() {
            Ok(())
        } else {
            bail!("`{self}` ended with {status}")
        }
    }

    /// Runs it and returns the JSON that it printed; an error if it fails or prints something else.
    pub(crate) fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.output()?).with_context(|| format!("`{self}` printed no JSON"))
    }

    /// Runs it and returns what it printed; an error if it fails.
    pub(crate) fn output(&self) -> Result<String> {
        let output = self
            .command()
            .output()
            .with_context(|| format!("cannot run `{self}`"))?;
        if !output.status.success() {
            bail!(
                "`{self}` ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.name.to_string_lossy())?;
        self.arguments
            .iter()
            .try_for_each(|argument| write!(out, " {}", argument.to_string_lossy()))
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
