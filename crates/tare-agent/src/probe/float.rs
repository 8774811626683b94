//! `float`: a chain of dependent floating-point multiplications and additions.
//!
//! Inside the timed region: `k` steps of `x ← x·a + b` in double precision, one multiplication and one addition each;
//! every step depends on the previous one. Outside: everything else. No memory access, no system call, no libc.
//! Known bias: latency, not throughput; the two operations are never fused, so that the result has the same bits on
//! every processor. `x` converges to `b/(1 − a)` and never becomes subnormal.
//! Source: the usual latency chain, as in Agner Fog, "Instruction tables" (2022), introduction.

use std::hint::black_box;

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "float": "dependent double-precision multiplications and additions in registers";
    revision 1, cut LOOP
}

/// Performs `steps` dependent steps from `x`.
fn chain(mut x: f64, steps: u64) -> f64 {
    // Loaded once per batch, so that the compiler cannot compute the chain ahead.
    let (factor, summand) = (black_box(0.999_999_7), black_box(0.000_000_13));
    for _ in 0..steps {
        x = x * factor + summand;
    }
    x
}

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    meter.checksum(chain(black_box(1.5), 1_000).to_bits());
    meter.loops("cpu.float.time", 1.0, |steps| {
        black_box(chain(black_box(1.5), steps));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_converges_to_its_fixed_point() {
        let fixed = 0.000_000_13 / (1.0 - 0.999_999_7);
        // Every step shrinks the distance by the factor: by e^-0.3 in a million steps.
        let distance = chain(fixed + 1.0, 1_000_000) - fixed;
        assert!((distance - (-0.3f64).exp()).abs() < 1e-5, "{distance}");
    }
}
