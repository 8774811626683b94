//! Progress of trials from beginning to end, as a program reported it second by second or request by request.

use serde::{Deserialize, Serialize};

use crate::params::Params;
use crate::recipe::Path;
use crate::unit::Unit;
use crate::whole::{is_one, one};

/// Metrics of recorded usage ([`UsageOverTime`](crate::command::UsageOverTime)).
pub mod usage {
    /// Number of processors that a program keeps busy.
    pub const PROCESSORS: &str = "use.processors";
    /// Its resident memory.
    pub const MEMORY: &str = "use.memory";
    /// What it reads from devices.
    pub const READ: &str = "use.read";
    /// What it writes to devices.
    pub const WRITTEN: &str = "use.written";
}

/// Progress of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Metric of the values.
    pub metric: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Unit of a step: `s` or `request`.
    pub axis: &'static str,
    /// Length of a step on the axis.
    pub step: f64,
    /// One value per step, in order.
    pub values: Vec<f64>,
}

/// Progress of one workload's trials, in each arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierCourse {
    /// Workload.
    pub workload: String,
    /// Parameters.
    pub params: Params,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
    /// Number of instances at once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub instances: u32,
    /// Metric of the values.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// Unit of the steps.
    pub axis: String,
    /// The arms in which it was measured, in the study's order.
    pub arms: Vec<CourseArm>,
    /// Published courses of such trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedCourse>,
}

/// Progress of one published trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedCourse {
    /// The corresponding arm.
    pub arm: String,
    /// Where it appears in the publication.
    pub at: String,
    /// End of each step on the axis, and its value in the course's unit.
    pub points: Vec<[f64; 2]>,
}

/// One arm's trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CourseArm {
    /// The arm.
    pub arm: String,
    /// The steps, in order.
    pub points: Vec<CoursePoint>,
}

/// One step of all trials of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoursePoint {
    /// End of the step on the axis.
    pub at: f64,
    /// Number of trials that got this far.
    pub trials: u32,
    /// The median of these trials.
    pub typical: f64,
    /// The minimum of these trials.
    pub least: f64,
    /// The maximum of these trials.
    pub greatest: f64,
}
