//! Removing what a launcher that was killed left behind: `tare-agent sweep [--run RUN]`.
//!
//! Looks for cgroups called `tare-<run>-*` in every mounted hierarchy and for devices labelled with the run.
//! Without a run it takes those of every run that no living launcher belongs to: a launcher carries the run in
//! its environment and stands outside of the run's cgroups. Inside the groups of a named run only processes that
//! carry that run are killed, because the names of two runs may begin alike.
//! Mounts need no removal: they lived in a namespace that went with its last process.
//! Prints one JSON value a line for each thing removed or not removable.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use tare_model::launch::RUN_VARIABLE;

use super::{cgroup, hierarchy, network};

/// What became of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Line {
    kind: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Cgroup trees are shallow; deeper folders are somebody's mistake.
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

/// The run that a process carries in its environment.
fn run_of(process: libc::pid_t) -> Option<String> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = std::str::from_utf8(entry)
            .ok()?
            .strip_prefix(RUN_VARIABLE)?;
        value.strip_prefix('=').map(str::to_owned)
    })
}

/// Runs that a process outside of Tare's groups carries.
fn living_runs() -> BTreeSet<String> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| *process != own)
        .filter(|process| {
            let membership = fs::read_to_string(format!("/proc/{process}/cgroup"));
            membership.is_ok_and(|text| !text.contains("/tare-"))
        })
        .filter_map(|process| run_of(process as libc::pid_t))
        .collect()
}

fn is_of(name: &str, run: &str) -> bool {
    name.strip_prefix("tare-")
        .and_then(|rest| rest.strip_prefix(run))
        .is_some_and(|rest| rest.starts_with('-'))
}

fn sweep(run: Option<&str>) -> Vec<Line> {
    let living = living_runs();
    let mut lines = Vec::new();
    for hierarchy in hierarchy::mounted() {
        let mut found = Vec::new();
        groups_below(&hierarchy.mount_point, 0, &mut found);
        for folder in found {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let is_wanted = match run {
                Some(run) => is_of(&name, run),
                None => !living.iter().any(|run| is_of(&name, run)),
            };
            if !is_wanted {
                continue;
            }
            let removed = cgroup::remove_folder(&folder, |process| match run {
                Some(run) => run_of(process).is_some_and(|carried| carried == run),
                None => run_of(process).is_some_and(|carried| is_of(&name, &carried)),
            });
            lines.push(Line {
                kind: "cgroup",
                name: folder.display().to_string(),
                killed: removed.as_ref().ok().copied(),
                failed: removed.err().map(|error| error.to_string()),
            });
        }
    }
    match network::labelled() {
        Ok(devices) => {
            for (name, carried) in devices {
                let is_wanted = match run {
                    Some(run) => run == carried,
                    None => !living.contains(&carried),
                };
                if !is_wanted {
                    continue;
                }
                match network::remove(&name) {
                    Ok(false) => {}
                    removed => lines.push(Line {
                        kind: "device",
                        name,
                        killed: None,
                        failed: removed.err().map(|error| error.to_string()),
                    }),
                }
            }
        }
        Err(error) => lines.push(Line {
            kind: "device",
            name: "all".into(),
            killed: None,
            failed: Some(error.to_string()),
        }),
    }
    lines
}

/// Runs `sweep [--run RUN]`; `arguments` are those after `sweep`. The status is 0 if nothing is left, 1 if
/// something could not be removed, 2 for wrong arguments.
#[allow(
    clippy::print_stdout,
    reason = "the lines are what this command was asked for"
)]
#[allow(
    clippy::print_stderr,
    reason = "standard error is the place for a misuse"
)]
pub fn main(arguments: &[String]) -> ExitCode {
    let run = match arguments {
        [] => None,
        [option, run] if option == "--run" => Some(run.as_str()),
        _ => {
            eprintln!("tare-agent: sweep [--run RUN] is expected");
            return ExitCode::from(2);
        }
    };
    let lines = sweep(run);
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
    fn a_run_is_not_mistaken_for_one_whose_name_begins_alike() {
        assert!(is_of("tare-run1-arm", "run1"));
        assert!(!is_of("tare-run10-arm", "run1"));
        assert!(!is_of("tare-run1", "run1"));
        assert!(!is_of("other-run1-arm", "run1"));
    }

    #[test]
    fn this_process_carries_no_run() {
        assert_eq!(run_of(std::process::id() as libc::pid_t), None);
    }
}
