//! Tests that the analysis recovers planted stretch, unfairness and interaction of several instances at once.

use tare::analyze::{RunData, analyze};
use tare::report::terminal::table;
use tare_model::dossier::{Concurrency, ConcurrencyArm, ConcurrencyPoint, Dossier, Span};
use tare_model::outcome::{Bytes, Exit};
use tare_model::{
    Absence, Failure, INSTANCES_FORMAT, InstanceRecord, Outcome, ProbeReport, RawOutput, SpanClock,
    Spread, Together, Verdict, WorkSpan, whole_part,
};

use super::forms::assert_says;
use super::generator::{Plan, completed, facts_of, find, is_of_arm, of_width, publication_of};

/// A run with a series of instances.
pub(crate) struct Crowd {
    pub(crate) workload: &'static str,
    pub(crate) numbers: Vec<u32>,
    pub(crate) spread: Spread,
    /// Factor on the time of each of N instances, in every arm.
    pub(crate) stretch: fn(f64) -> f64,
    /// The same for each doubling, in the arm `box` only.
    pub(crate) doubling: f64,
    /// Factor on the last instance's time.
    pub(crate) last: f64,
    pub(crate) blocks: u32,
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            workload: "integer",
            numbers: vec![1, 2, 4],
            spread: Spread::Processes,
            stretch: |n| n,
            doubling: 1.0,
            last: 1.0,
            blocks: 20,
        }
    }
}

impl Crowd {
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut crowd = Self::default();
        change(&mut crowd);
        crowd
    }

    pub(crate) fn run(&self) -> RunData {
        let mut run = Plan {
            workloads: vec![self.workload; self.numbers.len()],
            trial_noise: 0.002,
            block_noise: 0.002,
            blocks: self.blocks,
            ..Plan::default()
        }
        .run();
        for (spec, instances) in run.head.study.workloads.iter_mut().zip(&self.numbers) {
            (spec.instances, spec.spread) = (*instances, Some(self.spread));
        }
        for data in &mut run.trials {
            let instances = self.numbers[data.trial.workload_index as usize];
            data.trial.cell.instances = instances;
            let report = report_of(&data.outcome);
            let n = f64::from(instances);
            let mut factor = (self.stretch)(n);
            if is_of_arm("box")(&data.trial) {
                factor *= self.doubling.powf(n.log2());
            }
            let records = (0..instances).map(|index| {
                let is_last = instances > 1 && index == instances - 1;
                let own = factor * if is_last { self.last } else { 1.0 };
                let mut report = report.clone();
                for series in &mut report.series {
                    let is_rate = series.unit == tare_model::Unit::BytePerSecond;
                    for value in &mut series.values {
                        *value *= if is_rate { 1.0 / own } else { own };
                    }
                }
                // Each starts 1 ms after the one before and works for 100 ms times its factor.
                let start_ns = 5_000_000_000 + u64::from(index) * 1_000_000;
                report.span = Some(WorkSpan {
                    start_ns,
                    end_ns: start_ns + whole_part(own * 1e8),
                    clock: SpanClock::Kernel,
                });
                InstanceRecord {
                    outcome: completed(&report),
                    start_ns: Some(u64::from(index)),
                    end_ns: 700_000_000,
                }
            });
            data.outcome = together(self.spread, records.collect());
        }
        run
    }

    pub(crate) fn dossier(&self) -> Dossier {
        analyze(&self.run(), &find)
    }
}

/// Returns a dossier with a series, for tests of its form.
pub(crate) fn with_series() -> Dossier {
    Crowd::with(|crowd| crowd.numbers = vec![1, 2, 3, 4, 6, 8]).dossier()
}

/// One and two at once, of which the second takes half as long again.
pub(crate) fn run_with_series() -> RunData {
    let crowd = Crowd::with(|crowd| (crowd.numbers, crowd.last) = (vec![1, 2], 1.5));
    crowd.run()
}

pub(crate) fn together(spread: Spread, instances: Vec<InstanceRecord>) -> Outcome {
    let together = Together { spread, instances };
    Outcome::Completed(RawOutput {
        format: INSTANCES_FORMAT.into(),
        stdout: Bytes(serde_json::to_vec(&together).unwrap()),
        stderr: Bytes::default(),
        exit: Exit::Code(0),
    })
}

pub(crate) fn report_of(outcome: &Outcome) -> ProbeReport {
    decoded(outcome)
}

pub(crate) fn records_of(outcome: &Outcome) -> Together {
    decoded(outcome)
}

fn decoded<T: serde::de::DeserializeOwned>(outcome: &Outcome) -> T {
    match outcome {
        Outcome::Completed(raw) => serde_json::from_slice(&raw.stdout.0).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn only(dossier: &Dossier) -> &Concurrency {
    assert_eq!(dossier.concurrency.len(), 1);
    &dossier.concurrency[0]
}

pub(crate) fn arm<'a>(dossier: &'a Dossier, id: &str) -> &'a ConcurrencyArm {
    only(dossier).arms.iter().find(|arm| arm.arm == id).unwrap()
}

pub(crate) fn point<'a>(dossier: &'a Dossier, id: &str, instances: u32) -> &'a ConcurrencyPoint {
    let mut points = arm(dossier, id).points.iter();
    points.find(|point| point.instances == instances).unwrap()
}

fn near(span: Option<Span>, wanted: f64) {
    let span = span.unwrap();
    let distance = (span.point / wanted - 1.0).abs();
    assert!(distance < 0.02, "{span:?} is not {wanted}");
}

#[test]
fn stretch_and_efficiency_are_those_that_were_planted() {
    let dossier = Crowd::default().dossier();
    for (instances, wanted) in [(1, 1.0), (2, 2.0), (4, 4.0)] {
        let point = point(&dossier, "host", instances);
        assert_eq!(point.n_blocks, 20);
        near(point.stretch, wanted);
        near(point.efficiency, 1.0 / wanted);
        near(point.fairness, 1.0);
    }
    // Four instances that take four times as long have the throughput of one alone.
    let alone = point(&dossier, "host", 1).throughput.unwrap().point;
    near(point(&dossier, "host", 4).throughput, alone);
    assert_eq!(only(&dossier).throughput_unit.as_deref(), Some("op/s"));
}

#[test]
fn each_number_of_instances_is_a_cell_of_its_own() {
    let dossier = Crowd::default().dossier();
    let numbers: Vec<u32> = dossier.cells.iter().map(|cell| cell.instances).collect();
    assert_eq!(numbers, [1, 2, 4]);
    for cell in &dossier.cells {
        assert_eq!(cell.spread, Some(Spread::Processes));
        assert_eq!(cell.verdict, Verdict::Equivalent);
    }
    // The reading of a trial is the mean over its instances.
    near(
        dossier.cells[2].base,
        4.0 * dossier.cells[0].base.unwrap().point,
    );
}

#[test]
fn a_rate_that_is_shared_is_stretched_like_a_time() {
    let dossier = Crowd::with(|crowd| crowd.workload = "stream").dossier();
    near(point(&dossier, "host", 4).stretch, 4.0);
    near(point(&dossier, "host", 4).efficiency, 0.25);
    assert_eq!(only(&dossier).throughput_unit.as_deref(), Some("B/s"));
}

#[test]
fn degradation_with_instances_is_found_only_if_real() {
    let worse = Crowd::with(|crowd| crowd.doubling = 1.10).dossier();
    let doubling = arm(&worse, "box").doubling.as_ref().unwrap();
    near(doubling.ratio, 1.10);
    let ratio = doubling.ratio.unwrap();
    assert!(ratio.low <= 1.10 && 1.10 <= ratio.high, "{ratio:?}");
    assert_eq!(doubling.verdict, Verdict::MaterialCost);
    assert_eq!(doubling.n_blocks, 20);
    assert!(doubling.q.unwrap() < 0.01);
    let same = Crowd::default().dossier();
    let doubling = arm(&same, "box").doubling.as_ref().unwrap();
    assert_eq!(doubling.verdict, Verdict::Equivalent);
    // Everything is slower with more instances, but not more so in the box.
    near(point(&same, "box", 4).stretch, 4.0);
    assert!(arm(&same, "host").doubling.is_none());
    let control = arm(&worse, "a-prime").doubling.as_ref().unwrap();
    assert_eq!((control.verdict, control.q), (Verdict::Equivalent, None));
}

#[test]
fn delayed_instance_shows_in_fairness_and_makespan() {
    let crowd = Crowd {
        numbers: vec![1, 2],
        stretch: |_| 1.0,
        last: 3.0,
        ..Crowd::default()
    };
    let dossier = crowd.dossier();
    let two = point(&dossier, "host", 2);
    near(two.stretch, 2.0);
    // Rates 1 and 1/3: (4/3)² / (2 · 10/9).
    near(two.fairness, 0.8);
    let mean = two.value.unwrap().point;
    near(two.worst, 1.5 * mean);
    near(two.makespan_ns, 3.01e8);
    near(two.skew_ns, 1e6);
    near(two.overlap, 99.0 / 301.0);
    assert!(two.flags.iter().any(|flag| flag.id == "little-overlap"));
    near(point(&dossier, "host", 1).makespan_ns, 1e8);
    near(two.makespan_stretch, 3.01);
}

#[test]
fn separate_kernels_have_no_skew_and_host_makespan() {
    let crowd = Crowd::with(|crowd| crowd.spread = Spread::Environments);
    let mut run = crowd.run();
    let boot = "11111111-2222-3333-4444-555555555555";
    facts_of(&mut run, "box").insert("kernel.boot_id".into(), boot.into());
    for data in &mut run.trials {
        data.host_elapsed_ns = 0;
    }
    let baseline = run
        .head
        .arms
        .iter_mut()
        .filter(|arm| arm.spec.id.as_str() != "box");
    for arm in baseline {
        arm.facts.insert("kernel.boot_id".into(), "0".into());
    }
    let dossier = analyze(&run, &find);
    let apart = point(&dossier, "box", 2);
    assert_eq!((apart.skew_ns, apart.overlap), (None, None));
    near(apart.makespan_ns, 7e8);
    assert!(apart.flags.iter().any(|flag| flag.id == "no-common-clock"));
    near(point(&dossier, "host", 2).skew_ns, 1e6);
}

#[test]
fn trial_with_failed_instance_has_reason_no_reading() {
    let mut run = Crowd::default().run();
    let trial = run
        .trials
        .iter_mut()
        .find(|data| is_of_arm("box")(&data.trial) && data.trial.cell.instances == 2)
        .unwrap();
    let mut records = records_of(&trial.outcome);
    records.instances[1].outcome = Outcome::Failed(Failure::Killed { signal: 11 });
    trial.outcome = together(records.spread, records.instances);
    let dossier = analyze(&run, &find);
    assert_eq!(point(&dossier, "box", 2).n_blocks, 19);
    assert_eq!(arm(&dossier, "box").doubling.as_ref().unwrap().n_blocks, 19);
    let reported = dossier.failures.iter().find(|it| it.arm == "box").unwrap();
    assert_eq!((reported.trials, reported.kind), (1, Absence::Failed));
    assert!(
        reported.reason.starts_with("instance 2 of 2: "),
        "{}",
        reported.reason
    );
    assert!(reported.reason.contains("signal 11"), "{}", reported.reason);
}

#[test]
fn an_instance_that_did_other_work_spoils_its_trial() {
    let mut run = Crowd::default().run();
    for data in &mut run.trials {
        if !is_of_arm("box")(&data.trial) || data.trial.cell.instances != 4 {
            continue;
        }
        let mut records = records_of(&data.outcome);
        let mut report = report_of(&records.instances[2].outcome);
        report.checksum = Some("0".repeat(16));
        records.instances[2].outcome = completed(&report);
        data.outcome = together(records.spread, records.instances);
    }
    let dossier = analyze(&run, &find);
    let points = &arm(&dossier, "box").points;
    assert_eq!(points.last().map(|point| point.n_blocks), Some(0));
    let reported = dossier.failures.iter().find(|it| it.arm == "box").unwrap();
    assert!(
        reported.reason.contains("instance 3 of 4"),
        "{}",
        reported.reason
    );
    assert!(
        reported.reason.contains("other work"),
        "{}",
        reported.reason
    );
}

#[test]
fn instance_order_does_not_matter() {
    let crowd = Crowd::with(|crowd| crowd.last = 2.0);
    let mut turned = crowd.run();
    for data in &mut turned.trials {
        let mut records = records_of(&data.outcome);
        records.instances.reverse();
        data.outcome = together(records.spread, records.instances);
    }
    let (straight, turned) = (crowd.dossier(), analyze(&turned, &find));
    for (a, b) in straight.cells.iter().zip(&turned.cells) {
        let (a, b) = (a.ratio.unwrap().point, b.ratio.unwrap().point);
        assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    }
    near(
        point(&turned, "host", 4).fairness,
        point(&straight, "host", 4).fairness.unwrap().point,
    );
}

#[test]
fn scaling_law_needs_six_counts_and_fits_planted() {
    let few = Crowd::with(|crowd| crowd.numbers = vec![1, 2, 3, 4, 5]);
    assert_eq!(arm(&few.dossier(), "host").scaling, None);
    // Amdahl with a fifth done one at a time: X(N) = N/(1 + 0.2(N − 1)), so each takes N/X times as long.
    let many = Crowd {
        numbers: vec![1, 2, 3, 4, 6, 8, 12],
        stretch: |n| 1.0 + 0.2 * (n - 1.0),
        ..Crowd::default()
    };
    let dossier = many.dossier();
    let scaling = arm(&dossier, "host").scaling.as_ref().unwrap();
    assert!((scaling.alpha - 0.2).abs() < 0.02, "{scaling:?}");
    assert!(scaling.beta < 0.002, "{scaling:?}");
    let bounds = scaling.alpha_interval.unwrap();
    assert!(
        bounds.low <= scaling.alpha && scaling.alpha <= bounds.high,
        "{bounds:?}"
    );
}

#[test]
fn single_count_has_no_stretch_or_interaction() {
    let dossier = Crowd::with(|crowd| crowd.numbers = vec![3]).dossier();
    let three = point(&dossier, "box", 3);
    assert!(three.value.is_some() && three.stretch.is_none() && three.efficiency.is_none());
    assert!(arm(&dossier, "box").doubling.is_none());
}

#[test]
fn too_few_blocks_have_no_verdict_on_the_interaction() {
    let dossier = Crowd::with(|crowd| crowd.blocks = 4).dossier();
    let doubling = arm(&dossier, "box").doubling.as_ref().unwrap();
    assert_eq!((doubling.ratio, doubling.p), (None, None));
    assert_eq!(doubling.verdict, Verdict::Inconclusive);
}

#[test]
fn table_shows_instance_counts_and_their_effect() {
    let dossier = Crowd::with(|crowd| crowd.doubling = 1.10).dossier();
    for width in [40, 80, 140] {
        let text = table(&dossier, of_width(width));
        assert_says(&text, "with several at once");
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{line:?} at {width}\n{text}");
        }
        let flat = super::forms::words(&text);
        let sentence = "box against host: it gets worse with more instances: each doubling of the instances adds";
        assert!(flat.contains(sentence), "{text}");
        assert!(!flat.contains("a-prime against host: it"), "{text}");
    }
}

#[test]
fn instances_total_is_each_value_times_count() {
    let of = |times: &str| {
        let publication = format!(
            r#"
quantity = [{{ name = "work", label = "Work", metric = "cpu.integer.time", times = [{times}] }}]
claim = [
  {{ id = "grows", published = "It grows.", at = "a place", rule = {{ kind = "growth", quantity = "work", arm = "box", instances = 4, at_least = 12.0, at_most = 20.0 }} }},
  {{ id = "alike", published = "It is alike at any number.", at = "a place", rule = {{ kind = "ratio", quantity = "work", to = "work", arm = "box", instances = 4, at_least = 0.9, at_most = 1.1 }} }},
]
[[table]]
title = "T"
rows = ["work"]
columns = [{{ label = "four", arm = "box", instances = 4 }}]
"#
        );
        let mut run = Crowd::default().run();
        run.head.study.publication = Some(publication_of(&publication));
        analyze(&run, &find)
    };
    let (each, all) = (of(""), of("\"instances\""));
    let value = |dossier: &Dossier| {
        let tables = &dossier.publication.as_ref().unwrap().tables;
        tables[0].rows[0].values[0].here.unwrap().point
    };
    let ratio = value(&all) / value(&each);
    assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
    // Each takes four times as long when four run, so all together sixteen times.
    let verdict = |dossier: &Dossier, place: usize| dossier.claims[place].verdict;
    assert_eq!(verdict(&each, 0), tare_model::ClaimVerdict::Fails);
    assert_eq!(verdict(&all, 0), tare_model::ClaimVerdict::Holds);
    assert_eq!(verdict(&each, 1), tare_model::ClaimVerdict::Holds);
}

#[test]
fn instance_counts_plot_as_sweep_with_line_per_arm() {
    let of = |numbers: Vec<u32>| {
        let dossier = Crowd::with(|crowd| crowd.numbers = numbers).dossier();
        let files = super::forms::files_of("svg", &dossier);
        let is_sweep = |name: &str| name.starts_with("sweep-");
        files
            .into_iter()
            .filter(|file| is_sweep(&file.name))
            .map(|file| String::from_utf8(file.content).unwrap())
            .collect::<Vec<String>>()
    };
    let sweeps = of(vec![1, 2, 4, 8]);
    assert_eq!(sweeps.len(), 1);
    let text = &sweeps[0];
    super::figures::keep("sweep.svg", text);
    assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
    assert_says(text, "by instances");
    // The baseline and the box, at four levels each.
    assert_eq!(text.matches("<polyline").count(), 2);
    assert_eq!(text.matches("<circle").count(), 8);
    assert!(of(vec![1, 2]).is_empty(), "two levels are no sweep");
}
