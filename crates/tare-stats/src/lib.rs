//! tare-stats.
