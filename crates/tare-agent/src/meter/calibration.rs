//! Finds how many operations fill a batch or a slice, and checks whether twice as many take twice as long.
//!
//! A single disturbed timing would give one arm another batch than the others, so timings are repeated and the
//! fastest counts. Closures are passed by reference, so that the agent has one copy of this code and not one per
//! probe.

use tare_model::whole_part;

use super::ProbeError;

/// How often a batch of the wrong length is corrected.
const CORRECTIONS: u32 = 3;

/// Returns how many operations run uncounted before a batch: a tenth of all, and at least one if that is no more than
/// a third of the batch.
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

/// Doubles the batch until it takes a quarter of `batch_ns`, then scales it; that is also the warm-up. Then repeats
/// it, and scales it again unless the fastest of three is within 0.8 and 1.25 of the target.
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

/// Returns `T(2k)/T(k)`, each from the fastest of three: 2 if the time is linear. `T(k)` is the mean of two
/// consecutive batches, so that both sides last equally long and are disturbed equally often: the fastest of single
/// batches would more often be undisturbed, and the ratio too large.
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
    fn linearity_ignores_occasional_machine_stalls() {
        // It stops for 300 ns after every 1 900 ns of work; a batch of 1 000 is often spared, 2 000 never.
        let mut done_ns = 0;
        let on_such = |times: u64| {
            let stops = (done_ns + times) / 1_900 - done_ns / 1_900;
            done_ns += times;
            Ok((times + 300 * stops) as f64)
        };
        let ratio = linearity(on_such, 1_000).unwrap();
        assert!((1.95..=2.05).contains(&ratio), "{ratio}");
        // A loop that does less work than requested.
        let flat = |times: u64| Ok(if times > 1_000 { 1_400.0 } else { 1_000.0 });
        assert!((linearity(flat, 1_000).unwrap() - 1.4).abs() < 1e-9);
    }

    #[test]
    fn one_operation_is_uncounted_up_to_a_third() {
        let found = [1, 2, 3, 8, 9, 18, 90].map(uncounted_of);
        assert_eq!(found, [0, 0, 1, 1, 1, 2, 10]);
    }

    /// Returns the batch for operations of 10 µs and slices of 2 ms if each call whose number is `disturbed` takes 5
    /// ms more.
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
        // Any single disturbed call, and every second one.
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
