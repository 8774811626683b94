//! `hpcc`: runs HPC Challenge over MPI on several nodes, which `mpirun` reaches through ssh.
//!
//! Inside a rate's timed region is what HPCC itself times for it, by MPI's clock. Outside: starting the servers, the
//! MPI daemons and the processes. Every node runs an ssh server with keys that node 1 creates for the trial in the
//! shared folder. It listens on a free port at the node's address, accepts only that key, and ends with the trial.
//! The processes use TCP, also within a node, and no other transport: Open MPI prefers to copy from another process's
//! memory on a host (CMA), which needs `CAP_SYS_PTRACE`, and containers lack it. The arms would otherwise be compared
//! over different transports. Waiting processes yield and are not bound to a processor, so that nodes can share one.
//! All of this is the same in every arm.
//! Limits: does not see which BLAS the program was built with; its version is the package's, and its file's hash is
//! one of the arm's facts.
//! Source of the format: the summary section of `hpccoutf.txt`, HPCC 1.5.

mod problem;

use std::collections::BTreeMap;
use std::str::FromStr;

use tare_model::cluster::{HOSTFILE, NODE, SHARED, SUBNET};
use tare_model::command::{ADDRESS, FOLDER, PORT, Transport};
use tare_model::{CommandCall, CommandReport, Params, Path, RawOutput, Recipe, Sample};

pub use problem::Problem;

use super::declared::declared;
use super::{DecodeError, ParamError, Tool, Workload, command_output};

/// The workload.
#[derive(Debug, Clone, Copy)]
pub struct Hpcc;

/// HPCC's input file.
const INPUT: &str = "hpccinf.txt";
/// HPCC's output file.
const OUTPUT: &str = "hpccoutf.txt";
/// The script that starts a node's server.
const NODE_SCRIPT: &str = include_str!("hpcc/node.sh");
/// How the client's ssh finds and verifies the nodes. The user's configuration is not read.
const SSH_CONFIG: &str = "Host *
  Port {port}
  IdentityFile \"{shared}/keys/user\"
  IdentitiesOnly yes
  UserKnownHostsFile \"{shared}/keys/known\"
  GlobalKnownHostsFile none
  HostKeyAlias tare-node
  StrictHostKeyChecking yes
  BatchMode yes
  ControlPath none
  LogLevel ERROR
";

/// Each metric's key in the summary, in the order of the metrics, and the factor to convert its unit.
const ENTRIES: &[(&str, f64)] = &[
    ("HPL_Tflops", 1e12),
    ("StarDGEMM_Gflops", 1e9),
    ("PTRANS_GBs", 1e9),
    ("MPIRandomAccess_GUPs", 1e9),
    ("StarSTREAM_Triad", 1e9),
    ("MPIFFT_Gflops", 1e9),
    ("AvgPingPongBandwidth_GBytes", 1e9),
    ("RandomlyOrderedRingBandwidth_GBytes", 1e9),
    ("AvgPingPongLatency_usec", 1e3),
    ("RandomlyOrderedRingLatency_usec", 1e3),
];

/// The numeric parameters, once defaults are filled in.
fn numbers(params: &Params) -> [u64; 5] {
    ["nodes", "cores", "memory", "block", "scale"]
        .map(|name| params.int(name).map_or(1, i64::unsigned_abs))
}

/// The problem for these parameters.
fn problem(params: &Params) -> Result<Problem, ParamError> {
    let [nodes, cores, memory, block, scale] = numbers(params);
    if nodes * cores < 2 {
        return Err(ParamError::new(
            "nodes",
            "one process alone cannot exchange data",
            "take two nodes or more, or two processes on one",
        ));
    }
    Problem::derive(nodes, cores, memory, block, scale).ok_or_else(|| {
        ParamError::new(
            "memory",
            format!("{scale} % of what fits into {memory} MiB a node is less than one block"),
            "raise `memory` or `scale`, or lower `block`",
        )
    })
}

/// The ssh server of a node.
fn service() -> CommandCall {
    let script = format!("{FOLDER}/node.sh");
    CommandCall {
        listens: Some(Transport::Tcp),
        ..CommandCall::new("sh", [&script, SHARED, NODE, ADDRESS, PORT, FOLDER])
    }
    .with_file("node.sh", NODE_SCRIPT)
}

/// `mpirun` on the first node.
fn client(problem: &Problem) -> CommandCall {
    let processes = problem.processes().to_string();
    let settings = [
        ("btl", "tcp,self"),
        ("pml", "ob1"),
        ("btl_tcp_if_include", SUBNET),
        ("oob_tcp_if_include", SUBNET),
        ("mpi_yield_when_idle", "1"),
        ("hwloc_base_binding_policy", "none"),
        ("plm_rsh_agent", "ssh"),
        // A relative name: the setting is split at spaces, and a folder's path may contain some.
        ("plm_rsh_args", "-F ssh_config"),
        ("plm_rsh_no_tree_spawn", "1"),
    ];
    let mut arguments = vec![
        "--allow-run-as-root",
        "--hostfile",
        HOSTFILE,
        "-np",
        &processes,
    ];
    for (name, value) in settings {
        arguments.extend(["--mca", name, value]);
    }
    arguments.push("hpcc");
    CommandCall {
        collect: vec![OUTPUT.to_owned(), INPUT.to_owned()],
        ..CommandCall::new("mpirun", arguments)
    }
    .with_file(INPUT, problem.input())
    .with_file("ssh_config", SSH_CONFIG)
    .with_variable("TMPDIR", FOLDER)
}

impl Workload for Hpcc {
    declared! {
        "hpcc": "HPC Challenge over MPI on several nodes: linear algebra, memory, and the network between them";
        params {
            "nodes" = Int(3), Between(1, 64): "how many instances of the arm, 1 to 64";
            "cores" = Int(1), Between(1, 256): "processes on each node, 1 to 256; with `nodes` at least two together";
            "memory" = Int(1024), Between(1, 16_777_216): "memory of each node in MiB, of which the matrix takes 80 %, 1 to 16777216";
            "block" = Int(64), Between(1, 1024): "order of the matrix's blocks (NB), 1 to 1024";
            "scale" = Int(10), Between(1, 100): "order of the matrix in percent of what the memory allows, for small machines, 1 to 100";
        }
        OperationPerSecond, Higher, Compute {
            "hpcc.hpl.rate": "Floating-point operations a second of all processes together while HPL solves the system of equations.";
            "hpcc.dgemm.rate": "Floating-point operations a second of one process in a matrix product, while all processes compute one.";
        }
        BytePerSecond, Higher, Network {
            "hpcc.ptrans.rate": "Bytes a second of all processes together in the transposition of a distributed matrix.";
        }
        OperationPerSecond, Higher, Network {
            "hpcc.random-access.rate": "Updates a second of all processes together at random places of a distributed table.";
        }
        BytePerSecond, Higher, Compute {
            "hpcc.stream.rate": "Bytes a second of one process in the triad of STREAM, while all processes run it.";
        }
        OperationPerSecond, Higher, Network {
            "hpcc.fft.rate": "Floating-point operations a second of all processes together in a distributed Fourier transform.";
        }
        BytePerSecond, Higher, Network {
            "hpcc.ping-pong.rate": "Bytes a second between two processes that send each other 2 000 000 bytes in turns, mean of the pairs.";
            "hpcc.ring.rate": "Bytes a second of one process while all exchange 2 000 000 bytes with two neighbours in rings of random order.";
        }
        Nanosecond, Lower, Network {
            "hpcc.ping-pong.latency": "Half a round trip of 8 bytes between two processes, mean of the pairs.";
            "hpcc.ring.latency": "Time of one process to exchange 8 bytes with two neighbours while all do so in rings of random order.";
        }
    }

    fn paths(&self) -> &'static [Path] {
        &[Path::ArmToArm]
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        if path != Some(Path::ArmToArm) {
            return Err(ParamError::new(
                "path",
                "the nodes of `hpcc` are instances of one arm",
                format!("use `{}`", Path::ArmToArm.name()),
            ));
        }
        let params = self.complete(params, path)?;
        let problem = problem(&params)?;
        let [nodes, cores, ..] = numbers(&params);
        Ok(Recipe::Cluster {
            nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            slots: u32::try_from(cores).unwrap_or(u32::MAX),
            service: service().to_probe(),
            client: client(&problem).to_probe(),
        })
    }

    fn tools(&self, _params: &Params) -> Vec<Tool> {
        // Open MPI opens its components and help texts by name at run time.
        let components = ["libopenmpi3", "openmpi-common", "libpmix2"];
        let mpirun = Tool {
            packages: components.map(str::to_owned).into(),
            ..Tool::new("mpirun", &["--version"])
        };
        let mut tools = vec![mpirun, Tool::new("hpcc", &[]), Tool::new("ssh", &["-V"])];
        let rest = [
            "orted",
            "/usr/sbin/sshd",
            "ssh-keygen",
            "/bin/sh",
            "mkdir",
            "rm",
        ];
        tools.extend(rest.map(|program| Tool::new(program, &[])));
        tools
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let summary = summary(&report)?;
        check_problem(&report, &summary)?;
        self.metrics()
            .iter()
            .zip(ENTRIES)
            .map(|(metric, (key, factor))| {
                let value: f64 = value(&summary, "number", key)?;
                command_output::sample(metric, vec![value * factor])
            })
            .collect()
    }
}

/// The problem that a trial solved, from its summary: trials with different problems must not be compared.
///
/// # Errors
/// As for decoding the trial.
pub fn solved(raw: &RawOutput) -> Result<Problem, DecodeError> {
    let report = command_output::report(raw)?;
    let summary = summary(&report)?;
    problem_of(&summary)
}

fn garbled(problem: impl Into<String>) -> DecodeError {
    DecodeError::garbled(OUTPUT, problem)
}

fn file<'a>(report: &'a CommandReport, name: &str) -> Result<&'a str, DecodeError> {
    let bytes = report
        .files
        .get(name)
        .ok_or_else(|| DecodeError::Unsuccessful {
            problem: format!("there is no `{name}`"),
        })?;
    std::str::from_utf8(&bytes.0).map_err(|_| garbled(format!("`{name}` is no text")))
}

/// The summary's keys and values, if it reports success.
fn summary(report: &CommandReport) -> Result<BTreeMap<&str, &str>, DecodeError> {
    let mut lines = file(report, OUTPUT)?.lines().map(str::trim);
    if !lines.any(|line| line == "Begin of Summary section.") {
        return Err(DecodeError::Unsuccessful {
            problem: "HPCC came to no summary".to_owned(),
        });
    }
    let mut values = BTreeMap::new();
    loop {
        let Some(line) = lines.next() else {
            return Err(garbled("the summary breaks off"));
        };
        if line == "End of Summary section." {
            break;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(garbled(format!(
                "the summary holds `{}`",
                line.escape_debug()
            )));
        };
        if values.insert(key, value).is_some() {
            return Err(garbled(format!("`{}` is there twice", key.escape_debug())));
        }
    }
    match values.get("Success") {
        Some(&"1") => Ok(values),
        Some(other) => Err(DecodeError::Unsuccessful {
            problem: format!("HPCC says `Success={}`", other.escape_debug()),
        }),
        None => Err(garbled("the summary does not say whether it was a success")),
    }
}

/// The value of `key`; `kind` says in an error what it should be.
fn value<T: FromStr>(
    summary: &BTreeMap<&str, &str>,
    kind: &str,
    key: &str,
) -> Result<T, DecodeError> {
    let value = summary.get(key).and_then(|text| text.trim().parse().ok());
    value.ok_or_else(|| garbled(format!("the summary has no {kind} `{key}`")))
}

fn count(summary: &BTreeMap<&str, &str>, key: &str) -> Result<u64, DecodeError> {
    value(summary, "whole number", key)
}

fn problem_of(summary: &BTreeMap<&str, &str>) -> Result<Problem, DecodeError> {
    Ok(Problem {
        n: count(summary, "HPL_N")?,
        nb: count(summary, "HPL_NB")?,
        p: count(summary, "HPL_nprow")?,
        q: count(summary, "HPL_npcol")?,
    })
}

/// Rejects a trial that solved another problem than requested, or with fewer processes.
fn check_problem(
    report: &CommandReport,
    summary: &BTreeMap<&str, &str>,
) -> Result<(), DecodeError> {
    let asked = Problem::of_input(file(report, INPUT)?)
        .ok_or_else(|| garbled(format!("`{INPUT}` is not what was written")))?;
    let solved = problem_of(summary)?;
    let processes = count(summary, "CommWorldProcs")?;
    if solved == asked && processes == asked.processes() {
        return Ok(());
    }
    Err(DecodeError::Unsuccessful {
        problem: format!(
            "{processes} processes solved {solved:?}, and {} were to solve {asked:?}",
            asked.processes()
        ),
    })
}

#[cfg(test)]
mod tests;
