//! How a command ends without its work done: the exit status, what was wrong, what helps.

use crate::config::StudyError;
use crate::cx::files::{self, FileError};
use crate::cx::owner::OwnerError;
use crate::run::RunError;
use crate::store::StoreError;
use crate::why::Trouble;

/// Exit statuses of every command: a contract for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
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
pub(crate) struct Failed {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What was wrong and where.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// Whether something that was started may still be there, so that the run's folder is kept for `tare clean`.
    pub(crate) may_have_left: bool,
    /// Whether it is no failure: the reader of the output has closed it.
    pub(crate) is_closed_pipe: bool,
}

impl Failed {
    /// A failure with this exit code.
    pub(crate) fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
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
    pub(crate) fn maybe(self, hint: Option<String>) -> Self {
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
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl From<StudyError> for Failed {
    fn from(error: StudyError) -> Self {
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

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        let advice = error.advice();
        Self {
            is_closed_pipe: error.source.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::new(Exit::Failure, error).advised(advice)
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

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::NoSuchRun { .. } | StoreError::Ambiguous { .. } | StoreError::Empty(_) => {
                Exit::Usage
            }
            _ => Exit::Failure,
        };
        Self::new(exit, &error).maybe(error.hint())
    }
}

impl From<OwnerError> for Failed {
    fn from(error: OwnerError) -> Self {
        match &error {
            OwnerError::NotTares(_) => Self::new(Exit::Usage, error)
                .hint("move it away, or set TARE_HOME to another folder"),
            OwnerError::Busy(_) => Self::new(Exit::Failure, error),
            OwnerError::File(file) => {
                let advice = file.advice();
                Self::new(Exit::Failure, error).advised(advice)
            }
        }
    }
}

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        let exit = match error.first() {
            RunError::RequiredArm { .. } => Exit::Environment,
            RunError::UnknownDriver { .. }
            | RunError::Settings { .. }
            | RunError::UnknownWorkload(_)
            | RunError::Param { .. }
            | RunError::DifferentTools { .. }
            | RunError::Complete { .. } => Exit::Usage,
            _ => Exit::Failure,
        };
        Self {
            may_have_left: error.may_have_left(),
            ..Self::new(exit, &error).maybe(error.hint())
        }
    }
}

impl From<files::NotOwn> for Failed {
    fn from(error: files::NotOwn) -> Self {
        let hint = error.hint();
        Self::new(Exit::Usage, error).hint(hint)
    }
}
