//! Builds the study of a comparison: the sides as arms, the base twice.
//!
//! All arms of a block run one workload. It holds the base's command; another side's command is a change of its arm,
//! like a prefix or a variable.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use tare_model::arm::WhyQuestion;
use tare_model::command::{InSlices, Stdout};
use tare_model::study::A_PRIME;
use tare_model::{
    ArmId, ArmSpec, CommandCall, Margins, Params, RunId, Study, WorkloadId, WorkloadSpec,
};

use super::STUDY;
use crate::workload::Workload;
use crate::workload::compared_command::{CALL, ComparedCommand, WALL};

/// Fewest blocks of a round: fewer give no interval.
const BLOCKS_LEAST: u32 = 8;
/// Most blocks of a round: the time limit ends it long before.
const BLOCKS_MOST: u32 = 1_000;
/// Number of launches that a round aims at, so that variation between launches is within the interval.
const LAUNCHES: u64 = 6;
/// Minimal timeout of one run of a command.
const LEAST_LIMIT_NS: u64 = 60_000_000_000;

/// One side: a command and its environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Its arm.
    pub arm: String,
    /// The command, revision or environment, as the user gave it.
    pub label: String,
    /// The command as it was typed.
    pub command: Vec<String>,
    /// Its driver.
    pub driver: String,
    /// The driver's settings.
    pub settings: Params,
    /// A program to pack if nothing can be mounted.
    pub program: Option<String>,
    /// The call that is run.
    pub call: CommandCall,
    /// Variables of this side only.
    pub variables: BTreeMap<String, String>,
}

impl Side {
    /// Returns the call with the variables of this side.
    pub fn whole_call(&self) -> CommandCall {
        let mut call = self.call.clone();
        call.variables.extend(self.variables.clone());
        call
    }
}

/// Observations of the sides before the first block.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSides {
    /// Duration of one run of the slowest side, in nanoseconds.
    pub longest_ns: u64,
    /// How many times each runs in a trial.
    pub runs: u32,
    /// How the commands are sliced, or why they are not.
    pub in_slices: Result<InSlices, String>,
    /// Whether they print more than a store should hold of each run: then output goes to `/dev/null`. A little output
    /// goes through a pipe, because some programs do less without a reader.
    pub is_chatty: bool,
}

impl ObservedSides {
    /// Approximate duration of a block of this number of sides plus the control, in nanoseconds.
    pub fn block_ns(&self, sides: usize) -> u64 {
        // A trial's canary and counters take time too.
        (self.longest_ns * u64::from(self.runs) + 25_000_000).saturating_mul(sides as u64 + 1)
    }
}

/// Parameters of one round.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// Its duration, in nanoseconds.
    pub time_ns: u64,
    /// Seed of its order.
    pub seed: u64,
    /// The round before it.
    pub before: Option<&'a RunId>,
    /// The margin, a fraction.
    pub margin: f64,
}

/// Returns the study of a round. `control` is the base's command from another copy of its file, if there is one.
pub fn of_round(
    sides: &[Side],
    control: Option<&[String]>,
    seen: &ObservedSides,
    round: Round<'_>,
) -> Study {
    let base = &sides[0];
    let mut arms: Vec<ArmSpec> = sides
        .iter()
        .map(|side| arm(side, base, &side.arm))
        .collect();
    let mut copy = arm(base, base, A_PRIME);
    if let Some(control) = control {
        copy.change.argv = control.to_vec();
    }
    copy.required = true;
    arms.insert(1, copy);
    let last = arms.last_mut().expect("there are two sides at least");
    last.role.before = round.before.map(ToString::to_string);
    let call = CommandCall {
        in_slices: seen.in_slices.as_ref().ok().copied(),
        runs: NonZeroU32::new(seen.runs).filter(|runs| runs.get() > 1),
        stdout: if seen.is_chatty && base.call.pick.is_none() {
            Stdout::Discarded
        } else {
            Stdout::Kept
        },
        ..base.call.clone()
    };
    let call = serde_json::to_string(&call).expect("texts and numbers are always JSON");
    let workload = WorkloadSpec::new(
        WorkloadId::new(ComparedCommand.id())
            .expect("the names of workloads are checked by a test"),
        Params::new().with(CALL, call),
    );
    let margin = round.margin;
    let blocks = (round.time_ns / seen.block_ns(sides.len())).clamp(1, u64::from(BLOCKS_MOST));
    let per_launch = blocks.div_ceil(LAUNCHES).max(2);
    Study {
        alternate: seen.in_slices.is_ok(),
        title: "versions of a command".to_owned(),
        seed: round.seed,
        blocks_min: BLOCKS_LEAST,
        blocks_max: BLOCKS_MOST,
        blocks_per_launch: u32::try_from(per_launch).unwrap_or(u32::MAX),
        trial_ns: seen.longest_ns * u64::from(seen.runs),
        limit_ns: seen.longest_ns.saturating_mul(20).max(LEAST_LIMIT_NS),
        budget_ns: Some(round.time_ns),
        allow_different_tools: true,
        margins: Margins {
            compute: margin,
            kernel: margin,
            disk: margin,
            network: margin,
            start_up: margin,
        },
        ..Study::new(STUDY, arms[0].id.clone(), arms, vec![workload])
    }
}

fn arm(side: &Side, base: &Side, name: &str) -> ArmSpec {
    let id = ArmId::new(name).expect("the arms of sides have plain names");
    let mut arm = ArmSpec::new(id, side.driver.as_str(), side.settings.clone()).required();
    if side.call.argv != base.call.argv {
        arm.change.argv.clone_from(&side.call.argv);
    }
    if side.call.directory != base.call.directory {
        arm.change.directory.clone_from(&side.call.directory);
    }
    arm.change.program.clone_from(&side.program);
    arm.change.variables.clone_from(&side.variables);
    arm.role.asked = Some(WhyQuestion {
        argv: side.command.clone(),
        carried: vec![side.label.clone()],
        metric: WALL.id.to_owned(),
        host_files: Vec::new(),
        in_one_go: None,
        life_ns: None,
        first_run: None,
    });
    arm
}

/// Returns the labels of the sides of a stored study.
pub fn labels(study: &Study) -> Vec<super::SideNote> {
    let arms = study.arms.iter().filter(|arm| arm.id.as_str() != A_PRIME);
    arms.map(|arm| super::SideNote {
        arm: arm.id.to_string(),
        label: arm
            .role
            .asked
            .as_ref()
            .and_then(|asked| asked.carried.first().cloned())
            .unwrap_or_else(|| arm.id.to_string()),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn side(arm: &str, argv: [&str; 2]) -> Side {
        Side {
            arm: arm.into(),
            label: argv.join(" "),
            command: argv.map(str::to_owned).to_vec(),
            driver: "host".into(),
            settings: Params::new(),
            program: None,
            call: CommandCall::new(argv[0], [argv[1]]),
            variables: BTreeMap::new(),
        }
    }

    #[test]
    fn each_arm_runs_its_command_and_control_the_copy() {
        let mut sides = [side("a", ["gzip", "-6"]), side("b", ["zstd", "-3"])];
        sides[1].variables = BTreeMap::from([("X".into(), "1".into())]);
        let seen = ObservedSides {
            longest_ns: 1_000_000,
            runs: 1,
            in_slices: Err("is short".into()),
            is_chatty: false,
        };
        let run = RunId::new("r1").unwrap();
        let study = of_round(
            &sides,
            Some(&["/copy/gzip".into(), "-6".into()]),
            &seen,
            Round {
                time_ns: 60_000_000_000,
                seed: 7,
                before: Some(&run),
                margin: 0.03,
            },
        );
        let call = CommandCall::from_args(&study.workloads[0].params).unwrap();
        let argv: Vec<Vec<String>> = study
            .arms
            .iter()
            .map(|arm| arm.change.changed(call.clone()).argv)
            .collect();
        assert_eq!(argv, [["gzip", "-6"], ["/copy/gzip", "-6"], ["zstd", "-3"]]);
        assert_eq!(study.arms[1].id.as_str(), A_PRIME);
        let variables = |place: usize| study.arms[place].change.variables.len();
        assert_eq!([0, 1, 2].map(variables), [0, 0, 1]);
        assert_eq!(crate::why::before(&study), Some("r1"));
        assert!((study.margins.compute - 0.03).abs() < 1e-12);
        assert_eq!(labels(&study)[1].label, "zstd -3");
        assert!(study.blocks_per_launch > 1 && !study.alternate);
        let stored = serde_json::to_string(&study).unwrap();
        assert_eq!(serde_json::from_str::<Study>(&stored).unwrap(), study);
    }
}
