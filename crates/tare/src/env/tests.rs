//! The registry of drivers.

use super::*;
use crate::registered::assert_registered;

#[test]
fn engines_are_asked_first_and_the_built_in_container_last() {
    let usual: Vec<&str> = usual().iter().map(|driver| driver.id()).collect();
    assert_eq!(usual, ["docker", "podman", "container"]);
}

#[test]
fn the_links_of_every_engine_are_known() {
    let links: Vec<&str> = links().collect();
    for device in [
        "docker0",
        "br-1f",
        "veth3",
        "podman1",
        "cni-podman0",
        "tare-7",
    ] {
        let is_known = links.iter().any(|prefix| device.starts_with(prefix));
        assert!(is_known, "{device}");
    }
    assert!(!links.iter().any(|prefix| "eth0".starts_with(prefix)));
}

#[test]
fn every_driver_file_is_registered_under_its_name() {
    let helpers = [
        "mod",
        "channel",
        "charged",
        "image",
        "known",
        "grammar",
        "peer",
        "private",
        "published",
        "question",
        "reader",
        "record",
        "siblings",
        "text",
        "common",
        "common-settings",
        "declared",
        "setting",
        "mechanism",
        "own",
        "tests",
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/env");
    let ids = DRIVERS.iter().map(|driver| driver.id());
    assert_registered(folder, ".rs", |name| helpers.contains(&name), ids);
}
