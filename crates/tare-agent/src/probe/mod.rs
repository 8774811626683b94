//! The probes: frozen kernels, one file each, with a revision.
//!
//! A change of a kernel's work changes its revision, and with it the identity of its metrics. To add a probe, add a
//! file here and an entry in [`PROBES`]; a test fails if a file is not registered.

use tare_model::{Failure, Params};

use crate::meter::{Meter, ProbeError};

pub mod allocate;
pub mod chase;
pub mod clock;
pub mod command;
pub mod copy_up;
pub mod date;
pub mod des;
pub mod directory;
pub mod disk_random;
pub mod disk_sequential;
pub mod environment;
pub mod files;
pub mod float;
pub mod fsync;
pub mod getppid;
pub mod integer;
pub mod lines;
pub mod matrix;
pub mod mounts;
pub mod mutex;
pub mod null;
pub mod page_load;
pub mod pipe;
pub mod random;
pub mod random_access;
pub mod read_files;
pub mod regex;
pub mod socket;
pub mod spawn;
pub mod stat;
pub mod tasks;
pub mod tcp_accept;
pub mod tcp_connect;
pub mod tcp_echo;
pub mod tcp_round_trip;
pub mod tcp_sink;
pub mod tcp_stream;
pub mod threads;
pub mod timer;
pub mod touch;
pub mod triad;
pub mod udp_echo;
pub mod udp_round_trip;

/// Whether a probe's timed work can be cut into slices that are interleaved with those of other arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Into slices of about so many nanoseconds. The first tenth of each runs but is not counted, if it has ten
    /// operations or more: the caches still hold the previous arm's data.
    Slices {
        /// Target length of a slice, nanoseconds.
        ns: u64,
    },
    /// Cannot be cut, for this reason.
    Whole(&'static str),
}

impl Cut {
    /// For loops over registers and for system calls. A slice leaves nothing behind.
    pub const LOOP: Self = Self::Slices { ns: 1_000_000 };
    /// For memory, files, pipes, processes, threads and sockets. Open files and connections stay open.
    pub const KERNEL: Self = Self::Slices { ns: 3_000_000 };
    /// For devices. Nothing is in flight between slices; the file stays open.
    pub const DEVICE: Self = Self::Slices { ns: 10_000_000 };

    /// Returns the target length of a slice, nanoseconds, if there are slices.
    pub fn slice_ns(self) -> Option<u64> {
        match self {
            Self::Slices { ns } => Some(ns),
            Self::Whole(_) => None,
        }
    }
}

/// One frozen kernel.
#[derive(Debug)]
pub struct Probe {
    /// The file's name, with `_` as `-`.
    pub name: &'static str,
    /// Incremented whenever the timed work changes.
    pub revision: u32,
    /// One sentence that describes the timed region.
    pub about: &'static str,
    /// Whether and how its work can be cut.
    pub cut: Cut,
    /// Runs the probe once, within the meter's time.
    pub run: fn(&mut Meter, &Params) -> Result<(), ProbeError>,
}

/// Every probe.
pub static PROBES: &[&Probe] = &[
    &allocate::PROBE,
    &chase::PROBE,
    &clock::PROBE,
    &command::PROBE,
    &copy_up::PROBE,
    &date::PROBE,
    &des::PROBE,
    &directory::PROBE,
    &disk_random::PROBE,
    &disk_sequential::PROBE,
    &environment::PROBE,
    &files::PROBE,
    &float::PROBE,
    &fsync::PROBE,
    &getppid::PROBE,
    &integer::PROBE,
    &lines::PROBE,
    &matrix::PROBE,
    &mounts::PROBE,
    &mutex::PROBE,
    &null::PROBE,
    &page_load::PROBE,
    &pipe::PROBE,
    &random::PROBE,
    &random_access::PROBE,
    &read_files::PROBE,
    &regex::PROBE,
    &socket::PROBE,
    &spawn::PROBE,
    &stat::PROBE,
    &tasks::PROBE,
    &tcp_accept::PROBE,
    &tcp_connect::PROBE,
    &tcp_echo::PROBE,
    &tcp_round_trip::PROBE,
    &tcp_sink::PROBE,
    &tcp_stream::PROBE,
    &threads::PROBE,
    &timer::PROBE,
    &touch::PROBE,
    &triad::PROBE,
    &udp_echo::PROBE,
    &udp_round_trip::PROBE,
];

/// Whether this probe has its own preparation before it calls [`Meter::ready`]. For all others the worker calls it
/// before it runs them.
pub(crate) fn has_preparations(name: &str) -> bool {
    name == tare_model::command::COMMAND_PROBE
}

/// Returns the probe with this name.
pub fn find(name: &str) -> Option<&'static Probe> {
    PROBES.iter().copied().find(|probe| probe.name == name)
}

/// Returns the error for an argument with an unknown value; `known` lists the valid ones.
pub(crate) fn bad_argument(name: &str, value: &str, known: &str) -> ProbeError {
    ProbeError::Failed(Failure::Probe(format!(
        "`{name}` cannot be `{}`; known: {known}",
        value.escape_default()
    )))
}

/// Returns the argument `mib`, from 1 to 4 096 MiB.
pub(crate) fn mebibytes(params: &Params, default: i64) -> Result<usize, ProbeError> {
    let mib = params.int("mib").unwrap_or(default);
    usize::try_from(mib)
        .ok()
        .filter(|mib| (1..=4096).contains(mib))
        .ok_or_else(|| bad_argument("mib", &mib.to_string(), "1 to 4096"))
}

/// Returns the error of a probe that needs `what`, which only Linux has.
#[cfg(not(target_os = "linux"))]
pub(crate) fn linux_only(what: &str) -> ProbeError {
    ProbeError::Unavailable(tare_model::Reason::Unsupported(format!(
        "{what}: this probe is for Linux"
    )))
}

/// Declares the probe of a file, which the file's function `run` performs: its name and one sentence that describes
/// the timed region; its revision, and how its work can be cut.
macro_rules! probe {
    ($name:literal: $about:literal; revision $revision:literal, cut $($cut:tt)+) => {
        /// The registered probe.
        pub static PROBE: $crate::probe::Probe = $crate::probe::Probe {
            name: $name,
            revision: $revision,
            about: $about,
            cut: $crate::probe::Cut::$($cut)+,
            run,
        };
    };
}
use probe;

/// Defines a `run` that reports `what` as missing, for systems other than Linux, or other than Linux and Windows.
macro_rules! needs {
    (linux, $what:literal) => {
        $crate::probe::needs!(@ not(target_os = "linux"), $what);
    };
    (linux or windows, $what:literal) => {
        $crate::probe::needs!(@ not(any(target_os = "linux", windows)), $what);
    };
    (@ $elsewhere:meta, $what:literal) => {
        #[cfg($elsewhere)]
        fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
            Err($crate::probe::linux_only($what))
        }
    };
}
use needs;

/// Defines a `run` that calls the module `linux` or `windows`, which do the same; on other systems it reports `what`
/// as missing.
macro_rules! by_system {
    ($what:literal) => {
        super::needs!(linux or windows, $what);

        #[cfg(any(target_os = "linux", windows))]
        fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
            #[cfg(target_os = "linux")]
            use linux as system;
            #[cfg(windows)]
            use windows as system;
            system::run(meter)
        }
    };
}
use by_system;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_files_match_registered_probe_names() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/probe");
        let names = PROBES.iter().map(|probe| probe.name);
        crate::registered::assert_registered(folder, ".rs", |name| name == "mod", names);
    }
}
