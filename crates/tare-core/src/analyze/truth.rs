//! Judges comparisons whose truth is known like any run: simulated trials with a planted difference, and windows of a
//! recorded run of equal arms.
//!
//! The two ends of an interval are counted separately. An interval that errs on one side only covers 95 % and still
//! calls equal arms faster twice as often as it promises. The mean of both copies of the baseline does so, and must
//! be detected here.

use std::collections::BTreeMap;

use tare_model::dossier::{DossierCell, Span};
use tare_model::study::A_PRIME;
use tare_model::{
    ArmId, ArmSpec, CellKey, Outcome, Params, ProbeReport, RawOutput, RunId, Series, Sliced,
    StoppedBy, Study, Trial, WorkloadId, WorkloadSpec, whole_count, whole_place,
};
use tare_stats::{BlockOrders, Interval, Stream, binomial_quantile, hodges_lehmann_paired, median};

use super::{ArmData, Find, LEVEL, RunData, RunHead, TrialData, analyze};

/// Counts of intervals that miss the truth, by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sides {
    /// Number of intervals.
    pub n: u64,
    /// Number of intervals above the truth.
    #[serde(rename = "slower")]
    pub above: u64,
    /// Number of intervals below the truth.
    #[serde(rename = "faster")]
    pub below: u64,
}

impl Sides {
    fn add(&mut self, [low, high]: [f64; 2], truth: f64) {
        self.n += 1;
        self.above += u64::from(low > truth);
        self.below += u64::from(high < truth);
    }

    /// Whether neither side misses more often than one in forty plus chance, at one false alarm in a hundred.
    pub fn is_accepted(&self) -> bool {
        let most = binomial_quantile(0.99, self.n, (1.0 - LEVEL) / 2.0).unwrap_or(0);
        self.above.max(self.below) <= most
    }
}

/// Result of simulated comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simulated {
    /// Counts of the dossiers' intervals.
    pub sides: Sides,
    /// Counts for the mean of both copies of the baseline, known to be wrong.
    pub mutant: Sides,
    /// Slope of the estimates on the planted effects, on the ln scale; 1 is right.
    pub slope: f64,
}

/// The planted effects, used cyclically; many are 0 or small.
const DOSES: [f64; 8] = [0.0, 0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0];
const N_BLOCKS: [u32; 2] = [20, 40];
const N_SLICES: usize = 8;
const THIRD: &str = "third";
const SEED: u64 = 0x0074_7275_7468;
/// Scatter of a trial's level and of a slice, on the ln scale.
const LEVEL_NOISE: f64 = 0.02;
const SLICE_NOISE: f64 = 0.002;

/// Judges `n` simulated runs of three arms that are equal except for the effect planted in the third. The workload is
/// one with a single time, by its name in the registry. `None` if there is none of that name.
pub fn simulated(workload: &str, find: Find<'_>, n: u32) -> Option<Simulated> {
    let (mut sides, mut mutant) = (Sides::default(), Sides::default());
    let (mut products, mut squares) = (0.0, 0.0);
    for number in 0..n {
        let dose = DOSES[number as usize % DOSES.len()];
        let made = SimulatedRun::new(workload, find, number, dose)?;
        let d: Vec<f64> = made.mean_differences();
        let dossier = analyze(&made.run, find);
        let cell = dossier.cells.iter().find(|cell| cell.arm == THIRD)?;
        let ratio = cell.ratio?;
        sides.add([ratio.low, ratio.high], 1.0 + dose);
        if let Ok(found) = hodges_lehmann_paired(&d, LEVEL) {
            let Interval { low, high, .. } = found.interval;
            mutant.add([low, high], dose.ln_1p());
        }
        products += ratio.point.ln() * dose.ln_1p();
        squares += dose.ln_1p().powi(2);
    }
    Some(Simulated {
        sides,
        mutant,
        slope: products / squares,
    })
}

/// A simulated run.
struct SimulatedRun {
    run: RunData,
    /// ln of every slice, by block, for the host, its copy and the third arm.
    ln_slices: Vec<[Vec<f64>; 3]>,
}

impl SimulatedRun {
    fn new(workload: &str, find: Find<'_>, number: u32, dose: f64) -> Option<Self> {
        let metric = find(workload)?.metrics().first()?;
        let n_blocks = N_BLOCKS[number as usize % N_BLOCKS.len()];
        let study = study(workload, u64::from(number), n_blocks)?;
        let orders = BlockOrders::new(study.arms.len(), study.seed);
        let (mut trials, mut ln_slices) = (Vec::new(), Vec::new());
        for block in 0..n_blocks {
            let mut stream = Stream::new(SEED, u64::from(number), u64::from(block));
            let weather = 0.05 * stream.normal();
            let slices: [Vec<f64>; 3] = std::array::from_fn(|arm| {
                let level = weather + LEVEL_NOISE * one_sided(number, &mut stream);
                let planted = if arm == 2 { dose.ln_1p() } else { 0.0 };
                let slice = |_| level + planted + SLICE_NOISE * delay(&mut stream);
                (0..N_SLICES).map(slice).collect()
            });
            for (position, arm) in (0..).zip(orders.order(block as usize)) {
                let values = slices[arm].iter().map(|ln| 100.0 * ln.exp()).collect();
                let mut report = ProbeReport::empty(workload, 1);
                report.elapsed_ns = 20_000_000;
                report.canary_ns = [1e3; 2];
                report.sliced = Some(Sliced {
                    slice_ns: 1_000_000,
                    by_page: true,
                    cpu: Some(0),
                    stage: None,
                });
                report.series = vec![Series {
                    metric: metric.id.to_owned(),
                    unit: metric.unit,
                    values,
                    batch: 1_000,
                    linearity: None,
                    notes: Vec::new(),
                }];
                trials.push(TrialData {
                    trial: Trial {
                        sequence: whole_count(trials.len()),
                        block,
                        position,
                        launch: block,
                        workload_index: 0,
                        cell: CellKey {
                            arm: study.arms[arm].id.clone(),
                            workload: study.workloads[0].id.clone(),
                            params: Params::new(),
                            instances: 1,
                            path: None,
                        },
                    },
                    outcome: Outcome::Completed(RawOutput::of_probe(
                        serde_json::to_vec(&report).ok()?,
                    )),
                    host_elapsed_ns: 20_100_000,
                    charged: BTreeMap::new(),
                });
            }
            ln_slices.push(slices);
        }
        let run = RunData {
            head: head(study)?,
            trials,
        };
        Some(Self { run, ln_slices })
    }

    /// By block: the third arm minus the mean of both copies.
    fn mean_differences(&self) -> Vec<f64> {
        let of_block = |[host, copy, third]: &[Vec<f64>; 3]| {
            let cycles = host.iter().zip(copy).zip(third);
            let d: Vec<f64> = cycles
                .map(|((host, copy), third)| third - f64::midpoint(*host, *copy))
                .collect();
            median(&d).unwrap_or(f64::NAN)
        };
        self.ln_slices.iter().map(of_block).collect()
    }
}

/// Noise that only lengthens the work; a quarter of the runs has noise on both sides.
fn one_sided(number: u32, stream: &mut Stream) -> f64 {
    match number / 16 % 4 {
        0 => stream.normal(),
        1 => delay(stream),
        // With a heavy tail.
        2 => (1.0 - stream.unit()).powf(-0.4).min(20.0),
        _ if stream.unit() < 0.2 => 2.0 + 0.2 * stream.normal(),
        _ => 0.2 * stream.normal(),
    }
}

/// Exponential, with mean 1.
fn delay(stream: &mut Stream) -> f64 {
    -(1.0 - stream.unit()).ln()
}

fn study(workload: &str, seed: u64, n_blocks: u32) -> Option<Study> {
    let arm = |id: &str| Some(ArmSpec::new(ArmId::new(id).ok()?, "host", Params::new()));
    let arms = vec![arm("host")?, arm(A_PRIME)?, arm(THIRD)?];
    let workload = WorkloadSpec::new(WorkloadId::new(workload).ok()?, Params::new());
    Some(Study {
        seed,
        blocks_max: n_blocks,
        ..Study::new("simulated", arms[0].id.clone(), arms, vec![workload])
    })
}

fn head(study: Study) -> Option<RunHead> {
    let data = |spec: &ArmSpec| ArmData {
        spec: spec.clone(),
        available: true,
        reason: None,
        fix: None,
        facts: BTreeMap::new(),
        agent_sha256: None,
    };
    Some(RunHead {
        run: RunId::new("simulated").ok()?,
        started_unix_ns: 0,
        plan_sha256: String::new(),
        arms: study.arms.iter().map(data).collect(),
        study,
        stopped_by: StoppedBy::Blocks,
        complete: true,
        wall_s: 0.0,
        whole_trials: Vec::new(),
        deviations: Vec::new(),
    })
}

/// Result over disjoint windows of one recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Number of windows.
    pub n_windows: usize,
    /// Counts of one arm's intervals against the truth.
    pub sides: Sides,
    /// Number of intervals that exclude "no difference".
    pub found: u64,
    /// The intervals that miss the truth: metric and ratio.
    pub missed: Vec<(String, Span)>,
}

/// Judges every `n_blocks` whole blocks of a recorded run separately, as if they were all that was measured, and
/// compares the ratios of `arm` with `truth`. Remaining blocks are left out.
pub fn replayed(run: &RunData, find: Find<'_>, arm: &str, truth: f64, n_blocks: u32) -> Replayed {
    let mut blocks: Vec<u32> = run.trials.iter().map(|data| data.trial.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let size = whole_place(f64::from(n_blocks)).max(1);
    let mut replayed = Replayed {
        n_windows: blocks.len() / size,
        sides: Sides::default(),
        found: 0,
        missed: Vec::new(),
    };
    for window in blocks.chunks_exact(size) {
        let is_inside = |data: &&TrialData| window.binary_search(&data.trial.block).is_ok();
        let part = RunData {
            head: run.head.clone(),
            trials: run.trials.iter().filter(is_inside).cloned().collect(),
        };
        let dossier = analyze(&part, find);
        let cells = dossier.cells.iter().chain(&dossier.aa);
        let of_arm = cells.filter(|cell: &&DossierCell| cell.arm == arm);
        for (metric, ratio) in of_arm.filter_map(|cell| Some((&cell.metric, cell.ratio?))) {
            replayed.sides.add([ratio.low, ratio.high], truth);
            replayed.found += u64::from(ratio.low > 1.0 || ratio.high < 1.0);
            if ratio.low > truth || ratio.high < truth {
                replayed.missed.push((metric.clone(), ratio));
            }
        }
    }
    replayed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    #[test]
    fn planted_doses_come_out_of_the_pipeline() {
        let found = simulated("getppid", &workload::find, 64).unwrap();
        assert_eq!((found.sides.n, found.mutant.n), (64, 64));
        assert!((found.slope - 1.0).abs() < 0.01, "{found:?}");
        assert!(found.sides.is_accepted(), "{found:?}");
        assert_eq!(simulated("no-such", &workload::find, 1), None);
    }

    #[test]
    fn sides_are_judged_apart() {
        let accepted = |above, below| {
            let sides = Sides {
                n: 1_000,
                above,
                below,
            };
            sides.is_accepted()
        };
        assert!(accepted(25, 25) && accepted(0, 35));
        // One in twenty in total, but all on one side.
        assert!(!accepted(50, 0) && !accepted(0, 45));
    }

    #[test]
    fn windows_of_a_recording_are_judged_by_themselves() {
        let made = SimulatedRun::new("getppid", &workload::find, 1, 0.1).unwrap();
        let by = |arm, truth, n| replayed(&made.run, &workload::find, arm, truth, n);
        let third = by(THIRD, 1.1, 12);
        // Forty blocks hold three windows of twelve, and four are left out.
        assert_eq!((third.n_windows, third.sides.n, third.found), (3, 3, 3));
        assert_eq!(by(THIRD, 2.0, 10).sides.below, 4);
        assert_eq!(by(THIRD, 1.0, 10).sides.above, 4);
        assert_eq!(by(A_PRIME, 1.0, 41).sides, Sides::default());
    }
}
