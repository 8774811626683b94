//! A study: the comparison, its precision and its budget. Validated plain data.

use serde::{Deserialize, Serialize};

use crate::arm::ArmSpec;
use crate::distinguishing::{distinguishing_params, distinguishing_words};
use crate::id::{ArmId, WorkloadId};
use crate::params::Params;
use crate::publication::Publication;
use crate::recipe::Path;
use crate::unit::ResourceClass;
use crate::whole::{is_one, one};
use crate::words::words;

/// Identifier of the second copy of the baseline (A/A control), which every study gets automatically.
pub const A_PRIME: &str = "a-prime";

/// Whether an environment is kept between trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// Started once per launch and kept warm with a resident agent.
    #[default]
    Warm,
    /// A new instance for every trial.
    Cold,
}

/// Declared margins of practical equivalence, as fractions (0.02 = 2 %).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Margins {
    /// Processor and memory.
    pub compute: f64,
    /// Kernel entries.
    pub kernel: f64,
    /// File systems and block devices.
    pub disk: f64,
    /// Sockets.
    pub network: f64,
    /// Creating and removing environments.
    pub start_up: f64,
}

impl Default for Margins {
    fn default() -> Self {
        Self {
            compute: 0.02,
            kernel: 0.02,
            disk: 0.05,
            network: 0.05,
            start_up: 0.05,
        }
    }
}

impl Margins {
    /// Returns the margin for a class of metric.
    pub fn for_class(&self, class: ResourceClass) -> f64 {
        match class {
            ResourceClass::Compute => self.compute,
            ResourceClass::Kernel => self.kernel,
            ResourceClass::Disk => self.disk,
            ResourceClass::Network => self.network,
            ResourceClass::StartUp => self.start_up,
        }
    }
}

words! {
    /// Where several instances of a workload run at once.
    #[derive(Default)]
    pub enum Spread {
        /// As processes of one environment.
        #[default]
        Processes: "processes",
        /// Each in a separate environment.
        Environments: "environments",
    }
}

/// A workload as defined in the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// The workload.
    pub id: WorkloadId,
    /// Its parameters, including defaults.
    pub params: Params,
    /// Path of a two-ended workload; `None` otherwise.
    pub path: Option<Path>,
    /// Number of concurrent instances.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub instances: u32,
    /// Where they run. `None` for a single instance started directly; otherwise the instances, even a single one, are
    /// prepared first and then started together, so that different numbers of instances are alike in everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

impl WorkloadSpec {
    /// Creates a single instance of a workload with one end.
    pub fn new(id: WorkloadId, params: Params) -> Self {
        Self {
            id,
            params,
            path: None,
            instances: 1,
            spread: None,
        }
    }
}

/// A whole study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of a study file"
)]
pub struct Study {
    /// Its name: a built-in study's id or the file's.
    pub id: String,
    /// One-line title.
    pub title: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The arm that all others are compared with; also copied as the A′ arm.
    pub baseline: ArmId,
    /// The arms, baseline first, A′ included.
    pub arms: Vec<ArmSpec>,
    /// The workloads.
    pub workloads: Vec<WorkloadSpec>,
    /// Margins of practical equivalence.
    pub margins: Margins,
    /// Number of blocks after which precision is first checked.
    pub blocks_min: u32,
    /// Maximum number of blocks.
    pub blocks_max: u32,
    /// Number of blocks between two restarts of the arms.
    pub blocks_per_launch: u32,
    /// Requested half-width of the ratio's interval as a fraction; `None` means half of each cell's margin.
    pub precision: Option<f64>,
    /// Time budget of the whole run, nanoseconds; `None` means until `blocks_max` or precision.
    pub budget_ns: Option<u64>,
    /// Target duration of one warm trial's timed work, nanoseconds.
    pub trial_ns: u64,
    /// Time limit after which a trial is aborted, nanoseconds.
    pub limit_ns: u64,
    /// Pause before each trial, nanoseconds; 0 for warm trials, where reaping the last worker is enough.
    pub settle_ns: u64,
    /// Whether environments are kept between trials.
    pub lifecycle: Lifecycle,
    /// Publication on the same question, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication: Option<Publication>,
    /// Whether arms may have different tools than the baseline. Every cell of such a tool is labelled then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_different_tools: bool,
    /// Whether the arms are interleaved in slices in every workload whose work can be sliced; the others are measured
    /// by whole trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alternate: bool,
    /// Whether every two arms are also compared with each other, and not only with the baseline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pairs: bool,
    /// Whether programs are recorded while they run: processors, memory, devices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub usage: bool,
}

impl Study {
    /// Creates a study of warm trials of 20 ms in ten blocks, each after a restart of the arms, with nothing else
    /// set.
    pub fn new(
        id: impl Into<String>,
        baseline: ArmId,
        arms: Vec<ArmSpec>,
        workloads: Vec<WorkloadSpec>,
    ) -> Self {
        let id = id.into();
        Self {
            title: id.clone(),
            id,
            seed: 0,
            baseline,
            arms,
            workloads,
            margins: Margins::default(),
            blocks_min: 10,
            blocks_max: 10,
            blocks_per_launch: 1,
            precision: None,
            budget_ns: None,
            trial_ns: 20_000_000,
            limit_ns: 10_000_000_000,
            settle_ns: 0,
            lifecycle: Lifecycle::Warm,
            publication: None,
            allow_different_tools: false,
            alternate: false,
            pairs: false,
            usage: false,
        }
    }

    /// Returns the name of a workload: its identifier, plus what distinguishes it from others with the same
    /// identifier.
    pub fn name_of(&self, workload: &WorkloadSpec) -> String {
        let twins = self
            .workloads
            .iter()
            .filter(|other| other.id == workload.id);
        let params: Vec<&Params> = twins.map(|twin| &twin.params).collect();
        let mut name = vec![workload.id.to_string()];
        name.extend(distinguishing_words(
            (&workload.params, &distinguishing_params(&params)),
            workload.path,
            workload.instances,
            workload.spread,
        ));
        name.join(" ")
    }

    /// Returns the expected duration of one block's trials, nanoseconds: the sum of their targets.
    pub fn block_ns(&self) -> u64 {
        let trials = (self.workloads.len() * self.arms.len()) as u64;
        (self.trial_ns.saturating_add(self.settle_ns)).saturating_mul(trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_name_includes_distinguishing_parameters() {
        let of = |id: &str, depth: i64| {
            let params = Params::new().with("iodepth", depth).with("size", 4096);
            WorkloadSpec::new(WorkloadId::new(id).unwrap(), params)
        };
        let alone = of("iozone", 1);
        let two = WorkloadSpec {
            instances: 2,
            ..of("fio", 16)
        };
        let host = ArmId::new("host").unwrap();
        let study = Study::new("s", host, vec![], vec![of("fio", 1), two, alone]);
        let names: Vec<String> = study.workloads.iter().map(|it| study.name_of(it)).collect();
        assert_eq!(names, ["fio iodepth=1", "fio iodepth=16 ×2", "iozone"]);
    }

    #[test]
    fn stored_workload_without_instances_is_unchanged() {
        let stored = r#"{"id":"getppid","params":{},"path":null}"#;
        let spec: WorkloadSpec = serde_json::from_str(stored).unwrap();
        assert_eq!((spec.instances, spec.spread), (1, None));
        assert_eq!(serde_json::to_string(&spec).unwrap(), stored);
    }
}
