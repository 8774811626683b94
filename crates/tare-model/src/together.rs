//! Output of several concurrent instances; the content of raw output in format `instances/1`.
//!
//! One trial is one record, however many instances it had. Each instance's output is kept as received, in its own
//! format, even if another instance failed: the trial then has no value, and the record says which instance failed
//! and why.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::study::Spread;

/// Name of the raw format that holds a [`Together`] as JSON.
pub const INSTANCES_FORMAT: &str = "instances/1";

/// One instance of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceRecord {
    /// Its outcome and output.
    pub outcome: Outcome,
    /// When it was released, nanoseconds on the host's monotonic clock; `None` if it never was.
    pub start_ns: Option<u64>,
    /// When its last message arrived, nanoseconds on the host's monotonic clock. The host reads one instance after
    /// another, so this is an upper bound; the instance's own report has the exact moment.
    pub end_ns: u64,
}

/// The raw output of a trial with several instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// Where they ran.
    pub spread: Spread,
    /// The instances, in the order of their release.
    pub instances: Vec<InstanceRecord>,
}

impl Together {
    /// Describes the first instance that did not complete: its number, counted from 1, of how many, and why. Prefers
    /// one that was not just ended because another one failed.
    pub fn problem(&self) -> Option<String> {
        let failed =
            |record: &&(usize, &InstanceRecord)| !matches!(record.1.outcome, Outcome::Completed(_));
        let numbered: Vec<(usize, &InstanceRecord)> = (1..).zip(&self.instances).collect();
        let is_cause = |record: &&(usize, &InstanceRecord)| match &record.1.outcome {
            Outcome::Failed(failure) => *failure != ended_with_another(),
            _ => true,
        };
        let mut candidates = numbered.iter().filter(failed);
        let (number, record) = candidates
            .clone()
            .find(is_cause)
            .or_else(|| candidates.next())?;
        let why = match &record.outcome {
            Outcome::Completed(_) => return None,
            Outcome::Unavailable(reason) => reason.to_string(),
            Outcome::Failed(failure) => failure.to_string(),
        };
        Some(format!(
            "instance {number} of {}: {why}",
            self.instances.len()
        ))
    }
}

/// Returns the failure of an instance that was ended because another one failed before all could start.
pub fn ended_with_another() -> crate::Failure {
    crate::Failure::Lost("it was ended because another instance did not get ready".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Bytes, Exit, RawOutput};
    use crate::{Failure, Reason};

    fn record(outcome: Outcome) -> InstanceRecord {
        InstanceRecord {
            outcome,
            start_ns: None,
            end_ns: 7,
        }
    }

    #[test]
    fn root_cause_is_reported_not_its_consequence() {
        let mut together = Together {
            spread: Spread::Processes,
            instances: vec![
                record(Outcome::Failed(ended_with_another())),
                record(Outcome::Unavailable(Reason::MissingTool("hammer".into()))),
            ],
        };
        let shown = together.problem().unwrap();
        assert_eq!(shown, "instance 2 of 2: `hammer` is not installed");
        together.instances.pop();
        assert!(together.problem().unwrap().contains("another instance"));
    }

    #[test]
    fn instance_records_of_any_outcome_roundtrip_in_json() {
        let raw = RawOutput {
            format: "probe/1".into(),
            stdout: Bytes(vec![0xff, 0]),
            stderr: Bytes::default(),
            exit: Exit::Code(0),
        };
        let together = Together {
            spread: Spread::Environments,
            instances: vec![
                record(Outcome::Completed(raw)),
                record(Outcome::Failed(Failure::TimedOut { limit_ns: 3 })),
            ],
        };
        let json = serde_json::to_vec(&together).unwrap();
        let again: Together = serde_json::from_slice(&json).unwrap();
        assert_eq!(again, together);
        assert!(again.problem().unwrap().starts_with("instance 2 of 2"));
    }
}
