//! The command line: one file a command.
//!
//! Data goes to standard output, everything else to standard error. The exit codes are a contract, see
//! `failed::Exit`. A closed standard output (`tare … | head`) is no error.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failed::{Exit, Failed};
use crate::session::home::GivenPaths;
use crate::session::{self, dry_run};
use crate::{bundle, output, recount, trusted};

mod clean;
mod compare;
mod compared;
mod completions;
mod doctor;
mod gate;
mod history;
mod list;
mod man;
mod measure;
mod repeat;
mod replay;
mod report;
mod resume;
mod run;
mod runs;
mod selfcheck;
mod serve;
mod service;
mod show;
mod why;

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
    /// Resume an interrupted run, or add blocks to a finished one.
    Resume(resume::Resume),
    /// Repeat the study of a bundle here, in the same order, and compare the results.
    Repeat(repeat::Repeat),
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
    Replay(replay::Replay),
    /// Remove leftovers of killed runs.
    Clean(clean::Clean),
    /// Print completions for a shell.
    Completions(completions::Completions),
    /// Write man pages into a folder.
    Man(man::Man),
}

/// Parses the command line, runs the command and returns its exit status.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are data, not errors.
            let exit = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            output::usage(&error);
            return ExitCode::from(exit as u8);
        }
    };
    let place = GivenPaths {
        agent: cli.agent,
        store: cli.store,
    };
    let result = match cli.command {
        Command::Run(command) => command.execute(&place),
        Command::Resume(command) => command.execute(&place),
        Command::Repeat(command) => command.execute(&place),
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

#[cfg(test)]
mod tests;
