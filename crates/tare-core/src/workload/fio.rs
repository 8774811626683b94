//! `fio`: runs the flexible I/O tester with its usual options and reads its JSON.
//!
//! One job in one group, time-based, on a file in the trial's folder; laying out the file is outside fio's timed
//! region. Rates are bytes and operations over fio's run time. The time of an operation is fio's `lat`, from before
//! the submission to the completion: `clat` alone would favour an engine that does the work during submission. Both
//! parts are reported too. Options are fio's and have fio's meaning (fio(1)).
//! Limits: does not see caches below the block device, or what the file system does after the last operation.

use tare_model::{CommandCall, MetricSpec, Params, Path, RawOutput, Recipe, Sample, Value};

use super::declared::{Declared, described};
use super::{
    DecodeError, ParamError, Remark, Workload, check_path, command_output, programs, tool_params,
    tool_text,
};

mod doubts;
mod output;

pub use output::{Direction, Job, Output};

/// The adapter for fio.
#[derive(Debug)]
pub struct Fio;

/// The number of metrics of each direction.
const OF_A_DIRECTION: usize = 11;

/// The metrics of reads and those of writes.
fn read_and_write() -> [&'static [MetricSpec]; 2] {
    let (read, others) = DECLARED.metrics.split_at(OF_A_DIRECTION);
    [read, &others[..OF_A_DIRECTION]]
}

/// The metrics of the whole job.
fn of_the_job() -> &'static [MetricSpec] {
    &DECLARED.metrics[2 * OF_A_DIRECTION..]
}

/// The job of Google Cloud's handbook for random read operations, as published measurements use it:
/// <https://cloud.google.com/compute/docs/disks/benchmarking-pd-performance-linux>.
fn read_iops() -> Params {
    Params::new()
        .with("rw", "randread")
        .with("bs", "4k")
        .with("size", "4g")
        .with("ioengine", "libaio")
        .with("direct", 1)
        .with("iodepth", 256)
        .with("iodepth_batch_submit", 256)
        .with("iodepth_batch_complete_max", 256)
        .with("runtime", "5m")
        .with("ramp_time", "2s")
}

static DECLARED: Declared = described! {
    "fio": "reads and writes of a file by fio";
    params {
        "rw" = Text("randread"), OneOf(&["read", "write", "randread", "randwrite", "readwrite", "randrw"]): "what is done: read, write, randread, randwrite, readwrite or randrw";
        "ioengine" = Text("io_uring"), OneOf(&["io_uring", "libaio", "posixaio", "psync", "sync", "mmap"]):
            "how it is asked for: io_uring, libaio, posixaio, psync, sync or mmap; libaio is asynchronous only with `direct = 1`";
        "iodepth" = Int(1), Between(1, 4096): "requests in flight for each job, 1 to 4096";
        "direct" = Int(1), Between(0, 1): "1: past the page cache (O_DIRECT); 0: through it";
        "numjobs" = Int(1), Between(1, 256): "processes that do the same at once, each on a file of its own, 1 to 256";
        "rwmixread" = Int(50), Between(1, 99): "percentage of reads where both are done, 1 to 99";
        "fsync" = Int(0), Between(0, 1_000_000): "fsync after so many writes, 0 to 1000000; 0: never";
        "iodepth_batch_submit" = Int(1), Between(1, 4096): "requests that are submitted at once, 1 to 4096";
        "iodepth_batch_complete_max" = Int(1), Between(1, 4096): "completions that are taken at once at most, 1 to 4096";
        "bs" = Text("4k"): "bytes of one request, such as `4k` or `1m`";
        "size" = Text("64m"): "bytes of each job's file, such as `64m` or `4g`";
        "runtime" = Text("1s"): "how long it is measured, such as `1s` or `5m`";
        "ramp_time" = Text("0s"): "how long it runs before that, such as `2s`";
        "preset" = Text("none"):
            "`none`, or `read_iops`: the random reads of many cloud handbooks (4k, depth 256, batches of 256, libaio, a file of 4g, 5m after a ramp of 2s, for which a trial needs a `limit` of 6 minutes); parameters that differ from their default win";
        "percentiles" = Text("50:99"): "percentiles of the times, such as `1:50:95:99:99.99`; metrics there are of these five";
    }
    OperationPerSecond, Higher, Disk {
        "disk.fio-read.rate": "Reads completed per second of fio's run time.";
    }
    BytePerSecond, Higher, Disk {
        "disk.fio-read.throughput": "Bytes read per second of fio's run time.";
    }
    Nanosecond, Lower, Disk {
        "disk.fio-read.time": "Mean time of a read from before its submission to its completion.";
        "disk.fio-read-p99.time": "Time that 99 of 100 reads did not exceed, from before their submission to their completion.";
        "disk.fio-read-submission.time": "Mean time of handing over a read to the kernel, where the engine has a queue to hand it to.";
        "disk.fio-read-completion.time": "Mean time of a read from the end of its submission to its completion.";
        "disk.fio-read-completion-p1.time": "Time from the end of its submission to its completion that 1 of 100 reads did not exceed.";
        "disk.fio-read-completion-p50.time": "Time from the end of its submission to its completion that half of the reads did not exceed.";
        "disk.fio-read-completion-p95.time": "Time from the end of its submission to its completion that 95 of 100 reads did not exceed.";
        "disk.fio-read-completion-p99.time": "Time from the end of its submission to its completion that 99 of 100 reads did not exceed.";
        "disk.fio-read-completion-p9999.time": "Time from the end of its submission to its completion that 9999 of 10000 reads did not exceed.";
    }
    OperationPerSecond, Higher, Disk {
        "disk.fio-write.rate": "Writes completed per second of fio's run time.";
    }
    BytePerSecond, Higher, Disk {
        "disk.fio-write.throughput": "Bytes written per second of fio's run time.";
    }
    Nanosecond, Lower, Disk {
        "disk.fio-write.time": "Mean time of a write from before its submission to its completion.";
        "disk.fio-write-p99.time": "Time that 99 of 100 writes did not exceed, from before their submission to their completion.";
        "disk.fio-write-submission.time": "Mean time of handing over a write to the kernel, where the engine has a queue to hand it to.";
        "disk.fio-write-completion.time": "Mean time of a write from the end of its submission to its completion.";
        "disk.fio-write-completion-p1.time": "Time from the end of its submission to its completion that 1 of 100 writes did not exceed.";
        "disk.fio-write-completion-p50.time": "Time from the end of its submission to its completion that half of the writes did not exceed.";
        "disk.fio-write-completion-p95.time": "Time from the end of its submission to its completion that 95 of 100 writes did not exceed.";
        "disk.fio-write-completion-p99.time": "Time from the end of its submission to its completion that 99 of 100 writes did not exceed.";
        "disk.fio-write-completion-p9999.time": "Time from the end of its submission to its completion that 9999 of 10000 writes did not exceed.";
    }
    Ratio, Lower, Disk {
        "disk.fio-user.share": "Share of its time that a job of fio's spent in user code.";
        "disk.fio-system.share": "Share of its time that a job of fio's spent in the kernel.";
        "disk.fio-switches.ratio": "Context switches of fio's jobs for each read or write.";
        "disk.fio-device-operations.ratio": "Operations of the block devices below, while fio ran and warmed up, for each read or write that counts.";
        "disk.fio-device-busy.share": "Share of the time in which the busiest block device below had something to do.";
    }
};

impl Workload for Fio {
    fn declared(&self) -> &Declared {
        &DECLARED
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        check_path(self.id(), self.paths(), path)?;
        Ok(Recipe::Probe(call(&complete(params)?)?.to_probe()))
    }

    programs! { "fio" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw).map_err(output::explained)?;
        let output = Output::parse(&command_output::stdout(&report))?;
        let job = output.total()?;
        let mut samples = Vec::new();
        for (direction, metrics) in [&job.read, &job.write].into_iter().zip(read_and_write()) {
            // Zeros mean that there were no such operations.
            if direction.operations == 0.0 {
                continue;
            }
            let values = [
                Some(direction.rate),
                Some(direction.bytes_per_s),
                Some(direction.time_ns),
                direction.p99_ns,
                // Without a queue the time is absent, not zero.
                Some(direction.submission_ns).filter(|ns| *ns != 0.0),
                Some(direction.completion_ns).filter(|ns| *ns != 0.0),
            ];
            let values = [&values[..], &direction.completion_percentiles_ns].concat();
            add(&mut samples, metrics, &values, command_output::sample)?;
        }
        if samples.is_empty() {
            return Err(DecodeError::no_value(
                &DECLARED.metrics[0],
                "fio did neither a read nor a write",
            ));
        }
        let whole = whole(&job, &output);
        // A job may have no context switches and no device operations.
        let sample = command_output::sample_or_nothing;
        add(&mut samples, of_the_job(), &whole, sample)?;
        Ok(samples)
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        doubts::remarks(raw).unwrap_or_default()
    }
}

/// Adds a sample for each value that exists.
fn add(
    samples: &mut Vec<Sample>,
    metrics: &[MetricSpec],
    values: &[Option<f64>],
    sample: fn(&MetricSpec, Vec<f64>) -> Result<Sample, DecodeError>,
) -> Result<(), DecodeError> {
    for (metric, value) in metrics.iter().zip(values) {
        if let Some(value) = value {
            samples.push(sample(metric, vec![*value])?);
        }
    }
    Ok(())
}

/// The values of the whole job. Any read takes CPU time, so zero means too short to be counted.
fn whole(job: &Job, output: &Output) -> [Option<f64>; 5] {
    let operations = job.read.operations + job.write.operations;
    let of_each = |count: Option<f64>| count.map(|count| count / operations);
    let devices = output.devices.as_ref();
    let share = |percent: Option<f64>| Some(percent? / 100.0).filter(|share| *share > 0.0);
    [
        share(job.user_percent),
        share(job.system_percent),
        of_each(job.switches),
        of_each(devices.and_then(|it| it.operations)),
        devices.and_then(|it| it.busy),
    ]
}

/// All parameters: the given ones, then the preset's, then the defaults.
fn complete(params: &Params) -> Result<Params, ParamError> {
    let mut chosen = match params.text("preset") {
        Some("read_iops") => read_iops(),
        Some("none") | None => Params::new(),
        Some(other) => {
            return Err(ParamError::new(
                "preset",
                format!("there is no preset `{}`", other.escape_default()),
                "use `none` or `read_iops`",
            ));
        }
    };
    // A plan contains every default; over a preset only values that differ from the default count as given.
    for (name, value) in &params.0 {
        let is_default = DECLARED
            .params
            .iter()
            .any(|spec| spec.name == name && Value::from(spec.default) == *value);
        if !(is_default && chosen.value(name).is_some()) {
            chosen.0.insert(name.clone(), value.clone());
        }
    }
    DECLARED.complete(&chosen)
}

fn call(params: &Params) -> Result<CommandCall, ParamError> {
    let mut arguments: Vec<String> = [
        "--name=tare",
        "--output-format=json",
        "--eta=never",
        "--group_reporting=1",
        "--time_based=1",
        "--lat_percentiles=1",
        "--clat_percentiles=1",
    ]
    .map(str::to_owned)
    .into();
    let bytes = |name| tool_params::size(params, name, 512, 1 << 50);
    let (block, size) = (bytes("bs")?, bytes("size")?);
    if size < block {
        return Err(ParamError::new(
            "size",
            "`size` is less than one request of `bs`",
            format!("use at least {block} bytes"),
        ));
    }
    let runtime_ms = tool_params::duration_ms(params, "runtime", 1, 86_400_000)?;
    let ramp_ms = tool_params::duration_ms(params, "ramp_time", 0, 86_400_000)?;
    arguments.push(format!("--bs={block}"));
    arguments.push(format!("--size={size}"));
    arguments.push(format!("--runtime={runtime_ms}ms"));
    if ramp_ms > 0 {
        arguments.push(format!("--ramp_time={ramp_ms}ms"));
    }
    for name in ["rw", "ioengine", "iodepth", "direct", "numjobs"] {
        let value = params.value(name).map(ToString::to_string);
        arguments.push(format!("--{name}={}", value.unwrap_or_default()));
    }
    arguments.push(format!("--percentile_list={}", percentiles(params)?));
    let number = |name| params.int(name).unwrap_or_default();
    if matches!(params.text("rw"), Some("readwrite" | "randrw")) {
        arguments.push(format!("--rwmixread={}", number("rwmixread")));
    }
    if number("fsync") > 0 {
        arguments.push(format!("--fsync={}", number("fsync")));
    }
    for name in ["iodepth_batch_submit", "iodepth_batch_complete_max"] {
        if number(name) > 1 {
            arguments.push(format!("--{name}={}", number(name)));
        }
    }
    Ok(CommandCall::new("fio", arguments).with_variable("LC_ALL", "C"))
}

/// Up to twenty numbers between 0 and 100, in fio's syntax.
fn percentiles(params: &Params) -> Result<&str, ParamError> {
    let is_one = |text: &str| {
        let is_plain = text.bytes().all(|it| it.is_ascii_digit() || it == b'.');
        is_plain
            && text
                .parse::<f64>()
                .is_ok_and(|value| 0.0 < value && value < 100.0)
    };
    tool_text::fitting(
        params,
        "percentiles",
        |text| text.split(':').count() <= 20 && text.split(':').all(is_one),
        "write numbers between 0 and 100 with colons, such as `50:99`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(params: &Params) -> Result<Vec<String>, ParamError> {
        Ok(command_output::tests::call_of(&Fio, params)?.argv)
    }

    #[test]
    fn fio_preset_is_unchanged_by_explicit_defaults() {
        let defaults = DECLARED.params.iter().fold(Params::new(), |params, spec| {
            params.with(spec.name, spec.default)
        });
        for params in [Params::new(), defaults] {
            let argv = argv(&params.with("preset", "read_iops").with("runtime", "3s")).unwrap();
            for option in [
                "--rw=randread",
                "--bs=4096",
                "--size=4294967296",
                "--ioengine=libaio",
                "--direct=1",
                "--iodepth=256",
                "--iodepth_batch_submit=256",
                "--iodepth_batch_complete_max=256",
                "--ramp_time=2000ms",
                "--runtime=3000ms",
            ] {
                assert!(argv.iter().any(|it| it == option), "{option}: {argv:?}");
            }
        }
    }

    #[test]
    fn unsafe_fio_parameter_is_refused_by_name() {
        for (name, value) in [
            ("rw", Value::from("trim")),
            ("ioengine", "exec".into()),
            ("iodepth", 0.into()),
            ("bs", "4k --output=/etc/passwd".into()),
            ("size", "1k".into()),
            ("runtime", "0s".into()),
            ("preset", "fast".into()),
            ("percentiles", "50:".into()),
            ("percentiles", "50 --output=/etc/passwd".into()),
            ("percentiles", "100".into()),
            ("filename", "/dev/sda".into()),
        ] {
            let error = argv(&Params::new().with(name, value)).unwrap_err();
            assert_eq!(error.param, name);
            assert!(error.hint.is_some(), "{name}");
        }
        let error = Fio.recipe(&Params::new(), Some(Path::Loopback));
        assert_eq!(error.unwrap_err().param, "path");
    }
}
