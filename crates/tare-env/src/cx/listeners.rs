//! Finds the processes of this machine that listen at an address, to bind them to a CPU for a while and to read their
//! CPU time.
//!
//! A container engine's proxy of a published port is one. It is found by its listening socket, whatever its name is.
//! Limits: only root sees and binds other users' processes.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::files;
use super::processes::{numbers_in, with_all_below};
use super::processor::only;

/// Processes that are bound to a CPU until this is dropped.
#[derive(Debug, Default)]
pub struct Bound(Vec<(Pid, CpuSet)>);

impl Bound {
    /// Binds all threads of the processes that listen at these addresses, and of `others`; skips those that may not
    /// be bound.
    pub fn bind(cpu: u32, addresses: &[SocketAddr], others: &[u32]) -> Self {
        let mut bound = Self::default();
        let Some(only) = only(cpu) else {
            return bound;
        };
        let mut pids = listening(addresses);
        pids.extend(others);
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            for task in numbers_in(Path::new(&format!("/proc/{pid}/task"))) {
                let Some(task) = i32::try_from(task).ok().and_then(Pid::from_raw) else {
                    continue;
                };
                if let Ok(before) = sched_getaffinity(Some(task))
                    && sched_setaffinity(Some(task), &only).is_ok()
                {
                    bound.0.push((task, before));
                }
            }
        }
        bound
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        for (task, before) in &self.0 {
            // Fails if the task has ended, which is fine.
            let _ = sched_setaffinity(Some(*task), before);
        }
    }
}

/// CPU time of these processes and their descendants, nanoseconds; `None` if none of them reports it. The time of a
/// thread that has ended is lost.
pub fn run_ns(pids: &[u32]) -> Option<f64> {
    let of_task = |folder: &Path| {
        let text = files::read_text(&folder.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    let of_process = |pid: &u32| {
        let folder = PathBuf::from(format!("/proc/{pid}/task"));
        let tasks = numbers_in(&folder).into_iter();
        tasks
            .filter_map(|task| of_task(&folder.join(task.to_string())))
            .reduce(|sum, ns| sum + ns)
    };
    let all = with_all_below(pids);
    all.iter().filter_map(of_process).reduce(|sum, ns| sum + ns)
}

/// The processes that listen at one of these addresses, in this network namespace.
pub fn listening(addresses: &[SocketAddr]) -> Vec<u32> {
    let table = |name: &str| files::read_text(Path::new(name)).unwrap_or_default();
    let tables = [table("/proc/net/tcp"), table("/proc/net/tcp6")];
    let links: Vec<String> = tables
        .iter()
        .flat_map(|table| sockets(table, addresses))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let mut pids = numbers_in(Path::new("/proc"));
    pids.retain(|pid| {
        let folder = format!("/proc/{pid}/fd");
        let mut open = numbers_in(Path::new(&folder)).into_iter();
        !links.is_empty()
            && open.any(|fd| {
                let link = std::fs::read_link(format!("{folder}/{fd}"));
                link.is_ok_and(|link| links.iter().any(|it| link.as_os_str() == it.as_str()))
            })
    });
    pids
}

/// The inodes of sockets in `/proc/net/tcp` that listen at one of these addresses, or at all addresses on its port.
fn sockets<'t>(table: &'t str, addresses: &[SocketAddr]) -> Vec<&'t str> {
    let row = |line: &'t str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = words.get(1)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let is_wanted = |wanted: &SocketAddr| {
            wanted.port() == port
                && (address.bytes().all(|digit| digit == b'0') || address == digits(wanted.ip()))
        };
        let is_listening = *words.get(3)? == "0A" && addresses.iter().any(is_wanted);
        words.get(9).copied().filter(|_| is_listening)
    };
    table.lines().filter_map(row).collect()
}

/// An address as the kernel prints it: words of four bytes in native byte order.
fn digits(address: IpAddr) -> String {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes
        .chunks_exact(4)
        .fold(String::new(), |mut digits, word| {
            let number = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
            let _ = write!(digits, "{number:08X}");
            digits
        })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn time_of_a_process_contains_that_of_those_below() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sh -c 'read line' & echo; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut started = [0];
        let mut stdout_text = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut stdout_text, &mut started).unwrap();
        let of_child = run_ns(&[child.id()]).unwrap();
        let of_both = run_ns(&[std::process::id()]).unwrap();
        assert!(of_child > 0.0 && of_both > of_child, "{of_child} {of_both}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn listener_is_found_by_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert!(listening(&[address]).contains(&std::process::id()));
        assert!(run_ns(&[std::process::id()]).unwrap() > 0.0);
        assert_eq!(run_ns(&[]), None);
        let other = SocketAddr::from(([127, 0, 0, 2], address.port()));
        assert!(!listening(&[other]).contains(&std::process::id()));
        drop(listener);
        assert!(!listening(&[address]).contains(&std::process::id()));
    }
}
