//! `sysbench-fileio`: reads and writes a set of files with sysbench.
//!
//! sysbench creates its files with one command and uses them with another, so a fixed shell script runs both;
//! everything variable is passed as separate arguments. Rates come from sysbench's report of the run, so that
//! creating the files is excluded.
//! A rate of 0.00 means that the mode has no such operation, and is dropped. Versions before 1.0 print only numbers
//! of operations, and `Mb` for MiB.
//! Limits: does not see whether reads reached a device; they come from the page cache unless `direct` is 1 or the
//! files are larger than memory.

use tare_model::{CommandCall, Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::sysbench_output::{Totals, common, read};
use super::tool_text::{after, garbled, leading_number, text, whole};
use super::{DecodeError, ParamError, Workload, command_output, programs};

const ID: &str = "sysbench-fileio";
/// Creates the files, then replaces the shell by the test. Its arguments are the program and the options.
const SCRIPT: &str = r#""$@" prepare >&2 && exec "$@" run"#;

metrics! {
    READ = "sysbench.file-read.rate", OperationPerSecond, Higher, Disk:
        "Reads of one block completed per second, all threads together, synchronisation of files included in the time.";
    WRITE = "sysbench.file-write.rate", OperationPerSecond, Higher, Disk:
        "Writes of one block completed per second, all threads together, synchronisation of files included in the time.";
    SYNC = "sysbench.file-sync.rate", OperationPerSecond, Higher, Disk: "Synchronisations of a file with its device completed per second, reads and writes included in the time.";
    TIME = "sysbench.file-operation.time", Nanosecond, Lower, Disk: "Mean time of one event (a read, a write, or a synchronisation) in one thread.";
}

#[derive(Debug)]
pub(super) struct SysbenchFileio;

impl Workload for SysbenchFileio {
    declared! {
        ID: "sysbench reads and writes a set of files";
        params {
            "mode" = Text("rndrd"), OneOf(&["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"]): "seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw";
            "block_kib" = Int(16), Between(1, 1 << 20): "size of one read or write in KiB, 1 to 1048576";
            "total_mib" = Int(64), Between(1, 1 << 24): "size of all files together in MiB, 1 to 16777216";
            "files" = Int(4), Between(1, 4096): "number of files, 1 to 4096";
            "direct" = Int(0), Between(0, 1): "1 opens the files with O_DIRECT, past the page cache";
            "sync_every" = Int(100), Between(0, 1_000_000): "operations between two synchronisations, 0 to 1000000; 0 means never";
            "threads" = Int(1), Between(1, 1024): "threads, 1 to 1024";
            "seconds" = Int(1), Between(1, 3600): "duration in seconds, 1 to 3600";
        }
        metrics &[READ, WRITE, SYNC, TIME];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
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
        ];
        arguments.extend(common(&params));
        if params.int("direct") == Some(1) {
            arguments.push("--file-extra-flags=direct".to_owned());
        }
        if params.int("sync_every") == Some(0) {
            arguments.push("--file-fsync-end=off".to_owned());
        }
        Ok(Recipe::Probe(CommandCall::new("sh", arguments).to_probe()))
    }

    programs! { "sysbench" ["--version"], "sh" [] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let (text, totals) = read(raw)?;
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

/// Reads, writes and syncs per second, in the format of 1.0, 1.1 or earlier.
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
    // Capitalisation differs: `Read, Write, Other` in 0.4, `reads, writes, Other` in 0.5.
    let [reads, writes] = if line.contains("reads") {
        ["reads", "writes"]
    } else {
        ["Read", "Write"]
    };
    Ok([of(reads)?, of(writes)?, of("Other")?])
}
