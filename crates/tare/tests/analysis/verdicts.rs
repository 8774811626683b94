//! Tests that planted effects get the right verdicts.

use tare::analyze::{RunData, analyze};
use tare::report::terminal::table;
use tare_model::dossier::{Dossier, DossierCell, DossierFailure};
use tare_model::study::A_PRIME;
use tare_model::{
    Absence, Better, CheckResult, Failure, Outcome, ProbeReport, Reason, Sliced, Trial, Verdict,
};

use super::forms::assert_says;
use super::generator::{
    Effect, Plan, cell, decide, facts_of, find, has, in_block, is_of_arm, of_width, rewrite,
    take_turns,
};

const INTEGER: &str = "cpu.integer.time";
const SYSCALL: &str = "syscall.getppid.time";

/// Returns the cell in which this effect was planted.
fn affected(plan: Plan, effect: Effect) -> DossierCell {
    let dossier = plan.with("box", INTEGER, effect).dossier();
    cell(&dossier, "box", INTEGER).clone()
}

fn only_failure(dossier: &Dossier) -> &DossierFailure {
    assert_eq!(dossier.failures.len(), 1, "{:?}", dossier.failures);
    &dossier.failures[0]
}

#[test]
fn no_effect_is_equivalent() {
    let dossier = Plan::default().dossier();
    let cell = cell(&dossier, "box", INTEGER);
    assert_eq!(cell.verdict, Verdict::Equivalent, "{cell:?}");
    assert_eq!(cell.n_blocks, 20);
    let ratio = cell.ratio.unwrap();
    assert!(ratio.low < 1.0 && 1.0 < ratio.high, "{ratio:?}");
    assert_eq!(cell.mde, None);
}

#[test]
fn ten_percent_is_material_cost_within_interval() {
    let cell = affected(Plan::default(), Effect::Times(1.10));
    assert_eq!(cell.verdict, Verdict::MaterialCost);
    let ratio = cell.ratio.unwrap();
    assert!(ratio.low < 1.10 && 1.10 < ratio.high, "{ratio:?}");
    assert_eq!(ratio.level, Some(0.95));
    let narrow = cell.ratio90.unwrap();
    assert!(ratio.low <= narrow.low && narrow.high <= ratio.high);
    assert!(cell.p.unwrap() < 0.001 && cell.q.unwrap() < 0.001);
}

#[test]
fn a_real_cost_below_the_margin_is_negligible() {
    let quiet = Plan::default().trial_noise(0.001);
    let cell = affected(quiet, Effect::Times(1.015));
    assert_eq!(cell.verdict, Verdict::NegligibleCost);
}

#[test]
fn small_effect_in_noise_is_inconclusive_with_mde() {
    let noisy = Plan::default().trial_noise(0.05).blocks(10);
    let cell = affected(noisy, Effect::Times(1.015));
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    let seen = cell.mde.unwrap();
    assert!(seen > 0.03, "{seen}");
    assert!(cell.further_blocks.unwrap() > 10, "{cell:?}");
}

#[test]
fn a_gain_is_a_gain_and_its_difference_negative() {
    let cell = affected(Plan::default(), Effect::Times(0.8));
    assert_eq!(cell.verdict, Verdict::MaterialGain);
    let difference = cell.difference.unwrap();
    assert!(difference.high < 0.0, "{difference:?}");
    assert!((difference.point + 0.2 * 3.1).abs() < 0.1, "{difference:?}");
}

#[test]
fn added_nanoseconds_come_out_as_a_difference() {
    let plan = Plan::default().workloads(["syscall"]).trial_noise(0.005);
    let dossier = plan.with("box", SYSCALL, Effect::Plus(29.0)).dossier();
    let cell = cell(&dossier, "box", SYSCALL);
    let difference = cell.difference.unwrap();
    assert!(
        difference.low < 29.0 && 29.0 < difference.high,
        "{difference:?}"
    );
    assert!(difference.high - difference.low < 2.0, "{difference:?}");
    assert_eq!(cell.verdict, Verdict::MaterialCost);
}

#[test]
fn a_rate_that_falls_is_a_cost() {
    let plan = Plan::default().workloads(["stream"]);
    let metric = "net.tcp.throughput";
    let dossier = plan.with("box", metric, Effect::Times(1.3)).dossier();
    let cell = cell(&dossier, "box", metric);
    assert_eq!(cell.verdict, Verdict::MaterialCost);
    let ratio = cell.ratio.unwrap();
    assert!(ratio.low < 1.3 && 1.3 < ratio.high, "{ratio:?}");
    // In the measured direction: the arm moves fewer bytes.
    assert!(cell.difference.unwrap().high < 0.0);
    assert!(cell.env.unwrap().point < cell.base.unwrap().point);
    assert_eq!(cell.better, Better::Higher);
    assert_eq!(cell.path, Some(tare_model::Path::HostToArm));
    // A network's best moment is not a reliable value.
    assert_eq!(cell.floor, None);
}

#[test]
fn floor_only_effect_shows_only_in_floor() {
    let plan = || Plan::default().trial_noise(0.004);
    let cell = affected(plan(), Effect::Floor(0.9));
    assert_eq!(cell.verdict, Verdict::Equivalent);
    assert!(cell.floor.unwrap().high < 0.95, "{:?}", cell.floor);
    let cell = affected(plan(), Effect::AllButFloor(1.1));
    assert_eq!(cell.verdict, Verdict::MaterialCost);
    let floor = cell.floor.unwrap();
    assert!(floor.low < 1.0 && 1.0 < floor.high, "{floor:?}");
}

#[test]
fn drifting_effect_is_flagged_never_equivalent() {
    let plan = Plan::default().trial_noise(0.0005);
    let cell = &affected(plan, Effect::Drift(1.0006));
    assert!(has(cell, "drifting-effect"), "{:?}", cell.flags);
    assert!(
        ![
            Verdict::Equivalent,
            Verdict::NegligibleCost,
            Verdict::NegligibleGain
        ]
        .contains(&cell.verdict),
        "{}",
        cell.verdict
    );
    // Dependent blocks are worth fewer than their number.
    assert!(has(cell, "autocorrelated"), "{:?}", cell.flags);
}

#[test]
fn one_block_is_too_few_and_still_has_its_values() {
    let cell = &affected(Plan::default().blocks(1), Effect::Times(3.0));
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    assert!(has(cell, "too-few-blocks"));
    assert_eq!((cell.ratio, cell.difference, cell.mde), (None, None, None));
    let base = cell.base.unwrap();
    assert_eq!(base.level, Some(0.0));
    assert_eq!((base.low, base.high), (base.point, base.point));
    assert_eq!(cell.p, None);
}

#[test]
fn missing_trials_are_counted_and_blocks_dropped() {
    let mut run = Plan::default().run();
    let limit_ns = 10_000_000_000;
    let timed_out = Outcome::Failed(Failure::TimedOut { limit_ns });
    let is_early = |trial: &Trial| is_of_arm("box")(trial) && trial.block < 7;
    decide(&mut run, is_early, &timed_out);
    let dossier = analyze(&run, &find);
    let cell = cell(&dossier, "box", INTEGER);
    assert_eq!(cell.n_blocks, 13);
    assert!(has(cell, "incomplete-blocks"));
    let failure = only_failure(&dossier);
    assert_eq!(failure.trials, 7);
    assert_eq!(failure.workload.as_deref(), Some("integer"));
    assert!(failure.hint.is_some());
}

#[test]
fn an_arm_in_which_everything_fails_keeps_its_row() {
    let mut run = Plan::default().run();
    let killed = Outcome::Failed(Failure::Killed { signal: 9 });
    decide(&mut run, is_of_arm("box"), &killed);
    let dossier = analyze(&run, &find);
    let cell = cell(&dossier, "box", INTEGER);
    assert!(has(cell, "not-measured"));
    assert_eq!((cell.n_blocks, cell.env), (0, None));
    assert_eq!(cell.verdict, Verdict::Inconclusive);
    assert_eq!(dossier.failures[0].trials, 20);
}

#[test]
fn unavailable_arm_has_reason_and_fix_but_no_cells() {
    let mut run = Plan::default().run();
    let absent = run.head.arms.last_mut().unwrap();
    absent.available = false;
    absent.reason = Some("the daemon does not answer".to_owned());
    absent.fix = Some("systemctl start docker".to_owned());
    let reason = Reason::NoEnvironment("the daemon does not answer".to_owned());
    decide(&mut run, is_of_arm("box"), &Outcome::Unavailable(reason));
    let dossier = analyze(&run, &find);
    assert!(dossier.cells.is_empty());
    let failure = only_failure(&dossier);
    assert_eq!((failure.workload.as_ref(), failure.trials), (None, 20));
    assert_eq!(failure.hint.as_deref(), Some("systemctl start docker"));
    assert!(!dossier.arms[2].available);
}

#[test]
fn another_checksum_voids_the_cell_and_is_listed() {
    let mut run = Plan::default().run();
    rewrite(&mut run, in_block("box", 4), |report| {
        report.checksum = Some("bad".to_owned());
    });
    let dossier = analyze(&run, &find);
    let cell = cell(&dossier, "box", INTEGER);
    assert_eq!((cell.n_blocks, cell.ratio), (0, None));
    let failure = only_failure(&dossier);
    assert!(
        failure.reason.starts_with("void: the checksum"),
        "{failure:?}"
    );
    assert_eq!(failure.trials, 20);
    assert_eq!(self::cell(&dossier, A_PRIME, INTEGER).n_blocks, 20);
}

#[test]
fn clock_mismatch_voids_trial_unless_host_clock() {
    let mut run = Plan::default().run();
    // The worker claims to have taken longer than the host waited for it.
    rewrite(&mut run, in_block("box", 2), |report| {
        report.elapsed_ns *= 2;
    });
    // The worker was stopped for ten seconds, which its own clock does not show.
    for data in &mut run.trials {
        if is_of_arm("box")(&data.trial) && data.trial.block == 3 {
            data.host_elapsed_ns += 10_000_000_000;
        }
    }
    let dossier = analyze(&run, &find);
    assert_eq!(cell(&dossier, "box", INTEGER).n_blocks, 18);
    assert_eq!(dossier.failures[0].trials, 2);
    assert!(dossier.failures[0].reason.contains("clock"));
    // The same on the host's own kernel: there is one clock, so the transport took that long.
    for arm in &mut run.head.arms {
        arm.facts.insert("kernel.boot_id".into(), "one".into());
    }
    assert_eq!(cell(&analyze(&run, &find), "box", INTEGER).n_blocks, 20);
}

#[test]
fn unreadable_output_fails_its_trial() {
    let mut run = Plan::default().run();
    rewrite(&mut run, in_block("box", 0), |report| report.series.clear());
    let dossier = analyze(&run, &find);
    assert_eq!(cell(&dossier, "box", INTEGER).n_blocks, 19);
    assert_eq!(dossier.failures[0].trials, 1);
    assert_eq!(dossier.failures[0].kind, Absence::Failed);
}

#[test]
fn throttling_is_error_unless_requested() {
    let mut run = Plan::default().run();
    rewrite(&mut run, is_of_arm("box"), |report| {
        report.counters.insert("throttled_ns".to_owned(), 4e6);
    });
    let dossier = analyze(&run, &find);
    let flags = &cell(&dossier, "box", INTEGER).flags;
    assert!(
        flags
            .iter()
            .any(|it| it.id == "throttled" && it.detail.contains("error"))
    );
    let spec = &mut run.head.arms[2].spec;
    spec.settings = spec.settings.clone().with("cpus", 0.5);
    let dossier = analyze(&run, &find);
    assert!(!has(cell(&dossier, "box", INTEGER), "throttled"));
}

#[test]
fn a_slower_canary_confounds_the_cell() {
    let mut run = Plan::default().run();
    rewrite(&mut run, is_of_arm("box"), |report| {
        report.canary_ns = report.canary_ns.map(|ns| ns * 1.03);
    });
    let dossier = analyze(&run, &find);
    assert!(has(cell(&dossier, "box", INTEGER), "clock-confounded"));
    assert!(!has(cell(&dossier, A_PRIME, INTEGER), "clock-confounded"));
}

#[test]
fn steal_faults_coarse_batches_nonlinearity_flagged() {
    let mut run = Plan::default().run();
    rewrite(&mut run, is_of_arm("box"), |report| {
        report.counters.insert("steal_ticks".to_owned(), 3.0);
        report.counters.insert("majflt".to_owned(), 7.0);
        report.timer.insert("cost_ns".to_owned(), 900.0);
        report.series[0].linearity = Some(1.4);
    });
    let dossier = analyze(&run, &find);
    let cell = cell(&dossier, "box", INTEGER);
    for flag in [
        "steal",
        "contended",
        "major-faults",
        "coarse-timer",
        "not-linear",
        "slow-clock",
    ] {
        assert!(has(cell, flag), "{flag}: {:?}", cell.flags);
    }
}

#[test]
fn slices_on_other_processor_are_flagged() {
    let mut run = Plan::default().run();
    let on = |cpu| {
        move |report: &mut ProbeReport| {
            report.sliced = Some(Sliced {
                slice_ns: 1_000_000,
                by_page: true,
                cpu,
                stage: None,
            });
        }
    };
    rewrite(&mut run, |_| true, on(Some(0)));
    let alike = analyze(&run, &find);
    assert!(!has(cell(&alike, "box", INTEGER), "other-processor"));
    rewrite(&mut run, is_of_arm("box"), on(Some(1)));
    let apart = analyze(&run, &find);
    assert!(has(cell(&apart, "box", INTEGER), "other-processor"));
    // A workload that needs more than one processor is not pinned.
    rewrite(&mut run, |_| true, on(None));
    let free = analyze(&run, &find);
    assert!(!has(cell(&free, "box", INTEGER), "other-processor"));
}

/// Multiplies the values of every trial that `which` picks.
fn longer(run: &mut RunData, factor: f64, which: impl Fn(&Trial) -> bool) {
    rewrite(run, which, |report| {
        for value in &mut report.series[0].values {
            *value *= factor;
        }
    });
}

#[test]
fn order_effect_within_block_is_flagged() {
    let mut run = Plan::default().blocks(30).run();
    longer(&mut run, 1.2, |trial| {
        is_of_arm("box")(trial) && trial.position == 0
    });
    let dossier = analyze(&run, &find);
    assert!(has(cell(&dossier, "box", INTEGER), "order-effect"));
}

#[test]
fn parity_checks_compare_arm_facts() {
    let mut run = Plan::default().run();
    let facts = &mut run.head.arms[2].facts;
    facts.insert("cpu.affinity".to_owned(), "0".to_owned());
    facts.insert("status.Seccomp".to_owned(), "2".to_owned());
    facts.insert("kernel.release".to_owned(), "6.1.0".to_owned());
    run.head.arms[2].agent_sha256 = Some("00".repeat(32));
    let dossier = analyze(&run, &find);
    let result = |id: &str| {
        let mut items = dossier.parity.iter();
        let item = items.find(|item| item.id == id).unwrap();
        (item.result, item.detail.as_str())
    };
    assert_eq!(result("box.cpus").0, CheckResult::Fail);
    assert_eq!(result("box.agent").0, CheckResult::Fail);
    assert_eq!(result("box.seccomp").0, CheckResult::Differs);
    assert_eq!(result("box.cpu-quota"), (CheckResult::Pass, "none"));
    assert_eq!(result("box.clocksource").0, CheckResult::NotKnown);
    assert_eq!(result("box.workdir").0, CheckResult::Pass);
    assert!(
        result("box.kernel")
            .1
            .contains("platforms, not the container")
    );
    assert_eq!(result("a-prime.cpus").0, CheckResult::Pass);
}

#[test]
fn an_arm_on_another_machine_is_labelled_as_one() {
    let machine = |there: Option<&str>, here: Option<&str>| {
        let mut run = Plan::default().run();
        for (arm, boot) in [(0, there), (1, there), (2, here)] {
            let facts = &mut run.head.arms[arm].facts;
            facts.extend(boot.map(|boot| ("kernel.boot_id".to_owned(), boot.to_owned())));
        }
        let parity = analyze(&run, &find).parity;
        let of = |id: &str| {
            let item = parity.iter().find(|item| item.id == id)?;
            Some((item.result, item.detail.clone()))
        };
        (of("a-prime.machine"), of("box.machine"))
    };
    let (again, other) = machine(Some("b-1"), Some("b-2"));
    assert_eq!(again.unwrap().0, CheckResult::Pass);
    let (result, detail) = other.unwrap();
    assert_eq!(result, CheckResult::Differs);
    assert_says(&detail, "`box` runs on another machine than `host`");
    assert_says(&detail, "`b-2`, not `b-1`");
    let (_, same) = machine(Some("b-1"), Some("b-1"));
    assert_eq!(same.unwrap().0, CheckResult::Pass);
    assert_eq!(machine(Some("b-1"), None).1, None);
}

#[test]
fn unknown_workload_is_a_failure() {
    let run = Plan::default().run();
    let dossier = analyze(&run, &|_| None);
    assert!(dossier.cells.is_empty());
    assert_eq!(dossier.failures.iter().map(|it| it.trials).sum::<u32>(), 60);
    assert!(dossier.failures[0].reason.contains("no workload `integer`"));
}

#[test]
fn a_workload_that_was_not_reached_is_listed() {
    let mut run = Plan::default().workloads(["integer", "syscall"]).run();
    run.trials.retain(|data| data.trial.workload_index == 0);
    let dossier = analyze(&run, &find);
    let failure = only_failure(&dossier);
    assert_eq!(failure.workload.as_deref(), Some("syscall"));
    assert!(failure.reason.contains("not reached"));
}

#[test]
fn excess_aa_false_alarms_are_reported() {
    let mut plan = Plan::default().workloads(["integer", "syscall", "stream"]);
    for metric in [INTEGER, SYSCALL, "net.tcp.throughput"] {
        plan = plan.with(A_PRIME, metric, Effect::Times(1.2));
    }
    let dossier = plan.dossier();
    let drawn = table(&dossier, of_width(500));
    let first = drawn.lines().next().unwrap();
    assert_says(first, "3 false positives");
    assert_says(first, "DO NOT TRUST THE VERDICTS");
    let item = dossier
        .checklist
        .iter()
        .find(|item| item.id == "a-a")
        .unwrap();
    assert_eq!(item.result, CheckResult::Fail);
}

#[test]
fn heavy_tails_are_flagged_with_mean() {
    let mut run = Plan::default().run();
    longer(&mut run, 3.0, in_block("box", 3));
    let dossier = analyze(&run, &find);
    let cell = cell(&dossier, "box", INTEGER);
    assert!(has(cell, "tails"), "{:?}", cell.flags);
    assert!(has(cell, "outliers"), "{:?}", cell.flags);
}

#[test]
fn emulated_arm_is_labelled_in_cells_and_report() {
    let by = "software emulation (TCG): not a VM's cost";
    let drawn = |dossier: &Dossier| tare::report::terminal::table(dossier, of_width(100));
    for blocks in [2, 20] {
        let mut run = Plan::default()
            .blocks(blocks)
            .workloads(["integer", "files"])
            .arms(["box", "other"])
            .run();
        let plain = drawn(&analyze(&run, &find));
        assert!(!plain.to_lowercase().contains("emulated"), "{plain}");
        let facts = facts_of(&mut run, "box");
        facts.insert("vm.emulated".into(), "true".into());
        facts.insert("vm.emulated.detail".into(), by.into());
        let dossier = analyze(&run, &find);
        assert!(dossier.cells.iter().any(|cell| cell.arm == "box"));
        for cell in dossier.cells.iter().chain(&dossier.aa) {
            let found = cell.flags.iter().find(|flag| flag.id == "emulated");
            let detail = found.map(|flag| flag.detail.as_str());
            assert_eq!(detail, (cell.arm == "box").then_some(by), "{}", cell.arm);
        }
        let text = drawn(&dossier);
        assert_says(&text, &format!("box (EMULATED: {by}) against"));
        let shown = text.matches("emulated:").count();
        assert_eq!(shown, 3, "each of the three metrics once: {text}");

        // With an emulated baseline every comparison is one of emulation.
        let base = run.head.study.baseline.clone();
        facts_of(&mut run, base.as_str()).insert("vm.emulated".into(), "true".into());
        let dossier = analyze(&run, &find);
        for cell in dossier.cells.iter().chain(&dossier.aa) {
            assert!(has(cell, "emulated"), "{}", cell.arm);
        }
    }
}

#[test]
fn rare_slow_slices_are_flagged_with_total() {
    let mut run = Plan::default().run();
    take_turns(&mut run);
    let calm = analyze(&run, &find);
    assert!(!has(cell(&calm, "box", INTEGER), "rare-slices"));
    rewrite(&mut run, is_of_arm("box"), |report| {
        for series in &mut report.series {
            let few = series.values.iter_mut().step_by(20);
            few.for_each(|value| *value *= 10.0);
        }
    });
    let dossier = analyze(&run, &find);
    let cell = cell(&dossier, "box", INTEGER);
    assert!(has(cell, "rare-slices"), "{:?}", cell.flags);
    assert!(cell.ratio.unwrap().high < 1.02);
}
