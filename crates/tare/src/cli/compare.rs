//! `tare compare`: which of two or more commands, environments or revisions is faster.

use clap::Args;

use super::{Exit, Failed, GivenPaths};
use crate::compare::options::Options;
use crate::compare::{Kind, answer};

#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    options: Options,
}

impl Compare {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let answer = answer(&self.options, Kind::Compare, place)?;
        Ok(if answer.is_interrupted {
            Exit::Interrupted
        } else {
            Exit::Done
        })
    }
}
