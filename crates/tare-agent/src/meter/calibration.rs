//! How many operations fill a batch or a slice, and whether twice as many take twice as long.
//!
//! A single timing may be disturbed, and would give one arm another batch than the others have: what is timed here is
//! repeated, and the least counts. By reference, for one copy of this in the agent and not one for each probe.

use tare_model::whole_part;

use super::ProbeError;

/// How often a batch of the wrong length is corrected.
const CORRECTIONS: u32 = 3;

/// How many operations are not counted before a batch of so many: a tenth of all, and one at least wherever that is no
/// more than a third of the batch.
pub(super) fn uncounted_of(batch: u64) -> u64 {
    (batch / 9).max(u64::from(batch >= 3))
}

pub(super) fn least_of_three(
    time_ns: &mut dyn FnMut() -> Result<f64, ProbeError>,
) -> Result<f64, ProbeError> {
    let mut least_ns = f64::INFINITY;
    for _ in 0..3 {
        least_ns = least_ns.min(time_ns()?);
    }
    Ok(least_ns)
}

/// Doubles the batch until it takes a quarter of `batch_ns` and scales it, which is also the warm-up. Then it is
/// repeated at its result, and scaled again unless the least of three is within 0.8 and 1.25 of the aim.
pub(super) fn calibrate(
    batch_ns: f64,
    time_ns: &mut dyn FnMut(u64) -> Result<f64, ProbeError>,
) -> Result<u64, ProbeError> {
    let scaled = |batch: u64, took_ns: f64| {
        whole_part((batch as f64 * batch_ns / took_ns.max(1.0)).round()).max(1)
    };
    let mut batch = 1_u64;
    loop {
        let took_ns = time_ns(batch)?;
        if took_ns * 4.0 >= batch_ns {
            batch = scaled(batch, took_ns);
            break;
        }
        batch = batch.saturating_mul(2);
    }
    for _ in 0..CORRECTIONS {
        let took_ns = least_of_three(&mut || time_ns(batch))?;
        let next = scaled(batch, took_ns);
        if (0.8..=1.25).contains(&(took_ns / batch_ns)) || next == batch {
            break;
        }
        batch = next;
    }
    Ok(batch)
}

/// `T(2k)/T(k)` of the fastest of three each: 2 where the loop is what it says. `T(k)` is the mean of two batches
/// one after the other, so that both sides last equally long and are disturbed equally often: of single ones the
/// fastest would be undisturbed more often, and the ratio too large.
pub(super) fn linearity(
    mut time_ns: impl FnMut(u64) -> Result<f64, ProbeError>,
    batch: u64,
) -> Result<f64, ProbeError> {
    let (mut singles_ns, mut double_ns) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        singles_ns = singles_ns.min(time_ns(batch)? + time_ns(batch)?);
        double_ns = double_ns.min(time_ns(batch * 2)?);
    }
    Ok(2.0 * double_ns / singles_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_stops_now_and_then_makes_no_loop_crooked() {
        // It stops for 300 ns whenever 1 900 ns of work were done; a batch of 1 000 is often spared, 2 000 never.
        let mut done_ns = 0;
        let on_such = |times: u64| {
            let stops = (done_ns + times) / 1_900 - done_ns / 1_900;
            done_ns += times;
            Ok((times + 300 * stops) as f64)
        };
        let ratio = linearity(on_such, 1_000).unwrap();
        assert!((1.95..=2.05).contains(&ratio), "{ratio}");
        // A loop that does less than it says.
        let flat = |times: u64| Ok(if times > 1_000 { 1_400.0 } else { 1_000.0 });
        assert!((linearity(flat, 1_000).unwrap() - 1.4).abs() < 1e-9);
    }

    #[test]
    fn one_operation_is_uncounted_up_to_a_third() {
        let found = [1, 2, 3, 8, 9, 18, 90].map(uncounted_of);
        assert_eq!(found, [0, 0, 1, 1, 1, 2, 10]);
    }

    /// The batch of operations of 10 µs for slices of 2 ms, each call of which number is `disturbed` taking 5 ms more.
    fn batch_of(disturbed: impl Fn(u32) -> bool) -> u64 {
        let mut calls = 0;
        calibrate(2_000_000.0, &mut |times| {
            calls += 1;
            let more = if disturbed(calls) { 5_000_000.0 } else { 0.0 };
            Ok(10_000.0 * times as f64 + more)
        })
        .unwrap()
    }

    #[test]
    fn disturbed_timing_does_not_decide_the_batch() {
        assert_eq!(batch_of(|_| false), 200);
        // Whichever single call is disturbed, and where every second is.
        for disturbed in 1..20 {
            let batch = batch_of(|call| call == disturbed);
            assert!((160..=250).contains(&batch), "call {disturbed}: {batch}");
        }
        for rest in 0..2 {
            let batch = batch_of(|call| call % 2 == rest);
            assert!((160..=250).contains(&batch), "{rest}: {batch}");
        }
    }

    #[test]
    fn operation_longer_than_a_slice_is_a_batch() {
        let batch = calibrate(1_000_000.0, &mut |times| Ok(7_000_000.0 * times as f64));
        assert_eq!(batch.unwrap(), 1);
    }
}
