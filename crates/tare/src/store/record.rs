//! The contents of a store as plain data.
//!
//! Nothing here is derived. A record is what happened, and readings are decoded from it each time, so that a better
//! decoder can be used on old runs.

use std::collections::BTreeMap;

use tare_model::{ArmId, Facts, Outcome, RunId, StoppedBy, Study, Trial};

/// One trial as it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRecord {
    /// Its place in the plan.
    pub trial: Trial,
    /// When it was dispatched, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// Time from dispatch to the last answer, by the host's monotonic clock, nanoseconds.
    pub host_elapsed_ns: u64,
    /// How it ended, with its raw output.
    pub outcome: Outcome,
    /// The arm's resource use meanwhile, as counted by the host's kernel from outside, by name; unreadable counters
    /// are absent.
    pub charged: BTreeMap<String, f64>,
}

/// Whether an arm was usable. The last record of an arm is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmRecord {
    /// The arm.
    pub arm: ArmId,
    /// Its driver.
    pub driver: String,
    /// Whether the arm could be started at all. True for one that was given up during the run: its trials up to then
    /// count.
    pub available: bool,
    /// Why it could not be started, or was given up.
    pub reason: Option<String>,
    /// The command or change that would help, if known.
    pub fix: Option<String>,
    /// The driver's facts about it, from outside.
    pub facts: Facts,
}

/// One start of an arm, as seen by the agent inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRecord {
    /// The arm; [`PEER`] for the agent on the host that serves as the other end.
    pub arm: String,
    /// The launch, as in the plan; repeated if the arm had to be restarted within it.
    pub launch: u32,
    /// When the agent answered, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// The agent's facts.
    pub facts: Facts,
}

/// The label of the agent on the host for workloads with two ends. Not an arm.
pub const PEER: &str = "host-peer";

/// A workload that ended before the run, e.g. because it was precise enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadEnd {
    /// Its index in the study.
    pub workload_index: u32,
    /// After how many blocks.
    pub after_blocks: u32,
}

/// A note for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// When, nanoseconds since 1970 UTC.
    pub unix_ns: i64,
    /// One line.
    pub text: String,
}

/// The subject of remarks about all workloads of a study.
const ALL: &str = "every workload";
/// The rest of such remarks.
const WHOLE_TRIALS: &str = " is measured by whole trials, because ";

impl Remark {
    /// Says that one workload, or all, were not measured in slices, and why.
    pub fn of_whole_trials(workload: Option<&str>, why: &str) -> String {
        let subject = workload.map_or_else(|| ALL.to_owned(), |name| format!("`{name}`"));
        format!("{subject}{WHOLE_TRIALS}{why}")
    }

    /// Whether the remark says that, and does not merely quote it.
    pub fn is_of_whole_trials(&self) -> bool {
        let subject = self
            .text
            .split_once(WHOLE_TRIALS)
            .map(|(subject, _)| subject);
        subject.is_some_and(|subject| {
            let name = subject
                .strip_prefix('`')
                .and_then(|it| it.strip_suffix('`'));
            subject == ALL || name.is_some_and(|name| !name.contains(['`', ' ']))
        })
    }
}

/// How a session of a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// When, nanoseconds since 1970 UTC.
    pub ended_unix_ns: i64,
    /// Duration of the session by the monotonic clock, nanoseconds.
    pub wall_ns: u64,
    /// Why it stopped.
    pub stopped_by: StoppedBy,
    /// The error, if any.
    pub reason: Option<String>,
}

/// A session of a run: from its start, or from a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRecord {
    /// The block of the first trial that it stored; `None` if it stored none.
    pub first_block: Option<u32>,
    /// Why it stopped; `None` while it runs, and forever if it was killed.
    pub stopped_by: Option<StoppedBy>,
}

/// Data known before the first trial.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStart {
    /// The run.
    pub id: RunId,
    /// When it began, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// SHA-256 of the agent.
    pub agent_sha256: String,
    /// Build id of the agent.
    pub agent_build: String,
    /// Facts about the host.
    pub host: Facts,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLine {
    /// The run.
    pub id: RunId,
    /// The study's name.
    pub study: String,
    /// The study's title.
    pub title: String,
    /// Its arms, baseline first, A′ included.
    pub arms: Vec<String>,
    /// The command in question, if it was the user's.
    pub command: Option<Vec<String>>,
    /// Its workloads in the study's order, without adjacent duplicates.
    pub workloads: Vec<String>,
    /// When it began, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// The run before it in the same answer, or whose suspects it proves.
    pub before: Option<String>,
    /// Number of stored trials.
    pub n_trials: u32,
    /// Why it stopped; `None` while it runs, and forever if it was killed.
    pub stopped_by: Option<StoppedBy>,
    /// Total time of all sessions so far, nanoseconds.
    pub wall_ns: u64,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The run.
    pub id: RunId,
    /// The version of Tare that started it.
    pub tare: String,
    /// When it began, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// Its study.
    pub study: Study,
    /// Hash of the plan, fixed before the first trial.
    pub plan_sha256: String,
    /// SHA-256 of the agent.
    pub agent_sha256: String,
    /// Build id of the agent.
    pub agent_build: String,
    /// Facts about the host.
    pub host: Facts,
    /// The arms, in the study's order, without those that were never reached.
    pub arms: Vec<ArmRecord>,
    /// The launches, in order of time.
    pub launches: Vec<LaunchRecord>,
    /// The trials, in the plan's order.
    pub records: Vec<TrialRecord>,
    /// Number of stored trials.
    pub n_trials: u32,
    /// Workloads that ended before the run, e.g. because they were precise enough.
    pub workload_ends: Vec<WorkloadEnd>,
    /// Remarks, in order of time.
    pub remarks: Vec<Remark>,
    /// Its sessions: one, plus one for each resume.
    pub sessions: Vec<SessionRecord>,
    /// Why it stopped; `None` while it runs, and forever if it was killed.
    pub stopped_by: Option<StoppedBy>,
    /// The error that stopped it, if any.
    pub failure: Option<String>,
    /// Total time of all sessions, nanoseconds. A session that was killed counts up to the end of its last stored
    /// trial.
    pub wall_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_trials_remark_differs_from_quoted_one() {
        let is = |text: &str| {
            let text = text.to_owned();
            Remark { unix_ns: 0, text }.is_of_whole_trials()
        };
        let why = "in `docker` it opens a socket";
        assert!(is(&Remark::of_whole_trials(None, why)));
        assert!(is(&Remark::of_whole_trials(Some("user-command"), why)));
        for text in [
            "arm `docker` was lost: the engine says: every workload is measured by whole trials, because x",
            "`a` b `c` is measured by whole trials, because x",
            "the order was kept",
        ] {
            assert!(!is(text), "{text}");
        }
    }
}
