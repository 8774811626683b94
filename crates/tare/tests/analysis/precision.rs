//! Tests that the stopping rule agrees with the report and depends on widths only.

use std::collections::BTreeMap;

use tare::analyze::{PrecisionRule, RunData, analyze};
use tare_model::{ArmId, Facts};

use super::generator::{Effect, Plan, find, is_of_arm, rewrite};

fn plan() -> Plan {
    Plan::default()
        .workloads(["integer", "syscall"])
        .trial_noise(0.004)
}

/// Returns the rule with all trials of the run.
fn rule(run: &RunData) -> PrecisionRule<'static> {
    let mut rule = PrecisionRule::new(&run.head.study, &find);
    for trial in &run.trials {
        rule.add(trial);
    }
    rule
}

/// Returns how many blocks each workload needs to be precise enough.
fn enough(rule: &mut PrecisionRule<'_>, run: &RunData) -> Vec<f64> {
    let needed = rule.needed(&inside(run));
    assert!(needed.iter().all(|it| it.most >= it.enough), "{needed:?}");
    needed.iter().map(|it| it.enough).collect()
}

/// Returns the facts of each arm.
fn inside(run: &RunData) -> BTreeMap<ArmId, Facts> {
    let arms = run.head.arms.iter();
    arms.map(|arm| (arm.spec.id.clone(), arm.facts.clone()))
        .collect()
}

#[test]
fn a_quiet_workload_is_done_and_a_noisy_one_is_not() {
    let mut run = plan().run();
    let noisy = plan().trial_noise(0.2);
    for (data, other) in run.trials.iter_mut().zip(noisy.run().trials) {
        if data.trial.workload_index == 1 {
            data.outcome = other.outcome;
        }
    }
    let mut rule = rule(&run);
    let needed = enough(&mut rule, &run);
    assert!(needed[0] == 0.0 && needed[1] > 100.0, "{needed:?}");
}

#[test]
fn precision_rule_done_agrees_with_report() {
    for seed in 0..10 {
        let plan = plan().seed(seed);
        let run = plan
            .with("box", "cpu.integer.time", Effect::Times(1.5))
            .run();
        let mut rule = rule(&run);
        let needed = enough(&mut rule, &run);
        let dossier = analyze(&run, &find);
        for cell in &dossier.cells {
            let index = usize::from(cell.workload == "syscall");
            assert_eq!(
                needed[index] == 0.0,
                cell.further_blocks.is_none(),
                "seed {seed}: {cell:?}"
            );
        }
    }
}

#[test]
fn five_blocks_never_suffice_failures_never_delay() {
    let run = plan().blocks(5).trial_noise(1e-6).run();
    let mut rule = rule(&run);
    assert!(enough(&mut rule, &run).iter().all(|blocks| *blocks > 0.0));
    let mut rule = PrecisionRule::new(&run.head.study, &find);
    for trial in &run.trials {
        let mut failed = trial.clone();
        failed.outcome = tare_model::Outcome::Failed(tare_model::Failure::Killed { signal: 9 });
        rule.add(&failed);
    }
    assert_eq!(enough(&mut rule, &run), [0.0, 0.0]);
}

#[test]
fn void_trials_count_alike_in_rule_and_report() {
    let mut run = plan().run();
    // The worker claims to have taken longer than the host waited for it; five of twenty blocks remain.
    rewrite(
        &mut run,
        |trial| is_of_arm("box")(trial) && trial.workload_index == 0 && trial.block < 15,
        |report| report.elapsed_ns *= 2,
    );
    let mut rule = rule(&run);
    for _ in 0..2 {
        assert_eq!(enough(&mut rule, &run), [f64::INFINITY, 0.0]);
    }
    // With the host's own kernel there is one clock.
    for arm in &mut run.head.arms {
        arm.facts.insert("kernel.boot_id".into(), "one".into());
    }
    assert_eq!(enough(&mut rule, &run), [0.0, 0.0]);
}

#[test]
fn requested_precision_replaces_margin() {
    let mut run = plan().run();
    run.head.study.precision = Some(1e-6);
    assert!(
        enough(&mut rule(&run), &run)
            .iter()
            .all(|blocks| *blocks > 0.0)
    );
    // More precision than requested is worth no time; without a request the limit is a fraction of the margin.
    run.head.study.precision = Some(0.1);
    let most = |run: &RunData| -> Vec<f64> {
        let needed = rule(run).needed(&inside(run));
        needed.iter().map(|it| it.most).collect()
    };
    assert_eq!(most(&run), [0.0, 0.0]);
    let run = plan().trial_noise(0.012).run();
    assert_eq!(enough(&mut rule(&run), &run), [0.0, 0.0]);
    assert!(most(&run).iter().all(|blocks| *blocks > 0.0));
}

#[test]
fn so_far_summary_matches_report() {
    let run = plan()
        .with("box", "cpu.integer.time", Effect::Times(1.5))
        .run();
    let mut rule = PrecisionRule::new(&run.head.study, &find);
    assert_eq!(rule.so_far(), []);
    for trial in &run.trials {
        rule.add(trial);
    }
    rule.needed(&inside(&run));
    let shown = rule.so_far();
    let dossier = analyze(&run, &find);
    let [told] = &shown[..] else {
        panic!("one arm beside the baseline: {shown:?}");
    };
    assert_eq!((told.arm.as_str(), told.more, told.less), ("box", 1, 0));
    let n_cells = told.more + told.less + told.nothing + told.open;
    assert_eq!(n_cells, dossier.cells.len());
}
