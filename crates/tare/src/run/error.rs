//! Errors that prevent or end a run, grouped by what the user can do about them.

use crate::cx::files::FileError;
use tare_model::{ArmId, RunId};

use crate::env::SettingsError;
use crate::store::StoreError;
use crate::workload::ParamError;

/// Why a run failed. Earlier results are in the store, and everything that was started has been removed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The study names a driver that does not exist.
    #[error("the arm `{arm}` asks for the environment `{driver}`, which does not exist")]
    UnknownDriver {
        /// The arm.
        arm: ArmId,
        /// The driver's name, escaped.
        driver: String,
    },
    /// An arm's settings are invalid.
    #[error("the arm `{arm}`: {source}")]
    Settings {
        /// The arm.
        arm: ArmId,
        /// Which setting, and what is wrong.
        source: SettingsError,
    },
    /// The study names a workload that does not exist.
    #[error("there is no workload `{0}`")]
    UnknownWorkload(String),
    /// A workload's parameters are invalid.
    #[error("the workload `{workload}`: {source}")]
    Param {
        /// The workload.
        workload: String,
        /// Which parameter, and what is wrong.
        source: ParamError,
    },
    /// The baseline, or an arm requested by name, could not be started.
    #[error("the environment of the arm `{arm}` could not be started: {why}")]
    RequiredArm {
        /// The arm.
        arm: ArmId,
        /// The reason.
        why: String,
        /// The command or change that would help, if known.
        fix: Option<String>,
    },
    /// A tool differs between an arm and the baseline, so a ratio would compare programs.
    #[error(
        "the arms do not run the same programs: {}",
        differences.join("; ")
    )]
    DifferentTools {
        /// Which tool differs in which arm, and how.
        differences: Vec<String>,
    },
    /// The baseline was lost during the run, so nothing is left to compare with.
    #[error(
        "the baseline `{arm}` was lost in block {block}: {why}; what was measured before is stored"
    )]
    BaselineLost {
        /// The baseline.
        arm: ArmId,
        /// The block, from 0.
        block: u32,
        /// How it was lost.
        why: String,
    },
    /// The run had already ended as planned.
    #[error("the run `{run}` is complete, there is nothing to resume")]
    Complete {
        /// The run.
        run: RunId,
        /// Whether it ended before everything was precise enough.
        has_more: bool,
    },
    /// This version of Tare would plan the stored study differently.
    #[error(
        "the run `{run}` was planned by Tare {tare}, and this version ({}) would plan it otherwise",
        env!("CARGO_PKG_VERSION")
    )]
    OtherPlan {
        /// The run.
        run: RunId,
        /// The version that started the run.
        tare: String,
    },
    /// The agent differs from the one that the run was started with.
    #[error(
        "the run `{run}` was begun with another agent (SHA-256 {stored}, now {present}), and the same bytes must run in every block"
    )]
    OtherAgent {
        /// The run.
        run: RunId,
        /// The hash in the store.
        stored: String,
        /// The hash of the current agent.
        present: String,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// One of Tare's files cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The run failed, and so did the cleanup.
    #[error("{first}; and removing what had been started failed too: {}", then.join("; "))]
    AndCleanup {
        /// The first failure.
        first: Box<RunError>,
        /// Leftovers that could not be removed.
        then: Vec<String>,
    },
}

impl RunError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownDriver { .. } => "see `tare list environments`".to_owned(),
            Self::UnknownWorkload(_) => "see `tare list workloads`".to_owned(),
            Self::RequiredArm { fix, .. } => return fix.clone(),
            Self::DifferentTools { .. } => "remove `image` so that the host's own files are used, give every arm the same image, or allow it with `allow_different_tools = true` under [design] or `--allow-different-tools`: those cells are then labelled `different-tool`".to_owned(),
            Self::Complete { run, has_more: true } => format!(
                "`tare resume {run} --budget 60s` adds blocks in so much more time; see `tare show {run}`"
            ),
            Self::Complete { run, .. } => format!("see `tare show {run}`"),
            Self::OtherPlan { .. } => "resume it with that version, or run the study again".to_owned(),
            Self::OtherAgent { .. } => {
                "resume it with the Tare that began it, or run the study again".to_owned()
            }
            Self::Store(error) => return error.hint(),
            Self::AndCleanup { first, .. } => match first.hint() {
                Some(hint) => format!("{hint}; then `tare clean`"),
                None => "`tare clean`".to_owned(),
            },
            Self::Settings { .. } | Self::Param { .. } | Self::BaselineLost { .. } => return None,
            Self::File(error) => return error.advice().map(str::to_owned),
        })
    }

    /// Whether something that was started may still exist.
    pub fn may_have_left(&self) -> bool {
        matches!(self, Self::AndCleanup { .. })
    }

    /// The error with its hint, as stored with the run.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; hint: {hint}"),
            None => self.to_string(),
        }
    }

    /// The first failure, without those of the cleanup.
    pub fn first(&self) -> &Self {
        match self {
            Self::AndCleanup { first, .. } => first.first(),
            other => other,
        }
    }
}
