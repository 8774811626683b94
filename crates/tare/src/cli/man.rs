//! `tare man FOLDER`: pages for `man`, made from the same text as `--help`.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Roff;

use super::{Cli, Exit, Failed, output};
use crate::cx::files;

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder to write them to, such as `~/.local/share/man/man1`.
    folder: PathBuf,
}

impl Man {
    pub(crate) fn execute(&self) -> Result<Exit, Failed> {
        files::create_output_folder(&self.folder)?;
        let mut command = Cli::command();
        command.build();
        written(&command, &self.folder)?;
        for below in command
            .get_subcommands()
            .filter(|it| it.get_name() != "help")
        {
            written(below, &self.folder)?;
        }
        Ok(Exit::Done)
    }
}

/// Writes the page of one command and prints its path.
fn written(command: &Command, folder: &Path) -> Result<(), Failed> {
    let page = Roff::new(command.clone());
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)?;
    files::write_output(&path, &text)?;
    Ok(output::data(&format!("{}\n", path.display()))?)
}
