//! `netcat`: sends zeroes through `nc` from one end to the other, measured like `time dd | nc`.
//!
//! Inside the timed region: the start of a shell, of `dd` and of `nc`, the connection, the transfer, and the end of
//! the stream at both ends: the client shuts down its side (`-N`) and waits until the server, which has read
//! everything, closes. The rate that `dd` prints is that of filling a pipe, which ends earlier; it is a separate
//! metric, because publications report it.
//! Requires OpenBSD's netcat. Others have different options, or the same ones with another meaning; the server checks
//! the name before it listens.
//! The two scripts are fixed texts; everything variable is passed as arguments.
//! Limits: does not include processing of the data; the server writes it to `/dev/null`.

use tare_model::command::{ADDRESS, BIND, PORT, Stdout, Transport};
use tare_model::{CommandCall, CommandReport, Params, Path, RawOutput, Recipe, Sample};

use super::declared::declared;
use super::sanity::{self, LOG_ARITHMETIC};
use super::{
    DecodeError, ParamError, Remark, Workload, command_output, probe_output, programs, tool_params,
};

/// The adapter for netcat.
#[derive(Debug)]
pub struct Netcat;

/// Checks which netcat it is, then serves one connection. Arguments: address, port.
const SERVER: &str = r#"name=$(nc -h 2>&1 | head -n 1)
case $name in
OpenBSD*) exec nc -d -l "$1" "$2" ;;
*) echo "nc is not the netcat of OpenBSD: $name" >&2; exit 64 ;;
esac"#;

/// Sends the data. Arguments: bytes of a block, blocks, address, port.
const CLIENT: &str = r#"dd if=/dev/zero bs="$1" count="$2" | nc -N "$3" "$4""#;

/// The index of the block size in the client's arguments: after the shell, `-c`, the script and its name.
const BLOCKS_AT: usize = 4;

impl Workload for Netcat {
    declared! {
        "netcat": "zeroes from one end to the other by netcat";
        params {
            "count" = Int(100), Between(1, 10_000_000): "blocks that are sent, 1 to 10000000";
            "bs" = Text("1m"): "bytes of one block, such as `64k` or `1m`";
        }
        BytePerSecond, Higher, Network {
            "net.netcat.throughput": "Bytes per second between the start of `dd | nc` and the end of both, the connection included.";
            "net.netcat-sent.throughput": "Bytes per second until `dd` had handed the last of them over, as `dd` prints it: what pipe and socket buffers hold is not received by then.";
        }
    }

    fn paths(&self) -> &'static [Path] {
        &Path::ALL
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let block = tool_params::size(&params, "bs", 1, 1 << 30)?.to_string();
        let count = params.int("count").unwrap_or_default().to_string();
        let server = CommandCall {
            listens: Some(Transport::Tcp),
            stdout: Stdout::Discarded,
            ..CommandCall::new("sh", ["-c", SERVER, "sh", BIND, PORT])
        };
        let client = CommandCall::new("sh", ["-c", CLIENT, "sh", &block, &count, ADDRESS, PORT]);
        Ok(Recipe::Pair {
            server: server.with_variable("LC_ALL", "C").to_probe(),
            client: client.with_variable("LC_ALL", "C").to_probe(),
        })
    }

    programs! { "nc" ["-h"], "sh" [], "dd" ["--version"], "head" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw).map_err(explained)?;
        let printed = parsed(&report).ok_or_else(|| garbled("`dd` does not say what it sent"))?;
        let sent = printed.bytes;
        let wanted = wanted(&report)?;
        if sent != wanted {
            return Err(DecodeError::Unsuccessful {
                problem: format!("`dd` sent {sent} of {wanted} bytes"),
            });
        }
        let rate = sent as f64 / (report.wall_ns as f64 / 1e9);
        let mut samples = vec![command_output::sample(&self.metrics()[0], vec![rate])?];
        if let Some(seconds) = printed.duration_s.filter(|seconds| *seconds > 0.0) {
            let rate = vec![sent as f64 / seconds];
            samples.push(command_output::sample(&self.metrics()[1], rate)?);
        }
        Ok(samples)
    }

    fn remarks(&self, raw: &RawOutput) -> Vec<Remark> {
        let Some(report) = probe_output::report(raw).ok().and_then(|it| it.command) else {
            return Vec::new();
        };
        let mut remarks = sanity::of_command(&report);
        // A part cannot take longer than the whole.
        let wall_s = report.wall_ns as f64 / 1e9;
        if let Some(dd_s) = parsed(&report).and_then(|printed| printed.duration_s)
            && dd_s > 1.01 * wall_s
        {
            remarks.push(Remark::new(
                LOG_ARITHMETIC,
                format!("`dd` took {dd_s:.3} s of {wall_s:.3} s"),
            ));
        }
        remarks
    }
}

/// Explains a failed transfer if another netcat caused it.
fn explained(error: DecodeError) -> DecodeError {
    let DecodeError::Unsuccessful { problem } = &error else {
        return error;
    };
    // The message's quotes are escaped.
    if problem.replace('\\', "").contains("invalid option -- 'N'") {
        return DecodeError::Unsuccessful {
            problem: format!("`nc` is not the netcat of OpenBSD: {problem}"),
        };
    }
    error
}

/// The last line of `dd`'s output.
struct ProgramOutput {
    bytes: u64,
    duration_s: Option<f64>,
}

/// Parses `104857600 bytes (105 MB, 100 MiB) copied, 0.35 s, 299 MB/s`; BusyBox spells out "seconds".
fn parsed(report: &CommandReport) -> Option<ProgramOutput> {
    let text = String::from_utf8_lossy(&report.stderr.0);
    let line = text
        .lines()
        .find(|line| line.contains(" bytes") && line.contains("copied"))?;
    let bytes = line.split_whitespace().next()?.parse().ok()?;
    let duration_s = line
        .split_once("copied,")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<f64>().ok())
        .filter(|duration| duration.is_finite());
    Some(ProgramOutput { bytes, duration_s })
}

/// The number of bytes that the call requested.
fn wanted(report: &CommandReport) -> Result<u64, DecodeError> {
    let number = |at: usize| {
        let word = report.argv.get(at)?;
        word.parse::<u64>().ok()
    };
    let block = number(BLOCKS_AT).zip(number(BLOCKS_AT + 1));
    block
        .and_then(|(block, count)| block.checked_mul(count))
        .ok_or_else(|| garbled("the call does not say how much is sent"))
}

fn garbled(problem: &str) -> DecodeError {
    DecodeError::garbled("the output of dd", problem)
}
