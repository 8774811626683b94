//! Reads what an arm used during a trial, as counted by the host's kernel from outside, and asks the agent for a
//! program's usage step by step.
//!
//! Counters are read before the request and after the last reply, so reading them is in no measured time. They
//! include the worker's activity around the timed work, in every arm alike.
//! Sources: cgroup v2 `cpu.stat`, `memory.events`, `io.stat`; v1 `cpuacct.usage`, `cpu.stat`, `memory.failcnt`,
//! `blkio.throttle.io_service_bytes`; proc_pid_stat(5), proc_pid_io(5), proc_pid_net(5).
//! Limits: bytes through a stacked device are counted once per layer; the time of a process is in ticks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tare_model::command::COMMAND_PROBE;
use tare_model::netstat::column_of;
use tare_model::unit::TICK_NS;
use tare_model::{CommandCall, Recipe, counter};

use crate::cx::files;
use crate::env::Charged;

/// Length of a step of recorded usage, nanoseconds.
const USAGE_STEP_NS: u64 = 100_000_000;

/// Lets the agent record the usage of the recipe's program; of several ends, that of the one that measures.
pub(super) fn record_usage(recipe: &mut Recipe) {
    let call = match recipe {
        Recipe::Probe(call)
        | Recipe::Pair { client: call, .. }
        | Recipe::Cluster { client: call, .. } => call,
        Recipe::Lifecycle { .. } => return,
    };
    if call.name != COMMAND_PROBE {
        return;
    }
    if let Ok(mut command) = CommandCall::from_args(&call.args) {
        command.usage_step_ns = Some(USAGE_STEP_NS);
        call.args.0.extend(command.to_probe().args.0);
    }
}

/// Counters by name; one that cannot be read is absent.
pub(crate) type Charges = BTreeMap<String, f64>;

/// Reads all counters.
pub(crate) fn read(charged: &Charged) -> Charges {
    match charged {
        Charged::Nowhere => Charges::new(),
        Charged::Groups(folders) => of_groups(folders),
        Charged::Process(_) => {
            let mut charges = Charges::new();
            for pid in charged.processes() {
                for (name, value) in of_process(&PathBuf::from(format!("/proc/{pid}"))) {
                    *charges.entry(name).or_insert(0.0) += value;
                }
            }
            charges
        }
    }
}

/// The increase since `before`. A counter that decreased belongs to another instance and is left out.
pub(crate) fn since(before: &Charges, after: &Charges) -> Charges {
    after
        .iter()
        .filter_map(|(name, now)| Some((name.clone(), now - before.get(name)?)))
        .filter(|(_, added)| *added >= 0.0)
        .collect()
}

/// The counters of a server, including those of its network.
pub(crate) fn of_server(charged: &Charged) -> Charges {
    let pid = match charged {
        Charged::Nowhere => None,
        Charged::Process(pid) => Some(*pid),
        Charged::Groups(folders) => folders.iter().find_map(|folder| {
            let processes = files::read_text(&folder.join("cgroup.procs")).ok()?;
            processes.lines().next()?.parse().ok()
        }),
    };
    let mut charges = read(charged);
    if let Some(pid) = pid {
        charges.extend(of_network(&PathBuf::from(format!("/proc/{pid}/net"))));
    }
    charges
}

fn of_network(folder: &Path) -> Charges {
    let text = |name: &str| files::read_text(&folder.join(name)).unwrap_or_default();
    let columns = [
        (
            counter::SERVER_DATAGRAMS,
            column_of(&text("snmp"), "Udp:", "OutDatagrams"),
        ),
        (
            counter::SERVER_OVERFLOWS,
            column_of(&text("netstat"), "TcpExt:", "ListenOverflows"),
        ),
    ];
    let known = columns.into_iter();
    let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.collect()
}

/// A counter of ours, the line of a file that has it (empty for a file that is only a number), and its unit in ours.
type GroupCounter = (&'static str, &'static str, f64);

/// The counters of a control group, by file. Version 1 uses nanoseconds, version 2 microseconds, under different names.
const OF_GROUPS: [(&str, &[GroupCounter]); 4] = [
    ("cpuacct.usage", &[(counter::CHARGED_CPU, "", 1.0)]),
    (
        "cpu.stat",
        &[
            (counter::CHARGED_CPU, "usage_usec", 1e3),
            (counter::CHARGED_NR_THROTTLED, counter::NR_THROTTLED, 1.0),
            (counter::CHARGED_THROTTLED, "throttled_time", 1.0),
            (counter::CHARGED_THROTTLED, "throttled_usec", 1e3),
        ],
    ),
    (
        "memory.failcnt",
        &[(counter::CHARGED_MEMORY_LIMIT_HITS, "", 1.0)],
    ),
    (
        "memory.events",
        &[(counter::CHARGED_MEMORY_LIMIT_HITS, "max", 1.0)],
    ),
];

fn of_groups(folders: &[PathBuf]) -> Charges {
    let mut charges = Charges::new();
    // In a hybrid tree two hierarchies may have the same counter; the first one wins.
    let mut set = |name: &str, value| {
        charges.entry(name.to_owned()).or_insert(value);
    };
    for folder in folders {
        for (file, counters) in OF_GROUPS {
            let text = files::read_text(&folder.join(file)).unwrap_or_default();
            for (name, key, unit) in counters {
                let value = match *key {
                    "" => text.trim().parse().ok(),
                    key => keyed(&text, key),
                };
                if let Some(value) = value {
                    set(name, value * unit);
                }
            }
        }
        if let Some((read, written)) = device_bytes(folder) {
            set(counter::CHARGED_READ, read);
            set(counter::CHARGED_WRITE, written);
        }
    }
    charges
}

/// Bytes that the group read from and wrote to devices; `None` if they are not counted.
fn device_bytes(folder: &Path) -> Option<(f64, f64)> {
    if let Ok(text) = files::read_text(&folder.join("blkio.throttle.io_service_bytes")) {
        // `8:0 Read 4096`, and a last line `Total 4096`.
        let sum = |word: &str| {
            let of_devices = text.lines().filter_map(|line| {
                let mut fields = line.split(' ').skip(1);
                (fields.next()? == word).then(|| fields.next()?.parse::<f64>().ok())?
            });
            of_devices.sum()
        };
        return Some((sum("Read"), sum("Write")));
    }
    let text = files::read_text(&folder.join("io.stat")).ok()?;
    // `8:0 rbytes=4096 wbytes=0 rios=1 …`
    let sum = |key: &str| {
        let fields = text.split_whitespace();
        fields
            .filter_map(|field| field.strip_prefix(key)?.parse::<f64>().ok())
            .sum()
    };
    Some((sum("rbytes="), sum("wbytes=")))
}

fn of_process(folder: &Path) -> Charges {
    let mut charges = Charges::new();
    let stat = files::read_text(&folder.join("stat")).unwrap_or_default();
    // The program's name is in parentheses and may contain spaces and parentheses.
    if let Some((_, fields)) = stat.rsplit_once(") ") {
        // utime, stime, cutime and cstime are fields 14 to 17 of the line; the first here is field 3.
        let ticks: Vec<f64> = fields
            .split(' ')
            .skip(11)
            .take(4)
            .filter_map(|field| field.parse().ok())
            .collect();
        if ticks.len() == 4 {
            let ns = ticks.iter().sum::<f64>() * TICK_NS;
            charges.insert(counter::CHARGED_CPU.to_owned(), ns);
        }
    }
    let io = files::read_text(&folder.join("io")).unwrap_or_default();
    for (name, key) in [
        (counter::CHARGED_READ, "read_bytes:"),
        (counter::CHARGED_WRITE, "write_bytes:"),
    ] {
        if let Some(value) = keyed(&io, key) {
            charges.insert(name.to_owned(), value);
        }
    }
    charges
}

/// The number after `key` at the beginning of a line.
fn keyed(text: &str, key: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        .and_then(|value| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn to_list(charges: &Charges) -> Vec<(&str, f64)> {
        charges
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect()
    }

    #[test]
    fn server_network_counters_read_from_processes() {
        let net = folder(&[
            (
                "snmp",
                "Udp: InDatagrams NoPorts InErrors OutDatagrams\nUdp: 1 2 3 44\n",
            ),
            (
                "netstat",
                "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 5\n",
            ),
        ]);
        assert_eq!(
            to_list(&of_network(net.path())),
            [("server_datagrams", 44.0), ("server_overflows", 5.0)]
        );
        assert!(of_network(Path::new("/no/such")).is_empty());
        let own = of_server(&Charged::Process(std::process::id()));
        assert!(own.contains_key(counter::SERVER_OVERFLOWS), "{own:?}");
        assert!(of_server(&Charged::Nowhere).is_empty());
    }

    #[test]
    fn cgroup_versions_read_into_same_counters() {
        const EXPECTED: [(&str, f64); 6] = [
            ("charged_cpu_ns", 5_000_000.0),
            ("charged_memory_limit_hits", 3.0),
            ("charged_nr_throttled", 7.0),
            ("charged_read_bytes", 12_288.0),
            ("charged_throttled_ns", 9_000.0),
            ("charged_write_bytes", 1_024.0),
        ];
        let cpu = folder(&[
            ("cpuacct.usage", "5000000\n"),
            (
                "cpu.stat",
                "nr_periods 8\nnr_throttled 7\nthrottled_time 9000\n",
            ),
        ]);
        let memory = folder(&[("memory.failcnt", "3\n")]);
        let blkio = folder(&[(
            "blkio.throttle.io_service_bytes",
            "8:0 Read 4096\n8:0 Write 1024\n8:16 Read 8192\n8:16 Write 0\nTotal 13312\n",
        )]);
        let v1 = [&cpu, &memory, &blkio].map(|folder| folder.path().to_owned());
        assert_eq!(to_list(&of_groups(&v1)), EXPECTED);
        let v2 = folder(&[
            (
                "cpu.stat",
                "usage_usec 5000\nuser_usec 1\nnr_periods 8\nnr_throttled 7\nthrottled_usec 9\n",
            ),
            ("memory.events", "low 0\nhigh 0\nmax 3\noom 0\n"),
            (
                "io.stat",
                "8:0 rbytes=4096 wbytes=1024 rios=1\n8:16 rbytes=8192 wbytes=0 rios=2\n",
            ),
        ]);
        assert_eq!(to_list(&of_groups(&[v2.path().to_owned()])), EXPECTED);
    }

    #[test]
    fn missing_or_reset_counters_yield_no_difference() {
        assert!(read(&Charged::Nowhere).is_empty());
        assert!(of_groups(&[folder(&[]).path().to_owned()]).is_empty());
        let charges = |value: f64| Charges::from([("charged_cpu_ns".to_owned(), value)]);
        assert_eq!(since(&charges(3.0), &charges(5.0)), charges(2.0));
        assert!(since(&charges(5.0), &charges(3.0)).is_empty());
        assert!(since(&Charges::new(), &charges(3.0)).is_empty());
    }

    #[test]
    fn a_program_of_any_name_is_read_to_the_right_field() {
        let process = folder(&[
            (
                "stat",
                "71 (a) R (b) S 1 71 71 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 5\n",
            ),
            ("io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 0\n"),
        ]);
        assert_eq!(
            to_list(&of_process(process.path())),
            [
                ("charged_cpu_ns", 500_000_000.0),
                ("charged_read_bytes", 4_096.0),
                ("charged_write_bytes", 0.0)
            ]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_used_a_processor() {
        let charges = read(&Charged::Process(std::process::id()));
        assert!(charges.contains_key("charged_cpu_ns"), "{charges:?}");
    }
}
