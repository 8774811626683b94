//! The failure of a command: exit status, message and hint.

use crate::config::StudyError;
use crate::cx::files::{self, FileError};
use crate::cx::owner::OwnerError;
use crate::run::RunError;
use crate::store::StoreError;
use crate::why::WhyError;

/// Exit statuses of every command; scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success; no slowdown was proven.
    Done = 0,
    /// `tare gate`: a slowdown was proven. Nothing else exits with this status.
    Slower = 1,
    /// Wrong usage or invalid study.
    Usage = 2,
    /// An environment that was requested by name could not be started.
    Environment = 3,
    /// Interrupted; the results so far are stored.
    Interrupted = 4,
    /// Any other failure.
    Failure = 5,
    /// `tare gate --fail-on slower-or-open`: a result is inconclusive.
    Open = 6,
    /// `tare gate --bisect`: git skips this commit.
    Skip = 125,
    /// `tare gate --bisect`: git aborts the search.
    Abort = 128,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failed {
    pub(crate) exit: Exit,
    /// What failed, and where; may contain untrusted names and texts, which are escaped where it is printed.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// Whether something that was started may still exist; if so, the run's folder is kept for `tare clean`.
    pub(crate) may_have_left: bool,
    /// Whether the reader of the output closed the pipe, which is not a failure.
    pub(crate) is_closed_pipe: bool,
}

impl Failed {
    pub(crate) fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        Self {
            exit,
            message: format!("{message}"),
            hint: None,
            may_have_left: false,
            is_closed_pipe: false,
        }
    }

    /// Wrong usage or an invalid study.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A failure that has no exit status of its own.
    pub(crate) fn failure(message: impl std::fmt::Display) -> Self {
        Self::new(Exit::Failure, message)
    }

    /// There is no `what` with this name; the hint is the nearest of the known names, or all of them and `more`.
    pub(crate) fn unknown(what: &str, name: &str, known: &[&str], more: &str) -> Self {
        let hint = match crate::suggest::nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are: {}; {more}", known.join(", ")),
        };
        Self::usage(format!("there is no {what} `{name}`")).hint(hint)
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub(crate) fn maybe(self, hint: Option<String>) -> Self {
        Self {
            hint: hint.or(self.hint),
            ..self
        }
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub(crate) fn advised(self, advice: Option<&str>) -> Self {
        self.maybe(advice.map(str::to_owned))
    }

    /// Adds a hint.
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
        Self::usage(error)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self {
            is_closed_pipe: error.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::failure(format!("cannot write the output: {error}"))
        }
    }
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        let advice = error.advice();
        Self {
            is_closed_pipe: error.source.kind() == std::io::ErrorKind::BrokenPipe,
            ..Self::failure(error).advised(advice)
        }
    }
}

impl From<WhyError> for Failed {
    fn from(trouble: WhyError) -> Self {
        let mut cause = &trouble;
        while let WhyError::Left { first, .. } = cause {
            cause = first;
        }
        let exit = match cause {
            WhyError::Nothing
            | WhyError::NoDirectory
            | WhyError::NotHere { .. }
            | WhyError::NoVariable { .. }
            | WhyError::Private { .. }
            | WhyError::OddPath { .. } => Exit::Usage,
            WhyError::Environment { .. } | WhyError::NotRemoved { .. } => Exit::Environment,
            WhyError::Cancelled => Exit::Interrupted,
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
            OwnerError::NotTares(_) => {
                Self::usage(error).hint("move it away, or set TARE_HOME to another folder")
            }
            OwnerError::Busy(_) => Self::failure(error),
            OwnerError::File(file) => {
                let advice = file.advice();
                Self::failure(error).advised(advice)
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
        Self::usage(error).hint(hint)
    }
}
