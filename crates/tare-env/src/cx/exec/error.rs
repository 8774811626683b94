//! Errors of running a command.

use std::time::Duration;

use super::OUTPUT_LIMIT;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such program.
    #[error("`{program}` is not installed or not on PATH")]
    Missing {
        /// The program.
        program: String,
    },
    /// It may not be started, or its pipes failed.
    #[error("cannot run `{command}`: {source}")]
    Io {
        /// The whole command.
        command: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It printed more than the limit and was killed.
    #[error("`{command}` printed more than {} MiB and was killed", OUTPUT_LIMIT >> 20)]
    TooMuch {
        /// The whole command.
        command: String,
    },
    /// It exceeded its time limit and was killed.
    #[error("`{command}` did not end within {} s and was killed", limit.as_secs_f64())]
    Timeout {
        /// The whole command.
        command: String,
        /// The limit.
        limit: Duration,
    },
}

impl CommandError {
    /// Replaces the command's words, which may hold secrets, by `name`.
    #[must_use]
    pub fn called(self, name: &str) -> Self {
        let command = name.to_owned();
        match self {
            Self::Missing { .. } => self,
            Self::Io { source, .. } => Self::Io { command, source },
            Self::TooMuch { .. } => Self::TooMuch { command },
            Self::Timeout { limit, .. } => Self::Timeout { command, limit },
        }
    }
}
