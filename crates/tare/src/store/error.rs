//! Errors of the store, grouped by what the user can do about them.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A newer version of Tare wrote it.
    #[error(
        "the store `{}` has format {found}, and this version of Tare ({}) knows formats up to {known}",
        path.display(), env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest version that this build knows.
        known: u32,
    },
    /// The disk is full. Everything stored before is kept.
    #[error(
        "no space left for the store `{}`; what it holds is kept",
        .0.display()
    )]
    Full(PathBuf),
    /// The file, its folder or its whole file system is read-only.
    #[error("the store `{}` is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// The disk fails. Everything stored before is kept.
    #[error(
        "cannot {action} the store `{}`, its disk fails ({problem}); what it holds is kept",
        path.display()
    )]
    DiskFails {
        /// What was tried, as a verb.
        action: &'static str,
        /// The store.
        path: PathBuf,
        /// SQLite's reason.
        problem: String,
    },
    /// Another process is writing to the store and does not release it.
    #[error("the store `{}` is locked by another process", .0.display())]
    Locked(PathBuf),
    /// Another run is using it.
    #[error(
        "another run is using the store `{}`{}",
        path.display(),
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The store.
        path: PathBuf,
        /// The process of that run, if it could be read.
        pid: Option<u32>,
    },
    /// The store is damaged.
    #[error(
        "the store `{}` is damaged: {problem}",
        path.display()
    )]
    Corrupt {
        /// The store.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The store has a schema entry that is not Tare's and that SQLite would execute.
    #[error("the store `{}` holds the {what}, which is none of Tare's", path.display())]
    Foreign {
        /// The store.
        path: PathBuf,
        /// The entry's kind and name.
        what: String,
    },
    /// The file is not a store.
    #[error("`{}` is not a store of Tare", .0.display())]
    NotAStore(PathBuf),
    /// There is no such run.
    #[error("no run `{}` in the store", id.escape_default())]
    NoSuchRun {
        /// The requested name.
        id: String,
        /// A run with a similar name, if any.
        near: Option<String>,
    },
    /// The store has no run.
    #[error("the store `{}` holds no run yet", .0.display())]
    Empty(PathBuf),
    /// The beginning of a name matches several runs.
    #[error("`{}` fits {} runs: {}", id.escape_default(), fits.len(), fits.join(", "))]
    Ambiguous {
        /// The requested name.
        id: String,
        /// The matching runs.
        fits: Vec<String>,
    },
    /// A run of this name exists already.
    #[error("there is a run `{0}` in the store already")]
    RunExists(String),
    /// This trial of the plan is stored already.
    #[error("trial {sequence} of the run `{run}` is stored already")]
    TrialExists {
        /// The run.
        run: String,
        /// The trial's place in the plan.
        sequence: u32,
    },
    /// The file or its folder cannot be used.
    #[error(
        "cannot {action} the store `{}`: {problem}",
        path.display()
    )]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The store.
        path: PathBuf,
        /// The system's reason.
        problem: String,
    },
}

impl StoreError {
    /// Whether reading the file while another process writes it can cause this error.
    pub(super) fn may_be_torn(&self) -> bool {
        matches!(
            self,
            Self::Corrupt { .. } | Self::Foreign { .. } | Self::NotAStore(_)
        )
    }

    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Newer { .. } => {
                "use the newer Tare that wrote it, or another file with `--store FILE`"
            }
            Self::Full(_) => {
                "free some space there or name another file with `--store FILE`; a run that had begun goes on with `tare resume`"
            }
            Self::ReadOnly(_) => {
                "name a file on a disk that can be written to with `--store FILE`, or another folder with TARE_HOME"
            }
            Self::DiskFails { .. } => {
                "see the kernel's log (`dmesg`), and name a file on another disk with `--store FILE`; a run that had begun goes on with `tare resume` where its store can be written to"
            }
            Self::Locked(_) => "try again when it is done",
            Self::InUse { .. } => "wait for it to end, or use another file with `--store FILE`",
            Self::Corrupt { .. } => "keep a copy, and go on with another file with `--store FILE`",
            Self::Foreign { .. } => {
                "views and triggers of your own belong into another file, which ATTACHes this one; a store that was sent with them is not to be trusted"
            }
            Self::NotAStore(_) => "name another file with `--store FILE`",
            Self::NoSuchRun {
                near: Some(near), ..
            } => return Some(format!("did you mean `{near}`?")),
            Self::NoSuchRun { near: None, .. } => "`tare runs` lists them",
            Self::Empty(_) => "`tare run` makes one",
            Self::Io { .. } => {
                "name another file with `--store FILE`, or another folder with TARE_HOME"
            }
            Self::Ambiguous { .. } | Self::RunExists(_) | Self::TrialExists { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Classifies an error of the file system.
pub(super) fn of_file(path: &Path, action: &'static str, error: &std::io::Error) -> StoreError {
    match error.kind() {
        std::io::ErrorKind::StorageFull => StoreError::Full(path.to_owned()),
        std::io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(path.to_owned()),
        _ => StoreError::Io {
            action,
            path: path.to_owned(),
            problem: error.to_string(),
        },
    }
}

/// Extended code of an I/O error while SQLite extended its shared index. The only cause seen in practice is a full
/// disk, which SQLite does not distinguish here (`SQLITE_IOERR_SHMSIZE`).
const IO_ERROR_SHARED_INDEX_SIZE: i32 = 0x130a;

/// Classifies an error of SQLite.
pub(super) fn classify(path: &Path, action: &'static str, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let problem = error.to_string();
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => StoreError::Full(path),
            ErrorCode::SystemIoFailure if failure.extended_code == IO_ERROR_SHARED_INDEX_SIZE => {
                StoreError::Full(path)
            }
            ErrorCode::SystemIoFailure => StoreError::DiskFails {
                action,
                path,
                problem,
            },
            ErrorCode::ReadOnly => StoreError::ReadOnly(path),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked(path),
            ErrorCode::NotADatabase => StoreError::NotAStore(path),
            ErrorCode::DatabaseCorrupt => StoreError::Corrupt { path, problem },
            ErrorCode::OperationInterrupted => StoreError::Corrupt {
                path,
                problem: "reading it takes more steps than a file of its length can hold"
                    .to_owned(),
            },
            _ => StoreError::Io {
                action,
                path,
                problem,
            },
        },
        // A column has a value that this version cannot read: SQLite is fine, the contents are not.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => StoreError::Corrupt { path, problem },
        _ => StoreError::Io {
            action,
            path,
            problem,
        },
    }
}
