//! What the tests need, made available on a fresh Debian or Ubuntu machine.

pub(crate) mod axe;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the integration tests include this file too and use more of it"
)]
pub(crate) mod docker;
pub(crate) mod packages;
pub(crate) mod pyperf;
