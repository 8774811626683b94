//! Observes a program's processes while it runs: threads, files mapped as code and opened, shared memory, and how the
//! kernel treats it.
//!
//! A thread of the worker walks from the program down through its children every few milliseconds. That slows the
//! program down a little, so it is done only on request and not in trials that are compared. Afterwards the files
//! mapped as code are hashed, so that two environments can be checked for running the same bytes.
//! Limits: misses processes that live and files that are open for less than a step, and everything without `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tare_model::command::{ProcessSamples, Tie};

use tare_model::whole_ns;

use crate::by_name::by_name;
use crate::proc;
use crate::program::sha256;

/// Interval of the first observations, which must catch a short program.
const FIRST_STEP: Duration = Duration::from_millis(1);
/// Interval of later observations.
const STEP: Duration = Duration::from_millis(20);
/// Number of observations at the shorter interval.
const FIRST_LOOKS: u32 = 20;
/// More processes than this are not walked through.
const PROCESSES_LIMIT: usize = 64;
/// More mapped files than this are not reported.
const MAPPED_LIMIT: usize = 400;
/// Files larger than this, bytes, are not hashed: reading them would take longer than most commands.
const HASHED_LIMIT: u64 = 64 << 20;
/// The same limit for files that are only read, of which there may be many.
const READ_LIMIT: u64 = 1 << 20;
/// More opened files than this are not reported.
const OPENED_LIMIT: usize = 400;
/// Fields of `/proc/<pid>/status` that are kept.
const STATUS: [&str; 6] = [
    "Seccomp",
    "Seccomp_filters",
    "NoNewPrivs",
    "Speculation_Store_Bypass",
    "SpeculationIndirectBranch",
    "Cpus_allowed_list",
];

/// The observing thread.
pub(super) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<ProcessSamples>,
}

impl Watch {
    pub(super) fn start(process: u32) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let thread = Builder::new().spawn(move || {
            let mut seen = ProcessSamples::default();
            let mut looks = 0;
            while !flag.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let is_idle = look(process, &mut seen);
                looks += 1;
                std::thread::sleep(if looks < FIRST_LOOKS {
                    FIRST_STEP
                } else {
                    STEP
                });
                let step_ns = whole_ns(begin.elapsed());
                seen.watched_ns += step_ns;
                seen.idle_ns += if is_idle { step_ns } else { 0 };
            }
            hash(&seen.mapped, HASHED_LIMIT, &mut seen.sha256);
            hash(&seen.read, READ_LIMIT, &mut seen.sha256);
            seen
        })?;
        Ok(Self { is_over, thread })
    }

    /// Ends the thread and returns its observations.
    pub(super) fn finish(self) -> ProcessSamples {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Observes once; returns whether no thread was running or runnable.
fn look(process: u32, seen: &mut ProcessSamples) -> bool {
    let mut waiting = vec![process];
    let (mut threads, mut processes) = (0, 0);
    let own_session = proc::state_of(Path::new("/proc/self")).and_then(|(_, session)| session);
    let mut is_idle = true;
    let mut shared = BTreeMap::new();
    let program = process;
    while let Some(process) = waiting.pop() {
        let folder = format!("/proc/{process}");
        let is_program = process == program;
        let Ok(status) = std::fs::read_to_string(format!("{folder}/status")) else {
            is_idle &= !is_program;
            continue;
        };
        let lines = status.lines().filter_map(|line| line.split_once(':'));
        let status: BTreeMap<&str, &str> = by_name(lines.map(|(name, value)| (name, value.trim())));
        processes += 1;
        threads += status
            .get("Threads")
            .and_then(|count| count.parse::<u32>().ok())
            .unwrap_or(1);
        if seen.status.is_empty() {
            let given = STATUS
                .iter()
                .filter_map(|name| Some((*name, *status.get(name)?)));
            seen.status = by_name(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        if let Ok(maps) = std::fs::read_to_string(format!("{folder}/maps")) {
            mapped(&maps, &mut seen.mapped);
            shared_maps(&maps, &mut shared);
        }
        if let (true, Ok(file)) = (is_program, std::fs::read_link(format!("{folder}/exe"))) {
            seen.executed = Some(file.to_string_lossy().into_owned());
        }
        opened(&folder, seen, &mut shared);
        tied(&folder, status.get("SigCgt").copied(), &mut seen.ties);
        for thread in std::fs::read_dir(format!("{folder}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if let Some((state, session)) = proc::state_of(&thread.path()) {
                // A program that has ended, and that its parent has not learned of yet, does not wait.
                is_idle &= state != 'R' && !(is_program && state == 'Z');
                if matches!(state, 'T' | 't') {
                    seen.ties.insert(Tie::Stopped);
                }
                if session != own_session {
                    seen.ties.insert(Tie::Session);
                }
            }
            let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            if waiting.len() < PROCESSES_LIMIT {
                waiting.extend(
                    list.split_whitespace()
                        .filter_map(|pid| pid.parse::<u32>().ok()),
                );
            }
        }
    }
    seen.threads = seen.threads.max(threads);
    seen.processes = seen.processes.max(processes);
    seen.shared_memory_bytes = seen.shared_memory_bytes.max(shared.values().sum());
    is_idle
}

/// Collects resources of a process that do not stop with it. `caught` is the set of signals that it handles.
fn tied(process: &str, caught: Option<&str>, ties: &mut BTreeSet<Tie>) {
    let caught = caught.and_then(|set| u64::from_str_radix(set, 16).ok());
    if caught.is_some_and(|set| set & (1 << (libc::SIGCONT - 1)) != 0) {
        ties.insert(Tie::Continued);
    }
    // Timers without a descriptor are listed only by kernels that can checkpoint processes.
    if std::fs::read(format!("{process}/timers")).is_ok_and(|timers| !timers.is_empty()) {
        ties.insert(Tie::Timer);
    }
    let descriptors = std::fs::read_dir(format!("{process}/fd"));
    for descriptor in descriptors.into_iter().flatten().flatten() {
        let Ok(target) = std::fs::read_link(descriptor.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        let tie = [
            ("socket:", Tie::Socket),
            ("anon_inode:[timerfd]", Tie::Timer),
            ("/dev/pts/", Tie::Terminal),
            ("/dev/tty", Tie::Terminal),
        ];
        let tie = tie.iter().find(|(begin, _)| target.starts_with(begin));
        ties.extend(tie.map(|(_, tie)| *tie));
    }
}

/// Bytes of shared-memory files by inode; a program has only one such file system.
type Shared = BTreeMap<u64, u64>;

/// Where shm_open(3) puts shared memory.
const SHARED: &str = "/dev/shm/";

/// Adds the mappings of shared-memory files (proc_pid_maps(5): range, permissions, offset, device, inode, path).
fn shared_maps(maps: &str, files: &mut Shared) {
    for line in maps.lines().filter(|line| line.contains(SHARED)) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, _, offset, _, inode, path, ..] = fields.as_slice() else {
            continue;
        };
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let ends = range
            .split_once('-')
            .map(|(from, to)| (number(from), number(to)));
        let (Some((Some(from), Some(to))), Some(offset), Ok(inode)) =
            (ends, number(offset), inode.parse::<u64>())
        else {
            continue;
        };
        if path.starts_with(SHARED) {
            let bytes = files.entry(inode).or_default();
            *bytes = (*bytes).max(to.saturating_sub(from).saturating_add(offset));
        }
    }
}

/// Hashes those files that still exist under their names and are no larger than `limit`.
fn hash(files: &BTreeSet<String>, limit: u64, hashes: &mut BTreeMap<String, String>) {
    for file in files {
        let path = Path::new(file);
        if std::fs::metadata(path).is_ok_and(|it| it.len() <= limit)
            && let Ok(digits) = sha256(path)
        {
            hashes.insert(file.clone(), digits);
        }
    }
}

/// Adds the files that are mapped as code (proc_pid_maps(5)).
fn mapped(maps: &str, files: &mut BTreeSet<String>) {
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ').filter(|field| !field.is_empty());
        let is_code = fields.nth(1).is_some_and(|rights| rights.contains('x'));
        let path = line.find('/').map(|start| &line[start..]);
        if let Some(path) = path.filter(|_| is_code && files.len() < MAPPED_LIMIT) {
            files.insert(path.to_owned());
        }
    }
}

#[cfg(unix)]
fn inode(file: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

/// Never reached without `/proc`.
#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}

/// Adds the regular files that a process has open, without the kernel's; deleted files cannot be named. Shared memory
/// counts by its bytes, whether it is deleted or not.
fn opened(process: &str, seen: &mut ProcessSamples, shared: &mut Shared) {
    let descriptors = std::fs::read_dir(format!("{process}/fd"));
    for descriptor in descriptors.into_iter().flatten().flatten() {
        let link = descriptor.path();
        let Ok(path) = std::fs::read_link(&link) else {
            continue;
        };
        let Some(path) = path.to_str().filter(|path| path.starts_with('/')) else {
            continue;
        };
        let is_kernels = ["/proc/", "/sys/"]
            .iter()
            .any(|root| path.starts_with(root));
        if is_kernels {
            continue;
        }
        let Ok(file) = std::fs::metadata(&link) else {
            continue;
        };
        if path.starts_with(SHARED) {
            let bytes = shared.entry(inode(&file)).or_default();
            *bytes = (*bytes).max(file.len());
        }
        if path.ends_with(" (deleted)") || seen.opened.len() >= OPENED_LIMIT || !file.is_file() {
            continue;
        }
        let number = link.file_name().unwrap_or_default().to_string_lossy();
        let is_known = !seen.opened.insert(path.to_owned());
        if !is_only_read(&format!("{process}/fdinfo/{number}")) {
            seen.read.remove(path);
        } else if !is_known {
            seen.read.insert(path.to_owned());
        }
    }
}

/// Returns whether a descriptor is read-only (proc_pid_fdinfo(5): the flags of open(2), in octal digits).
fn is_only_read(descriptor: &str) -> bool {
    let shown = std::fs::read_to_string(descriptor).unwrap_or_default();
    let flags = shown.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_RDONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn opened_lists_regular_files_not_removed_or_special() {
        let folder = std::env::temp_dir().join(format!("tare-opened-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (kept, gone) = (folder.join("kept"), folder.join("gone"));
        let files = [&kept, &gone].map(|path| std::fs::File::create(path).unwrap());
        let special = std::fs::File::open("/dev/null").unwrap();
        std::fs::remove_file(&gone).unwrap();
        let mut seen = ProcessSamples::default();
        opened("/proc/self", &mut seen, &mut Shared::new());
        let kept = kept.to_str().unwrap();
        assert!(seen.opened.contains(kept), "{seen:?}");
        let names = || seen.opened.iter();
        assert!(!names().any(|path| path.contains("gone") || path == "/dev/null"));
        assert!(!seen.read.contains(kept), "it may be written to");
        drop((files, special));
        // A file that was once open for writing does not count as only read.
        let once = std::fs::File::open(kept).unwrap();
        opened("/proc/self", &mut seen, &mut Shared::new());
        assert!(!seen.read.contains(kept));
        let mut anew = ProcessSamples::default();
        opened("/proc/self", &mut anew, &mut Shared::new());
        assert!(anew.read.contains(kept), "{anew:?}");
        drop(once);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn unlinked_shared_memory_counts_by_size() {
        let path = format!("{SHARED}tare-watch-{}", std::process::id());
        let Ok(file) = std::fs::File::create(&path) else {
            return crate::skip::skip("tmpfs", &format!("there is no {SHARED} to write to"));
        };
        std::fs::remove_file(&path).unwrap();
        file.set_len(3 << 20).unwrap();
        let mut shared = Shared::new();
        opened("/proc/self", &mut ProcessSamples::default(), &mut shared);
        let inode = inode(&file.metadata().unwrap());
        assert_eq!(shared[&inode], 3 << 20);
        // The same file, mapped as well, and another that is only mapped.
        let maps = format!(
            "7f00-8f00 rw-s 00000000 00:17 {inode} {path} (deleted)\n\
             10000-20000 rw-s 00001000 00:17 5 /dev/shm/other\n\
             30000-40000 r-xp 00000000 fe:00 6 /usr/lib/dev/shm/x\n"
        );
        shared_maps(&maps, &mut shared);
        assert_eq!(shared[&inode], 3 << 20);
        assert_eq!(shared[&5], 0x11000);
        assert!(!shared.contains_key(&6));
    }

    #[test]
    fn files_are_hashed_by_content_and_missing_omitted() {
        let folder = std::env::temp_dir().join(format!("tare-watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        for (name, bytes) in [("a", "one"), ("b", "one"), ("c", "two")] {
            std::fs::write(path(name), bytes).unwrap();
        }
        let mut hashes = BTreeMap::new();
        hash(&["a", "b", "c", "gone"].map(path).into(), 3, &mut hashes);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(hashes.len(), 3);
        assert_eq!(hashes[&path("a")], hashes[&path("b")]);
        assert_ne!(hashes[&path("a")], hashes[&path("c")]);
    }

    #[test]
    fn mapped_lists_only_executable_file_mappings() {
        let maps = "55d0-55d1 r--p 00000000 fe:00 1 /usr/bin/x\n\
                    55d1-55d2 r-xp 00000000 fe:00 1                    /usr/lib/a b.so\n\
                    7ffc-7ffd r-xp 00000000 00:00 0 [vdso]\n";
        let mut files = BTreeSet::new();
        mapped(maps, &mut files);
        assert_eq!(files, BTreeSet::from(["/usr/lib/a b.so".to_owned()]));
    }
}
