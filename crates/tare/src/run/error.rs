//! Why a run could not be begun or could not go on, cut by what the reader can do about it.

use crate::cx::files::FileError;
use tare_model::{ArmId, RunId};

use crate::env::SettingsError;
use crate::store::StoreError;
use crate::workload::ParamError;

/// Why a run failed. Whatever was measured before is in the store, and what was started is removed.
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
    /// An arm's settings are not acceptable.
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
    /// A workload's parameters are not acceptable.
    #[error("the workload `{workload}`: {source}")]
    Param {
        /// The workload.
        workload: String,
        /// Which parameter, and what is wrong.
        source: ParamError,
    },
    /// An arm that was asked for by name, or the baseline, could not be started.
    #[error("the environment of the arm `{arm}` could not be started: {why}")]
    RequiredArm {
        /// The arm.
        arm: ArmId,
        /// Why.
        why: String,
        /// The command or change that would help.
        fix: Option<String>,
    },
    /// An arm has another tool than the baseline, so that a ratio would be one of programs.
    #[error(
        "the arms do not run the same programs: {}",
        differences.join("; ")
    )]
    DifferentTools {
        /// Which tool differs in which arm, and how.
        differences: Vec<String>,
    },
    /// The baseline went away during the run, so that there is nothing left to compare with.
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
    /// The run ended as its study said it should.
    #[error("the run `{run}` is complete, there is nothing to resume")]
    Complete {
        /// The run.
        run: RunId,
        /// Whether it ended before everything was as precise as it was to be.
        has_more: bool,
    },
    /// The plan that this version of Tare makes of the stored study is another one.
    #[error(
        "the run `{run}` was planned by Tare {tare}, and this version ({}) would plan it otherwise",
        env!("CARGO_PKG_VERSION")
    )]
    OtherPlan {
        /// The run.
        run: RunId,
        /// The version that began it.
        tare: String,
    },
    /// The agent is not the one that the run was begun with.
    #[error(
        "the run `{run}` was begun with another agent (SHA-256 {stored}, now {present}), and the same bytes must run in every block"
    )]
    OtherAgent {
        /// The run.
        run: RunId,
        /// The hash in the store.
        stored: String,
        /// The hash of the present agent.
        present: String,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of Tare's own cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// It failed, and so did removing what had been started.
    #[error("{first}; and removing what had been started failed too: {}", then.join("; "))]
    AndCleanup {
        /// The first failure.
        first: Box<RunError>,
        /// What could not be removed.
        then: Vec<String>,
    },
}

impl RunError {
    /// What the reader can do.
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

    /// Whether something that was started may still be there.
    pub fn may_have_left(&self) -> bool {
        matches!(self, Self::AndCleanup { .. })
    }

    /// The error with its hint, as a run's end is stored.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}; hint: {hint}"),
            None => self.to_string(),
        }
    }

    /// The first failure, without what happened while cleaning up.
    pub fn first(&self) -> &Self {
        match self {
            Self::AndCleanup { first, .. } => first.first(),
            other => other,
        }
    }
}
