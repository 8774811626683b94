//! What one life of an environment took; the content of raw output in format `lifecycle/1`.
//!
//! Marks on the host's monotonic clock, counted from the moment at which the environment was asked
//! for. The marks are the engine's: it drives the environment, so only it can time it from outside. Between two of
//! them it looks how much memory and disk the idle environment takes, which is in none of the times.
//! What they cannot see: how the time is divided inside the environment.

use serde::{Deserialize, Serialize};

/// The name of the raw format that holds a [`LifecycleReport`] as JSON.
pub const LIFECYCLE_FORMAT: &str = "lifecycle/1";

/// Marks of one life, nanoseconds since `created_ns`'s own origin; never decreasing in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleReport {
    /// The environment was asked for: 0, unless the origin is an earlier moment.
    pub created_ns: u64,
    /// The environment was there and its agent started, as far as its driver can say; none in reports of before it was
    /// told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ns: Option<u64>,
    /// The first answer of the agent inside had arrived.
    pub ready_ns: u64,
    /// The environment had been stopped and removed.
    pub removed_ns: u64,
    /// How long that took, from asking for it; none in reports of before it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ns: Option<u64>,
    /// Memory that the environment held of this machine's after its first answer, bytes; none where this machine's
    /// kernel does not count it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Disk that it took then where it runs, bytes; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
