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
    #[error(
        "the arm `{arm}` asks for the environment `{driver}`, which does not exist; hint: see `tare list environments`"
    )]
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
    #[error("there is no workload `{0}`; hint: see `tare list workloads`")]
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
    #[error(
        "the environment of the arm `{arm}` could not be started: {why}{}",
        fix.as_ref().map(|fix| format!("; hint: {fix}")).unwrap_or_default()
    )]
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
        "the arms do not run the same programs: {}; hint: leave `image` out so that the host's own files are used, give every arm the same image, or allow it with `allow_different_tools = true` under [design] or `--allow-different-tools`: those cells are then labelled `different-tool`",
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
    #[error("the run `{0}` is complete, there is nothing to resume; hint: see `tare show {0}`")]
    Complete(RunId),
    /// The plan that this version of Tare makes of the stored study is another one.
    #[error(
        "the run `{run}` was planned by Tare {tare}, and this version ({}) would plan it otherwise; hint: resume it with that version, or run the study again",
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
        "the run `{run}` was begun with another agent (SHA-256 {stored}, now {present}), and the same bytes must run in every block; hint: resume it with the Tare that began it, or run the study again"
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
    #[error("{first}; and removing what had been started failed too: {}; hint: `tare clean`", then.join("; "))]
    AndCleanup {
        /// The first failure.
        first: Box<RunError>,
        /// What could not be removed.
        then: Vec<String>,
    },
}

impl RunError {
    /// The first failure, without what happened while cleaning up.
    pub fn first(&self) -> &Self {
        match self {
            Self::AndCleanup { first, .. } => first.first(),
            other => other,
        }
    }
}
