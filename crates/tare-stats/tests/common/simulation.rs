//! Simulates the coverage of the default interval under realistic noise.
//!
//! Eight models of the time of a trial, drawn in blocks of a baseline and an environment; counts how often the
//! default interval holds the true centre of d.
//!
//! The test makes a few hundred repetitions and the example tens of thousands, with the same models. The parameters are chosen: the spread of a normal trial is 3 %, spikes and modes are of
//! the size seen on shared machines.
//!
//! Limits: other kinds of noise are not covered. Real identical trials are in the A/A fixture.

#![allow(dead_code, reason = "each test binary uses a part")]

use tare_stats::{Interval, Stream, Verdict, hodges_lehmann_at, hodges_lehmann_paired, verdict};

const TRIALS: u64 = 0x7472_6961_6c73;
const TRUTH: u64 = 0x0074_7275_7468;
/// Blocks used to estimate the centre of an asymmetric model; its standard error is then 1/140 of the spread of one
/// block.
const TRUTH_BLOCKS: usize = 20_000;

/// A noise model of the time of a trial.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    /// Normal on the ln scale, 3 %.
    Normal,
    /// Log-normal delays added in both arms.
    Delays,
    /// 10 % slower in one trial of four, in both arms.
    Modes,
    /// Pareto spikes in one trial of ten, in both arms.
    Spikes,
    /// Log-normal delays in the environment only.
    DelaysInOne,
    /// 10 % slower in one trial of four, in the environment only.
    ModesInOne,
    /// Pareto spikes in one trial of ten, in the environment only.
    SpikesInOne,
    /// A random walk of the whole machine, far larger than the noise within a block.
    Drift,
}

impl Noise {
    /// All eight models.
    pub(crate) const ALL: [Self; 8] = [
        Self::Normal,
        Self::Delays,
        Self::Modes,
        Self::Spikes,
        Self::DelaysInOne,
        Self::ModesInOne,
        Self::SpikesInOne,
        Self::Drift,
    ];

    /// Draws log-ratios of `n` blocks in time order, from an environment without overhead except this noise. Arms run
    /// in random order, which only affects [`Noise::Drift`].
    pub(crate) fn log_ratios(self, n: usize, stream: &mut Stream) -> Vec<f64> {
        let mut level = 0.0;
        (0..n)
            .map(|_| match self {
                Self::Drift => {
                    let mut step = || {
                        level += 0.02 * stream.normal();
                        level
                    };
                    let (first, second) = (step(), step());
                    let swapped = stream.below(2) == 1;
                    let own = 0.01 * (stream.normal() - stream.normal());
                    own + if swapped {
                        first - second
                    } else {
                        second - first
                    }
                }
                _ => self.trial(true, stream) - self.trial(false, stream),
            })
            .collect()
    }

    /// Draws ln of the time of one trial.
    fn trial(self, environment: bool, stream: &mut Stream) -> f64 {
        let usual = stream.normal();
        // Drawn even if unused, so that every trial consumes the same share of the stream.
        let (second, chance, size) = (stream.normal(), stream.unit(), 1.0 - stream.unit());
        match self {
            Self::DelaysInOne | Self::ModesInOne | Self::SpikesInOne if !environment => {
                0.01 * usual
            }
            Self::Normal | Self::Drift => 0.03 * usual,
            Self::Delays | Self::DelaysInOne => ((0.01 * usual).exp() + 0.03 * second.exp()).ln(),
            Self::Modes | Self::ModesInOne => {
                0.02 * usual + if chance < 0.25 { 0.1_f64.ln_1p() } else { 0.0 }
            }
            Self::Spikes | Self::SpikesInOne => {
                // Pareto with shape 1.5: finite mean, infinite variance.
                let spike = if chance < 0.1 {
                    0.05 * size.powf(-1.0 / 1.5)
                } else {
                    0.0
                };
                0.01 * usual + spike.ln_1p()
            }
        }
    }

    /// Returns the pseudo-median of d: zero if both arms are alike, else estimated once from many blocks.
    pub(crate) fn centre(self, seed: u64) -> f64 {
        match self {
            Self::DelaysInOne | Self::ModesInOne | Self::SpikesInOne => {
                let d = self.log_ratios(TRUTH_BLOCKS, &mut Stream::new(seed, TRUTH, self as u64));
                hodges_lehmann_paired(&d, 0.5).map_or(f64::NAN, |found| found.interval.point)
            }
            _ => 0.0,
        }
    }
}

/// Returns the share of `reps` studies of `n` blocks whose interval holds the centre. The same seed gives the same
/// share.
fn held(
    model: Noise,
    n: usize,
    reps: usize,
    seed: u64,
    interval: impl Fn(&[f64]) -> Interval,
) -> f64 {
    let centre = model.centre(seed);
    let mut stream = Stream::new(seed, TRIALS, model as u64);
    let holds = |_: &usize| interval(&model.log_ratios(n, &mut stream)).contains(centre);
    (0..reps).filter(holds).count() as f64 / reps as f64
}

fn at95(d: &[f64]) -> Interval {
    hodges_lehmann_paired(d, 0.95)
        .expect("enough blocks")
        .interval
}

/// Returns that share for the 95 % interval.
pub(crate) fn coverage(model: Noise, n: usize, reps: usize, seed: u64) -> f64 {
    held(model, n, reps, seed, at95)
}

/// From this many blocks on, a study with a budget checks its interval before every further block.
const FIRST_LOOK: usize = 8;

/// Same as [`coverage`] for studies that check before every block from the eighth on, stop if the half-width is at
/// most ln(1 + `margin`)/2, and end at `n_max`. Stopping at the first interval that excludes 0 would give false
/// positives in a quarter of all studies.
pub(crate) fn sequential_coverage(
    model: Noise,
    margin: f64,
    n_max: usize,
    reps: usize,
    seed: u64,
) -> f64 {
    let target = margin.ln_1p() / 2.0;
    held(model, n_max, reps, seed, |d| {
        let mut looks = (FIRST_LOOK..=n_max).map(|n| at95(&d[..n]));
        let is_enough = |interval: &Interval| interval.half_width() <= target;
        looks.find(is_enough).unwrap_or_else(|| at95(d))
    })
}

/// Counts each verdict (in the order of [`Verdict::ALL`]) in `reps` studies of `n` blocks with a true overhead of
/// `effect` (on the ln scale) in addition to noise.
pub(crate) fn verdict_counts(
    model: Noise,
    effect: f64,
    margin: f64,
    n: usize,
    reps: usize,
    seed: u64,
) -> [usize; Verdict::ALL.len()] {
    let shift = effect - model.centre(seed);
    let mut stream = Stream::new(seed, TRIALS, model as u64);
    let mut counts = [0; Verdict::ALL.len()];
    for _ in 0..reps {
        let mut d = model.log_ratios(n, &mut stream);
        for value in &mut d {
            *value += shift;
        }
        let found = hodges_lehmann_at(&d, [0.95, 0.90]).expect("enough blocks");
        let [ci95, ci90] = found.map(|found| found.interval);
        counts[verdict(&ci95, &ci90, margin) as usize] += 1;
    }
    counts
}
