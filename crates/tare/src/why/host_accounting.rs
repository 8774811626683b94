//! Counts a run's resource use from outside: CPU time of the engine's port proxies and, for a server, its network and
//! cgroup counters.
//!
//! A connection that a proxy process copies leaves no trace in the environment, whose counters only show waiting. The
//! process itself runs on this machine, so its time can be read before and after a run. Its threads are summed from
//! `/proc/<pid>/task/<tid>/schedstat` (nanoseconds; proc(5)), because `stat` counts in ticks.
//! Limits: it is unknown whose bytes were copied, so a run on the host is compared with one inside. Engines on other
//! machines or in VMs show nothing here.

use std::collections::BTreeMap;
use std::path::Path;

use tare_model::{CommandCall, counter};

use crate::cx::files;
use crate::env::{Charged, Instance};
use crate::run::charges::{self, Charges};

/// Names of the processes that copy published ports: Docker's, and that of rootless engines.
const NAMES: [&str; 2] = ["docker-proxy", "rootlessport"];

/// Counters before a run.
pub(super) struct Before {
    proxies_ns: Option<u64>,
    server: Option<(Charged, Charges)>,
}

impl Before {
    /// Reads the counters before a run of this call.
    pub(super) fn now(instance: &dyn Instance, call: &CommandCall) -> Self {
        let is_server = call.client.is_some();
        Self {
            server: is_server.then(|| {
                let charged = instance.charged();
                let charges = charges::of_server(&charged);
                (charged, charges)
            }),
            proxies_ns: on_processor_ns(),
        }
    }

    /// Adds the increase since then.
    pub(super) fn add_since(self, counters: &mut BTreeMap<String, f64>) {
        if let (Some(before), Some(after)) = (self.proxies_ns, on_processor_ns()) {
            let ns = after.saturating_sub(before) as f64;
            counters.insert(counter::ENGINE_PROXY.to_owned(), ns);
        }
        if let Some((charged, before)) = self.server {
            counters.extend(charges::since(&before, &charges::of_server(&charged)));
        }
    }
}

/// Total CPU time of all proxies so far, nanoseconds; `None` if there are none.
fn on_processor_ns() -> Option<u64> {
    let processes = files::names(Path::new("/proc")).ok()?;
    let times = processes
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|pid| Path::new("/proc").join(pid))
        .filter(|folder| {
            files::read_text(&folder.join("comm")).is_ok_and(|name| NAMES.contains(&name.trim()))
        })
        .map(|folder| of_threads(&folder.join("task")));
    times.reduce(|sum, time| sum + time)
}

/// Sum over a process's threads; a thread that ends meanwhile counts as 0.
fn of_threads(tasks: &Path) -> u64 {
    let threads = files::names(tasks).unwrap_or_default();
    threads
        .iter()
        .filter_map(|thread| {
            let text = files::read_text(&tasks.join(thread).join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    #[test]
    fn the_time_of_a_process_is_that_of_its_threads() {
        // Threads of other tests come and go meanwhile; this one stays.
        let own = || {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        };
        let (worked, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    worked.store(own(), Ordering::SeqCst);
                }
            });
            while worked.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let at_least = own() + worked.load(Ordering::SeqCst);
            let all = of_threads(Path::new("/proc/self/task"));
            stop.store(true, Ordering::SeqCst);
            assert!(all >= at_least, "{all} of {at_least}");
        });
        assert_eq!(of_threads(Path::new("/proc/self/no-such")), 0);
    }
}
