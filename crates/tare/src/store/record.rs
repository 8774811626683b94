//! What a store holds, as plain data.
//!
//! Nothing here is derived: a record is what happened, and readings are taken from it each time anew, so
//! that a better decoder can be used on old runs.

use std::collections::BTreeMap;

use tare_model::{ArmId, Facts, Outcome, RunId, StoppedBy, Study, Trial};

/// One trial as it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRecord {
    /// Its place in the plan.
    pub trial: Trial,
    /// When it was dispatched, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// From dispatch to the last answer by the host's monotonic clock, nanoseconds.
    pub host_elapsed_ns: u64,
    /// How it ended, with its raw output.
    pub outcome: Outcome,
    /// What the arm used meanwhile as the host's kernel counts it from outside, by name; one that cannot be
    /// read there is absent.
    pub charged: BTreeMap<String, f64>,
}

/// Whether an arm could be used. The last record of an arm holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmRecord {
    /// The arm.
    pub arm: ArmId,
    /// Its driver.
    pub driver: String,
    /// Whether it could be started at all. One that was given up during the run was available: its trials
    /// up to then count.
    pub available: bool,
    /// Why not, or why it was given up.
    pub reason: Option<String>,
    /// The command or change that would help.
    pub fix: Option<String>,
    /// What the driver knows about it from outside.
    pub facts: Facts,
}

/// One start of an arm, as the agent inside saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRecord {
    /// The arm; [`PEER`] for the agent on the host that serves as the other end.
    pub arm: String,
    /// The launch, as in the plan; repeated when the arm had to be started again within it.
    pub launch: u32,
    /// When it answered, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// What the agent found out inside.
    pub facts: Facts,
}

/// The label of the agent on the host that is the other end of two-ended workloads. Not an arm.
pub const PEER: &str = "host-peer";

/// A workload that was precise enough and was measured no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadEnd {
    /// Its index in the study.
    pub workload_index: u32,
    /// After how many blocks.
    pub after_blocks: u32,
}

/// Something that the reader should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// When, nanoseconds since 1970 UTC.
    pub unix_ns: i64,
    /// One line.
    pub text: String,
}

/// The subject of remarks about every workload of a study.
const ALL: &str = "every workload";
/// What such remarks say of their subject.
const WHOLE_TRIALS: &str = " is measured by whole trials, because ";

impl Remark {
    /// That a workload, or every one, was not measured slice by slice, and why.
    pub fn of_whole_trials(workload: Option<&str>, why: &str) -> String {
        let subject = workload.map_or_else(|| ALL.to_owned(), |name| format!("`{name}`"));
        format!("{subject}{WHOLE_TRIALS}{why}")
    }

    /// Whether it says that, and does not only hold the words of somebody else who does.
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
    /// How long the session took, nanoseconds of the monotonic clock.
    pub wall_ns: u64,
    /// Why it stopped.
    pub stopped_by: StoppedBy,
    /// The error, where there was one.
    pub reason: Option<String>,
}

/// A session of a run: from its begin, or from where it was gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRecord {
    /// The block of the first trial that it stored; `None` if it stored none.
    pub first_block: Option<u32>,
    /// Why it stopped; `None` while it runs, and for ever if it was killed.
    pub stopped_by: Option<StoppedBy>,
}

/// What is known before the first trial.
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
    /// What was found out about the host.
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
    /// The command that was asked about, where it was one of the user's.
    pub command: Option<Vec<String>>,
    /// Its workloads in the study's order, neighbours that are the same once.
    pub workloads: Vec<String>,
    /// When it began, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    /// The run that came before it in the same answer, or that it tries the suspects of.
    pub before: Option<String>,
    /// Trials stored.
    pub n_trials: u32,
    /// Why it stopped; `None` while it runs, and for ever if it was killed.
    pub stopped_by: Option<StoppedBy>,
    /// Time that it took so far, over all sessions, nanoseconds.
    pub wall_ns: u64,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The run.
    pub id: RunId,
    /// The version of Tare that began it.
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
    /// What was found out about the host.
    pub host: Facts,
    /// The arms, in the study's order; one that was never reached is absent.
    pub arms: Vec<ArmRecord>,
    /// The launches, in order of time.
    pub launches: Vec<LaunchRecord>,
    /// The trials, in the plan's order.
    pub records: Vec<TrialRecord>,
    /// How many trials are stored.
    pub n_trials: u32,
    /// Workloads that ended early because they were precise enough.
    pub workload_ends: Vec<WorkloadEnd>,
    /// Remarks, in order of time.
    pub remarks: Vec<Remark>,
    /// Its sessions: one, and one more for each resume.
    pub sessions: Vec<SessionRecord>,
    /// Why it stopped; `None` while it runs, and for ever if it was killed.
    pub stopped_by: Option<StoppedBy>,
    /// The error that stopped it, where there was one.
    pub failure: Option<String>,
    /// Time that it took, over all sessions, nanoseconds. A session that was killed counts up to the end
    /// of its last stored trial.
    pub wall_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_of_whole_trials_is_told_from_one_that_quotes_it() {
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
