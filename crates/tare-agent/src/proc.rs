//! Reads facts about processes from `/proc`.
//!
//! Unreadable files count as missing: a process may end between two reads.
//! Limits: processes of other users are visible only as far as the kernel allows.

#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "a program is looked at on every Unix; what is found elsewhere is nothing"
    )
)]

use std::path::Path;

use tare_model::counter;
use tare_model::launch::RUN_VARIABLE;

/// Returns the run that a process carries in its environment variables.
pub(crate) fn run_of(process: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{process}/environ")).ok()?;
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = std::str::from_utf8(entry)
            .ok()?
            .strip_prefix(RUN_VARIABLE)?;
        value.strip_prefix('=').map(str::to_owned)
    })
}

/// Returns the children of all threads of a process, given by its number or `self`; empty if the kernel has no such
/// list.
pub(crate) fn children_of(process: &str) -> Vec<libc::pid_t> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let lists = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |list: String| -> Vec<libc::pid_t> {
        let words = list.split_whitespace();
        words.filter_map(|pid| pid.parse().ok()).collect()
    };
    lists.flat_map(numbers).collect()
}

/// Returns the state and the session of the process or thread of this folder.
pub(crate) fn state_of(folder: &Path) -> Option<(char, Option<i32>)> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    let mut fields = from_the_state(&text)?;
    let state = fields.next()?.chars().next()?;
    // After the state: parent, group, session.
    let session = fields.nth(2).and_then(|session| session.parse().ok());
    Some((state, session))
}

/// Returns the oldest process that shares this one's mount namespace, as all processes of a container do regardless
/// of their PID namespace. `None` if the namespace of no process can be read.
pub(crate) fn first_of_this_place() -> Option<libc::pid_t> {
    let own = std::fs::read_link("/proc/self/ns/mnt").ok()?;
    let entries = std::fs::read_dir("/proc").ok()?;
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let of_this_place = numbers.filter_map(|process: libc::pid_t| {
        let folder = Path::new("/proc").join(process.to_string());
        let is_here = std::fs::read_link(folder.join("ns/mnt")).is_ok_and(|place| place == own);
        is_here.then_some((started(&folder)?, process))
    });
    of_this_place.min().map(|(_, process)| process)
}

/// Returns the start time of a process, in ticks since boot.
fn started(folder: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    // Field 22; the state is field 3.
    from_the_state(&text)?.nth(19)?.parse().ok()
}

/// Returns the CPU time of a process and of the children that it has waited for, in ticks.
pub(crate) fn cpu_ticks(folder: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(folder.join("stat")).ok()?;
    // Fields 14 to 17; the state is field 3.
    let ticks = from_the_state(&text)?.skip(11).take(4);
    ticks.map(|it| it.parse::<f64>().ok()).sum()
}

/// Returns the fields of a `stat`, from the third on (proc_pid_stat(5)).
fn from_the_state(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    // The name before the state may contain anything, including a parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_ascii_whitespace())
}

/// Returns the CPU time and the run delay of a process, given by its number or `self`, in nanoseconds, and the number
/// of its time slices.
pub(crate) fn scheduled(process: &str) -> impl Iterator<Item = (&'static str, f64)> + use<> {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    let numbers: Vec<_> = text.split_whitespace().map(|it| it.parse().ok()).collect();
    [counter::ON_CPU, counter::RUN_DELAY, counter::SLICES]
        .into_iter()
        .zip(numbers)
        .filter_map(|(name, number)| Some((name, number?)))
}

/// Returns the number that follows a name at the beginning of a line.
pub(crate) fn number_after(text: &str, name: &str, separator: char) -> Option<f64> {
    text.lines().find_map(|line| {
        let (own, value) = line.split_once(separator)?;
        (own == name).then(|| value.trim().parse().ok()).flatten()
    })
}
