//! `redis-benchmark`: sends requests to a Redis server with the server's load generator.
//!
//! Two ends: a server that stores nothing on disk and ends with the trial, and `redis-benchmark`, which sends a fixed
//! number of requests over parallel connections. The server listens only on the address that the client uses, and has
//! whole categories of commands disabled (administration, scripts and functions, those marked dangerous), so that a
//! third party can neither change its files nor stop it. That requires Redis 6.
//! The CSV has had a heading with latencies since 6.2, and columns are found by name. Of the two columns of older
//! versions only the rate is read.
//! Limits: does not show queueing. The generator waits for each response before it sends the next request (a closed
//! loop), which hides latencies under more load than the server can take.

use tare_model::command::Transport;
use tare_model::{CommandCall, Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::tool_text::{garbled, number, text, whole};
use super::{DecodeError, ParamError, Workload, command_output, programs};

const ID: &str = "redis-benchmark";
/// The server's configuration, in its fresh folder.
const CONFIG_FILE: &str = "redis.conf";
const CONFIG: &str = "bind {address}\nport {port}\nprotected-mode no\nsave \"\"\nappendonly no\n\
    daemonize no\nloglevel warning\ndir {folder}\n\
    user default on nopass ~* +@all -@scripting -@dangerous -@admin\n";

metrics! {
    RATE = "redis.request.rate", OperationPerSecond, Higher, Network: "Requests answered per second over `clients` connections, each sending on when it has its answer.";
    MEDIAN = "redis.request.time", Nanosecond, Lower, Network: "Median time from sending a request to having its answer, as reported in steps of 8 µs.";
    TAIL = "redis.request-p99.time", Nanosecond, Lower, Network: "Time from sending a request to having its answer that 99 % of requests do not exceed.";
}

/// The tests that print a single line.
const TESTS: &[&str] = &tare_model::rows! {
    "ping_inline", "ping_mbulk", "set", "get", "incr", "lpush", "rpush", "lpop", "rpop", "sadd", "hset",
    "spop", "zadd", "zpopmin", "mset",
};

#[derive(Debug)]
pub(super) struct RedisBenchmark;

impl Workload for RedisBenchmark {
    declared! {
        ID: "requests to a Redis server over parallel connections";
        params {
            "test" = Text("get"), OneOf(TESTS): "the request: one of redis-benchmark's tests, such as `get`, `set`, `ping_inline`";
            "requests" = Int(20_000), Between(100, 1_000_000_000): "requests in all, 100 to 1000000000";
            "clients" = Int(50), Between(1, 10_000): "parallel connections, 1 to 10000";
            "bytes" = Int(3), Between(1, 1 << 20): "length of a value in bytes, 1 to 1048576";
            "pipeline" = Int(1), Between(1, 10_000): "requests that are sent together, 1 to 10000";
        }
        metrics &[RATE, MEDIAN, TAIL];
    }

    fn paths(&self) -> &'static [Path] {
        &Path::ALL
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let server = CommandCall {
            listens: Some(Transport::Tcp),
            ..CommandCall::new("redis-server", ["{folder}/redis.conf"])
        }
        .with_file(CONFIG_FILE, CONFIG);
        let client = CommandCall::new(
            "redis-benchmark",
            [
                "-h",
                "{address}",
                "-p",
                "{port}",
                "--csv",
                "-t",
                text(&params, "test"),
                "-n",
                &whole(&params, "requests"),
                "-c",
                &whole(&params, "clients"),
                "-d",
                &whole(&params, "bytes"),
                "-P",
                &whole(&params, "pipeline"),
            ],
        );
        Ok(Recipe::Pair {
            server: server.to_probe(),
            client: client.to_probe(),
        })
    }

    programs! { "redis-server" ["--version"], "redis-benchmark" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let report = command_output::report(raw)?;
        let text = command_output::stdout(&report);
        let mut rows = text.lines().map(cells).filter(|cells| !cells.is_empty());
        let first = rows
            .next()
            .ok_or_else(|| garbled(ID, "it printed no table"))?;
        let (heading, row) = if first[0] == "test" {
            let row = rows
                .next()
                .ok_or_else(|| garbled(ID, "the table has no row"))?;
            (Some(first), row)
        } else {
            (None, first)
        };
        if rows.next().is_some() {
            return Err(garbled(ID, "the table has several rows"));
        }
        let cell = |name: &str, place: Option<usize>| {
            let place = heading.as_ref().map_or(place, |heading| {
                heading.iter().position(|column| *column == name)
            });
            let cell = place.and_then(|place| row.get(place));
            cell.and_then(|cell| number(cell))
                .ok_or_else(|| garbled(ID, format!("`{name}` has no figure")))
        };
        let is_whole = match &heading {
            Some(heading) => heading.len() == row.len(),
            None => row.len() == 2,
        };
        if !is_whole {
            return Err(garbled(ID, "the row is not as long as it should be"));
        }
        let mut samples = vec![command_output::sample(&RATE, vec![cell("rps", Some(1))?])?];
        if heading.is_some() {
            for (metric, column) in [(&MEDIAN, "p50_latency_ms"), (&TAIL, "p99_latency_ms")] {
                let value = cell(column, None)? * 1e6;
                samples.push(command_output::sample(metric, vec![value])?);
            }
        }
        Ok(samples)
    }
}

/// The cells of a line in which every cell is quoted; empty for any other line.
fn cells(line: &str) -> Vec<&str> {
    let inner = line
        .trim()
        .strip_prefix('"')
        .and_then(|line| line.strip_suffix('"'));
    inner.map_or_else(Vec::new, |inner| inner.split("\",\"").collect())
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::*;

    fn decoded(csv: &str) -> Result<Vec<Sample>, DecodeError> {
        RedisBenchmark.decode(&raw(0, csv.as_bytes(), b""))
    }

    #[test]
    fn columns_are_found_by_name_wherever_they_stand() {
        let samples = decoded(
            "\"test\",\"p99_latency_ms\",\"new_column\",\"p50_latency_ms\",\"rps\"\n\
             \"GET\",\"0.500\",\"x\",\"0.100\",\"1000.00\"\n",
        )
        .unwrap();
        let values: Vec<f64> = samples
            .iter()
            .map(|sample| sample.observations[0])
            .collect();
        assert_eq!(values, [1000.0, 100_000.0, 500_000.0]);
    }

    #[test]
    fn redis_rate_of_zero_or_several_tests_is_refused() {
        for csv in [
            "",
            "\"GET\",\"-nan\"\n",
            "\"GET\",\"inf\"\n",
            "\"GET\",\"0.00\"\n",
            "\"GET\"\n",
            "\"PING_INLINE\",\"1.00\"\n\"PING_BULK\",\"2.00\"\n",
            "\"test\",\"rps\"\n",
            "\"test\",\"rps\",\"p50_latency_ms\",\"p99_latency_ms\"\n\"GET\",\"5.00\",\"0.1\"\n",
            "Error from server: ERR unknown command\n",
        ] {
            assert!(decoded(csv).is_err(), "{csv}");
        }
    }
}
