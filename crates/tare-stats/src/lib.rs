//! Estimators, intervals, tests and designs: numbers in, intervals out.
//!
//! Everything here is a pure function of `f64` slices and seeds, so it can be checked against other implementations,
//! simulated, and replayed bit for bit without a machine to measure.
//!
//! Limits: units, clocks and environments are unknown here. Trials that were not randomised in blocks still give an
//! interval; whether it means anything depends on the plan.
//!
//! The default path is [`hodges_lehmann_paired`] on `ln(y_env / y_base)` per block, judged by [`verdict()`].
//! Everything else is a cross-check, a diagnosis or a design.

pub mod binomial;
pub mod bootstrap;
pub mod clustered;
pub mod concurrency;
pub mod design;
pub mod diagnostics;
pub mod hodges_lehmann;
pub mod independent;
pub mod interval;
mod lattice;
pub mod mann_whitney;
pub mod mean;
pub mod multiplicity;
pub mod power;
pub mod quantile;
pub mod random;
pub mod scalability;
mod selection;
pub mod signed_rank;
pub mod special;
pub mod verdict;
pub mod warm_up;

pub use binomial::binomial_quantile;
pub use bootstrap::block_bootstrap;
pub use clustered::{Differences, clustered, clustered_at, clustered_p, clustered_tails};
pub use concurrency::{efficiency, jain, makespan, stretch};
pub use design::{BlockOrders, closed_rows, williams_rows};
pub use hodges_lehmann::{hodges_lehmann_at, hodges_lehmann_paired};
pub use independent::difference_of_independent;
pub use interval::{Estimate, Interval, Undetermined};
pub use mann_whitney::mann_whitney_p;
pub use mean::mean_paired;
pub use multiplicity::{benjamini_hochberg, holm};
pub use power::{Needed, blocks_needed, detectable_effect, further_blocks};
pub use quantile::{median, median_in_place, quantile};
pub use random::Stream;
pub use scalability::{ScalingFit, ScalingLaw, best_scaling, fit_scaling};
pub use signed_rank::{SignedRank, signed_rank_p};
pub use special::normal_quantile;
pub use verdict::{Verdict, verdict};
pub use warm_up::{WarmUp, mser5};
