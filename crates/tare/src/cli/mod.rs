//! The command line: one file a command.
//!
//! Data goes to standard output, everything else to standard error. The exit codes are a contract, see
//! [`Exit`]. A closed standard output (`tare … | head`) is no error.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::why::Trouble;

pub mod output;
mod own;

mod again;
mod bundle;
mod checked;
mod clean;
mod compare;
mod compared;
mod completions;
mod doctor;
#[cfg(test)]
mod documented;
mod dry_run;
mod gate;
mod history;
mod home;
mod leftovers;
mod list;
mod man;
mod progress;
mod proof;
mod recount;
mod report;
mod rounds;
mod run;
mod runs;
mod selfcheck;
mod serve;
mod service;
mod session;
mod show;
mod trusted;
mod why;

/// Exit statuses of every command: a contract for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and nothing is proven slower.
    Done = 0,
    /// `tare gate`: something is proven slower. Nothing else ever ends with this status.
    Slower = 1,
    /// Wrong usage or a wrong study.
    Usage = 2,
    /// An environment that was asked for by name could not be started.
    Environment = 3,
    /// Interrupted; what was measured is stored.
    Interrupted = 4,
    /// Any other failure.
    Failure = 5,
    /// `tare gate --fail-on slower-or-open`: something is inconclusive.
    Open = 6,
    /// `tare gate --bisect`: git is to skip this commit.
    Skip = 125,
    /// `tare gate --bisect`: git is to end the search.
    Abort = 128,
}

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// The exit code.
    pub exit: Exit,
    /// What was wrong and where.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether something that was started may still be there, so that the run's folder is kept for `tare clean`.
    pub may_have_left: bool,
    /// Whether it is no failure: whoever read the output wants no more of it.
    pub is_closed_pipe: bool,
}

impl Failed {
    /// A failure with this exit code.
    pub fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self {
            exit,
            message: format!("{message}"),
            hint: None,
            may_have_left: false,
            is_closed_pipe: false,
        }
    }

    /// The same with a hint, if there is one.
    #[must_use]
    pub fn maybe(self, hint: Option<String>) -> Self {
        Self {
            hint: hint.or(self.hint),
            ..self
        }
    }

    /// The same with a hint, if there is one.
    #[must_use]
    pub(crate) fn advised(self, advice: Option<&str>) -> Self {
        match advice {
            Some(advice) => self.hint(advice),
            None => self,
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl From<crate::config::StudyError> for Failed {
    fn from(error: crate::config::StudyError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self {
            is_closed_pipe: error.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::new(Exit::Failure, format!("cannot write the output: {error}"))
        }
    }
}

impl From<crate::cx::files::FileError> for Failed {
    fn from(error: crate::cx::files::FileError) -> Self {
        let advice = error.advice();
        Self {
            is_closed_pipe: error.source.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::new(Exit::Failure, error).advised(advice)
        }
    }
}

/// Measure the overhead of containers, VMs and other environments, and find its cause.
#[derive(Debug, Parser)]
#[command(name = "tare", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Use this agent instead of the embedded one.
    #[arg(long, global = true, value_name = "PATH", hide_short_help = true)]
    agent: Option<std::path::PathBuf>,
    /// Use this store (default: store.db in `$TARE_HOME` or `~/.local/state/tare`).
    #[arg(long, global = true, value_name = "FILE")]
    store: Option<std::path::PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the same work in every environment, in randomised blocks.
    Run(Box<run::Run>),
    /// Find which mechanism slows a command down inside, proved by switching it off.
    Why(Box<why::Why>),
    /// Find which of two or more commands, environments or revisions is faster.
    Compare(Box<compare::Compare>),
    /// Compare, and exit with status 1 if something is proven slower.
    Gate(Box<gate::Gate>),
    /// Show where a metric changed over the stored comparisons.
    History(history::History),
    /// List environments, workloads, studies and causes.
    List(list::List),
    /// Check what works here, what is missing and how to get it, and how noisy the machine is.
    Doctor(doctor::Doctor),
    /// Count how often this Tare errs on this machine, where the truth is known.
    Selfcheck(selfcheck::Selfcheck),
    /// List stored runs.
    Runs(runs::Runs),
    /// Show a stored run with all values, derived again from raw output.
    Show(show::Show),
    /// Write a stored run as page, Markdown, LaTeX, figures or data.
    Report(report::Report),
    /// Serve stored runs as pages on the loopback.
    Serve(serve::Serve),
    /// Derive every number of a bundle again and compare.
    Replay(bundle::Replay),
    /// Remove leftovers of killed runs.
    Clean(clean::Clean),
    /// Print completions for a shell.
    Completions(completions::Completions),
    /// Write man pages into a folder.
    Man(man::Man),
}

/// Reads the command line, does the work, and says how it ended.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data and no error.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            output::usage(&error);
            return ExitCode::from(exit as u8);
        }
    };
    let place = home::Place {
        agent: cli.agent,
        store: cli.store,
    };
    let result = match cli.command {
        Command::Run(command) => command.execute(&place),
        Command::Why(command) => command.execute(&place),
        Command::Compare(command) => command.execute(&place),
        Command::Gate(command) => command.execute(&place),
        Command::History(command) => command.execute(&place),
        Command::List(command) => command.execute(),
        Command::Doctor(command) => command.execute(&place),
        Command::Selfcheck(command) => command.execute(&place),
        Command::Runs(command) => command.execute(&place),
        Command::Show(command) => command.execute(&place),
        Command::Report(command) => command.execute(&place),
        Command::Serve(command) => command.execute(&place),
        Command::Replay(command) => command.execute(),
        Command::Clean(command) => command.execute(&place),
        Command::Completions(command) => command.execute(),
        Command::Man(command) => command.execute(),
    };
    match result {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failed) if failed.is_closed_pipe => ExitCode::SUCCESS,
        Err(failed) => {
            output::error(&failed);
            ExitCode::from(failed.exit as u8)
        }
    }
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        let mut cause = &trouble;
        while let Trouble::Left { first, .. } = cause {
            cause = first;
        }
        let exit = match cause {
            Trouble::Nothing
            | Trouble::NoDirectory
            | Trouble::NotHere { .. }
            | Trouble::NoVariable { .. }
            | Trouble::Private { .. }
            | Trouble::OddPath { .. } => Exit::Usage,
            Trouble::Environment { .. } | Trouble::NotRemoved { .. } => Exit::Environment,
            Trouble::Cancelled => Exit::Interrupted,
            _ => Exit::Failure,
        };
        Self {
            may_have_left: trouble.may_have_left(),
            ..Self::new(exit, &trouble).maybe(trouble.hint())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
