//! `tare completions SHELL`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Exit, Failed, output};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(&self) -> Result<Exit, Failed> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tare", &mut script);
        output::data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}
