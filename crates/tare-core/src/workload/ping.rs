//! `ping`: round trips of ICMP echo requests, one observation each.
//!
//! No server is needed, because the kernel at the far end answers. A listener of the agent is still started there, so
//! that the far end is known to be up and has the address that every other workload of the path uses. Published ports
//! do not carry ICMP, so there is no such path.
//! The program needs CAP_NET_RAW or a group in `net.ipv4.ping_group_range`; without either it is unavailable.
//! Duplicates are not observations; lost requests have no time and get a remark.
//! Known bias: `ping` prints three digits, and reads the clock in user space before it sends.
//! Limits: does not see whether the far end's kernel treats ICMP like other packets.

use tare_model::command::ADDRESS;
use tare_model::course::Course;
use tare_model::outcome::Exit;
use tare_model::{CommandCall, Params, Path, ProbeCall, RawOutput, Reason, Recipe, Sample};

use super::declared::declared;
use super::sanity::{self, LOG_ARITHMETIC, PACKET_LOSS, SHORT_INTERVAL};
use super::{
    DecodeError, ParamError, Remark, Workload, command_output, probe_output, programs, tool_params,
};

/// The adapter for ping.
#[derive(Debug)]
pub struct Ping;

/// The agent's listener at the far end.
const FAR_END: &str = "tcp-sink";
/// The fewest steps of the last printed digit that a time should have.
const FEWEST_STEPS: f64 = 10.0;
/// The finest printed step, nanoseconds.
const STEP_NS: f64 = 1e3;
/// How far the mean of the lines may be from the summary's, which includes duplicates and unrounded times.
const MEAN_SLACK: f64 = 0.05;

impl Workload for Ping {
    declared! {
        "ping": "round trips of ICMP echo requests by ping";
        params {
            "count" = Int(20), Between(1, 100_000): "requests, 1 to 100000";
            "size" = Int(56), Between(16, 65_507): "bytes of a request without its headers, 16 to 65507; 16 hold the time";
            "interval" = Text("10ms"): "between two requests, such as `10ms` or `1s`; below 200 ms some versions need root";
        }
        // The typical time, and `ping`'s summary: minimum, mean, maximum and deviation.
        Nanosecond, Lower, Network {
            "net.ping.time": "Time between the sending of an ICMP echo request and the arrival of its first reply.";
            "net.ping-least.time": "The least of a trial's times to the first reply.";
            "net.ping-mean.time": "The mean of a trial's times to the first reply.";
            "net.ping-greatest.time": "The greatest of a trial's times to the first reply.";
            "net.ping-deviation.time": "The root of the mean square by which a trial's times differ from their mean.";
        }
    }

    fn paths(&self) -> &'static [Path] {
        &Path::UNPUBLISHED
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let number = |name| params.int(name).unwrap_or_default().to_string();
        let interval_ms = tool_params::duration_ms(&params, "interval", 2, 60_000)?;
        let interval_s = format!("{}.{:03}", interval_ms / 1_000, interval_ms % 1_000);
        let (count, size) = (number("count"), number("size"));
        let arguments = [
            "-n",
            "-c",
            &count,
            "-i",
            &interval_s,
            "-s",
            &size,
            "-W",
            "1",
            ADDRESS,
        ];
        Ok(Recipe::Pair {
            server: ProbeCall {
                name: FAR_END.to_owned(),
                args: Params::new(),
            },
            client: CommandCall::new("ping", arguments)
                .with_variable("LC_ALL", "C")
                .to_probe(),
        })
    }

    programs! { "ping" ["-V"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw).map_err(|error| explained(raw, error))?;
        let answers = Answers::parse(&command_output::stdout(&report))?;
        let mut samples = Vec::with_capacity(self.metrics().len());
        let sums = summed_up(&answers.times_ns);
        samples.push(command_output::sample(
            &self.metrics()[0],
            answers.times_ns,
        )?);
        // One reply, or several with the same three digits, have no deviation.
        for (metric, value) in self.metrics()[1..].iter().zip(sums).filter(|it| it.1 > 0.0) {
            samples.push(command_output::sample(metric, vec![value])?);
        }
        Ok(samples)
    }

    fn course(&self, raw: &RawOutput) -> Option<Course> {
        let report = command_output::report(raw).ok()?;
        let answers = Answers::parse(&command_output::stdout(&report)).ok()?;
        // With a gap the later values would get wrong request numbers.
        let is_whole = answers.times_ns.len() as u64 == answers.sent;
        is_whole.then(|| Course {
            metric: self.metrics()[0].id,
            unit: self.metrics()[0].unit,
            axis: "request",
            step: 1.0,
            values: answers.times_ns,
        })
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        doubts(raw).unwrap_or_default()
    }
}

/// Minimum, mean, maximum and deviation of times; the deviation as iputils computes its `mdev`.
fn summed_up(times_ns: &[f64]) -> [f64; 4] {
    let n = times_ns.len() as f64;
    let mean = times_ns.iter().sum::<f64>() / n;
    let squares = times_ns.iter().map(|time| (time - mean).powi(2));
    [
        times_ns.iter().copied().fold(f64::INFINITY, f64::min),
        mean,
        times_ns.iter().copied().fold(0.0, f64::max),
        (squares.sum::<f64>() / n).sqrt(),
    ]
}

/// Explains a failure of `ping`.
fn explained(raw: &RawOutput, error: DecodeError) -> DecodeError {
    let report = probe_output::report(raw)
        .ok()
        .and_then(|whole| whole.command);
    let Some(report) = report else {
        return error;
    };
    let words = String::from_utf8_lossy(&report.stderr.0);
    let is_denied = [
        "Operation not permitted",
        "Permission denied",
        "lacking privilege",
    ]
    .iter()
    .any(|sign| words.contains(sign));
    if report.exit != Exit::Code(0) && is_denied {
        return DecodeError::Unavailable(Reason::NeedsPrivilege(
            "CAP_NET_RAW, or a group in net.ipv4.ping_group_range".to_owned(),
        ));
    }
    // Status 1 means that no reply came.
    match Answers::parse(&command_output::stdout(&report)) {
        Err(better @ DecodeError::Unsuccessful { .. }) => better,
        _ => error,
    }
}

/// The output of `ping`.
#[derive(Debug)]
struct Answers {
    /// The times of the first replies, nanoseconds, in order.
    times_ns: Vec<f64>,
    /// Number of requests.
    sent: u64,
    /// Number of answered requests.
    received: u64,
    /// Further replies to one request.
    duplicates: u64,
    /// Minimum, mean and maximum time of all replies, nanoseconds. The deviation is not read, because its definition
    /// differs, as its names do (`mdev`, `stddev`).
    summary_ns: Option<[f64; 3]>,
}

impl Answers {
    /// Parses the output of the `ping` of iputils, BusyBox or inetutils.
    ///
    /// # Errors
    /// [`DecodeError::Unsuccessful`] if there was no reply, [`DecodeError::Garbled`] if the lines do not match the
    /// summary's count.
    fn parse(text: &str) -> Result<Self, DecodeError> {
        let (lines, summary) = text
            .split_once("ping statistics ---")
            .ok_or_else(|| garbled("there is no summary"))?;
        let counts = summary
            .lines()
            .find(|line| line.contains("packets transmitted"))
            .ok_or_else(|| garbled("the summary does not count"))?;
        let count = |what: &str| {
            counts
                .split(',')
                .find(|part| part.contains(what))
                .and_then(|part| part.split_whitespace().next())
                .and_then(|word| word.trim_start_matches('+').parse::<u64>().ok())
        };
        let missing = |what: &str| garbled(&format!("the summary has no count of packets {what}"));
        let sent = count("transmitted").ok_or_else(|| missing("transmitted"))?;
        let received = count("received").ok_or_else(|| missing("received"))?;
        if received > sent {
            return Err(garbled("more packets were received than sent"));
        }
        if received == 0 {
            return Err(DecodeError::Unsuccessful {
                problem: format!("none of {sent} echo requests was answered"),
            });
        }
        let mut times_ns = Vec::new();
        let mut duplicates = 0;
        for line in lines.lines().filter(|line| line.contains("bytes from")) {
            let Some((_, rest)) = line.split_once("time=") else {
                return Err(garbled("a reply has no time"));
            };
            let mut words = rest.split_whitespace();
            let time = words.next().and_then(|word| word.parse::<f64>().ok());
            let (Some(time), Some("ms")) = (time, words.next()) else {
                return Err(garbled("a reply's time is not in ms"));
            };
            if rest.contains("(DUP!)") {
                duplicates += 1;
            } else {
                times_ns.push(time * 1e6);
            }
        }
        if times_ns.len() as u64 != received {
            return Err(garbled(&format!(
                "there are {} replies, and the summary counts {received}",
                times_ns.len()
            )));
        }
        Ok(Self {
            times_ns,
            sent,
            received,
            duplicates,
            summary_ns: summary_of(summary),
        })
    }
}

/// `rtt min/avg/max/mdev = 0.045/0.052/0.062/0.005 ms`, or `round-trip min/avg/max = …`.
fn summary_of(summary: &str) -> Option<[f64; 3]> {
    let line = summary.lines().find(|line| line.contains("min/avg/max"))?;
    let (_, numbers) = line.split_once('=')?;
    let mut numbers = numbers.trim().split('/').map(|number| {
        let digits = number.split_whitespace().next()?;
        digits.parse::<f64>().ok().map(|ms| ms * 1e6)
    });
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Checks whether the reading is plausible.
fn doubts(raw: &RawOutput) -> Option<Vec<Remark>> {
    let report = probe_output::report(raw).ok()?.command?;
    let answers = Answers::parse(&command_output::stdout(&report)).ok()?;
    let mut remarks = sanity::of_command(&report);
    if answers.received < answers.sent {
        remarks.push(Remark::new(
            PACKET_LOSS,
            format!(
                "{} of {} requests were not answered",
                answers.sent - answers.received,
                answers.sent
            ),
        ));
    }
    if answers.duplicates > 0 {
        remarks.push(Remark::new(
            PACKET_LOSS,
            format!("{} replies came twice", answers.duplicates),
        ));
    }
    let typical = tare_stats::median(&answers.times_ns)?;
    if typical < FEWEST_STEPS * STEP_NS {
        remarks.push(Remark::new(
            SHORT_INTERVAL,
            format!("{} in printed steps of 1 µs", sanity::seconds(typical)),
        ));
    }
    let mean = answers.times_ns.iter().sum::<f64>() / answers.times_ns.len() as f64;
    let shown = answers.summary_ns.filter(|_| answers.duplicates == 0);
    if let Some([_, told, _]) = shown
        && (mean - told).abs() > MEAN_SLACK * told + STEP_NS
    {
        remarks.push(Remark::new(
            LOG_ARITHMETIC,
            format!(
                "the mean of the replies is {}, the summary says {}",
                sanity::seconds(mean),
                sanity::seconds(told)
            ),
        ));
    }
    Some(remarks)
}

fn garbled(problem: &str) -> DecodeError {
    DecodeError::garbled("the output of ping", problem)
}
