//! Timing of one life cycle of an environment; the content of raw output in format `lifecycle/1`.
//!
//! The marks are on the host's monotonic clock, counted from the moment at which the environment was requested. The
//! engine takes them, because it drives the environment and only it can time this from outside. Between two of them
//! it measures memory and disk usage of the idle environment, which is in none of the times.
//! Limits: does not show how the time is divided inside the environment.

use serde::{Deserialize, Serialize};

/// Name of the raw format that holds a [`LifecycleReport`] as JSON.
pub const LIFECYCLE_FORMAT: &str = "lifecycle/1";

/// Marks of one life cycle, nanoseconds since the origin of `created_ns`; never decreasing in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleReport {
    /// The environment was requested: 0, unless the origin is an earlier moment.
    pub created_ns: u64,
    /// The environment existed and its agent was started, as far as its driver reports it; `None` in reports from
    /// before this was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// The first answer of the agent inside arrived.
    pub ready_ns: u64,
    /// The environment was stopped and removed.
    pub removed_ns: u64,
    /// Duration of stopping and removing, from the request; `None` in reports from before this was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_ns: Option<u64>,
    /// Memory of this machine that the environment held after its first answer, bytes; `None` if this machine's
    /// kernel does not count it separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The same for all instances of the arm that were held then, and itself, bytes; `None` if none were held, or one
    /// is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_memory_bytes: Option<u64>,
    /// Disk space that it used then where it runs, bytes; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_marks_keep_their_names_in_json() {
        let report = LifecycleReport {
            created_ns: 0,
            started_ns: None,
            ready_ns: 12,
            removed_ns: 34,
            stop_ns: None,
            memory_bytes: None,
            all_memory_bytes: None,
            disk_bytes: None,
        };
        let json = r#"{"created_ns":0,"ready_ns":12,"removed_ns":34}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), json);
        assert_eq!(
            serde_json::from_str::<LifecycleReport>(json).unwrap(),
            report
        );
        assert!(serde_json::from_str::<LifecycleReport>(r#"{"created_ns":0}"#).is_err());
    }
}
