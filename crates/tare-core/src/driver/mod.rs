//! Static knowledge about each driver: its mechanisms, the source of its files, its links.
//!
//! Used by causes, parity and advice. The settings and their effects belong to the drivers themselves; a test there
//! checks every row.

pub use declared::{Declared, Files};
pub use mechanism::{Mechanism, Mechanisms};

pub mod container;
mod declared;
pub mod docker;
pub mod host;
pub mod mechanism;
pub mod oci;
pub mod podman;
pub mod ssh;
pub mod user_container;
pub mod vm;

/// Why settings are invalid. `setting` names the offender, for the caret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SettingsError {
    /// The setting.
    pub setting: String,
    /// What is wrong with it.
    pub problem: String,
    /// How to fix it, if known.
    pub hint: Option<String>,
}

impl SettingsError {
    /// Creates an error about this setting, with a hint.
    pub fn new(setting: &str, problem: String, hint: String) -> Self {
        Self {
            setting: setting.to_owned(),
            problem,
            hint: Some(hint),
        }
    }
}

/// Every driver.
pub static DRIVERS: &[&Declared] = &[
    &container::DECLARED,
    &docker::DECLARED,
    &host::DECLARED,
    &ssh::DECLARED,
    &oci::DECLARED,
    &podman::DECLARED,
    &vm::DECLARED,
];

/// Returns the driver of this name.
pub fn find(id: &str) -> Option<&'static Declared> {
    DRIVERS.iter().copied().find(|driver| driver.id == id)
}

/// Returns the mechanisms of the driver of this name.
pub fn mechanisms(id: &str) -> &'static Mechanisms {
    find(id).map_or(&mechanism::UNKNOWN, |driver| driver.mechanisms)
}

/// Returns the name prefixes of the devices between the drivers' environments and the host's network.
pub fn links() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().flat_map(|driver| driver.links).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registered::assert_registered;

    #[test]
    fn every_driver_is_registered_under_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/driver");
        let helpers = ["mod", "declared", "mechanism", "user-container"];
        let ids = DRIVERS.iter().map(|driver| driver.id);
        assert_registered(folder, ".rs", |name| helpers.contains(&name), ids);
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
}
