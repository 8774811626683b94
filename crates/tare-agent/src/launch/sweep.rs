//! `sweep --run RUN [--name NAME] [--scratch DIR]`: removes the leftovers of a killed launcher.
//!
//! With a name only those of that instance; with a scratch folder its work layers are made removable for their owner.
//! Looks for cgroups named `tare-<run>-*` in every mounted hierarchy and for network devices labelled with the run.
//! In those cgroups only processes that carry the run's label are killed, because one run's name may be a prefix of
//! another's. Mounts need no removal: they were in a namespace that ended with its last process.
//! Prints one JSON value per line for each thing that was removed or could not be.
//! The caller must know which runs are dead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::{control, network, rootfs};
use crate::{cgroup, proc};

/// The result for one leftover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Line {
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Cgroup trees are shallow; deeper folders are a mistake.
const DEEPEST: usize = 16;

fn groups_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with("tare-") {
            found.push(entry.path());
        } else if depth < DEEPEST {
            groups_below(&entry.path(), depth + 1, found);
        }
    }
}

fn is_of(name: &str, run: &str) -> bool {
    name.strip_prefix("tare-")
        .and_then(|rest| rest.strip_prefix(run))
        .is_some_and(|rest| rest.starts_with('-'))
}

/// The leftovers to remove.
#[derive(Debug, Default, PartialEq, Eq)]
struct SweepTargets {
    runs: Vec<String>,
    instance: Option<String>,
    scratch: Option<String>,
}

impl SweepTargets {
    fn parse(arguments: &[String]) -> Option<Self> {
        let mut wanted = Self::default();
        for pair in arguments.chunks(2) {
            match pair {
                [option, run] if option == "--run" && !run.is_empty() => {
                    wanted.runs.push(run.clone());
                }
                [option, name] if option == "--name" => wanted.instance = Some(name.clone()),
                [option, folder] if option == "--scratch" => wanted.scratch = Some(folder.clone()),
                _ => return None,
            }
        }
        // An instance belongs to one run.
        let is_clear = match wanted.instance {
            Some(_) => wanted.runs.len() == 1,
            None => !wanted.runs.is_empty(),
        };
        is_clear.then_some(wanted)
    }

    fn has_group(&self, group: &str) -> bool {
        self.runs.iter().any(|run| match &self.instance {
            Some(name) => group == format!("tare-{run}-{name}"),
            None => is_of(group, run),
        })
    }

    fn has_device(&self, device: &str, carried: &str) -> bool {
        self.runs.iter().any(|run| {
            run == carried
                && self.instance.as_ref().is_none_or(|name| {
                    device == network::outer_name(&super::spec::label(run, name))
                })
        })
    }
}

/// Returns every cgroup of Tare's in a hierarchy.
pub(super) fn groups_in(mount_point: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    groups_below(mount_point, 0, &mut found);
    found
}

fn sweep_groups(wanted: &SweepTargets, lines: &mut Vec<Line>) {
    for hierarchy in cgroup::mounted() {
        for folder in groups_in(&hierarchy.mount_point) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            if !wanted.has_group(&name) {
                continue;
            }
            let removed = control::remove_folder(&folder, |process| {
                proc::run_of(process.cast_unsigned())
                    .is_some_and(|carried| wanted.runs.contains(&carried))
            });
            lines.push(Line {
                kind: "cgroup",
                name: folder.display().to_string(),
                killed: removed.as_ref().ok().copied(),
                failed: removed.err().map(|error| error.to_string()),
            });
        }
    }
}

fn sweep_devices(wanted: &SweepTargets, lines: &mut Vec<Line>) {
    let device = |name: String, failed: Option<String>| Line {
        kind: "device",
        name,
        killed: None,
        failed,
    };
    let devices = match network::labelled() {
        Ok(devices) => devices,
        Err(error) => return lines.push(device("all".into(), Some(error.to_string()))),
    };
    for (name, carried) in devices {
        if !wanted.has_device(&name, &carried) {
            continue;
        }
        match network::remove(&name) {
            // It vanished with its namespace in between.
            Ok(false) => {}
            removed => lines.push(device(name, removed.err().map(|error| error.to_string()))),
        }
    }
}

/// Runs `sweep` with the arguments after it. Returns 0 if nothing is left, 1 if something could not be removed, 2 for
/// wrong arguments.
#[allow(
    clippy::print_stdout,
    reason = "the lines are what this command was asked for"
)]
#[allow(
    clippy::print_stderr,
    reason = "standard error is the place for a misuse"
)]
pub fn main(arguments: &[String]) -> ExitCode {
    let Some(wanted) = SweepTargets::parse(arguments) else {
        eprintln!("tare-agent: sweep --run RUN [--name NAME] [--scratch DIR] is expected");
        return ExitCode::from(2);
    };
    let mut lines = Vec::new();
    sweep_groups(&wanted, &mut lines);
    sweep_devices(&wanted, &mut lines);
    if let Some(scratch) = &wanted.scratch {
        rootfs::open_work_layers(Path::new(scratch));
    }
    for line in &lines {
        if let Ok(text) = serde_json::to_string(line) {
            println!("{text}");
        }
    }
    if lines.iter().any(|line| line.failed.is_some()) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_does_not_match_runs_by_name_prefix() {
        assert!(is_of("tare-run1-arm", "run1"));
        assert!(!is_of("tare-run10-arm", "run1"));
        assert!(!is_of("tare-run1", "run1"));
        assert!(!is_of("other-run1-arm", "run1"));
    }

    #[test]
    fn sweep_name_option_requires_exactly_one_run() {
        let wanted = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            SweepTargets::parse(&words)
        };
        let both = wanted("--run a --run b").unwrap();
        assert!(both.has_group("tare-b-arm") && !both.has_group("tare-c-arm"));
        let one = wanted("--run a --name x").unwrap();
        assert!(one.has_group("tare-a-x") && !one.has_group("tare-a-x1"));
        for wrong in [
            "--run",
            "a",
            "--run a b",
            "--all a",
            "--name x",
            "--run a --run b --name x",
        ] {
            assert_eq!(wanted(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_process_carries_no_run() {
        assert_eq!(proc::run_of(std::process::id()), None);
    }
}
