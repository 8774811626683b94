//! Decodes a tool's log from a machine that Tare cannot reach, with the decoder of the tool's workload.
//!
//! Only for tools that print all that is measured; others are timed from outside, which a log does not contain.
//! Limits: does not see how the tool was called, unless its log says so.
//! Not a workload itself.

use std::collections::BTreeMap;

use tare_model::outcome::Bytes;
use tare_model::publication::Recorded;
use tare_model::{CommandCall, CommandReport, ProbeReport, RawOutput, Recipe};

use super::{Path, Workload};

/// The workloads whose tools print all measurements to stdout.
pub const READABLE: &[&str] = &[
    "benchmark-dotnet",
    "fio",
    "iozone",
    "iperf3",
    "ping",
    "pyperf",
    "redis-benchmark",
    "stress-ng",
    "sysbench-cpu",
    "sysbench-fileio",
    "sysbench-memory",
];

/// The path of a recorded workload, by default its first: a log does not say which end was where.
fn path(workload: &dyn Workload, given: Option<&str>) -> Result<Option<Path>, String> {
    let mut paths = workload.paths().iter().copied();
    let Some(name) = given else {
        return Ok(paths.next());
    };
    let found = paths.find(|path| path.name() == name);
    let missing = || format!("`{}` has no path `{name}`", workload.id());
    found.map(Some).ok_or_else(missing)
}

/// The values of a log by metric.
///
/// # Errors
/// Describes the problem for a reader who knows the file.
pub fn values(recorded: &Recorded, log: &[u8]) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let id = recorded.workload.as_str();
    let workload = super::find(id)
        .filter(|_| READABLE.contains(&id))
        .ok_or_else(|| {
            format!(
                "no log of `{id}` is read; these are: {}",
                READABLE.join(", ")
            )
        })?;
    let path = path(workload, recorded.path.as_deref())?;
    let raw = workload
        .recipe(&recorded.params, path)
        .map_err(|error| error.to_string())
        .and_then(|recipe| as_printed(&recipe, log))?;
    let samples = workload.decode(&raw).map_err(|error| error.to_string())?;
    let values = samples.into_iter();
    Ok(values
        .map(|sample| (sample.metric.to_string(), sample.observations))
        .collect())
}

/// The raw output of a trial whose program printed this log.
fn as_printed(recipe: &Recipe, log: &[u8]) -> Result<RawOutput, String> {
    let (Recipe::Probe(call) | Recipe::Pair { client: call, .. }) = recipe else {
        return Err("its recipe is not that of one program".to_owned());
    };
    let call = CommandCall::from_args(&call.args)?;
    let report = ProbeReport {
        command: Some(CommandReport {
            stdout: Bytes(log.to_vec()),
            pick: call.pick,
            ..CommandReport::silent(call.argv, 0)
        }),
        ..ProbeReport::empty("command", 1)
    };
    let report = serde_json::to_vec(&report).map_err(|error| error.to_string())?;
    Ok(RawOutput::of_probe(report))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(workload: &str, params: &str) -> Recorded {
        let text = format!("arm = \"a\"\nworkload = \"{workload}\"\nparams = {{ {params} }}\n");
        toml::from_str(&text).unwrap()
    }

    macro_rules! log {
        ($name:literal) => {
            include_bytes!(concat!(
                "../../../tare/tests/golden/tools/",
                $name,
                "/stdout"
            ))
        };
    }

    #[test]
    fn log_of_a_tool_is_read_by_its_own_decoder() {
        let sysbench = recorded("sysbench-cpu", "threads = 2");
        let values_of = |it: &Recorded, log: &[u8]| values(it, log).unwrap();
        let read = values_of(&sysbench, log!("sysbench-cpu/unnamed-container"));
        assert_eq!(read["sysbench.cpu.rate"], [3089.76]);
        let case = "benchmark = \"MemoryAllocations.MemoryAllocationWithoutDate\", case = \"number_of_objects_to_allocate=1000\"";
        let dotnet = recorded("benchmark-dotnet", case);
        let read = values_of(&dotnet, log!("benchmark-dotnet/operations-without-date"));
        assert_eq!(read["dotnet.operation.time"].len(), 3);
    }

    #[test]
    fn log_of_another_tool_or_of_a_timed_one_is_refused() {
        let wrong = values(&recorded("fio", ""), log!("sysbench-cpu/unnamed-container"));
        assert!(wrong.unwrap_err().contains("fio"));
        let timed = values(&recorded("netcat", ""), b"").unwrap_err();
        assert!(timed.contains("no log of `netcat` is read"), "{timed}");
        let param = values(&recorded("fio", "iodeph = 1"), b"").unwrap_err();
        assert!(param.contains("iodeph"), "{param}");
    }
}
