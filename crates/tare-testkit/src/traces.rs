//! Finds what runs currently have on a machine, without the program's help: in `/proc`, in cgroups, among links and
//! with the `docker` command.
//!
//! Only objects that name the run or the test's folder count, because other tests and users share the machine.
//! Limits: does not see objects that name neither, or processes of other users.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// Prefix of the alias of a network device; the run follows.
const ALIAS: &str = "tare.run=";

/// Returns everything of these runs and everything below `folder` except its files, one line each.
pub fn traces(runs: &BTreeSet<String>, folder: &Path) -> BTreeSet<String> {
    let folder = folder.display().to_string();
    let is_ours = |text: &str| text.contains(&folder) || runs.iter().any(|run| text.contains(run));
    let mut found = BTreeSet::new();
    for run in runs {
        let processes = labelled(run).into_iter();
        found.extend(processes.map(|(pid, command)| format!("process {pid}: {command}")));
    }
    let mut lines = |kind: &str, file: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let ours = text.lines().filter(|line| is_ours(line));
        found.extend(ours.map(|line| format!("{kind} {line}")));
    };
    lines("mount", "/proc/self/mountinfo");
    lines("socket", "/proc/net/unix");
    groups(Path::new("/sys/fs/cgroup"), 6, &mut |path| {
        if is_ours(&path.display().to_string()) {
            found.insert(format!("cgroup {}", path.display()));
        }
    });
    for entry in entries(Path::new("/sys/class/net")) {
        let alias = fs::read_to_string(entry.path().join("ifalias")).unwrap_or_default();
        let run = alias.trim().strip_prefix(ALIAS);
        if run.is_some_and(|run| runs.contains(run)) {
            found.insert(format!("link {}", entry.path().display()));
        }
    }
    for place in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        for entry in entries(Path::new(place)) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if runs.iter().any(|run| name.contains(run)) {
                found.insert(format!("file {place}/{name}"));
            }
        }
    }
    found
}

/// Returns the processes that carry the run's label, with their command lines.
pub fn labelled(run: &str) -> BTreeMap<u32, String> {
    let label = format!("TARE_RUN={run}");
    let mut found = BTreeMap::new();
    for entry in entries(Path::new("/proc")) {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == label.as_bytes())
        {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.insert(pid, command.trim().to_owned());
        }
    }
    found
}

/// Whether a worker of the run has been computing for a while, so that a trial is running. Workers that wait for the
/// next one have only started.
pub fn is_computing(run: &str) -> bool {
    /// Ticks of a hundredth of a second each, in user and in kernel mode.
    const TICKS: u64 = 5;
    labelled(run)
        .into_iter()
        .filter(|(_, command)| command.contains("worker"))
        .any(|(pid, _)| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name before the last bracket may contain spaces.
            let fields = stat.rsplit(')').next().unwrap_or_default();
            let fields = fields.split_whitespace().skip(11).take(2);
            fields
                .filter_map(|ticks| ticks.parse::<u64>().ok())
                .sum::<u64>()
                >= TICKS
        })
}

/// Returns the containers, images, volumes and networks with the label of a run, by the `docker` command.
pub fn docker_objects(run: &str) -> Vec<String> {
    if !has_docker() {
        return Vec::new();
    }
    let label = format!("label=tare.run={run}");
    let questions: [(&str, &[&str]); 4] = [
        ("container", &["ps", "-aq"]),
        ("image", &["image", "ls", "-aq"]),
        ("volume", &["volume", "ls", "-q"]),
        ("network", &["network", "ls", "-q"]),
    ];
    let mut found = Vec::new();
    for (kind, arguments) in questions {
        let output = Command::new("docker")
            .args(arguments)
            .args(["--filter", &label])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        found.extend(text.lines().map(|line| format!("docker {kind} {line}")));
    }
    found
}

/// Whether an engine answers the `docker` command.
pub fn has_docker() -> bool {
    static ANSWERS: OnceLock<bool> = OnceLock::new();
    *ANSWERS.get_or_init(|| {
        let output = Command::new("docker").arg("version").output();
        output.is_ok_and(|output| output.status.success())
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn groups(folder: &Path, depth: u32, visit: &mut impl FnMut(&Path)) {
    for entry in entries(folder) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path());
            if depth > 0 {
                groups(&entry.path(), depth - 1, visit);
            }
        }
    }
}
