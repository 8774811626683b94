//! `tare gate`: the comparison, and exit status 1 if something is proven slower.

use clap::{Args, ValueEnum};

use super::{Exit, Failed, output};
use crate::compare::options::Options;
use crate::compare::{Comparison, Decision, Kind, answer};
use crate::report::compared::shown;
use crate::session::home::GivenPaths;

/// When the exit status is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Something is proven slower: status 1.
    Slower,
    /// Also where something is inconclusive: status 6.
    SlowerOrOpen,
}

#[derive(Debug, Args)]
pub(crate) struct Gate {
    #[command(flatten)]
    options: Options,
    /// Compare the base with itself: how often would this machine be red for nothing?
    #[arg(long)]
    aa: bool,
    /// End with an exit status other than 0 when this is found.
    #[arg(long, value_name = "WHEN", default_value = "slower")]
    fail_on: FailOn,
    /// End with the exit status that `git bisect run` wants: 0 good, 1 bad, 125 where the commit cannot be judged.
    #[arg(long)]
    bisect: bool,
}

impl Gate {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let kind = if self.aa {
            Kind::ControlOnly
        } else {
            Kind::Gate
        };
        let answered = answer(&self.options, kind, place);
        let answer = match answered {
            Ok(answer) => answer,
            // A commit that does not build or run is neither good nor bad, and git treats any other status as bad.
            Err(failed) if self.bisect => {
                let exit = if failed.exit == Exit::Interrupted {
                    Exit::Abort
                } else {
                    Exit::Skip
                };
                return Err(Failed { exit, ..failed });
            }
            Err(failed) => return Err(failed),
        };
        if answer.is_interrupted {
            return Ok(if self.bisect {
                Exit::Abort
            } else {
                Exit::Interrupted
            });
        }
        if self.aa && answer.comparison.paired {
            output::text(&shown::control(&answer.comparison))?;
            return Ok(Exit::Done);
        }
        Ok(self.exit(&answer.comparison))
    }

    /// The exit status of a comparison.
    fn exit(&self, comparison: &Comparison) -> Exit {
        match comparison.decision {
            Decision::Slower if comparison.gate && comparison.paired => Exit::Slower,
            Decision::Inconclusive if self.bisect => Exit::Skip,
            Decision::Inconclusive if self.fail_on == FailOn::SlowerOrOpen => Exit::Open,
            _ => Exit::Done,
        }
    }
}
