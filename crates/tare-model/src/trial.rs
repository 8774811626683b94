//! Coordinates of a trial: its cell and its position in the plan.

use serde::{Deserialize, Serialize};

use crate::id::{ArmId, WorkloadId};
use crate::params::Params;
use crate::recipe::Path;

/// One cell of a study: an arm × a workload × its parameters × instances × path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellKey {
    /// The arm.
    pub arm: ArmId,
    /// The workload.
    pub workload: WorkloadId,
    /// The workload's parameters.
    pub params: Params,
    /// Number of concurrent instances.
    pub instances: u32,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
}

/// One planned execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Position in the whole plan, from 0; unique within a run.
    pub sequence: u32,
    /// The block, from 0: the unit of inference.
    pub block: u32,
    /// Position within the block's arms for this workload, from 0.
    pub position: u32,
    /// The launch, from 0: arms are restarted between launches.
    pub launch: u32,
    /// Index into the study's workloads.
    pub workload_index: u32,
    /// The cell.
    pub cell: CellKey,
}
