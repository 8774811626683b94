//! Checks of a cell's blocks that must pass before its interval is trusted.
//!
//! The interval assumes independent, exchangeable blocks. Each file checks one way in which that fails and returns a
//! number and a p-value; the caller acts on them by fixed rules ([`FLAG_P`]).
//!
//! Limits: a flaw that all blocks share, such as a throttled machine, goes unnoticed.

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
pub use order_effect::{kruskal_wallis, order_effect};
pub use outlier::{OutlierCount, modified_z, outlier_count};
pub use scatter::{Scatter, scatter};
pub use trend::{MannKendall, mann_kendall, theil_sen, theil_sen_slope};

/// p-values below this raise a flag. Stricter than 5 % because every cell gets several checks.
pub const FLAG_P: f64 = 0.01;
