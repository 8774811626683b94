//! tare-model.
