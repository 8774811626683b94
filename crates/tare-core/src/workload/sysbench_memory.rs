//! `sysbench-memory`: reads or writes one block over and over with sysbench.
//!
//! The default block is 1 KiB, and every operation uses the same block, so what published comparisons call memory
//! bandwidth is that of the innermost cache. Such a result is a separate metric here, so that it is not mistaken for
//! memory bandwidth: a block below 1 MiB is reported as `sysbench.cached-block`. The size is taken from the output
//! (bytes transferred divided by operations), not from the request.
//! Limits: the real cache sizes are unknown. With blocks of a few KiB, more than half of the time is spent between
//! operations, in sysbench itself.

use tare_model::{Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::sysbench_output::{read, recipe};
use super::tool_text::{MIB, after, agreeing, garbled, leading_number, text, whole};
use super::{DecodeError, ParamError, Workload, command_output, programs};

const ID: &str = "sysbench-memory";
/// Smaller blocks stay in a core's private caches on every current processor.
const SMALLEST_MEMORY_BLOCK: f64 = MIB;

metrics! {
    MEMORY = "sysbench.memory.throughput", BytePerSecond, Higher, Compute: "Bytes per second that all threads read or wrote, one block of at least 1 MiB over and over.";
    CACHED = "sysbench.cached-block.throughput", BytePerSecond, Higher, Compute:
        "Bytes per second that all threads read or wrote, one block of less than 1 MiB over and over: a cache, not memory.";
    TIME = "sysbench.memory-operation.time", Nanosecond, Lower, Compute:
        "Mean time of reading or writing one block in one thread: the sum of all latencies divided by the operations.";
}

#[derive(Debug)]
pub(super) struct SysbenchMemory;

impl Workload for SysbenchMemory {
    declared! {
        ID: "sysbench reads or writes one block of memory over and over";
        params {
            "block_kib" = Int(1), Between(1, 1 << 20): "size of the block in KiB, 1 to 1048576; a block below 1024 measures a cache";
            "total_mib" = Int(2048), Between(1, 1 << 24): "bytes to be moved in all, in MiB, 1 to 16777216";
            "threads" = Int(1), Between(1, 1024): "threads, 1 to 1024";
            "operation" = Text("write"), OneOf(&["read", "write"]): "`read` or `write`";
            "access" = Text("seq"), OneOf(&["seq", "rnd"]): "`seq` or `rnd`";
            "seconds" = Int(10), Between(1, 3600): "longest duration in seconds, 1 to 3600";
        }
        metrics &[MEMORY, CACHED, TIME];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let own = [
            format!("--memory-block-size={}K", whole(&params, "block_kib")),
            format!("--memory-total-size={}M", whole(&params, "total_mib")),
            format!("--memory-oper={}", text(&params, "operation")),
            format!("--memory-access-mode={}", text(&params, "access")),
        ];
        Ok(recipe("memory", own, &params))
    }

    programs! { "sysbench" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let (text, totals) = read(raw)?;
        let transferred = transferred(&text)?;
        let operations = ["Total operations:", "Operations performed:"]
            .iter()
            .find_map(|label| after(&text, label))
            .and_then(leading_number)
            .filter(|value| *value > 0.0)
            .ok_or_else(|| garbled("sysbench", "the number of operations is not there"))?;
        agreeing(
            "sysbench",
            "the number of events",
            totals.events,
            operations,
        )?;
        let metric = if transferred.bytes / operations < SMALLEST_MEMORY_BLOCK * 0.99 {
            &CACHED
        } else {
            &MEMORY
        };
        // The sum of latencies is rounded to 10 µs; with many events even a smaller mean is right.
        Ok(vec![
            command_output::sample(metric, vec![transferred.bytes_per_s])?,
            command_output::sample(&TIME, vec![totals.event_ns()])?,
        ])
    }
}

struct Transferred {
    bytes: f64,
    bytes_per_s: f64,
}

/// Parses `2048.00 MiB transferred (8685.85 MiB/sec)`. Versions before 1.0 print `MB` and mean the same.
fn transferred(text: &str) -> Result<Transferred, DecodeError> {
    let missing = || {
        garbled(
            "sysbench",
            "there is no line that says what was transferred",
        )
    };
    let line = text
        .lines()
        .find(|line| line.contains(" transferred ("))
        .ok_or_else(missing)?;
    let (amount, rate) = line.split_once(" transferred (").ok_or_else(missing)?;
    let mebibytes = |text: &str, units: [&str; 2]| {
        let value = leading_number(text)?;
        units
            .iter()
            .any(|unit| text.trim_end().ends_with(unit))
            .then_some(value * MIB)
            .filter(|value| *value > 0.0)
    };
    let bytes = mebibytes(amount, ["MiB", "MB"]);
    let bytes_per_s = mebibytes(rate, ["MiB/sec)", "MB/sec)"]);
    match (bytes, bytes_per_s) {
        (Some(bytes), Some(bytes_per_s)) => Ok(Transferred { bytes, bytes_per_s }),
        _ => Err(garbled(
            "sysbench",
            format!("`{}` is no amount and rate", line.trim().escape_debug()),
        )),
    }
}
