//! Questions to ask of the blocks of a cell before believing its interval.
//!
//! Why: the interval assumes independent, exchangeable blocks. Each file here looks
//! for one way in which that fails, and gives a number and a p-value; what follows
//! from them is decided by the caller, by fixed rules ([`FLAG_P`]).
//!
//! What they cannot see: a flaw shared by all blocks, such as a throttled machine.

pub mod autocorrelation;
pub mod launches;
pub mod modality;
pub mod order_effect;
pub mod outlier;
pub mod scatter;
pub mod trend;

pub use autocorrelation::{
    LjungBox, autocorrelation, default_lags, effective_size, integrated_time, ljung_box, widening,
};
pub use launches::{Launches, launches};
pub use modality::{Gap, dip, dip_p, largest_gap};
pub use order_effect::{OrderEffect, OrderTest, kruskal_wallis, order_effect};
pub use outlier::{OutlierCount, modified_z, outlier_count};
pub use scatter::{Scatter, scatter};
pub use trend::{MannKendall, mann_kendall, theil_sen, theil_sen_slope};

/// p-values below this raise a flag. Stricter than 5 % because several questions are
/// asked of every cell.
pub const FLAG_P: f64 = 0.01;
