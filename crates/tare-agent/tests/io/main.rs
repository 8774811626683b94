//! Runs the disk and network probes for a few milliseconds on this machine.
//!
//! These are the real probes on the real file system and loopback; no test asserts a speed.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and says when it is skipped"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe;
use tare_model::{Params, Reason, Series, Unit};
#[cfg(target_os = "linux")]
use tare_testkit::skip::skip;

#[cfg(target_os = "linux")]
mod disk;
mod network;

/// A work directory that is removed with its content on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &std::path::Path, name: &str) -> Self {
        let folder = parent.join(format!("tare-io-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Fewest values of a series whose length the probe itself controls.
const FEWEST: usize = 5;

type Answer = Result<(Vec<Series>, BTreeMap<String, Reason>), ProbeError>;

fn run(name: &str, folder: &Folder, target_ns: u64, params: &Params) -> Answer {
    let mut meter = Meter::new(target_ns, &folder.0);
    (probe::find(name).unwrap().run)(&mut meter, params)?;
    let unavailable = meter.take_unavailable();
    Ok((meter.finish().0, unavailable))
}

fn temporary(name: &str) -> Folder {
    Folder::new(&std::env::temp_dir(), name)
}

#[track_caller]
fn has_values(series: &[Series], metric: &str, unit: Unit, fewest: usize) -> Series {
    let found = series
        .iter()
        .find(|series| series.metric == metric)
        .unwrap_or_else(|| panic!("no {metric}"));
    assert_eq!(found.unit, unit);
    assert!(found.values.len() >= fewest, "{found:?}");
    assert!(
        found.values.iter().all(|v| v.is_finite() && *v > 0.0),
        "{found:?}"
    );
    assert!(found.batch > 0, "{found:?}");
    found.clone()
}

#[track_caller]
fn failure(answer: Answer) -> String {
    match answer {
        Err(ProbeError::Failed(failure)) => failure.to_string(),
        other => panic!("not a failure: {other:?}"),
    }
}

/// Runs `work` on a thread with separate namespaces; `None`, with a message, if that is not allowed.
#[cfg(target_os = "linux")]
fn unshared<T: Send + 'static>(
    flags: libc::c_int,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    std::thread::spawn(move || {
        // SAFETY: takes one number; neither flag used here needs a single-threaded process, and both affect this
        // thread only.
        if unsafe { libc::unshare(flags) } == 0 {
            return Ok(work());
        }
        Err(std::io::Error::last_os_error())
    })
    .join()
    .unwrap()
    .map_err(|error| skip("root", &format!("no namespaces of one's own: {error}")))
    .ok()
}
