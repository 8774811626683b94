//! `sysbench-fileio`: sysbench reads and writes a set of files.
//!
//! sysbench makes its files with one command and uses them with another, so a fixed script of the shell runs
//! both; all that varies reaches it as separate arguments. Rates are taken from what sysbench says of its own
//! run, so making the files is outside.
//! A rate of 0.00 means that the mode has no such operation, and is left out. Versions before 1.0 print only
//! numbers of operations and `Mb`, by which they mean MiB.
//! What it cannot see: whether reads reached a device: unless `direct` is 1 or the files are larger than
//! memory, they come from the page cache.

use tare_model::{
    Better, CommandCall, MetricSpec, Params, Path, RawOutput, Recipe, ResourceClass, Sample, Unit,
};

use super::probe_output::{Accepts, checked};
use super::sysbench_output::{Totals, tool, totals};
use super::tool_text::{after, garbled, leading_number, text, whole};
use super::{
    DecodeError, DefaultValue, ParamError, ParamSpec, Tool, Workload, command_output, one_end,
};

const ID: &str = "sysbench-fileio";
/// Makes the files, then uses them in place of the shell. Its arguments are the program and the options.
const SCRIPT: &str = r#""$@" prepare >&2 && exec "$@" run"#;

const fn rate(id: &'static str, doc: &'static str) -> MetricSpec {
    MetricSpec {
        id,
        unit: Unit::OperationPerSecond,
        better: Better::Higher,
        class: ResourceClass::Disk,
        floor_ok: false,
        doc,
    }
}

const READ: MetricSpec = rate(
    "sysbench.file-read.rate",
    "Reads of one block completed per second, all threads together, synchronisation of files included in the time.",
);
const WRITE: MetricSpec = rate(
    "sysbench.file-write.rate",
    "Writes of one block completed per second, all threads together, synchronisation of files included in the time.",
);
const SYNC: MetricSpec = rate(
    "sysbench.file-sync.rate",
    "Synchronisations of a file with its device completed per second, reads and writes included in the time.",
);
const TIME: MetricSpec = MetricSpec {
    id: "sysbench.file-operation.time",
    unit: Unit::Nanosecond,
    better: Better::Lower,
    class: ResourceClass::Disk,
    floor_ok: false,
    doc: "Mean time of one event (a read, a write, or a synchronisation) in one thread.",
};

/// The registered workload.
#[derive(Debug)]
pub struct SysbenchFileio;

impl Workload for SysbenchFileio {
    fn id(&self) -> &'static str {
        ID
    }

    fn about(&self) -> &'static str {
        "sysbench reads and writes a set of files"
    }

    fn params(&self) -> &'static [ParamSpec] {
        &[
            ParamSpec {
                name: "mode",
                default: DefaultValue::Text("rndrd"),
                doc: "seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw",
            },
            ParamSpec {
                name: "block_kib",
                default: DefaultValue::Int(16),
                doc: "size of one read or write in KiB, 1 to 1048576",
            },
            ParamSpec {
                name: "total_mib",
                default: DefaultValue::Int(64),
                doc: "size of all files together in MiB, 1 to 16777216",
            },
            ParamSpec {
                name: "files",
                default: DefaultValue::Int(4),
                doc: "number of files, 1 to 4096",
            },
            ParamSpec {
                name: "direct",
                default: DefaultValue::Int(0),
                doc: "1 opens the files with O_DIRECT, past the page cache",
            },
            ParamSpec {
                name: "sync_every",
                default: DefaultValue::Int(100),
                doc: "operations between two synchronisations, 0 to 1000000; 0 means never",
            },
            ParamSpec {
                name: "threads",
                default: DefaultValue::Int(1),
                doc: "threads, 1 to 1024",
            },
            ParamSpec {
                name: "seconds",
                default: DefaultValue::Int(1),
                doc: "duration in seconds, 1 to 3600",
            },
        ]
    }

    fn metrics(&self) -> &'static [MetricSpec] {
        &[READ, WRITE, SYNC, TIME]
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        one_end(ID, path)?;
        let params = checked(
            ID,
            params,
            self.params(),
            &[
                Accepts::OneOf(&["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"]),
                Accepts::Between(1, 1 << 20),
                Accepts::Between(1, 1 << 24),
                Accepts::Between(1, 4096),
                Accepts::Between(0, 1),
                Accepts::Between(0, 1_000_000),
                Accepts::Between(1, 1024),
                Accepts::Between(1, 3600),
            ],
        )?;
        let mut arguments = vec![
            "-c".to_owned(),
            SCRIPT.to_owned(),
            "tare".to_owned(),
            "sysbench".to_owned(),
            "fileio".to_owned(),
            format!("--file-test-mode={}", text(&params, "mode")),
            format!("--file-block-size={}K", whole(&params, "block_kib")),
            format!("--file-total-size={}M", whole(&params, "total_mib")),
            format!("--file-num={}", whole(&params, "files")),
            format!("--file-fsync-freq={}", whole(&params, "sync_every")),
            format!("--threads={}", whole(&params, "threads")),
            format!("--time={}", whole(&params, "seconds")),
        ];
        if params.int("direct") == Some(1) {
            arguments.push("--file-extra-flags=direct".to_owned());
        }
        if params.int("sync_every") == Some(0) {
            arguments.push("--file-fsync-end=off".to_owned());
        }
        Ok(Recipe::Probe(CommandCall::new("sh", arguments).to_probe()))
    }

    fn tools(&self, _params: &Params) -> Vec<Tool> {
        let shell = Tool {
            program: "sh".to_owned(),
            ..Tool::default()
        };
        vec![tool(), shell]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let text = command_output::stdout(&report);
        let totals = totals(&text)?;
        let mut samples = Vec::new();
        for (metric, rate) in [READ, WRITE, SYNC].iter().zip(rates(&text, &totals)?) {
            if rate != 0.0 {
                samples.push(command_output::sample(metric, vec![rate])?);
            }
        }
        if samples.is_empty() {
            return Err(garbled("sysbench", "it neither read nor wrote"));
        }
        samples.push(command_output::sample(&TIME, vec![totals.event_ns()])?);
        Ok(samples)
    }
}

/// Reads, writes and synchronisations per second, in the form of 1.0, 1.1 or earlier.
fn rates(text: &str, totals: &Totals) -> Result<[f64; 3], DecodeError> {
    let figure = |label: &str, text: Option<&str>| {
        text.and_then(leading_number)
            .filter(|value| *value >= 0.0)
            .ok_or_else(|| garbled("sysbench", format!("`{label}` has no figure")))
    };
    if text.contains("reads/s:") {
        let of = |label: &str| figure(label, after(text, label));
        return Ok([of("reads/s:")?, of("writes/s:")?, of("fsyncs/s:")?]);
    }
    if text.contains("IOPS=") {
        let of = |label: &str| {
            let line = after(text, label);
            figure(
                label,
                line.and_then(|line| line.trim().strip_prefix("IOPS=")),
            )
        };
        return Ok([of("read:")?, of("write:")?, of("fsync:")?]);
    }
    let line = after(text, "Operations performed:")
        .ok_or_else(|| garbled("sysbench", "there are no operations in it"))?;
    let of = |kind: &str| {
        let before = line.split(kind).next().filter(|before| *before != line);
        let count = before.and_then(|before| before.split_whitespace().next_back());
        figure(kind, count).map(|count| count / totals.total_s)
    };
    // Versions differ in capitals: `Read, Write, Other` in 0.4, `reads, writes, Other` in 0.5.
    let [reads, writes] = if line.contains("reads") {
        ["reads", "writes"]
    } else {
        ["Read", "Write"]
    };
    Ok([of(reads)?, of(writes)?, of("Other")?])
}
