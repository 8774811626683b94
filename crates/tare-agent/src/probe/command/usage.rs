//! Records what a program and its children use while they run: processors, memory, devices.
//!
//! A thread of the worker adds up the program's processes once per step, from proc_pid_stat(5), proc_pid_status(5) and
//! proc_pid_io(5): ten steps a second take it a few hundred microseconds. What a child used before it ended counts once
//! its parent has waited for it.
//! Limits: memory that several processes share counts for each of them; a step that the end of the program cuts short
//! is missing, so a program shorter than a step has none.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tare_model::command::UsageOverTime;
use tare_model::counter;
use tare_model::unit::TICK_NS;

use crate::proc;

/// More processes than this are not added up.
const PROCESSES_LIMIT: usize = 1_024;

/// The recording thread.
pub(super) struct UsageRecorder {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<UsageOverTime>,
}

impl UsageRecorder {
    /// Records a process and what it starts, once per step.
    pub(super) fn start(process: u32, step_ns: u64) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let thread = Builder::new().spawn(move || record(process, step_ns.max(1), &flag))?;
        Ok(Self { is_over, thread })
    }

    /// Ends the thread and returns its record.
    pub(super) fn finish(self) -> UsageOverTime {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn record(process: u32, step_ns: u64, is_over: &AtomicBool) -> UsageOverTime {
    let mut usage = UsageOverTime {
        step_ns,
        ..UsageOverTime::default()
    };
    let mut due = Instant::now();
    let (mut at, mut before) = (due, Totals::default());
    loop {
        due += Duration::from_nanos(step_ns);
        while Instant::now() < due {
            if is_over.load(Ordering::Relaxed) {
                return usage;
            }
            std::thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
        let Some(now) = Totals::read(process) else {
            return usage;
        };
        let now_at = Instant::now();
        let elapsed_ns = now_at.duration_since(at).as_secs_f64() * 1e9;
        let more = |of: fn(&Totals) -> f64| (of(&now) - of(&before)).max(0.0);
        usage.processors.push(more(|it| it.cpu_ns) / elapsed_ns);
        usage.memory_bytes.push(now.memory_bytes);
        usage.read_bytes.push(more(|it| it.read_bytes));
        usage.written_bytes.push(more(|it| it.written_bytes));
        (at, before) = (now_at, now);
    }
}

/// What the processes have used since they started, and the memory that they have now.
#[derive(Default)]
struct Totals {
    cpu_ns: f64,
    memory_bytes: f64,
    read_bytes: f64,
    written_bytes: f64,
}

impl Totals {
    /// Adds up a process and everything below it; `None` if it has ended: then none of them has memory.
    fn read(process: u32) -> Option<Self> {
        let mut sum = Self::default();
        let mut waiting = vec![process.to_string()];
        let (mut n_processes, mut has_memory) = (0, false);
        while let Some(process) = waiting.pop() {
            let folder = Path::new("/proc").join(&process);
            let Some(ticks) = proc::cpu_ticks(&folder) else {
                continue;
            };
            n_processes += 1;
            sum.cpu_ns += ticks * TICK_NS;
            let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            if let Some(bytes) = resident_bytes(&text("status")) {
                sum.memory_bytes += bytes;
                has_memory = true;
            }
            let io = text("io");
            let bytes = |name: &str| proc::number_after(&io, name, ':').unwrap_or(0.0);
            sum.read_bytes += bytes(counter::READ_BYTES);
            sum.written_bytes += bytes(counter::WRITE_BYTES);
            if n_processes < PROCESSES_LIMIT {
                let children = proc::children_of(&process).into_iter();
                waiting.extend(children.map(|child| child.to_string()));
            }
        }
        has_memory.then_some(sum)
    }
}

/// The resident memory in a process's `status`.
fn resident_bytes(status: &str) -> Option<f64> {
    let mut lines = status.lines();
    let text = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = text.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1_024.0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn memory_is_read_from_a_status() {
        assert_eq!(
            resident_bytes("Name:\tx\nVmRSS:\t    1024 kB\n"),
            Some(1_048_576.0)
        );
        assert_eq!(resident_bytes("Name:\tkthread\n"), None);
    }

    #[test]
    fn program_is_recorded_with_its_children_until_it_ends() {
        // A child that computes, under a shell that waits for it.
        let script = "sh -c 'while :; do :; done' & read line; kill $!; wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let recorder = UsageRecorder::start(child.id(), 20_000_000).unwrap();
        let is_busy = || Totals::read(child.id()).is_some_and(|it| it.cpu_ns > 200e6);
        while !is_busy() {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(child.stdin.take());
        let usage = recorder.finish();
        child.wait().unwrap();
        let busy: f64 = usage.processors.iter().sum();
        assert!(busy > 0.0, "{usage:?}");
        assert!(usage.memory_bytes.iter().all(|bytes| *bytes > 0.0));
        assert_eq!(usage.processors.len(), usage.written_bytes.len());
    }

    #[test]
    fn program_shorter_than_a_step_has_no_step() {
        let mut child = Command::new("true").spawn().unwrap();
        let recorder = UsageRecorder::start(child.id(), 3_600_000_000_000).unwrap();
        child.wait().unwrap();
        assert!(recorder.finish().processors.is_empty());
    }
}
