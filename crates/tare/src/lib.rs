//! tare.
