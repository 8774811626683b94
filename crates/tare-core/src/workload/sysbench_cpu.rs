//! `sysbench-cpu`: runs sysbench's search for prime numbers.
//!
//! Repeats a published comparison with its tool. Every event tries to divide each number up to the limit by all
//! smaller ones up to its square root, so it measures 64-bit integer division and almost nothing else.
//! Limits: does not test memory, the kernel or any operation other than division. Two builds of sysbench may do
//! different work, so their versions are compared.

use tare_model::{Params, Path, RawOutput, Recipe, Sample, metrics};

use super::declared::declared;
use super::sysbench_output::{read, recipe};
use super::tool_text::{after, agreeing, garbled, leading_number, number, whole};
use super::{DecodeError, ParamError, Workload, command_output, programs};

const ID: &str = "sysbench-cpu";
/// sysbench divides by the time when it prints the rate. On a busy machine that is up to so much after the end.
const PRINTED_LATER_S: f64 = 0.1;

metrics! {
    /// Events per second.
    RATE = "sysbench.cpu.rate", OperationPerSecond, Higher, Compute: "Searches for all prime numbers up to `max_prime` that all threads completed per second.";
    /// Mean time of an event.
    TIME = "sysbench.cpu-event.time", Nanosecond, Lower, Compute: "Mean time of one search in one thread: the sum of all latencies divided by the number of events.";
    /// 95th percentile of the time of an event.
    P95 = "sysbench.cpu-event-p95.time", Nanosecond, Lower, Compute: "Time that 95 of 100 searches did not exceed, to the hundredth of a millisecond that sysbench prints.";
}

#[derive(Debug)]
pub(super) struct SysbenchCpu;

impl Workload for SysbenchCpu {
    declared! {
        ID: "sysbench's search for prime numbers";
        params {
            "max_prime" = Int(20_000), Between(3, 10_000_000): "upper limit of the numbers, 3 to 10000000";
            "threads" = Int(1), Between(1, 1024): "threads, 1 to 1024";
            "seconds" = Int(1), Between(1, 3600): "duration in seconds, 1 to 3600";
        }
        metrics &[RATE, TIME, P95];
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let primes = format!("--cpu-max-prime={}", whole(&params, "max_prime"));
        Ok(recipe("cpu", [primes], &params))
    }

    programs! { "sysbench" ["--version"] }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        let (text, totals) = read(raw)?;
        if !(text.contains("CPU speed:") || text.contains("Prime") || text.contains("prime number"))
        {
            return Err(garbled("sysbench", "it is not the test of the processor"));
        }
        let computed = totals.events / totals.total_s;
        // Versions before 1.0 print no rate and had a fixed number of events.
        let rate = match after(&text, "events per second:") {
            Some(told) => {
                let shown = number(told).unwrap_or(f64::NAN);
                let printed_later_s = totals.events / shown - totals.total_s;
                match agreeing("sysbench", "the rate", shown, computed) {
                    Ok(()) => shown,
                    Err(_) if (0.0..PRINTED_LATER_S).contains(&printed_later_s) => computed,
                    Err(error) => return Err(error),
                }
            }
            None => computed,
        };
        let mut samples = vec![
            command_output::sample(&RATE, vec![rate])?,
            command_output::sample(&TIME, vec![totals.event_ns()])?,
        ];
        // The label differs between versions; `0.00` is too short for the printed digits.
        let p95 = ["95th percentile:", "approx.  95 percentile:"]
            .iter()
            .find_map(|label| after(&text, label))
            .and_then(leading_number);
        if let Some(milliseconds) = p95.filter(|value| *value > 0.0) {
            samples.push(command_output::sample(&P95, vec![milliseconds * 1e6])?);
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::super::command_output::tests::raw;
    use super::*;

    #[test]
    fn rate_printed_late_is_that_of_the_test() {
        let rate = |shown: f64| {
            let text = format!(
                "CPU speed:\n events per second: {shown}\n total time: 0.5s\n total number of events: 20000\n sum: 490.0\n"
            );
            let samples = SysbenchCpu.decode(&raw(0, text.as_bytes(), b""))?;
            Ok::<_, DecodeError>(samples[0].observations.clone())
        };
        assert_eq!(rate(39_500.0).unwrap(), [39_500.0]);
        assert_eq!(rate(35_000.0).unwrap(), [40_000.0]);
        assert!(rate(30_000.0).is_err(), "0.17 s later");
        assert!(rate(45_000.0).is_err(), "before the end");
    }
}
