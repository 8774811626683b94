//! How trials went from beginning to end: what a program told second by second, or request by request.

use serde::{Deserialize, Serialize};

use crate::params::Params;
use crate::recipe::Path;
use crate::unit::Unit;

/// The way of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// The metric whose values these are.
    pub metric: &'static str,
    /// Their unit.
    pub unit: Unit,
    /// What one step is of: `s` or `request`.
    pub axis: &'static str,
    /// How long a step is on the axis.
    pub step: f64,
    /// One for each step, in their order.
    pub values: Vec<f64>,
}

/// The trials of one workload from beginning to end, in each arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierCourse {
    /// Workload.
    pub workload: String,
    /// Parameters.
    pub params: Params,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
    /// The metric whose values these are.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// What the steps are of.
    pub axis: String,
    /// The arms in which it was measured, in the study's order.
    pub arms: Vec<CourseArm>,
    /// What was published of such trials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedCourse>,
}

/// The way of one published trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedCourse {
    /// The arm that it corresponds to.
    pub arm: String,
    /// Where it stands in the publication.
    pub at: String,
    /// Where each step ends on the axis, and its value in the course's unit.
    pub points: Vec<[f64; 2]>,
}

/// One arm's trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CourseArm {
    /// The arm.
    pub arm: String,
    /// Its steps, in their order.
    pub points: Vec<CoursePoint>,
}

/// One step of all trials of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoursePoint {
    /// Where the step ends on the axis.
    pub at: f64,
    /// How many trials got so far.
    pub trials: u32,
    /// The median of these trials.
    pub typical: f64,
    /// The least of them.
    pub least: f64,
    /// The greatest of them.
    pub greatest: f64,
}
