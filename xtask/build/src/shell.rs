//! Runs programs and prints progress on stderr.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::workspace::root;

/// Prints the next step, with the time since the first one.
pub fn step(what: &str) {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let seconds = FIRST.get_or_init(Instant::now).elapsed().as_secs();
    if seconds == 0 {
        eprintln!("== {what}");
    } else {
        eprintln!("== {what} (after {seconds} s)");
    }
}

/// Returns the arguments as they are given to a [`Program`].
pub fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// A program to run, by default in the repository's root.
#[derive(Debug, Clone)]
pub struct Program {
    name: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

/// Returns the program `name` with `arguments`.
pub fn program(name: impl AsRef<OsStr>, arguments: &[&str]) -> Program {
    Program {
        name: name.as_ref().to_owned(),
        arguments: Vec::new(),
        variables: Vec::new(),
        folder: root().to_owned(),
    }
    .arguments(arguments)
}

/// Returns the cargo that runs this.
pub fn cargo(arguments: &[&str]) -> Program {
    program(
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        arguments,
    )
}

impl Program {
    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables
            .push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Returns another program without arguments, with the same variables.
    #[must_use]
    pub fn instead(&self, name: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.as_ref().to_owned(),
            arguments: Vec::new(),
            ..self.clone()
        }
    }

    /// Sets the working directory.
    #[must_use]
    pub fn folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Gives the program the lowest priority.
    #[must_use]
    pub fn politely(mut self) -> Self {
        let program = std::mem::replace(&mut self.name, "nice".into());
        self.arguments
            .splice(0..0, ["-n".into(), "19".into(), program]);
        self
    }

    fn started<T>(&self, result: std::io::Result<T>) -> Result<T> {
        result.with_context(|| format!("cannot run `{self}`"))
    }

    fn succeeded(&self, status: ExitStatus) -> Result<()> {
        ensure!(status.success(), "`{self}` ended with {status}");
        Ok(())
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
    pub fn run(&self) -> Result<()> {
        let status = self.started(self.command().status())?;
        self.succeeded(status)
    }

    /// Runs it to its end in the caller's folder and returns its exit status as one's own.
    pub fn exit_code(&self) -> Result<ExitCode> {
        let caller = std::env::current_dir()?;
        let status = self.started(self.command().current_dir(caller).status())?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }

    /// Runs it to its end and passes on its output line by line; an error if it fails.
    pub fn pass_on(&self, mut each: impl FnMut(&str)) -> Result<()> {
        let mut child = self.started(self.command().stdout(Stdio::piped()).spawn())?;
        for line in BufReader::new(child.stdout.take().context("no standard output")?).split(b'\n')
        {
            each(&String::from_utf8_lossy(&line?));
        }
        self.succeeded(child.wait()?)
    }

    /// Runs it and returns what it printed; an error if it fails.
    pub fn output(&self) -> Result<String> {
        let output = self.started(self.command().output())?;
        ensure!(
            output.status.success(),
            "`{self}` ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
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
