//! Joins the runs of one answer into one: early measurements count as much as late ones.
//!
//! Every run of an answer has the host and the environment in its blocks, so its blocks extend one comparison. A
//! suspect or a step is only in the blocks of its run and is paired within them. Arms of the same name are one arm:
//! the studies of an answer give each change a separate name.
//! Limits: does not check that the machine was the same. The runs of an answer follow each other directly, unless the
//! last was interrupted and resumed later.

use std::collections::BTreeMap;

use tare_model::whole_count;

use super::readings::Block;
use crate::analyze::{ArmData, RunData};

/// Joins the run with the earlier ones, oldest first. It keeps its name, plan and stop reason.
#[must_use]
pub fn joined(mut run: RunData, earlier: &[RunData]) -> RunData {
    let mut trials = Vec::new();
    let mut end = Block {
        number: 0,
        launch: 0,
    };
    for before in earlier {
        take_arms(&mut run, before);
        let places = take_workloads(&mut run, before);
        end = moved(&mut trials, before, end, |place| {
            places.get(&place).copied()
        });
        run.head.wall_s += before.head.wall_s;
    }
    if earlier.is_empty() {
        return run;
    }
    moved(&mut trials, &run, end, Some);
    // The plan: all that was done before, plus the last run's plan.
    run.head.study.blocks_min += end.number;
    run.head.study.blocks_max += end.number;
    run.trials = trials;
    run
}

/// Appends a run's trials, with blocks and launches numbered after the existing ones, as every run starts its arms
/// anew. Returns where the next run may begin.
fn moved(
    trials: &mut Vec<crate::analyze::TrialData>,
    run: &RunData,
    begin: Block,
    place: impl Fn(u32) -> Option<u32>,
) -> Block {
    let mut end = begin;
    for data in &run.trials {
        let Some(workload) = place(data.trial.workload_index) else {
            continue;
        };
        let mut data = data.clone();
        data.trial.workload_index = workload;
        data.trial.block += begin.number;
        data.trial.launch += begin.launch;
        end.number = end.number.max(data.trial.block + 1);
        end.launch = end.launch.max(data.trial.launch + 1);
        trials.push(data);
    }
    end
}

/// Adds arms that only the earlier run has, and details that only it knows of common arms.
fn take_arms(run: &mut RunData, before: &RunData) {
    for earlier in &before.head.arms {
        let known = run
            .head
            .arms
            .iter()
            .position(|arm| arm.spec.id == earlier.spec.id);
        let Some(place) = known else {
            run.head.study.arms.push(earlier.spec.clone());
            run.head.arms.push(earlier.clone());
            continue;
        };
        let now = &mut run.head.arms[place];
        if !now.available && earlier.available {
            *now = ArmData {
                spec: now.spec.clone(),
                ..earlier.clone()
            };
        }
        if now.spec.role.rung.is_none() {
            now.spec.role.rung.clone_from(&earlier.spec.role.rung);
        }
    }
    let specs = run.head.arms.iter().map(|arm| arm.spec.clone());
    run.head.study.arms = specs.collect();
}

/// Maps the earlier run's workloads to the later one's; workloads that only the earlier one has are appended.
fn take_workloads(run: &mut RunData, before: &RunData) -> BTreeMap<u32, u32> {
    let mut places = BTreeMap::new();
    for (from, spec) in (0..).zip(&before.head.study.workloads) {
        let workloads = &mut run.head.study.workloads;
        let to = workloads
            .iter()
            .position(|own| own == spec)
            .unwrap_or_else(|| {
                workloads.push(spec.clone());
                workloads.len() - 1
            });
        places.insert(from, whole_count(to));
    }
    places
}
