//! `tare replay`: computes every number of a bundle again from its raw output, and compares.

use std::path::PathBuf;

use clap::Args;

use super::{Exit, Failed, bundle, output};

/// Derives every number of a bundle again from its raw output, and compares.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The archive that `tare report RUN --bundle FILE` made.
    bundle: PathBuf,
}

impl Replay {
    pub(crate) fn execute(&self) -> Result<Exit, Failed> {
        let (text, failed) = bundle::replayed(&self.bundle)?;
        output::text(&text)?;
        failed.map_or(Ok(Exit::Done), Err)
    }
}
