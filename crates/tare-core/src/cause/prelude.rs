//! Common imports of the causes' files.

pub(super) use tare_model::unit::bytes;
pub(super) use tare_model::{Facts, Params, counter, fact};

pub(super) use super::entry::{CauseMatch, Entry};
pub(super) use super::kind::{Kind, is_own_probe};
pub(super) use super::queries::{
    FileLocation, cpus_in, is_cost, kernel, memory_limit, number, of_work_mount, quota, ratio,
    usable_cpus, words,
};
#[cfg(test)]
pub(super) use super::tests::composed::{Composed, cell, check};
pub(super) use super::triage::Family;
pub(super) use super::{Case, Counterfactual, switch};
pub(super) use crate::driver::mechanism::Kind as Mechanism;
