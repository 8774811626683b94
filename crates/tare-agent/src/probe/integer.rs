//! `integer`: a chain of dependent 64-bit integer operations.
//!
//! Inside the timed region: `k` steps of xorshift64* (three shifts, three exclusive ors, one multiplication); each
//! step depends on the previous one. Outside: everything else. No memory access, no system call, no libc.
//! Known bias: none from the environment; follows the core's clock, so it is also a frequency canary.
//! Source: Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8 (2003); multiplier by Vigna (2016).

use std::hint::black_box;

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "integer": "dependent 64-bit shifts, exclusive ors and multiplications in registers";
    revision 1, cut LOOP
}

/// Performs `steps` dependent steps from `state`.
pub(crate) fn chain(mut state: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
    }
    state
}

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    meter.checksum(chain(black_box(0x9e37_79b9_7f4a_7c15), 1_000));
    meter.loops("cpu.integer.time", 1.0, |steps| {
        black_box(chain(black_box(0x9e37_79b9_7f4a_7c15), steps));
        Ok(())
    })
}
