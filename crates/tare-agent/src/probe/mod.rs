//! The probes: frozen kernels, one file each, with a revision.
//!
//! A change of what a kernel does changes its revision, and with it the identity of its metrics.
//! Adding one is a file here and a word in [`PROBES`]; a test fails if a file is not registered.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

pub mod integer;
pub mod null;

/// One frozen kernel.
#[derive(Debug)]
pub struct Probe {
    /// Its name: that of its file, with `_` as `-`.
    pub name: &'static str,
    /// Raised whenever the timed work changes.
    pub revision: u32,
    /// One sentence that says what is inside the timed region.
    pub about: &'static str,
    /// Runs it once, within the meter's time.
    pub run: fn(&mut Meter, &Params) -> Result<(), ProbeError>,
}

/// Every probe.
pub static PROBES: &[&Probe] = &[&integer::PROBE, &null::PROBE];

/// The probe of this name.
pub fn find(name: &str) -> Option<&'static Probe> {
    PROBES.iter().copied().find(|probe| probe.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_this_folder_is_a_registered_probe_of_the_same_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/probe");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .into_string()
                    .unwrap()
                    .strip_suffix(".rs")
                    .map(str::to_owned)
            })
            .filter(|name| name != "mod")
            .map(|name| name.replace('_', "-"))
            .collect();
        let mut names: Vec<&str> = PROBES.iter().map(|probe| probe.name).collect();
        files.sort();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
