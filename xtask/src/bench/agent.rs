//! The agent itself, spoken to as the host does: over pipes, with frames.

use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tare_model::wire::{PROTOCOL, Reply, Request, read_frame, write_frame};
use tare_model::{Params, ProbeCall, ProbeReport};

use super::Row;

/// A resident agent of this machine.
pub(super) struct Agent {
    child: Child,
    stdin: BufWriter<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    workdir: PathBuf,
    n_trials: u64,
}

impl Agent {
    /// Starts `file` and waits until it has answered.
    pub(super) fn start(file: &Path, workdir: &Path) -> Result<Self> {
        let mut child = Command::new(file)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", file.display()))?;
        let stdin = BufWriter::new(
            child
                .stdin
                .take()
                .context("the agent has no standard input")?,
        );
        let stdout = BufReader::new(
            child
                .stdout
                .take()
                .context("the agent has no standard output")?,
        );
        let mut agent = Self {
            child,
            stdin,
            stdout,
            workdir: workdir.to_owned(),
            n_trials: 0,
        };
        match agent.ask(&Request::Hello { protocol: PROTOCOL })? {
            Reply::Hello { .. } => Ok(agent),
            other => bail!("the agent answered {other:?} to Hello"),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply> {
        write_frame(&mut self.stdin, request)?;
        Ok(read_frame(&mut self.stdout)?)
    }

    /// Runs a probe once.
    pub(super) fn probe(
        &mut self,
        name: &str,
        args: Params,
        target_ns: u64,
    ) -> Result<ProbeReport> {
        match self.trial(name, args, target_ns)? {
            Reply::Done { raw, .. } => Ok(serde_json::from_slice(&raw.stdout.0)?),
            other => bail!("`{name}` did not run: {other:?}"),
        }
    }

    fn trial(&mut self, name: &str, args: Params, target_ns: u64) -> Result<Reply> {
        self.n_trials += 1;
        let call = ProbeCall {
            name: name.to_owned(),
            args,
        };
        let workdir = self.workdir.to_string_lossy().into_owned();
        self.ask(&Request::Run {
            hold: false,
            turns: None,
            cpu: None,
            trial: self.n_trials,
            call,
            target_ns,
            limit_ns: 60_000_000_000,
            workdir,
        })
    }

    fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .context("no VmHWM line")?;
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .context("no number")?
            .parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = write_frame(&mut self.stdin, &Request::Bye);
        let _ = self.child.wait();
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Size, memory, start and dispatch.
pub(super) fn rows(file: &Path, workdir: &Path) -> Result<Vec<Row>> {
    let size = std::fs::metadata(file)?.len();
    let mut starts_ms = Vec::new();
    for _ in 0..100 {
        let begin = Instant::now();
        let agent = Agent::start(file, workdir)?;
        starts_ms.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(agent);
    }
    let mut agent = Agent::start(file, workdir)?;
    let (mut begun_us, mut done_us) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        // The next worker is started meanwhile, as it is between the trials of a run.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let begin = Instant::now();
        let args = Params::new().with("canary", false).with("announce", true);
        let begun = agent.trial("null", args, 0)?;
        begun_us.push(begin.elapsed().as_secs_f64() * 1e6);
        let done: Reply = read_frame(&mut agent.stdout)?;
        done_us.push(begin.elapsed().as_secs_f64() * 1e6);
        if !matches!(
            (&begun, &done),
            (Reply::Listening { .. }, Reply::Done { .. })
        ) {
            bail!("the null trial ended with {begun:?}, {done:?}");
        }
    }
    let resident = agent.resident_bytes()?;
    let (begun, done) = (median(&mut begun_us), median(&mut done_us));
    let start = median(&mut starts_ms);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(vec![
        Row {
            promise: "dispatching a trial to a warm local arm, until its worker's word that it has begun is back, p50",
            bound: "≤ 100 µs",
            figure: format!(
                "{begun:.0} µs (p90 {:.0} µs)",
                begun_us[begun_us.len() * 9 / 10]
            ),
            is_kept: Some(begun <= 100.0),
        },
        Row {
            promise: "the same until the worker has ended and was reaped, p50",
            bound: "none",
            figure: format!(
                "{done:.0} µs (p90 {:.0} µs)",
                done_us[done_us.len() * 9 / 10]
            ),
            is_kept: None,
        },
        Row {
            promise: "agent: size",
            bound: "≤ 2 MiB",
            figure: format!("{:.2} MiB", mib(size)),
            is_kept: Some(size <= 2 << 20),
        },
        Row {
            promise: "agent: peak resident memory after 500 trials",
            bound: "≤ 4 MiB",
            figure: format!("{:.2} MiB", mib(resident)),
            is_kept: Some(resident <= 4 << 20),
        },
        Row {
            promise: "agent: start to first answer, p50",
            bound: "≤ 2 ms",
            figure: format!("{start:.2} ms"),
            is_kept: Some(start <= 2.0),
        },
    ])
}
