//! Tests of the plan: permutations, balance, determinism, and one known plan that must never change.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tare_model::{ArmId, Params, Study, WorkloadId, whole_count};

use super::Plan;
use crate::testing::study;

proptest! {
    #[test]
    fn block_runs_each_arm_once_per_workload_back_to_back(
        n_arms in 1usize..7, n_workloads in 1usize..6, seed: u64, block in 0u32..200
    ) {
        let study = study(n_arms, n_workloads, seed);
        let trials = Plan::new(&study).block(block);
        prop_assert_eq!(trials.len(), n_arms * n_workloads);
        for (index, trial) in trials.iter().enumerate() {
            prop_assert_eq!(trial.sequence as usize, block as usize * trials.len() + index);
            prop_assert_eq!(trial.position as usize, index % n_arms);
            prop_assert_eq!(trial.launch, block / 4);
        }
        let mut workloads = BTreeSet::new();
        for group in trials.chunks(n_arms) {
            let arms: BTreeSet<_> = group.iter().map(|trial| trial.cell.arm.clone()).collect();
            prop_assert_eq!(arms.len(), n_arms);
            prop_assert!(group.iter().all(|trial| trial.workload_index == group[0].workload_index));
            workloads.insert(group[0].workload_index);
        }
        prop_assert_eq!(workloads.len(), n_workloads);
    }


}

#[test]
fn every_compared_arm_has_a_stage_of_its_own() {
    let mut study = study(4, 1, 7);
    study.arms[1].id = ArmId::new(tare_model::study::A_PRIME).unwrap();
    study.baseline = study.arms[0].id.clone();
    let ids: Vec<ArmId> = study.arms.iter().map(|arm| arm.id.clone()).collect();
    let stages = |study: &Study, block, arms: &[usize]| {
        let arms: Vec<&ArmId> = arms.iter().map(|arm| &ids[*arm]).collect();
        Plan::new(study).stages(block, &arms)
    };
    assert_eq!(
        stages(&study, 0, &[2, 0, 1, 3]),
        [Some(0), None, None, Some(1)]
    );
    assert_eq!(
        stages(&study, 1, &[2, 0, 1, 3]),
        [Some(1), None, None, Some(0)]
    );
    // One arm, or arms that are compared with each other, need no stages.
    assert!(stages(&study, 0, &[0, 1, 3]).is_empty());
    study.arms[2].role.before = Some("r".into());
    assert!(stages(&study, 0, &[0, 1, 2, 3]).is_empty());
    study.arms[2].role.before = None;
    study.pairs = true;
    assert!(stages(&study, 0, &[0, 1, 2, 3]).is_empty());
}

#[test]
fn cycle_balances_order_of_arm_pairs() {
    for (n_arms, times) in [(4, 1), (5, 2)] {
        let plan = Plan::new(&study(n_arms, 2, 7));
        let n_blocks = n_arms * times;
        let mut follows: BTreeMap<(u32, ArmId, ArmId), usize> = BTreeMap::new();
        for block in 0..whole_count(n_blocks) {
            for group in plan.block(block).chunks(n_arms) {
                for pair in group.windows(2) {
                    let [first, then] = pair else { unreachable!() };
                    *follows
                        .entry((
                            first.workload_index,
                            first.cell.arm.clone(),
                            then.cell.arm.clone(),
                        ))
                        .or_default() += 1;
                }
            }
        }
        assert_eq!(follows.len(), 2 * n_arms * (n_arms - 1));
        assert!(follows.values().all(|count| *count == times), "{follows:?}");
    }
}

#[test]
fn workload_order_varies_with_arm_order_per_workload() {
    let plan = Plan::new(&study(4, 6, 1));
    let first: BTreeSet<u32> = (0..60)
        .map(|block| plan.block(block)[0].workload_index)
        .collect();
    assert_eq!(first.len(), 6, "each workload comes first at some time");
    let orders: BTreeSet<Vec<String>> = plan
        .block(0)
        .chunks(4)
        .map(|group| {
            group
                .iter()
                .map(|trial| trial.cell.arm.to_string())
                .collect()
        })
        .collect();
    assert!(orders.len() > 1);
}

#[test]
fn plan_hash_changes_with_plan_or_verdict_settings() {
    let plain = study(3, 2, 1);
    let hash = Plan::new(&plain).sha256().to_owned();
    assert_eq!(hash.len(), 64);
    assert_eq!(hash, Plan::new(&plain).sha256());
    let mut others = vec![study(3, 2, 2), study(4, 2, 1), study(3, 3, 1)];
    for change in [
        |study: &mut Study| study.margins.disk = 0.04,
        |study: &mut Study| study.blocks_max += 1,
        |study: &mut Study| study.arms[1].settings = Params::new().with("cpus", 1i64),
        |study: &mut Study| study.workloads[0].params = Params::new().with("n", 4i64),
    ] {
        let mut other = plain.clone();
        change(&mut other);
        others.push(other);
    }
    for other in others {
        assert_ne!(Plan::new(&other).sha256(), hash);
    }
}

#[test]
fn a_study_that_went_through_json_has_the_same_hash() {
    let mut study = study(3, 2, u64::MAX);
    study.precision = Some(0.017);
    study.workloads[0].params = Params::new().with("share", 0.3f64).with("whole", 2.0f64);
    let again: Study = serde_json::from_str(&serde_json::to_string(&study).unwrap()).unwrap();
    assert_eq!(Plan::new(&again).sha256(), Plan::new(&study).sha256());
}

/// Detects any change of the plan's algorithm: stored runs could not be resumed.
#[test]
fn the_plan_of_a_known_study_stays_as_it_is() {
    let plan = Plan::new(&study(3, 2, 42));
    let shown: Vec<String> = (0..2)
        .flat_map(|block| plan.block(block))
        .map(|trial| {
            format!(
                "{}:{}:{}",
                trial.sequence, trial.workload_index, trial.cell.arm
            )
        })
        .collect();
    assert_eq!(
        shown.join(" "),
        "0:1:a-prime 1:1:arm-2 2:1:host 3:0:arm-2 4:0:a-prime 5:0:host \
         6:0:a-prime 7:0:host 8:0:arm-2 9:1:a-prime 10:1:host 11:1:arm-2"
    );
}

#[test]
fn each_instance_count_runs_in_every_block_and_arm() {
    let mut study = study(3, 3, 5);
    for (spec, instances) in study.workloads.iter_mut().zip([1, 2, 3]) {
        spec.id = WorkloadId::new("w").unwrap();
        (spec.instances, spec.spread) = (instances, Some(tare_model::Spread::Processes));
    }
    let plan = Plan::new(&study);
    for block in 0..4 {
        let trials = plan.block(block);
        let seen: BTreeSet<(u32, String)> = trials
            .iter()
            .map(|trial| (trial.cell.instances, trial.cell.arm.to_string()))
            .collect();
        assert_eq!((trials.len(), seen.len()), (9, 9));
    }
    let mut apart = study.clone();
    apart.workloads[1].spread = Some(tare_model::Spread::Environments);
    assert_ne!(Plan::new(&apart).sha256(), plan.sha256());
}

#[test]
fn start_order_changes_from_launch_to_launch() {
    let plan = Plan::new(&study(4, 1, 5));
    let orders: BTreeSet<Vec<usize>> = (0..40).map(|launch| plan.start_order(launch, 4)).collect();
    assert!(orders.len() > 10);
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
    }
    assert_eq!(plan.start_order(3, 4), plan.start_order(3, 4));
}

#[test]
fn pads_change_with_launch_arm_and_seed() {
    let plan = Plan::new(&study(3, 1, 40));
    let pads = |arm| -> Vec<u32> { (0..200).map(|launch| plan.pad_bytes(launch, arm)).collect() };
    let (first, second) = (pads(0), pads(1));
    assert_ne!(first, second);
    assert_eq!(first, pads(0));
    let all = || first.iter().chain(&second);
    assert!(all().all(|pad| pad % 16 == 0 && *pad < 4_096));
    // The pads cover each quarter of a page.
    let quarters: BTreeSet<u32> = all().map(|pad| pad / 1_024).collect();
    assert_eq!(quarters.len(), 4);
}
