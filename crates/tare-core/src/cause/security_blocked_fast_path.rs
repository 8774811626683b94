//! A blocked or hidden syscall, so that programs take a slower path.
//!
//! Based on how harmless calls were answered on both sides: a call that the seccomp filter denies looks like one that
//! the kernel lacks. Limits: does not know whether the program needed the call.

use super::prelude::*;
use super::triage::Family::{CostlierCalls, MoreCalls, OtherCode, Waiting};

const FAMILIES: &[Family] = &[MoreCalls, CostlierCalls, Waiting, OtherCode];
const REFUSED: &[&str] = &["EPERM", "ENOSYS", "EACCES", "killed"];

pub(super) static CAUSE: Entry = Entry {
    id: "security.blocked-fast-path",
    title: "A refused system call makes programs take a slower way",
    mechanism: "A filter denies or hides newer or sensitive system calls, and libraries fall back without a word: to \
                threads instead of an io_uring, to memory anywhere instead of memory nearby. Seen from inside, the \
                kernel looks older than it is.",
    needs: &[
        fact::ERRNO,
        fact::KERNEL_IO_URING_DISABLED,
        fact::KERNEL_RELEASE,
    ],
    size: "With one engine's default filter clone3 and cachestat were hidden, perf_event_open, get_mempolicy, \
           move_pages and mbind denied; later versions deny io_uring as well.",
    advice: "Allow the calls that the program needs in a custom profile.",
    price: "Each call allowed is one that an attacker can try; io_uring has a history of escapes.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if case.same_kernel() == Some(false) {
        return None;
    }
    let refused: Vec<(&str, &str, &str)> = case
        .all_differing(fact::ERRNO)
        .into_iter()
        .filter(|(_, there, here)| REFUSED.contains(here) && !REFUSED.contains(there))
        .map(|(name, there, here)| {
            (
                name.trim_start_matches(fact::beginning(fact::ERRNO)),
                there,
                here,
            )
        })
        .collect();
    if refused.is_empty() {
        return None;
    }
    let has = |names: &[&str]| refused.iter().any(|(name, ..)| names.contains(name));
    let disk = if has(&["io_uring_setup"]) {
        case.costs_only(&[Kind::Disk])
    } else {
        Vec::new()
    };
    let memory = if has(&["mbind", "get_mempolicy", "move_pages"])
        && case
            .fact(fact::NUMA_NODES)
            .is_some_and(|nodes| nodes != "0")
    {
        case.without_probes(case.costs_only(&[Kind::Memory, Kind::Matrix]))
    } else {
        Vec::new()
    };
    let commands = case.costs_only(&[Kind::Any]);
    let likelihood = if !disk.is_empty() {
        0.6
    } else if !memory.is_empty() {
        0.5
    } else {
        0.3
    };
    let mut cells: Vec<usize> = disk.into_iter().chain(memory).chain(commands).collect();
    cells.sort_unstable();
    let names: Vec<String> = refused
        .iter()
        .map(|(name, ..)| format!("`{name}`"))
        .collect();
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            likelihood,
            format!(
                "The arm refuses {}, so that programs may take a slower way",
                names.join(", ")
            ),
        )
        .also_seen(
            refused.iter().map(|(name, there, here)| {
                format!("`{name}` answers {here}, in the baseline {there}")
            }),
        )
        .with_counterfactual(switch::without_seccomp(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_refused_in_the_arm_alone_is_suspected() {
        let refused = |name: &str, here: &str, metric: &str| {
            let name = format!("errno.{name}");
            Composed::new("docker")
                .differing(&name, "EFAULT", here)
                .cost(metric, 1.5)
        };
        check(
            &CAUSE,
            &[
                refused("io_uring_setup", "EPERM", "disk.fio-read.rate"),
                refused("clone3", "ENOSYS", "command.wall.time"),
                refused("mbind", "EPERM", "hpcc.stream.rate").fact("numa.nodes", "0-1"),
            ],
            &[
                refused("io_uring_setup", "EFAULT", "disk.fio-read.rate"),
                refused("io_uring_setup", "EPERM", "disk.fio-read.rate")
                    .base("errno.io_uring_setup", "ENOSYS"),
                refused("perf_event_open", "EPERM", "cpu.integer.time"),
                refused("mbind", "EPERM", "hpcc.stream.rate").fact("numa.nodes", "0"),
            ],
        );
    }
}
