//! Tests what holds for every run, whatever effect was planted.

use proptest::prelude::*;
use tare::analyze::{Analysis, RunData, TrialData, TrialRef, analyze};
use tare_model::study::A_PRIME;
use tare_model::{ArmId, Failure, Outcome};
use tare_stats::Verdict;

use super::generator::{Effect, Plan, cell, find, is_of_arm, take_turns};

/// Returns the same run with baseline and arm exchanged.
fn swapped(run: &RunData) -> RunData {
    let (host, other) = (ArmId::new("host").unwrap(), ArmId::new("box").unwrap());
    let swap = |id: &mut ArmId| {
        if *id == host {
            *id = other.clone();
        } else if *id == other {
            *id = host.clone();
        }
    };
    let mut run = run.clone();
    for data in &mut run.trials {
        swap(&mut data.trial.cell.arm);
    }
    run
}

/// Returns the run without the A/A control, which would not change places with the others.
fn without_a_prime(mut run: RunData) -> RunData {
    run.trials.retain(|data| !is_of_arm(A_PRIME)(&data.trial));
    run
}

#[test]
fn slices_dropped_with_absent_or_failing_arm() {
    // A third of the trials of `box` fail, and `jail` cannot be started.
    let plan = Plan {
        observations: 2_000,
        ..Plan::default().blocks(12).arms(["box", "jail"])
    };
    let mut run = plan.run();
    run.head.arms[3].available = false;
    run.trials.retain(|data| !is_of_arm("jail")(&data.trial));
    take_turns(&mut run);
    for data in run
        .trials
        .iter_mut()
        .filter(|data| is_of_arm("box")(&data.trial))
    {
        if data.trial.block % 3 == 0 {
            data.outcome = Outcome::Failed(Failure::Killed { signal: 9 });
        }
    }
    let mut keeping = Analysis::new(&run.head, &find);
    let mut dropping = Analysis::new(&run.head, &find).without_slices();
    for trial in &run.trials {
        keeping.add(trial);
        dropping.add(trial);
    }
    for length in [1, 2, 5, 36] {
        let mut beside = Analysis::new(&run.head, &find).without_slices();
        let parts: Vec<_> = run.trials.chunks(length).collect();
        let read = |(): &mut (), part: &&[TrialData], add: &mut dyn FnMut(TrialRef<'_>)| {
            part.iter().for_each(|trial| add(trial.into()));
            Ok(())
        };
        beside.add_parts(&parts, || Ok::<(), ()>(()), read).unwrap();
        assert_eq!(beside.dossier(), analyze(&run, &find));
    }
    assert_eq!(dropping.dossier(), keeping.dossier());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ratios_the_other_way_round_are_reciprocal(
        seed in 0u64..1_000_000,
        factor in 0.5f64..2.0,
        blocks in 6u32..30,
        workload in prop::sample::select(vec!["integer", "stream", "files"]),
    ) {
        let metric = find(workload).unwrap().metrics()[0].id;
        let plan = Plan::default().seed(seed).blocks(blocks).workloads([workload]);
        let run = without_a_prime(plan.with("box", metric, Effect::Times(factor)).run());
        let there = analyze(&run, &find);
        let back = analyze(&swapped(&run), &find);
        for cell in &there.cells {
            let other = self::cell(&back, "box", &cell.metric);
            let (a, b) = (cell.ratio.unwrap(), other.ratio.unwrap());
            prop_assert!((a.point * b.point - 1.0).abs() < 1e-9);
            prop_assert!((a.low * b.high - 1.0).abs() < 1e-9);
            let (a, b) = (cell.difference.unwrap(), other.difference.unwrap());
            prop_assert!((a.point + b.point).abs() <= 1e-9 * a.point.abs());
            let word = cell.verdict;
            prop_assert_eq!(word.mirrored(), other.verdict);
            prop_assert!((cell.p.unwrap() - other.p.unwrap()).abs() < 1e-12);
        }
    }

    #[test]
    fn identical_data_in_two_arms_are_equivalent(seed in 0u64..1_000_000, blocks in 6u32..20) {
        let plan = Plan::default().seed(seed).blocks(blocks).trial_noise(0.3);
        let mut run = plan.run();
        let of_host: Vec<_> = run
            .trials
            .iter()
            .filter(|data| is_of_arm("host")(&data.trial))
            .map(|data| (data.trial.block, data.outcome.clone()))
            .collect();
        for data in &mut run.trials {
            let same = of_host.iter().find(|(block, _)| *block == data.trial.block);
            data.outcome = same.unwrap().1.clone();
        }
        let dossier = analyze(&run, &find);
        let cell = cell(&dossier, A_PRIME, "cpu.integer.time");
        prop_assert_eq!(cell.verdict, Verdict::Equivalent);
        prop_assert_eq!(cell.ratio.map(|ratio| ratio.point), Some(1.0));
        prop_assert_eq!(cell.difference.map(|difference| difference.point), Some(0.0));
    }

    #[test]
    fn trial_read_order_does_not_matter(seed in 0u64..1_000_000) {
        let plan = Plan::default().seed(seed).blocks(8).workloads(["files", "syscall"]);
        let run = plan.run();
        let mut backwards = Analysis::new(&run.head, &find);
        for trial in run.trials.iter().rev() {
            backwards.add(trial);
        }
        let backwards = backwards.dossier();
        prop_assert_eq!(analyze(&run, &find), backwards);
    }

    #[test]
    fn parallel_decoding_equals_sequential(seed in 0u64..1_000_000, n_failed in 0usize..40, length in 1usize..90) {
        // Parts end within blocks, and there are more kinds of failure than are listed one by one.
        let plan = Plan::default().seed(seed).blocks(40).workloads(["files", "syscall"]);
        let mut run = plan.run();
        for (signal, data) in (0..).zip(run.trials.iter_mut().step_by(7).take(n_failed)) {
            data.outcome = tare_model::Outcome::Failed(tare_model::Failure::Killed { signal });
        }
        let one_by_one = |run: &RunData| {
            let mut analysis = Analysis::new(&run.head, &find).without_slices();
            run.trials.iter().for_each(|trial| analysis.add(trial));
            analysis.dossier()
        };
        let mut beside = Analysis::new(&run.head, &find).without_slices();
        let parts: Vec<_> = run.trials.chunks(length).collect();
        beside.add_parts(&parts, || Ok::<(), ()>(()), |(), part, add| {
            part.iter().for_each(|trial| add(trial.into()));
            Ok(())
        }).unwrap();
        prop_assert_eq!(one_by_one(&run), beside.dossier());
    }

    #[test]
    fn unreadable_part_is_an_error(place in 0usize..9) {
        let run = Plan::default().run();
        let mut analysis = Analysis::new(&run.head, &find);
        let parts: Vec<usize> = (0..9).collect();
        let taken = analysis.add_parts(&parts, || Ok(()), |(), part, _| {
            if *part == place { Err(*part) } else { Ok(()) }
        });
        prop_assert_eq!(taken, Err(place));
        let unopened = analysis.add_parts(&parts, || Err::<(), usize>(place), |(), _, _| Ok(()));
        prop_assert_eq!(unopened, Err(place));
    }

    #[test]
    fn a_wider_margin_never_makes_a_cost_more_material(seed in 0u64..1_000_000, factor in 0.9f64..1.1) {
        let plan = Plan::default().seed(seed).blocks(12);
        let mut run = plan.with("box", "cpu.integer.time", Effect::Times(factor)).run();
        let rank = |run: &RunData| {
            let dossier = analyze(run, &find);
            let word = cell(&dossier, "box", "cpu.integer.time").verdict;
            matches!(word, Verdict::MaterialCost | Verdict::MaterialGain)
        };
        let narrow = rank(&run);
        run.head.study.margins.compute = 0.2;
        let wide = rank(&run);
        prop_assert!(narrow || !wide);
    }
}
