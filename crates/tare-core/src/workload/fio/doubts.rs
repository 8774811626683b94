//! Checks whether fio measured what its options say: the device, the queue depth, the arithmetic.
//!
//! The depth that was reached is not `iodepth_level`, which counts what fio has submitted: a request that the kernel
//! serves during the submission was never in flight. Little's law on the whole time does not work either, because
//! requests in one `io_submit` wait for each other. The submission is checked instead.
//! Sources: io_submit(2), fio(1) on `iodepth`, Little 1961.
//! Limits: does not see how deep the device's queue was.

use tare_model::counter;
use tare_model::{ProbeReport, RawOutput};

use super::output::{Devices, Job, Output};
use crate::workload::sanity::{self, IMPOSSIBLE_CPU_TIME, Remark, SHALLOW_QUEUE};
use crate::workload::{command_output, probe_output};

/// A submission that takes this many times the completion did the work itself.
const SUBMISSION_DOMINATES: f64 = 10.0;
/// The share of its time that a thread spends in submissions that do the work.
const ALWAYS_SUBMITTING: f64 = 0.8;
/// The share of the requested depth below which it was missed.
const DEPTH_SHARE: f64 = 0.5;
/// The resolution of fio's run times, seconds.
const RUNTIME_STEP_S: f64 = 1e-3;

/// The remarks; `None` if the output cannot be parsed.
pub(super) fn remarks(raw: &RawOutput) -> Option<Vec<Remark>> {
    let whole = probe_output::report(raw).ok()?;
    let report = whole.command.as_ref()?;
    let output = Output::parse(&command_output::stdout(report)).ok()?;
    let job = output.total().ok()?;
    let mut remarks = sanity::of_command(report);
    let jobs = job.option("numjobs", 1.0).max(output.jobs.len() as f64);
    remarks.extend(sanity::threads(jobs, report));
    remarks.extend(cpu_share(&job));
    let touched = touched(&job, output.devices, &whole);
    for (remark, metrics) in touched.iter().zip(super::read_and_write()) {
        let of_each = metrics
            .iter()
            .filter_map(|metric| Some(remark.clone()?.about(metric.id)));
        remarks.extend(of_each);
    }
    let has_no_device = touched.iter().any(Option::is_some);
    for (direction, metrics) in [&job.read, &job.write]
        .into_iter()
        .zip(super::read_and_write())
    {
        if direction.operations == 0.0 {
            continue;
        }
        let about = metrics[0].id;
        remarks.extend(sanity::timer_steps(
            "the run",
            direction.runtime_s,
            RUNTIME_STEP_S,
        ));
        remarks.extend(
            [
                sanity::product(
                    "operations",
                    direction.rate,
                    direction.runtime_s,
                    direction.operations,
                ),
                sanity::product(
                    "bytes",
                    direction.bytes_per_s,
                    direction.runtime_s,
                    direction.bytes,
                ),
            ]
            .into_iter()
            .flatten()
            .map(|remark| remark.about(about)),
        );
    }
    remarks.extend(depth(&job, jobs, has_no_device));
    Some(remarks)
}

/// A remark if a job used more than one processor, with some allowance for the rounding of short runs.
fn cpu_share(job: &Job) -> Option<Remark> {
    let percent = job.cpu_percent()?;
    (percent > 105.0).then(|| {
        Remark::new(
            IMPOSSIBLE_CPU_TIME,
            format!("fio accounts {percent:.0} % of one processor to one job"),
        )
    })
}

/// Compares the application's bytes with the device's, first for reads, then for writes. The kernel's count for the
/// program (proc_pid_io(5)) is right for reads; it counts a write when a page becomes dirty, so that only the
/// devices' count shows actual writes.
fn touched(job: &Job, devices: Option<Devices>, whole: &ProbeReport) -> [Option<Remark>; 2] {
    let counted = whole.counters.get(counter::READ_BYTES).copied();
    let of_devices = devices.and_then(|devices| devices.read_bytes);
    let read = match (counted, of_devices) {
        (Some(a), Some(b)) => Some(f64::max(a, b)),
        (a, b) => a.or(b),
    };
    let written = devices.and_then(|devices| devices.write_bytes);
    [
        read.and_then(|device| sanity::device_bytes("read", job.read.bytes, device)),
        written.and_then(|device| sanity::device_bytes("written", job.write.bytes, device)),
    ]
}

/// A remark if the requests were not in flight together.
fn depth(job: &Job, jobs: f64, has_no_device: bool) -> Option<Remark> {
    let asked = job.option("iodepth", 1.0);
    if asked <= 1.0 {
        return None;
    }
    let one = |why: String| {
        Some(Remark::new(
            SHALLOW_QUEUE,
            format!("effective depth about 1 of {asked}: {why}"),
        ))
    };
    let engine = job.option_text("ioengine").unwrap_or("psync");
    if ["psync", "sync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine) {
        return one(format!("the engine `{engine}` is synchronous"));
    }
    if engine == "libaio" && job.option("direct", 0.0) == 0.0 {
        return one("libaio is synchronous without O_DIRECT".to_owned());
    }
    if engine == "libaio" && has_no_device {
        return one("libaio is synchronous where no block device is reached".to_owned());
    }
    let directions = [&job.read, &job.write];
    let busy = directions.into_iter().filter(|it| it.operations > 0.0);
    if let Some(it) = busy
        .clone()
        .find(|it| it.submission_ns >= SUBMISSION_DOMINATES * it.completion_ns)
    {
        return one(format!(
            "submission took {}, completion {}",
            sanity::seconds(it.submission_ns),
            sanity::seconds(it.completion_ns)
        ));
    }
    let is_batched = job.option("iodepth_batch_submit", job.option("iodepth_batch", 1.0)) > 1.0;
    let submitting: f64 = busy
        .clone()
        .map(|it| it.rate * it.submission_ns * 1e-9 / jobs)
        .sum();
    if !is_batched && submitting >= ALWAYS_SUBMITTING {
        return one(format!(
            "the jobs were inside of submissions for {:.0} % of the time",
            submitting.min(1.0) * 100.0
        ));
    }
    let in_flight: f64 = busy.map(|it| it.rate * it.time_ns * 1e-9 / jobs).sum();
    (in_flight < DEPTH_SHARE * asked).then(|| {
        Remark::new(
            SHALLOW_QUEUE,
            format!("effective depth about {in_flight:.1} of {asked}"),
        )
    })
}
