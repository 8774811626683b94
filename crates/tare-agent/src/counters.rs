//! Counters of this process and of the machine, read before and after a probe.
//!
//! They show which family of causes a difference belongs to: CPU time or waiting for a CPU, page faults, context
//! switches, throttling, steal time, bytes that really went to a device. A counter that cannot be read is absent.
//! Sources: getrusage(2), proc_pid_schedstat (kernel Documentation/scheduler/sched-stats), proc_pid_io(5),
//! proc_stat(5), cgroups(7), kernel Documentation/accounting/psi.
//! Limits: `/proc/self/schedstat` covers the first thread only; `steal_ticks` and `pressure_*` cover the whole
//! machine, retransmissions the whole network namespace; children count in `children_*` once they are reaped.

use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

use tare_model::counter;
#[cfg(target_os = "linux")]
use tare_model::netstat::column_of;

use crate::by_name::by_name;
#[cfg(target_os = "linux")]
use crate::proc::{self, number_after};

/// The counters' sources, looked up once before the trial.
#[derive(Debug, Clone)]
pub struct Counters {
    /// The file in which this process's cgroup counts throttling.
    #[cfg(target_os = "linux")]
    cpu_stat: Option<PathBuf>,
    /// The file that counts how often the cgroup's memory limit was reached, and the word before the number; v1's
    /// file holds only the number.
    #[cfg(target_os = "linux")]
    limit_hits: Option<(PathBuf, &'static str)>,
}

impl Counters {
    /// Looks up where this process's cgroup counts throttling and reclaim.
    #[cfg(target_os = "linux")]
    pub fn find() -> Self {
        let hierarchies = crate::cgroup::hierarchies();
        let holding = |controller| crate::cgroup::holding(&hierarchies, controller);
        let cpu_stat = holding("cpu")
            .map(|hierarchy| hierarchy.limited_in().join("cpu.stat"))
            .filter(|file| file.is_file());
        let limit_hits = holding("memory").map(|hierarchy| {
            let (name, key) = if hierarchy.is_unified {
                ("memory.events", "max")
            } else {
                ("memory.failcnt", "")
            };
            (hierarchy.limited_in().join(name), key)
        });
        Self {
            cpu_stat,
            limit_hits: limit_hits.filter(|(file, _)| file.is_file()),
        }
    }

    /// Returns an empty value: other systems have no files to look up.
    #[cfg(not(target_os = "linux"))]
    pub fn find() -> Self {
        Self {}
    }

    /// Reads all counters before the work, by name; times in nanoseconds. The process's usage is read last, so that
    /// reading the files is not counted as work.
    pub fn before(&self) -> BTreeMap<String, f64> {
        let counters = BTreeMap::new();
        #[cfg(target_os = "linux")]
        let counters = self.read_proc(counters);
        #[cfg(unix)]
        let counters = usage(counters);
        counters
    }

    /// Reads all counters after the work, in the opposite order for the same reason.
    pub fn after(&self) -> BTreeMap<String, f64> {
        let counters = BTreeMap::new();
        #[cfg(unix)]
        let counters = usage(counters);
        #[cfg(target_os = "linux")]
        let counters = self.read_proc(counters);
        counters
    }

    /// Returns `after - before` for every counter in both. Other arms run between slices, so a trial that `is_sliced`
    /// reports only counters of the trial itself or of the whole block.
    pub fn difference(
        before: &BTreeMap<String, f64>,
        after: &BTreeMap<String, f64>,
        is_sliced: bool,
    ) -> BTreeMap<String, f64> {
        let own = [
            counter::NIVCSW,
            counter::MAJFLT,
            counter::NR_PERIODS,
            counter::NR_THROTTLED,
            counter::THROTTLED,
            counter::STEAL,
        ];
        by_name(after.iter().filter_map(|(name, after)| {
            let is_told = !is_sliced || own.contains(&name.as_str());
            let before = before.get(name).filter(|_| is_told)?;
            Some((name.clone(), after - before))
        }))
    }

    #[cfg(target_os = "linux")]
    fn read_proc(&self, mut counters: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        let now = &mut counters;
        if let Ok(text) = std::fs::read_to_string("/proc/self/io") {
            for name in [
                counter::RCHAR,
                counter::WCHAR,
                counter::SYSCR,
                counter::SYSCW,
                counter::READ_BYTES,
                counter::WRITE_BYTES,
            ] {
                set(now, name, number_after(&text, name, ':'), 1.0);
            }
        }
        if let Some(text) = first_bytes("/proc/stat") {
            // Fields of the line "cpu": user nice system idle iowait irq softirq steal.
            let steal = text.lines().next().and_then(|line| {
                line.strip_prefix("cpu ")?
                    .split_whitespace()
                    .nth(7)?
                    .parse()
                    .ok()
            });
            set(now, counter::STEAL, steal, 1.0);
        }
        if let Some(text) = self
            .cpu_stat
            .as_ref()
            .and_then(|file| std::fs::read_to_string(file).ok())
        {
            set(
                now,
                counter::NR_PERIODS,
                number_after(&text, counter::NR_PERIODS, ' '),
                1.0,
            );
            set(
                now,
                counter::NR_THROTTLED,
                number_after(&text, counter::NR_THROTTLED, ' '),
                1.0,
            );
            // v1 counts nanoseconds under one name, v2 microseconds under another.
            set(
                now,
                counter::THROTTLED,
                number_after(&text, "throttled_time", ' '),
                1.0,
            );
            set(
                now,
                counter::THROTTLED,
                number_after(&text, "throttled_usec", ' '),
                1_000.0,
            );
        }
        if let Some((file, key)) = &self.limit_hits
            && let Ok(text) = std::fs::read_to_string(file)
        {
            let hits = if key.is_empty() {
                text.trim().parse().ok()
            } else {
                number_after(&text, key, ' ')
            };
            set(now, counter::MEMORY_LIMIT_HITS, hits, 1.0);
        }
        if let Ok(text) = std::fs::read_to_string("/proc/self/net/snmp") {
            for (name, protocol, column) in [
                (counter::TCP_RETRANSMITS, "Tcp:", "RetransSegs"),
                (counter::IP_FRAGMENT_FAILURES, "Ip:", "FragFails"),
            ] {
                set(now, name, column_of(&text, protocol, column), 1.0);
            }
        }
        for (name, file) in PRESSURE {
            if let Ok(text) = std::fs::read_to_string(file) {
                set(now, name, stalled_us(&text), 1_000.0);
            }
        }
        for (name, number) in proc::scheduled("self") {
            set(now, name, Some(number), 1.0);
        }
        counters
    }
}

/// Time for which some task of the machine waited for each resource.
#[cfg(target_os = "linux")]
const PRESSURE: [(&str, &str); 3] = [
    (counter::PRESSURE_CPU, "/proc/pressure/cpu"),
    (counter::PRESSURE_MEMORY, "/proc/pressure/memory"),
    (counter::PRESSURE_IO, "/proc/pressure/io"),
];

/// Returns the microseconds in which at least one task was stalled: `total` of the line `some`.
#[cfg(target_os = "linux")]
fn stalled_us(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.split(' ').find_map(|part| part.strip_prefix("total="));
    total?.parse().ok()
}

#[cfg(target_os = "linux")]
fn set(now: &mut BTreeMap<String, f64>, name: &str, value: Option<f64>, factor: f64) {
    if let Some(value) = value {
        now.insert(name.to_owned(), value * factor);
    }
}

/// Returns the beginning of a file: the rest of `/proc/stat` grows with the machine and is not needed.
#[cfg(target_os = "linux")]
fn first_bytes(path: &str) -> Option<String> {
    use std::io::Read;
    let mut bytes = [0u8; 256];
    let count = std::fs::File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

#[cfg(unix)]
fn usage(mut now: BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let nanoseconds = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    for (who, user, sys) in [
        (
            libc::RUSAGE_CHILDREN,
            counter::CHILDREN_USER,
            counter::CHILDREN_SYS,
        ),
        (libc::RUSAGE_SELF, counter::USER, counter::SYS),
    ] {
        // SAFETY: `rusage` is plain data for which all zeroes is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is live and exclusively borrowed, and `who` is one of the two known constants.
        if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
            continue;
        }
        let mut set = |name: &str, value: f64| {
            now.insert(name.to_owned(), value);
        };
        set(user, nanoseconds(usage.ru_utime));
        set(sys, nanoseconds(usage.ru_stime));
        if who == libc::RUSAGE_SELF {
            set(counter::MINFLT, usage.ru_minflt as f64);
            set(counter::MAJFLT, usage.ru_majflt as f64);
            set(counter::NVCSW, usage.ru_nvcsw as f64);
            set(counter::NIVCSW, usage.ru_nivcsw as f64);
        }
    }
    now
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_by_its_name() {
        let text =
            "Ip: Forwarding FragFails\nIp: 1 7\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 31 0\n";
        assert_eq!(column_of(text, "Tcp:", "RetransSegs"), Some(31.0));
        assert_eq!(column_of(text, "Ip:", "FragFails"), Some(7.0));
        assert_eq!(column_of(text, "Udp:", "InErrors"), None);
    }

    #[test]
    fn pressure_is_the_total_in_which_some_task_waited() {
        let text = "some avg10=0.00 avg60=1.20 avg300=0.70 total=5321\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";
        assert_eq!(stalled_us(text), Some(5321.0));
        assert_eq!(stalled_us(""), None);
    }

    #[test]
    fn work_shows_in_the_counters_of_its_kind() {
        let counters = Counters::find();
        let before = counters.before();
        let start = std::time::Instant::now();
        let mut pages = Vec::new();
        while start.elapsed() < std::time::Duration::from_millis(60) {
            pages.push(std::hint::black_box(vec![1u8; 1 << 16]));
        }
        let difference = Counters::difference(&before, &counters.after(), false);
        assert!(
            difference[counter::USER] + difference[counter::SYS] > 1e6,
            "{difference:?}"
        );
        assert!(difference[counter::MINFLT] > 15.0, "{difference:?}");
        assert!(difference[counter::RCHAR] > 0.0, "{difference:?}");
        assert!(difference.values().all(|value| *value >= 0.0));
    }

    #[test]
    fn a_counter_that_is_read_only_once_is_absent() {
        let before = BTreeMap::from([("a".to_owned(), 1.0)]);
        let after = BTreeMap::from([("a".to_owned(), 3.0), ("b".to_owned(), 5.0)]);
        let difference = Counters::difference(&before, &after, false);
        assert_eq!(difference, BTreeMap::from([("a".to_owned(), 2.0)]));
    }

    #[test]
    fn slices_have_only_counters_of_their_own() {
        let of = |value| {
            let names = [counter::STEAL, counter::NIVCSW, counter::NVCSW];
            BTreeMap::from(names.map(|name| (name.to_owned(), value)))
        };
        let difference = Counters::difference(&of(1.0), &of(3.0), true);
        let shown: Vec<&str> = difference.keys().map(String::as_str).collect();
        assert_eq!(shown, [counter::NIVCSW, counter::STEAL]);
    }

    #[test]
    fn a_key_is_matched_whole() {
        let text = "nr_throttled 7\nthrottled_time 9\n";
        assert_eq!(number_after(text, counter::NR_THROTTLED, ' '), Some(7.0));
        assert_eq!(number_after(text, "throttled", ' '), None);
        let io = "rchar: 5\nread_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!(number_after(io, counter::WRITE_BYTES, ':'), None);
        assert_eq!(number_after(io, counter::READ_BYTES, ':'), Some(4096.0));
    }
}
