//! Why an environment failed.

use std::time::Duration;

use super::{ChannelError, text};
use crate::cx::{CommandError, CommandLine, Context, Finished, files::FileError};

/// Why an environment failed, classified by what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// Something required is missing here.
    #[error("{why}")]
    Absent {
        /// Reason, as one clause.
        why: String,
        /// Hint, if any.
        fix: Option<String>,
    },
    /// The user lacks permission.
    #[error("permission denied: {what}")]
    Denied {
        /// The refused action.
        what: String,
        /// Hint, if any.
        fix: Option<String>,
    },
    /// The engine, runtime or kernel refused.
    #[error("{what}: {answer}")]
    Refused {
        /// The requested action.
        what: String,
        /// Its message, with control characters escaped.
        answer: String,
    },
    /// Something took too long.
    #[error("{phase} took longer than {} s", limit.as_secs_f64())]
    Timeout {
        /// The awaited phase.
        phase: String,
        /// The limit.
        limit: Duration,
    },
    /// The agent inside cannot be reached.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A command failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file could not be created.
    #[error(transparent)]
    File(#[from] FileError),
    /// The action failed, and so did the cleanup.
    #[error("{first}; and cleaning up failed too: {then}")]
    AndCleanup {
        /// The first failure.
        first: Box<EnvError>,
        /// The failure of the cleanup.
        then: Box<EnvError>,
    },
}

/// The result of something that an environment does.
pub type Result<T, E = EnvError> = std::result::Result<T, E>;

impl EnvError {
    /// Something required is missing, with a hint.
    pub(crate) fn absent(why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Absent {
            why: why.into(),
            fix: Some(fix.into()),
        }
    }

    /// Something required is missing, and there is no hint.
    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        Self::Absent {
            why: why.into(),
            fix: None,
        }
    }

    /// The user lacks permission, with a hint.
    pub(crate) fn denied(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Denied {
            what: what.into(),
            fix: Some(fix.into()),
        }
    }

    /// Refused with a message that is safe to print.
    pub(crate) fn refused(what: impl Into<String>, answer: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            answer: answer.into(),
        }
    }

    /// Refused with an error whose text is escaped.
    pub(crate) fn failed(what: impl Into<String>, error: &dyn std::fmt::Display) -> Self {
        Self::refused(what, text::printable(&error.to_string()))
    }

    /// Returns the hint, if any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Absent { fix, .. } | Self::Denied { fix, .. } => fix.clone(),
            Self::AndCleanup { first, .. } => first.hint(),
            Self::File(error) => error.advice().map(str::to_owned),
            _ => None,
        }
    }
}

/// Runs a command to its end, at most `limit`; if it fails, `what` was refused.
pub(super) fn succeed(
    cx: &Context<'_>,
    command: &CommandLine,
    limit: Duration,
    what: impl Into<String>,
) -> Result<Finished> {
    let finished = cx.exec.run(command, &[], limit)?;
    if finished.succeeded() {
        return Ok(finished);
    }
    Err(EnvError::refused(what, text::escaped(&finished.stderr)))
}
