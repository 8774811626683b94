//! Generates runs with planted effects, as a store would hold them.
//!
//! Every trial is written as the agent writes it (`probe/1` as JSON), so decoding is tested as well. Noise is
//! multiplicative and normal: one draw for the block, shared by all arms like the state of the machine, one for the
//! trial, and one for each observation. The generator is seeded.

use std::collections::BTreeMap;

use tare::analyze::{ArmData, RunData, RunHead, TrialData, analyze};
use tare::report::terminal::Style;
use tare::workload::{Declared, DecodeError, ParamError, Workload, probe_output};
use tare_model::dossier::{Dossier, DossierCell};
use tare_model::study::A_PRIME;
use tare_model::{
    ArmId, ArmSpec, Better, CellKey, Facts, MetricSpec, Outcome, Params, Path, ProbeCall,
    ProbeReport, Publication, RawOutput, Recipe, RunId, Sample, Series, Sliced, StoppedBy, Study,
    Trial, WorkloadId, WorkloadSpec, metrics, whole_count,
};
use tare_stats::Stream;

/// A workload whose output is a probe's report.
#[derive(Debug)]
pub(crate) struct Synthetic(Declared);

impl Workload for Synthetic {
    fn declared(&self) -> &Declared {
        &self.0
    }
    fn recipe(&self, params: &Params, _path: Option<Path>) -> Result<Recipe, ParamError> {
        Ok(Recipe::Probe(ProbeCall {
            name: self.id().to_owned(),
            args: params.clone(),
        }))
    }
    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        probe_output::decode(raw, self.metrics())
    }
}

const fn synthetic(id: &'static str, metrics: &'static [MetricSpec]) -> Synthetic {
    Synthetic(Declared {
        id,
        about: "made up for tests",
        params: &[],
        metrics,
    })
}

/// One time, compute: margin 2 %.
pub(crate) static INTEGER: Synthetic = synthetic(
    "integer",
    metrics! { "cpu.integer.time", Nanosecond, Lower, Compute, floor: "Made up."; },
);
/// One time, kernel: margin 2 %.
pub(crate) static SYSCALL: Synthetic = synthetic(
    "syscall",
    metrics! { "syscall.getppid.time", Nanosecond, Lower, Kernel, floor: "Made up."; },
);
/// One rate, network: margin 5 %.
pub(crate) static STREAM: Synthetic = synthetic(
    "stream",
    metrics! { "net.tcp.throughput", BytePerSecond, Higher, Network: "Made up."; },
);
/// Two metrics, disk: margin 5 %.
pub(crate) static FILES: Synthetic = synthetic(
    "files",
    metrics! {
        "disk.fsync.time", Nanosecond, Lower, Disk: "Made up.";
        "disk.read.throughput", BytePerSecond, Higher, Disk: "Made up.";
    },
);

/// The workload registry of these tests.
pub(crate) fn find(id: &str) -> Option<&'static dyn Workload> {
    let all: [&'static Synthetic; 4] = [&INTEGER, &SYSCALL, &STREAM, &FILES];
    let found = all.into_iter().find(|workload| workload.id() == id)?;
    Some(found)
}

/// An arm's effect on a value for which lower is better.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// Multiplies by this.
    Times(f64),
    /// Adds this, in the metric's unit.
    Plus(f64),
    /// Multiplies every observation except the best one by this.
    AllButFloor(f64),
    /// Multiplies the best observation alone by this.
    Floor(f64),
    /// Multiplies by this to the power of the block, as a drift.
    Drift(f64),
}

/// The shape of a generated run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) blocks: u32,
    pub(crate) workloads: Vec<&'static str>,
    /// Arms in addition to the baseline and A′.
    pub(crate) arms: Vec<&'static str>,
    /// Standard deviation of a trial, on the log scale.
    pub(crate) trial_noise: f64,
    /// Standard deviation of a block, shared by its trials.
    pub(crate) block_noise: f64,
    /// Effects by arm and metric.
    pub(crate) effects: BTreeMap<(&'static str, &'static str), Effect>,
    /// Observations in a trial.
    pub(crate) observations: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            blocks: 20,
            workloads: vec!["integer"],
            arms: vec!["box"],
            trial_noise: 0.01,
            block_noise: 0.05,
            effects: BTreeMap::new(),
            observations: 40,
        }
    }
}

/// Returns the facts about this arm.
pub(crate) fn facts_of<'a>(run: &'a mut RunData, arm: &str) -> &'a mut Facts {
    let mut arms = run.head.arms.iter_mut();
    let found = arms.find(|known| known.spec.id.as_str() == arm);
    &mut found.unwrap().facts
}

impl Plan {
    pub(crate) fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(crate) fn blocks(self, blocks: u32) -> Self {
        Self { blocks, ..self }
    }

    pub(crate) fn workloads(self, workloads: impl Into<Vec<&'static str>>) -> Self {
        let workloads = workloads.into();
        Self { workloads, ..self }
    }

    pub(crate) fn arms(self, arms: impl Into<Vec<&'static str>>) -> Self {
        let arms = arms.into();
        Self { arms, ..self }
    }

    pub(crate) fn trial_noise(self, trial_noise: f64) -> Self {
        Self {
            trial_noise,
            ..self
        }
    }

    pub(crate) fn with(mut self, arm: &'static str, metric: &'static str, effect: Effect) -> Self {
        self.effects.insert((arm, metric), effect);
        self
    }

    pub(crate) fn run(&self) -> RunData {
        let study = self.study();
        let mut trials = Vec::new();
        let orders = tare_stats::BlockOrders::new(study.arms.len(), self.seed);
        for block in 0..self.blocks {
            for (index, workload) in self.workloads.iter().enumerate() {
                let mut weather = Stream::new(self.seed, u64::from(block), index as u64);
                let weather = weather.normal() * self.block_noise;
                for (position, arm) in (0..).zip(orders.order(block as usize)) {
                    let arm = study.arms[arm].id.as_str();
                    let trial = Trial {
                        sequence: whole_count(trials.len()),
                        block,
                        position,
                        launch: block,
                        workload_index: whole_count(index),
                        cell: CellKey {
                            arm: ArmId::new(arm).unwrap(),
                            workload: WorkloadId::new(*workload).unwrap(),
                            params: study.workloads[index].params.clone(),
                            instances: 1,
                            path: study.workloads[index].path,
                        },
                    };
                    let stream = (u64::from(block) << 8) | u64::from(position);
                    let mut noise = Stream::new(self.seed, stream, 1_000 + index as u64);
                    let report = self.report(workload, arm, block, weather, &mut noise);
                    let host_elapsed_ns = report.elapsed_ns + 60_000;
                    trials.push(TrialData {
                        trial,
                        outcome: completed(&report),
                        host_elapsed_ns,
                        charged: BTreeMap::new(),
                    });
                }
            }
        }
        RunData {
            head: RunHead {
                run: RunId::new("r-test").unwrap(),
                started_unix_ns: 1_700_000_000_000_000_000,
                plan_sha256: "ab".repeat(32),
                arms: study.arms.iter().map(arm_data).collect(),
                study,
                stopped_by: StoppedBy::Blocks,
                complete: true,
                wall_s: 12.5,
                whole_trials: Vec::new(),
                deviations: Vec::new(),
            },
            trials,
        }
    }

    /// Returns the dossier of the run.
    pub(crate) fn dossier(&self) -> Dossier {
        analyze(&self.run(), &find)
    }

    pub(crate) fn study(&self) -> Study {
        let mut ids = vec!["host", A_PRIME];
        ids.extend(&self.arms);
        let arms: Vec<ArmSpec> = ids.into_iter().map(arm_spec).collect();
        let workloads = self.workloads.iter().map(|id| workload_spec(id)).collect();
        Study {
            title: "Made up".to_owned(),
            seed: self.seed,
            blocks_max: self.blocks,
            trial_ns: 100_000_000,
            ..Study::new("synthetic", arms[0].id.clone(), arms, workloads)
        }
    }

    fn report(
        &self,
        workload: &str,
        arm: &str,
        block: u32,
        weather: f64,
        noise: &mut Stream,
    ) -> ProbeReport {
        let metrics = find(workload).unwrap().metrics();
        let series = metrics.iter().map(|metric| {
            let level = weather + noise.normal() * self.trial_noise;
            let mut costs: Vec<f64> = (0..self.observations)
                .map(|_| level_of(metric) * (level + 0.01 * noise.normal().abs()).exp())
                .collect();
            let key = (arm, metric.id);
            let effect = self
                .effects
                .iter()
                .find(|((arm, id), _)| (*arm, *id) == key)
                .map(|(_, effect)| *effect);
            apply(effect, &mut costs, block);
            let rates = metric.better == Better::Higher;
            Series {
                metric: metric.id.to_owned(),
                unit: metric.unit,
                values: costs
                    .into_iter()
                    .map(|cost| if rates { 1e12 / cost } else { cost })
                    .collect(),
                batch: 1_000,
                linearity: Some(2.0 + 0.01 * noise.normal()),
                notes: Vec::new(),
            }
        });
        let series = series.collect();
        let canary = 5e6 * (0.001 * noise.normal()).exp();
        ProbeReport {
            series,
            checksum: Some("00c0ffee00c0ffee".to_owned()),
            canary_ns: [canary, canary * 1.2],
            elapsed_ns: 110_000_000,
            counters: BTreeMap::from([
                ("majflt".to_owned(), 0.0),
                ("steal_ticks".to_owned(), 0.0),
                ("throttled_ns".to_owned(), 0.0),
            ]),
            timer: BTreeMap::from([
                ("cost_ns".to_owned(), 25.0),
                ("resolution_ns".to_owned(), 1.0),
            ]),
            ..ProbeReport::empty(workload, 3)
        }
    }
}

/// Returns a metric's value on the bare host.
fn level_of(metric: &MetricSpec) -> f64 {
    match metric.id {
        "syscall.getppid.time" => 92.0,
        "disk.fsync.time" => 2.5e6,
        "net.tcp.throughput" => 300.0,
        "disk.read.throughput" => 1_200.0,
        _ => 3.1,
    }
}

fn apply(effect: Option<Effect>, costs: &mut [f64], block: u32) {
    let best = (0..costs.len())
        .min_by(|a, b| costs[*a].total_cmp(&costs[*b]))
        .unwrap();
    for (place, cost) in costs.iter_mut().enumerate() {
        match effect {
            Some(Effect::Times(factor)) => *cost *= factor,
            Some(Effect::Plus(amount)) => *cost += amount,
            Some(Effect::AllButFloor(factor)) if place != best => *cost *= factor,
            Some(Effect::Floor(factor)) if place == best => *cost *= factor,
            None | Some(Effect::AllButFloor(_) | Effect::Floor(_)) => {}
            Some(Effect::Drift(factor)) => *cost *= factor.powi(block.cast_signed()),
        }
    }
}

/// Wraps the agent's report as the store holds it.
pub(crate) fn completed(report: &ProbeReport) -> Outcome {
    Outcome::Completed(RawOutput::of_probe(serde_json::to_vec(report).unwrap()))
}

/// Changes the report of every trial that `which` picks.
pub(crate) fn rewrite(
    run: &mut RunData,
    which: impl Fn(&Trial) -> bool,
    change: impl Fn(&mut ProbeReport),
) {
    for data in &mut run.trials {
        if !which(&data.trial) {
            continue;
        }
        let Outcome::Completed(raw) = &data.outcome else {
            continue;
        };
        let mut report: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
        change(&mut report);
        data.outcome = completed(&report);
    }
}

/// A terminal without colours.
pub(crate) const fn of_width(width: usize) -> Style {
    let colour = false;
    Style { width, colour }
}

/// Decides the outcome of every trial that `which` picks.
pub(crate) fn decide(run: &mut RunData, which: impl Fn(&Trial) -> bool, outcome: &Outcome) {
    let picked = run.trials.iter_mut().filter(|data| which(&data.trial));
    picked.for_each(|data| data.outcome = outcome.clone());
}

/// Marks every trial of the run as done in slices, interleaved with the others of its block.
pub(crate) fn take_turns(run: &mut RunData) {
    rewrite(
        run,
        |_| true,
        |report| {
            report.sliced = Some(Sliced {
                slice_ns: 1_000_000,
                by_page: true,
                cpu: Some(0),
                stage: None,
            });
        },
    );
}

/// Returns a publication with these parts.
pub(crate) fn publication_of(parts: &str) -> Publication {
    let head = "title = \"t\"\nwhere = \"w\"\nmachine = \"m\"\n";
    toml::from_str(&(head.to_owned() + parts)).unwrap()
}

/// Whether a trial is of this arm.
pub(crate) fn is_of_arm(arm: &'static str) -> impl Fn(&Trial) -> bool {
    move |trial| trial.cell.arm.as_str() == arm
}

/// Whether a trial is of this arm and block.
pub(crate) fn in_block(arm: &'static str, block: u32) -> impl Fn(&Trial) -> bool {
    move |trial| is_of_arm(arm)(trial) && trial.block == block
}

/// Returns the only cell of this arm and metric.
pub(crate) fn cell<'a>(dossier: &'a Dossier, arm: &str, metric: &str) -> &'a DossierCell {
    let all = dossier.cells.iter().chain(&dossier.aa);
    let mut found = all.filter(|cell| cell.arm == arm && cell.metric == metric);
    let cell = found
        .next()
        .unwrap_or_else(|| panic!("no cell {arm} {metric}"));
    assert!(found.next().is_none(), "two cells {arm} {metric}");
    cell
}

/// Whether a cell has a flag.
pub(crate) fn has(cell: &DossierCell, flag: &str) -> bool {
    cell.flags.iter().any(|it| it.id == flag)
}

fn arm_spec(id: &str) -> ArmSpec {
    let driver = if id == A_PRIME { "host" } else { id };
    ArmSpec::new(ArmId::new(id).unwrap(), driver, Params::new())
}

fn workload_spec(id: &str) -> WorkloadSpec {
    WorkloadSpec {
        id: WorkloadId::new(id).unwrap(),
        params: Params::new(),
        path: (id == "stream").then_some(Path::HostToArm),
        instances: 1,
        spread: None,
    }
}

fn arm_data(spec: &ArmSpec) -> ArmData {
    ArmData {
        spec: spec.clone(),
        available: true,
        reason: None,
        fix: None,
        facts: facts(),
        agent_sha256: Some("5a".repeat(32)),
    }
}

/// Returns typical facts about an arm.
pub(crate) fn facts() -> Facts {
    let facts = [
        ("kernel.release", "6.18.44"),
        ("cpu.model", "Test CPU @ 2.50GHz"),
        ("cpu.count", "2"),
        ("status.Seccomp", "0"),
        ("cpu.affinity", "0-1"),
        ("cgroup.layout", "v2"),
        ("cgroup.cpu.max", "max 100000"),
        ("mount./var/tmp.fstype", "ext4"),
    ];
    let facts = facts.iter();
    facts
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
