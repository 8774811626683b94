//! The catalogue of causes: what can make an environment slower, one file each.
//!
//! A cause examines a [`Case`] — two arms with their facts and counters, and the cells that compare them — and either
//! suspects itself or not. It is pure: it reads no file and runs nothing, so a case recorded on another machine is
//! judged like one measured here. A suspicion names the counterfactual that would prove it; running that is left to
//! code that can start arms. To add a cause, add a file here and an entry in [`CAUSES`].
//! Limits: slowdowns without a trace in facts or counters stay unexplained, and are reported as such.

use std::collections::BTreeMap;

use tare_model::dossier::DossierCell;
use tare_model::{Facts, Params};

use crate::driver::{self, mechanism};

pub mod entry;
mod findings;
pub mod kind;
mod prelude;
pub mod queries;
pub mod switch;
pub mod triage;

pub use entry::Entry;
pub use findings::{Suspected, suspected};

mod cpu_arch_emulation;
mod cpu_cfs_quota_throttle;
mod cpu_contention_and_steal;
mod cpu_cpuset_numa_smt;
mod cpu_frequency_and_hybrid_cores;
mod cpu_mitigations_differ;
mod cpu_thread_oversubscription;
mod disk_io_limits_and_scheduler;
mod disk_other_filesystem_under_the_path;
mod disk_overlay_copy_up;
mod disk_shared_folder;
mod disk_storage_driver;
mod limits_nofile_1e9;
mod limits_shm_64m;
mod memory_first_touch;
mod memory_limit_cache_and_oom;
mod memory_swap_limit;
mod network_bridge_nat;
mod network_dns;
mod network_joined;
mod network_link_rate;
mod network_mtu_mismatch;
mod network_netns_sysctl_reset;
mod network_rootless_usermode_stack;
mod network_userland_proxy;
mod runtime_ergonomics;
mod runtime_other;
mod security_blocked_fast_path;
mod security_isolating_runtime;
mod security_lsm_differs;
mod security_seccomp_ssbd;
mod security_seccomp_syscall_tax;
mod startup_docker_run_constant;
mod startup_pid1_sigterm;
mod startup_seccomp_compile;
mod stdio_log_driver;
mod time_clocksource;
mod tooling_not_the_thing;
mod tooling_other_platform;
mod tooling_page_cache;
mod tooling_userland_mismatch;
mod tooling_variables_differ;
mod virt_cpu_features_masked;
mod virt_disk_cache_mode;
mod virt_emulated_devices;
mod virt_nested_paging_and_thp;
mod virt_tcg_or_unusable_kvm;

/// Every cause, in catalogue order: the most frequent first.
pub static CAUSES: &[&Entry] = &[
    &disk_shared_folder::CAUSE,
    &cpu_thread_oversubscription::CAUSE,
    &cpu_cfs_quota_throttle::CAUSE,
    &tooling_page_cache::CAUSE,
    &tooling_userland_mismatch::CAUSE,
    &cpu_arch_emulation::CAUSE,
    &startup_docker_run_constant::CAUSE,
    &security_seccomp_ssbd::CAUSE,
    &memory_limit_cache_and_oom::CAUSE,
    &startup_pid1_sigterm::CAUSE,
    &disk_overlay_copy_up::CAUSE,
    &disk_other_filesystem_under_the_path::CAUSE,
    &network_userland_proxy::CAUSE,
    &network_bridge_nat::CAUSE,
    &network_dns::CAUSE,
    &network_mtu_mismatch::CAUSE,
    &network_link_rate::CAUSE,
    &stdio_log_driver::CAUSE,
    &cpu_contention_and_steal::CAUSE,
    &time_clocksource::CAUSE,
    &virt_cpu_features_masked::CAUSE,
    &virt_tcg_or_unusable_kvm::CAUSE,
    &virt_nested_paging_and_thp::CAUSE,
    &memory_first_touch::CAUSE,
    &virt_emulated_devices::CAUSE,
    &virt_disk_cache_mode::CAUSE,
    &security_seccomp_syscall_tax::CAUSE,
    &security_blocked_fast_path::CAUSE,
    &startup_seccomp_compile::CAUSE,
    &limits_nofile_1e9::CAUSE,
    &limits_shm_64m::CAUSE,
    &runtime_ergonomics::CAUSE,
    &security_isolating_runtime::CAUSE,
    &network_rootless_usermode_stack::CAUSE,
    &disk_storage_driver::CAUSE,
    &cpu_cpuset_numa_smt::CAUSE,
    &cpu_mitigations_differ::CAUSE,
    &cpu_frequency_and_hybrid_cores::CAUSE,
    &runtime_other::CAUSE,
    &disk_io_limits_and_scheduler::CAUSE,
    &network_joined::CAUSE,
    &network_netns_sysctl_reset::CAUSE,
    &tooling_not_the_thing::CAUSE,
    &memory_swap_limit::CAUSE,
    &security_lsm_differs::CAUSE,
    &tooling_variables_differ::CAUSE,
    &tooling_other_platform::CAUSE,
];

/// Returns every suspicion of the catalogue in a case, the likeliest first.
pub fn suspicions(case: &Case<'_>) -> Vec<(&'static Entry, Suspicion)> {
    let mut found: Vec<_> = CAUSES
        .iter()
        .filter_map(|cause| Some((*cause, cause.suspect(case)?)))
        .collect();
    // Stable: of two equally likely ones the more frequent comes first.
    found.sort_by(|(_, a), (_, b)| b.likelihood.total_cmp(&a.likelihood));
    found
}

/// Returns the suspicions that are at least `least` likely and not outdone: one whose cells are all explained by
/// others that are `outdone` times as likely is omitted.
pub fn likely_suspicions(
    case: &Case<'_>,
    least: f64,
    outdone: f64,
) -> Vec<(&'static Entry, Suspicion)> {
    let mut suspicions = suspicions(case);
    let mut best = vec![0.0f64; case.cells.len()];
    for (_, suspicion) in &suspicions {
        for cell in &suspicion.cells {
            best[*cell] = best[*cell].max(suspicion.likelihood);
        }
    }
    suspicions.retain(|(_, suspicion)| {
        let is_outdone = suspicion
            .cells
            .iter()
            .all(|cell| best[*cell] >= outdone * suspicion.likelihood);
        suspicion.likelihood >= least && !is_outdone
    });
    suspicions
}

/// Returns the cause with this id.
pub fn find(id: &str) -> Option<&'static Entry> {
    CAUSES.iter().copied().find(|cause| cause.id == id)
}

/// The facts, settings and counters of one arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArmEvidence {
    /// Its name.
    pub arm: String,
    /// Its driver.
    pub driver: String,
    /// Its settings as given by the user.
    pub settings: Params,
    /// Facts found by the host side and by the agent inside.
    pub facts: Facts,
    /// Counters per trial, the median over trials, by workload and name (`user_ns`, `run_delay_ns`, `throttled_ns`,
    /// `majflt`, …; `wall_ns` among them). A counter that could not be read is absent. If trials are sized by time,
    /// `units` is the number of operations in one; without it a trial is one unit.
    pub counters: BTreeMap<String, BTreeMap<String, f64>>,
}

impl ArmEvidence {
    /// Returns the fact of this name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.get(name).map(String::as_str)
    }

    /// Returns the counter `name` of a workload.
    pub fn counter(&self, workload: &str, name: &str) -> Option<f64> {
        self.counters.get(workload)?.get(name).copied()
    }
}

/// Two arms and the measurements that compare them.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The arm that is compared with.
    pub baseline: &'a ArmEvidence,
    /// The arm that may be slower.
    pub arm: &'a ArmEvidence,
    /// The cells of this arm; suspicions refer to them by index.
    pub cells: &'a [DossierCell],
}

impl Case<'_> {
    /// Whether the arm's driver applies this mechanism to a program.
    pub fn has(&self, kind: mechanism::Kind) -> bool {
        driver::mechanisms(&self.arm.driver).find(kind).is_some()
    }

    /// Whether an engine creates the arm: one that logs the output.
    pub fn is_of_engine(&self) -> bool {
        self.has(mechanism::Kind::Output)
    }

    /// Whether the arm is in another container's network.
    pub fn is_joined(&self) -> bool {
        let network = self.setting("network");
        network.is_some_and(|name| name.starts_with("container:"))
    }

    /// Whether the arm's driver has a setting of this name among those that switch causes.
    pub fn takes(&self, setting: &str) -> bool {
        let takes = |driver: &driver::Declared| driver.switches.contains(&setting);
        debug_assert!(driver::DRIVERS.iter().any(|it| takes(it)), "{setting}");
        driver::find(&self.arm.driver).is_some_and(takes)
    }
}

/// How a cause would be proved: by switching it off, or, if that is impossible, by switching it on in the baseline.
#[derive(Debug, Clone, PartialEq)]
pub enum Counterfactual {
    /// The same arm with these settings changed; a setting with an empty text is removed.
    Settings(Params),
    /// The same command with these environment variables, in the same arm.
    Variables(BTreeMap<String, String>),
    /// The same command with this prefix, in the same arm.
    Prefix(Vec<String>),
    /// The same arm with the host's program and its libraries instead of those from an image or a mount.
    HostProgram,
    /// The baseline with these settings changed: switches the cause on outside.
    BaselineSettings(Params),
    /// The baseline with this prefix: switches the cause on outside.
    BaselinePrefix(Vec<String>),
    /// The baseline with these files dropped from the page cache before each run: switches the cause on outside.
    BaselineCold(Vec<String>),
    /// Impossible here, and why.
    NotHere(String),
}

/// A cause's verdict on a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspicion {
    /// Its claim, one sentence with numbers.
    pub claim: String,
    /// The part of claim and evidence that states the size of the slowdown.
    pub size: String,
    /// The evidence, one line each.
    pub evidence: Vec<String>,
    /// The cells that it explains, as indices into the case's cells.
    pub cells: Vec<usize>,
    /// Its likelihood, 0 to 1; the likeliest is tested first.
    pub likelihood: f64,
    /// The counterfactual that would prove it.
    pub counterfactual: Counterfactual,
    /// What to do, the safest fix first. Never a security downgrade without a gain.
    pub advice: String,
    /// The price of the advice in security or money.
    pub price: String,
}

#[cfg(test)]
mod tests {
    pub(super) mod composed;
    mod sources;

    use super::*;
    use crate::registered::assert_registered;

    #[test]
    fn every_file_of_a_cause_is_registered_under_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cause");
        let ids = CAUSES.iter().map(|cause| cause.id);
        assert_registered(folder, ".rs", |name| !name.contains('-'), ids);
    }

    #[test]
    fn cause_catalogue_texts_are_well_formed() {
        for cause in CAUSES {
            let id = cause.id;
            let (domain, name) = id.split_once('.').unwrap();
            assert!(!domain.is_empty() && !name.contains('.'), "{id}");
            assert!(
                !cause.title.ends_with('.') && cause.title.len() <= 110,
                "{id}: {}",
                cause.title
            );
            for text in [cause.mechanism, cause.size, cause.advice, cause.price] {
                let begins = text.starts_with(|it: char| it.is_ascii_digit() || it.is_uppercase());
                assert!(begins && text.ends_with('.'), "{id}: {text}");
                assert!(!text.contains("  ") && !text.contains('\n'), "{id}: {text}");
            }
            assert!(!cause.needs.is_empty(), "{id}");
            assert_eq!(find(id).map(|cause| cause.id), Some(id));
        }
        assert!(find("disk.nothing").is_none());
    }

    #[test]
    fn cause_advice_never_removes_protection() {
        for cause in CAUSES {
            let advice = cause.advice.to_lowercase();
            for word in [
                "unconfined",
                "privileged",
                "mitigations=off",
                "seccomp=",
                "--network host",
            ] {
                assert!(!advice.contains(word), "{}: {advice}", cause.id);
            }
            assert!(cause.price.len() >= 5, "{}", cause.id);
        }
    }
}
