//! Tests of the driver registry.

use super::*;
use crate::cause::switch::{
    bind, bridge_network, cpuset_for_quota, default_network, engine, host_network, machine, no_log,
    runtime, tmpfs, volume, without_seccomp,
};
use crate::cause::{ArmEvidence, Case, Counterfactual};
use crate::registered::assert_registered;

#[test]
fn engines_are_tried_before_built_in_container() {
    let usual: Vec<&str> = usual().iter().map(|driver| driver.id()).collect();
    assert_eq!(usual, ["docker", "podman", "container"]);
}

#[test]
fn every_driver_file_is_registered_under_its_name() {
    let helpers = [
        "mod",
        "channel",
        "charged",
        "error",
        "image",
        "refusals",
        "grammar",
        "peer",
        "prelude",
        "private",
        "published",
        "question",
        "reader",
        "record",
        "siblings",
        "text",
        "common",
        "common-settings",
        "setting",
        "user-container",
        "tests",
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/env");
    let ids = DRIVERS.iter().map(|driver| driver.id());
    assert_registered(folder, ".rs", |name| helpers.contains(&name), ids);
}

#[test]
fn every_mechanism_is_disabled_by_valid_settings() {
    for driver in DRIVERS {
        for mechanism in driver.mechanisms().all {
            let off = mechanism.off.iter();
            let settings = off.fold(Params::new(), |all, (name, set)| all.with(name, *set));
            let configured = driver.configure(ArmId::new("x").unwrap(), &settings);
            assert!(configured.is_ok(), "{}: {}", driver.id(), mechanism.title);
            assert!(!mechanism.off.is_empty() && !mechanism.price.is_empty());
        }
    }
}

#[test]
fn switches_of_causes_are_settings_of_their_drivers() {
    let drivers = tare_core::driver::DRIVERS;
    assert_eq!(drivers.len(), DRIVERS.len());
    for name in drivers.iter().flat_map(|driver| driver.switches) {
        for driver in DRIVERS {
            let is_taken = driver
                .settings()
                .iter()
                .any(|setting| setting.name == *name);
            let is_listed = driver.declared().switches.contains(name);
            assert_eq!(is_listed, is_taken, "`{name}` of `{}`", driver.id());
        }
    }
}

#[test]
fn counterfactual_settings_are_accepted_by_driver() {
    let all: [fn(&Case<'_>) -> Counterfactual; 13] = [
        without_seccomp,
        host_network,
        bridge_network,
        default_network,
        volume,
        tmpfs,
        bind,
        no_log,
        |case| runtime(case, "crun"),
        |case| engine(case, "init", true),
        |case| engine(case, "shm", "1g"),
        |case| machine(case, "nic", "virtio"),
        |case| cpuset_for_quota(case, 1.5),
    ];
    let mut settled = 0;
    for driver in DRIVERS {
        let arm = ArmEvidence {
            driver: driver.id().to_owned(),
            settings: Params::new().with("cpus", 0.5),
            ..ArmEvidence::default()
        };
        let case = Case {
            baseline: &ArmEvidence::default(),
            arm: &arm,
            cells: &[],
        };
        for counterfactual in all {
            let Counterfactual::Settings(params) = counterfactual(&case) else {
                continue;
            };
            for name in params.0.keys() {
                let known = driver.settings().iter().any(|spec| spec.name == name);
                // Only some drivers have a quota; the setting of the others is refused before a run.
                let has_quota = driver.settings().iter().any(|spec| spec.name == "cpus");
                assert!(known || !has_quota, "`{}` takes no `{name}`", driver.id());
                settled += 1;
            }
        }
    }
    assert!(settled > 20, "{settled}");
}
