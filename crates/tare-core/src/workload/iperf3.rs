//! `iperf3`: runs an iperf3 stream between two ends and reads its JSON.
//!
//! The first metric is what the receiver got, over the receiver's time. What the sender gave to its kernel is more,
//! and a separate metric. The client reports every tenth of a second, which gives the trial's course. The server
//! serves one test and ends (`-1`), so that no process is left over.
//! Exit status 0 is not success here: with `-J` some versions fail with status 0 and a message under `error`.
//! Limits: does not see which way packets take, or whether a processor was the limit; iperf3's CPU shares suggest the
//! latter if both ends are on one machine.

use serde_json::Value;
use tare_model::command::{ADDRESS, BIND, PORT, Transport};
use tare_model::course::Course;
use tare_model::{CommandCall, Params, Path, RawOutput, Recipe, Sample};

use super::declared::declared;
use super::sanity::{self, GAPS, LOG_ARITHMETIC, PACKET_LOSS, RETRANSMITS};
use super::tool_text::whole;
use super::{
    DecodeError, ParamError, Remark, Workload, command_output, probe_output, programs, tool_params,
};

/// The adapter for iperf3.
#[derive(Debug)]
pub struct Iperf3;

/// The client's report interval, seconds.
const INTERVAL_S: f64 = 0.1;
/// How far an interval may be from the typical one, as a share.
const INTERVAL_SLACK: f64 = 0.25;
/// The share of retransmitted segments from which a remark is made.
const RETRANSMIT_SHARE: f64 = 1e-3;
/// The share of the sent bytes that may not arrive, because they are still in buffers.
const SENT_SLACK: f64 = 0.1;

impl Workload for Iperf3 {
    declared! {
        "iperf3": "a stream between two ends by iperf3";
        params {
            "protocol" = Text("tcp"), OneOf(&["tcp", "udp"]): "`tcp` or `udp`";
            "duration" = Int(1), Between(1, 86_400): "how long it sends, whole seconds, 1 to 86400";
            "streams" = Int(1), Between(1, 128): "streams at once, 1 to 128";
            "reverse" = Int(0), Between(0, 1): "0: the client sends; 1: the server sends";
            "omit" = Int(0), Between(0, 60): "seconds of the beginning that do not count, 0 to 60";
            "bitrate" = Text("0"): "bits per second for each stream, such as `100m`; `0`: as fast as it can";
            "length" = Text("default"): "bytes of one write, such as `128k`; `default`: iperf3's own";
        }
        BytePerSecond, Higher, Network {
            "net.iperf3.throughput": "Bytes that the receivers of all streams got per second, slow start included.";
            "net.iperf3-least.throughput":
                "Bytes per second in the slowest tenth of a second of a trial, at the client's end; 0 where nothing went in one.";
        }
        Count, Lower, Network {
            "net.iperf3-resent.count": "Segments that the sender's system sent again, of all streams together; not reported for UDP.";
        }
        BytePerSecond, Higher, Network {
            "net.iperf3-sent.throughput":
                "Bytes that the senders of all streams gave to their system per second, over their own time.";
        }
    }

    fn paths(&self) -> &'static [Path] {
        &Path::ALL
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let [duration, streams, omit] =
            ["duration", "streams", "omit"].map(|name| whole(&params, name));
        let bitrate = tool_params::bit_rate(&params, "bitrate", 0, 1 << 50)?.to_string();
        let mut client = vec!["-c", ADDRESS, "-p", PORT, "-J", "-i", "0.1"];
        client.extend(["-t", &duration, "-P", &streams, "-b", &bitrate]);
        let length;
        if params.text("length") != Some("default") {
            length = tool_params::size(&params, "length", 16, 1 << 20)?.to_string();
            client.extend(["-l", &length]);
        }
        if omit != "0" {
            client.extend(["-O", &omit]);
        }
        client.extend((params.int("reverse") == Some(1)).then_some("-R"));
        client.extend((params.text("protocol") == Some("udp")).then_some("-u"));
        let server = CommandCall {
            // iperf3's control connection is always TCP.
            listens: Some(Transport::Tcp),
            ..CommandCall::new("iperf3", ["-s", "-1", "-p", PORT, "-B", BIND])
        };
        Ok(Recipe::Pair {
            server: server.with_variable("LC_ALL", "C").to_probe(),
            client: CommandCall::new("iperf3", client)
                .with_variable("LC_ALL", "C")
                .to_probe(),
        })
    }

    programs! { "iperf3" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        // The JSON explains a failure better than the last bytes of the output.
        let report =
            command_output::report(raw).map_err(|error| reported_error(raw).unwrap_or(error))?;
        let test = Test::parse(&command_output::stdout(&report))?;
        let least = test.rates.iter().copied().reduce(f64::min);
        let throughput = vec![test.received.bytes_per_s];
        let mut samples = vec![command_output::sample(&self.metrics()[0], throughput)?];
        let rest = [least, test.retransmits, Some(test.sent.bytes_per_s)];
        for (metric, value) in self.metrics()[1..].iter().zip(rest) {
            if let Some(value) = value {
                samples.push(command_output::sample_or_nothing(metric, vec![value])?);
            }
        }
        Ok(samples)
    }

    fn course(&self, raw: &RawOutput) -> Option<Course> {
        let report = command_output::report(raw).ok()?;
        let test = Test::parse(&command_output::stdout(&report)).ok()?;
        Some(Course {
            metric: self.metrics()[0].id,
            unit: self.metrics()[0].unit,
            axis: "s",
            step: INTERVAL_S,
            values: test.rates,
        })
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        doubts(raw).unwrap_or_default()
    }
}

/// The error in the JSON of a failed iperf3, if any.
fn reported_error(raw: &RawOutput) -> Option<DecodeError> {
    let report = probe_output::report(raw).ok()?.command?;
    let error = Test::parse(&command_output::stdout(&report)).err()?;
    matches!(error, DecodeError::Unsuccessful { .. }).then_some(error)
}

/// The result of one iperf3 test.
#[derive(Debug)]
struct Test {
    /// `TCP` or `UDP`.
    protocol: String,
    /// The requested duration, seconds.
    duration_s: f64,
    /// The requested number of streams.
    streams: f64,
    /// The sent bytes.
    sent: Flow,
    /// The received bytes.
    received: Flow,
    /// Retransmitted segments; `None` if iperf3 does not know.
    retransmits: Option<f64>,
    /// Segment size, bytes.
    segment: Option<f64>,
    /// Lost packets, percent.
    lost_percent: Option<f64>,
    /// The lengths of the intervals that count, seconds.
    intervals_s: Vec<f64>,
    /// Bytes per second in each of these intervals.
    rates: Vec<f64>,
    /// The largest number of streams in any interval.
    streams_seen: usize,
}

/// Bytes transferred in a time.
#[derive(Debug)]
struct Flow {
    /// Bytes.
    bytes: f64,
    /// Seconds.
    duration_s: f64,
    /// Bytes per second, as reported.
    bytes_per_s: f64,
}

impl Test {
    /// Parses the output of `iperf3 -J`.
    ///
    /// # Errors
    /// [`DecodeError::Unsuccessful`] if it contains an `error`, [`DecodeError::Garbled`] if it is incomplete.
    fn parse(text: &str) -> Result<Self, DecodeError> {
        // Other text may precede and follow the JSON.
        let start = text.find('{').ok_or_else(|| garbled("there is no JSON"))?;
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let document = documents
            .next()
            .ok_or_else(|| garbled("there is no JSON"))?
            .map_err(|error| garbled(&super::unreadable(&error)))?;
        if let Some(error) = document.get("error") {
            let error = error
                .as_str()
                .map_or_else(|| error.to_string(), str::to_owned);
            return Err(DecodeError::Unsuccessful {
                problem: format!("iperf3: {}", error.escape_debug()),
            });
        }
        let at = |path: &str| document.pointer(path);
        let words = |path: &str| {
            at(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| garbled(&format!("there is no `{path}`")))
        };
        let number = |path: &str| at(path).and_then(finite);
        let needed = |path: &str| {
            number(path)
                .ok_or_else(|| garbled(&format!("`{path}` is no number that is not below 0")))
        };
        if !words("/start/version")?.starts_with("iperf 3") {
            return Err(garbled("it is not of iperf 3"));
        }
        let intervals = at("/intervals")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let counting = |interval: &&Value| {
            interval.pointer("/sum/omitted").and_then(Value::as_bool) != Some(true)
        };
        let of_each = |path: &str| -> Vec<f64> {
            let counting = intervals.iter().filter(counting);
            counting
                .filter_map(|interval| interval.pointer(path).and_then(finite))
                .collect()
        };
        let flow = |path: &str| -> Result<Flow, DecodeError> {
            let flow = Flow {
                bytes: needed(&format!("{path}/bytes"))?,
                duration_s: needed(&format!("{path}/seconds"))?,
                bytes_per_s: needed(&format!("{path}/bits_per_second"))? / 8.0,
            };
            if flow.bytes > 0.0 && flow.duration_s > 0.0 && flow.bytes_per_s > 0.0 {
                Ok(flow)
            } else {
                Err(garbled(&format!("`{path}` has nothing transferred")))
            }
        };
        Ok(Self {
            protocol: words("/start/test_start/protocol")?,
            duration_s: needed("/start/test_start/duration")?,
            streams: needed("/start/test_start/num_streams")?,
            sent: flow("/end/sum_sent")?,
            received: flow("/end/sum_received")?,
            retransmits: number("/end/sum_sent/retransmits"),
            segment: number("/start/tcp_mss_default").filter(|bytes| *bytes > 0.0),
            lost_percent: number("/end/sum_received/lost_percent")
                .or_else(|| number("/end/sum/lost_percent")),
            intervals_s: of_each("/sum/seconds"),
            rates: of_each("/sum/bits_per_second")
                .into_iter()
                .map(|bits| bits / 8.0)
                .collect(),
            streams_seen: intervals
                .iter()
                .filter_map(|interval| Some(interval.get("streams")?.as_array()?.len()))
                .max()
                .unwrap_or(0),
        })
    }
}

fn finite(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

/// Checks whether the reading is plausible.
fn doubts(raw: &RawOutput) -> Option<Vec<Remark>> {
    let report = probe_output::report(raw).ok()?.command?;
    let test = Test::parse(&command_output::stdout(&report)).ok()?;
    let mut remarks = sanity::of_command(&report);
    remarks.extend(sanity::product(
        "bytes received",
        test.received.bytes_per_s,
        test.received.duration_s,
        test.received.bytes,
    ));
    remarks.extend(gaps(&test));
    #[allow(clippy::float_cmp, reason = "both count streams")]
    let all_seen = test.streams_seen as f64 == test.streams;
    if !all_seen {
        remarks.push(Remark::new(
            GAPS,
            format!(
                "{} streams of {} were seen",
                test.streams_seen, test.streams
            ),
        ));
    }
    // Lost datagrams have a separate remark below.
    let is_tcp = test.protocol == "TCP";
    if is_tcp && test.received.bytes < (1.0 - SENT_SLACK) * test.sent.bytes {
        remarks.push(Remark::new(
            LOG_ARITHMETIC,
            format!(
                "{} bytes were sent, and {} arrived",
                test.sent.bytes, test.received.bytes
            ),
        ));
    }
    if let Some(again) = test.retransmits.filter(|again| *again > 0.0) {
        // If the segment size is unknown, assumes a loopback's, the largest there is.
        let segment = test.segment.unwrap_or(65_483.0);
        let share = again * segment / test.sent.bytes;
        if share >= RETRANSMIT_SHARE {
            remarks.push(Remark::new(
                RETRANSMITS,
                format!("{again} segments, {:.2} %", share * 100.0),
            ));
        }
    }
    if let Some(lost) = test.lost_percent.filter(|lost| *lost > 0.0) {
        remarks.push(Remark::new(
            PACKET_LOSS,
            format!("{lost:.2} % of the datagrams were lost"),
        ));
    }
    Some(remarks)
}

/// A remark on intervals of an atypical length, or on a total that does not match the duration. The last interval is
/// a remainder and may be short.
fn gaps(test: &Test) -> Option<Remark> {
    let typical = tare_stats::median(&test.intervals_s)?;
    let (_, whole) = test.intervals_s.split_last()?;
    let wrong = whole
        .iter()
        .filter(|length| (**length - typical).abs() > INTERVAL_SLACK * typical)
        .count();
    if wrong > 0 {
        return Some(Remark::new(
            GAPS,
            format!(
                "{wrong} of {} intervals are not about {typical:.2} s long",
                test.intervals_s.len()
            ),
        ));
    }
    let measured: f64 = test.intervals_s.iter().sum();
    let slack = f64::max(2.0 * INTERVAL_S, 0.1 * test.duration_s);
    ((measured - test.duration_s).abs() > slack).then(|| {
        Remark::new(
            GAPS,
            format!("{measured:.2} s of {} s were measured", test.duration_s),
        )
    })
}

fn garbled(problem: &str) -> DecodeError {
    DecodeError::garbled("iperf3's JSON", problem)
}
