//! Tare's probes beside the tools of the field: the same parameters, in turn, as ratios.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use tare_model::Params;
use tare_stats::hodges_lehmann_paired;

use super::agent::Agent;
use super::{PAIRS, Row};
use crate::provision::packages::has;
use crate::shell::program;
use crate::workspace::root;

/// Timed work of one run, on both sides.
const RUN_S: u64 = 1;

/// Every comparison.
pub(super) fn rows(file: &Path, folder: &Path) -> Result<Vec<Row>> {
    let mut agent = Agent::start(file, folder)?;
    Ok(vec![
        triad(&mut agent, folder)?,
        random_read(&mut agent, folder)?,
        sequential_read(&mut agent, folder)?,
        tcp_stream(&mut agent)?,
    ])
}

/// Runs both sides in turn, A B B A, and compares the rates pair by pair.
fn compare(
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
    let median = |rates: &mut Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2] / unit.1
    };
    let figure = format!(
        "{:.3} [{:.3}, {:.3}] ({:.2} against {:.2} {})",
        interval.point.exp(),
        interval.low.exp(),
        interval.high.exp(),
        median(&mut our_rates),
        median(&mut their_rates),
        unit.0
    );
    // Kept unless the whole interval lies below 1.
    Ok(Row {
        promise,
        bound: "≥ 1",
        figure,
        is_kept: Some(interval.high >= 0.0),
    })
}

fn absent(promise: &'static str, tool: &str) -> Row {
    Row {
        promise,
        bound: "≥ 1",
        figure: format!("`{tool}` is not installed"),
        is_kept: None,
    }
}

/// The metric's best value of one trial.
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

fn values(agent: &mut Agent, probe: &str, args: &Params, metric: &str) -> Result<Vec<f64>> {
    let report = agent.probe(probe, args.clone(), RUN_S * 1_000_000_000)?;
    let series = report
        .series
        .into_iter()
        .find(|series| series.metric == metric);
    Ok(series
        .with_context(|| format!("`{probe}` reported no {metric}"))?
        .values)
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
    // The first run makes the files; it is not counted.
    typical(agent, "disk-random", &args, "disk.random-read-qd32.rate")?;
    fio(
        folder,
        &["--rw=randread", "--bs=4k", "--iodepth=32"],
        "iops",
    )?;
    compare(
        PROMISE,
        ("kIOPS", 1e3),
        || typical(agent, "disk-random", &args, "disk.random-read-qd32.rate"),
        || {
            fio(
                folder,
                &["--rw=randread", "--bs=4k", "--iodepth=32"],
                "iops",
            )
        },
    )
}

fn sequential_read(agent: &mut Agent, folder: &Path) -> Result<Row> {
    const PROMISE: &str = "sequential 1 MiB direct reads, against fio's io_uring";
    if !has("fio") {
        return Ok(absent(PROMISE, "fio"));
    }
    let args = Params::new();
    compare(
        PROMISE,
        ("GB/s", 1e9),
        || typical(agent, "disk-sequential", &args, "disk.sequential-read.rate"),
        || fio(folder, &["--rw=read", "--bs=1m", "--iodepth=4"], "bw_bytes"),
    )
}

/// An iperf3 server of our own on loopback, ended when dropped.
struct Server(Child);

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
    let port = TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port()
        .to_string();
    let server = Command::new("iperf3")
        .args(["--server", "--bind", "127.0.0.1", "--port", &port])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let _server = Server(server);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let time = RUN_S.to_string();
    let args = Params::new();
    compare(
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
