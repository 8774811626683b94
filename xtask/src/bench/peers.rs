//! Compares Tare's probes with the tools of the field: same parameters, interleaved runs, ratios.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use tare_model::Params;
use tare_stats::{hodges_lehmann_paired, median};

use super::agent::Agent;
use super::{PAIRS, Row};
use crate::provision::packages::has;
use xtask_build::shell::{cargo, program};
use xtask_build::workspace::root;

/// Measured time of one run, on both sides.
const RUN_S: u64 = 1;

/// Makes every comparison.
pub(super) fn rows(file: &Path, folder: &Path) -> Result<Vec<Row>> {
    let mut agent = Agent::start(file, folder)?;
    Ok(vec![
        triad(&mut agent, folder)?,
        random_read(&mut agent, folder)?,
        sequential_read(&mut agent, folder)?,
        tcp_stream(&mut agent)?,
        tcp_round_trip(&mut agent)?,
        dense_inverse(&mut agent)?,
        http(folder, "1")?,
        http(folder, "16")?,
    ])
}

/// A bound as it is printed, and the ratio.
type Bound = (&'static str, f64);
const EQUAL: Bound = ("≥ 1", 1.0);
const NINE_TENTHS: Bound = ("≥ 0.9", 0.9);

/// Runs both sides interleaved, A B B A, and compares the rates pair by pair.
fn compare(
    (bound, least): Bound,
    promise: &'static str,
    unit: (&str, f64),
    mut ours: impl FnMut() -> Result<f64>,
    mut theirs: impl FnMut() -> Result<f64>,
) -> Result<Row> {
    let (mut our_rates, mut their_rates) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        if pair % 2 == 0 {
            our_rates.push(ours()?);
            their_rates.push(theirs()?);
        } else {
            their_rates.push(theirs()?);
            our_rates.push(ours()?);
        }
    }
    let ratios: Vec<f64> = our_rates
        .iter()
        .zip(&their_rates)
        .map(|(ours, theirs)| (ours / theirs).ln())
        .collect();
    let interval = hodges_lehmann_paired(&ratios, 0.95)
        .ok()
        .context("too few pairs for an interval")?
        .interval;
    let typical = |rates: &[f64]| median(rates).map_or(f64::NAN, |rate| rate / unit.1);
    let figure = format!(
        "{:.3} [{:.3}, {:.3}] ({:.2} against {:.2} {})",
        interval.point.exp(),
        interval.low.exp(),
        interval.high.exp(),
        typical(&our_rates),
        typical(&their_rates),
        unit.0
    );
    // The promise counts as broken only if the whole interval is below the bound.
    let is_kept = interval.high >= least.ln();
    Ok(Row::checked(promise, bound, figure, is_kept))
}

fn absent(promise: &'static str, tool: &str) -> Row {
    Row {
        promise,
        bound: EQUAL.0,
        figure: format!("`{tool}` is not installed"),
        is_kept: None,
    }
}

/// Returns the metric's best value in one trial.
fn best(agent: &mut Agent, probe: &str, args: &Params, metric: &str) -> Result<f64> {
    values(agent, probe, args, metric)?
        .into_iter()
        .reduce(f64::max)
        .context("no value")
}

fn typical(agent: &mut Agent, probe: &str, args: &Params, metric: &str) -> Result<f64> {
    let values = values(agent, probe, args, metric)?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns operations per second, from the median time of one operation.
fn pace(agent: &mut Agent, probe: &str, args: &Params, metric: &str) -> Result<f64> {
    let times_ns = values(agent, probe, args, metric)?;
    Ok(1e9 / median(&times_ns).context("no value")?)
}

fn values(agent: &mut Agent, probe: &str, args: &Params, metric: &str) -> Result<Vec<f64>> {
    let report = agent.probe(probe, args.clone(), RUN_S * 1_000_000_000)?;
    let series = report
        .series
        .into_iter()
        .find(|series| series.metric == metric);
    let series = series.with_context(|| format!("`{probe}` reported no {metric}"))?;
    Ok(series.values)
}

fn triad(agent: &mut Agent, folder: &Path) -> Result<Row> {
    const PROMISE: &str = "triad, against STREAM's triad compiled -O3 (best of a run)";
    if !has("gcc") {
        return Ok(absent(PROMISE, "gcc"));
    }
    let program_file = folder.join("triad");
    let source = root().join("xtask/fixtures/triad.c");
    let output = program_file.to_string_lossy().into_owned();
    program(
        "gcc",
        &[
            "-O3",
            "-march=native",
            "-o",
            &output,
            &source.to_string_lossy(),
        ],
    )
    .run()?;
    let args = Params::new();
    compare(
        EQUAL,
        PROMISE,
        ("GB/s", 1e9),
        || best(agent, "triad", &args, "mem.triad.rate"),
        || {
            let printed = program(&program_file, &["32"]).output()?;
            Ok(printed
                .trim()
                .parse::<f64>()
                .with_context(|| format!("`{printed}` is no number"))?
                * 1e6)
        },
    )
}

fn fio(folder: &Path, arguments: &[&str], rate: &str) -> Result<f64> {
    let file = folder.join("fio.data");
    let file = format!("--filename={}", file.display());
    let time = format!("--runtime={RUN_S}");
    let common = [
        "--name=peer",
        &file,
        "--size=64m",
        "--direct=1",
        "--ioengine=io_uring",
        "--time_based",
        &time,
        "--output-format=json",
    ];
    let printed = program("fio", &common).arguments(arguments).output()?;
    let start = printed.find('{').context("fio printed no JSON")?;
    let json: serde_json::Value = serde_json::from_str(&printed[start..])?;
    json["jobs"][0]["read"][rate]
        .as_f64()
        .filter(|rate| *rate > 0.0)
        .context("fio reported no read")
}

fn random_read(agent: &mut Agent, folder: &Path) -> Result<Row> {
    const PROMISE: &str = "random 4 KiB direct reads at depth 32, against fio's io_uring";
    if !has("fio") {
        return Ok(absent(PROMISE, "fio"));
    }
    let args = Params::new();
    let reads = ["--rw=randread", "--bs=4k", "--iodepth=32"];
    let mut ours = || typical(agent, "disk-random", &args, "disk.random-read-qd32.rate");
    let theirs = || fio(folder, &reads, "iops");
    // The first run creates the files and does not count.
    ours()?;
    theirs()?;
    compare(EQUAL, PROMISE, ("kIOPS", 1e3), ours, theirs)
}

fn sequential_read(agent: &mut Agent, folder: &Path) -> Result<Row> {
    const PROMISE: &str = "sequential 1 MiB direct reads, against fio's io_uring";
    if !has("fio") {
        return Ok(absent(PROMISE, "fio"));
    }
    let args = Params::new();
    compare(
        EQUAL,
        PROMISE,
        ("GB/s", 1e9),
        || typical(agent, "disk-sequential", &args, "disk.sequential-read.rate"),
        || fio(folder, &["--rw=read", "--bs=1m", "--iodepth=4"], "bw_bytes"),
    )
}

/// Another tool's server on loopback, killed on drop.
struct Server(Child);

impl Server {
    /// Starts it and gives it time to listen.
    fn start(tool: &str, arguments: &[&str]) -> Result<Self> {
        let server = Command::new(tool)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        std::thread::sleep(std::time::Duration::from_millis(500));
        Ok(Self(server))
    }
}

fn free_port() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port().to_string())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tcp_stream(agent: &mut Agent) -> Result<Row> {
    const PROMISE: &str = "TCP stream over loopback, against iperf3";
    if !has("iperf3") {
        return Ok(absent(PROMISE, "iperf3"));
    }
    let port = free_port()?;
    let _server = Server::start(
        "iperf3",
        &["--server", "--bind", "127.0.0.1", "--port", &port],
    )?;
    let time = RUN_S.to_string();
    let args = Params::new();
    compare(
        EQUAL,
        PROMISE,
        ("GB/s", 1e9),
        || typical(agent, "tcp-stream", &args, "net.tcp.throughput.rate"),
        || {
            let printed = program(
                "iperf3",
                &[
                    "--client",
                    "127.0.0.1",
                    "--port",
                    &port,
                    "--time",
                    &time,
                    "--json",
                ],
            )
            .output()?;
            let json: serde_json::Value = serde_json::from_str(&printed)?;
            match json["end"]["sum_received"]["bits_per_second"].as_f64() {
                Some(bits) if bits > 0.0 => Ok(bits / 8.0),
                _ => bail!("iperf3 reported no rate: {}", json["error"]),
            }
        },
    )
}

/// Compares medians: the mean of round trips depends on a few slow ones.
fn tcp_round_trip(agent: &mut Agent) -> Result<Row> {
    const PROMISE: &str =
        "TCP round trips of 14 bytes over loopback, against sockperf's ping-pong (medians)";
    /// The shortest message that sockperf sends.
    const BYTES: i64 = 14;
    if !has("sockperf") {
        return Ok(absent(PROMISE, "sockperf"));
    }
    let port = free_port()?;
    let there = ["--tcp", "-i", "127.0.0.1", "-p", &port];
    let _server = Server::start("sockperf", &[&["server"], &there[..]].concat())?;
    let (time, bytes) = (RUN_S.to_string(), BYTES.to_string());
    let own = ["--time", &time, "--msg-size", &bytes, "--full-rtt"];
    let arguments = [&["ping-pong"], &there[..], &own].concat();
    let args = Params::new().with("bytes", BYTES);
    compare(
        EQUAL,
        PROMISE,
        ("thousand a second", 1e3),
        || pace(agent, "tcp-round-trip", &args, "net.tcp.round-trip.time"),
        || {
            let printed = program("sockperf", &arguments).output()?;
            let after = printed.split("percentile 50.000 =").nth(1);
            let median_us = after.and_then(|rest| rest.split_whitespace().next());
            let median_us: f64 = median_us.context("sockperf printed no median")?.parse()?;
            Ok(1e6 / median_us)
        },
    )
}

/// Requests to nginx over loopback; `wrk` also has one thread.
fn http(folder: &Path, connections: &str) -> Result<Row> {
    let promise = match connections {
        "1" => "requests to nginx over one connection, against `wrk -t1`",
        _ => "requests to nginx over sixteen connections, against `wrk -t1`",
    };
    if let Some(tool) = ["wrk", "nginx"].into_iter().find(|tool| !has(tool)) {
        return Ok(absent(promise, tool));
    }
    let address = format!("127.0.0.1:{}", free_port()?);
    let text = folder.display().to_string();
    let file = format!("{text}/nginx.conf");
    std::fs::write(folder.join("index.html"), [b'x'; 1024])?;
    let config = format!(
        "pid {text}/pid; error_log /dev/null; worker_processes 1; events {{}} http {{ access_log off; \
         keepalive_requests 100000000; server {{ listen {address}; root {text}; }} }}"
    );
    std::fs::write(&file, config)?;
    let _server = Server::start(
        "nginx",
        &["-c", &file, "-g", "daemon off; master_process off;"],
    )?;
    let time = format!("{RUN_S}s");
    let url = format!("http://{address}/");
    let ms = (RUN_S * 1000).to_string();
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "tare",
        "--example",
        "http_rate",
        "--",
    ];
    compare(
        NINE_TENTHS,
        promise,
        ("thousand a second", 1e3),
        || {
            let asked = cargo(&example).arguments(&[&address, connections, &ms]);
            Ok(asked.output()?.trim().parse()?)
        },
        || {
            let printed =
                program("wrk", &["-t1", "-c", connections, "-d", &time, &url]).output()?;
            let rate = printed.split("Requests/sec:").nth(1);
            let rate = rate.and_then(|rest| rest.split_whitespace().next());
            Ok(rate.context("wrk printed no rate")?.parse()?)
        },
    )
}

/// Prints the median time of an inverse in seconds, and fails if numpy does not use OpenBLAS.
const INVERSE: &str = "
import sys, time, numpy
a = numpy.random.default_rng(1).standard_normal((512, 512))
numpy.linalg.inv(a)
assert 'openblas' in open('/proc/self/maps').read(), 'numpy does not call OpenBLAS'
times, end = [], time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end:
    begin = time.perf_counter()
    numpy.linalg.inv(a)
    times.append(time.perf_counter() - begin)
print(numpy.median(times))
";

fn dense_inverse(agent: &mut Agent) -> Result<Row> {
    const PROMISE: &str =
        "inverse of a dense matrix of 512 x 512 on one thread, against OpenBLAS by numpy (medians)";
    if !has("/usr/lib/python3/dist-packages/numpy/__init__.py") {
        return Ok(absent(PROMISE, "python3-numpy"));
    }
    let args = Params::new();
    let time = RUN_S.to_string();
    compare(
        NINE_TENTHS,
        PROMISE,
        ("a second", 1.0),
        || pace(agent, "matrix", &args, "cpu.matrix.inverse.time"),
        || {
            let printed = program("/usr/bin/python3", &["-c", INVERSE, &time])
                .variable("OPENBLAS_NUM_THREADS", "1")
                .output()?;
            let seconds: f64 = printed.trim().parse()?;
            Ok(1.0 / seconds)
        },
    )
}
