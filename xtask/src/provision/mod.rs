//! What the tests need, made available on a fresh Debian or Ubuntu machine.

pub(crate) mod docker;
pub(crate) mod packages;
