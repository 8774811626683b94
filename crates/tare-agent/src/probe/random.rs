//! `random`: random numbers from a generator in the program, and from the kernel's.
//!
//! Inside the timed regions: `random.integer.time`, one whole number below a limit; `random.bytes.time`, filling 1
//! 000 bytes, both from a xorshift* generator in registers (no system call); `random.kernel.time`, one `getrandom` of
//! 32 bytes. Outside: everything else.
//! Windows has no call that enters the kernel for random bytes each time: its generator runs in the process, so that
//! metric is not available there.
//! Known bias: the vDSO of new kernels could answer `getrandom` without entering the kernel; the probe always makes
//! the system call, so that arms are comparable.
//! Correspondence: "Random Int" and "Random Bytes" of a published comparison of containers (2019).
//! Source: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016); getrandom(2).

use std::hint::black_box;

use tare_model::Params;

use super::integer::chain;
use crate::meter::{Meter, ProbeError};

super::probe! {
    "random": "a random number and 1 000 random bytes of an own generator, and 32 bytes of the kernel's";
    revision 1, cut LOOP
}

const BYTES: usize = 1_000;

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15u64);
    meter.loops("random.integer.time", 0.3, |times| {
        for _ in 0..times {
            state = chain(state, 1);
            // The upper half of the product is uniform below the limit.
            black_box((u128::from(state) * u128::from(black_box(1_000_000u64))) >> 64);
        }
        Ok(())
    })?;
    let mut bytes = [0u8; BYTES];
    meter.loops("random.bytes.time", 0.3, |times| {
        for _ in 0..times {
            for word in bytes.as_chunks_mut::<8>().0 {
                state = chain(state, 1);
                *word = state.to_le_bytes();
            }
            black_box(&mut bytes);
        }
        Ok(())
    })?;
    kernel(meter)
}

#[cfg(not(target_os = "linux"))]
fn kernel(meter: &mut Meter) -> Result<(), ProbeError> {
    let why = if cfg!(windows) {
        "Windows makes random bytes in the process: no call enters the kernel for them each time"
    } else {
        "getrandom: this metric is for Linux"
    };
    let reason = tare_model::Reason::Unsupported(why.to_owned());
    meter.unavailable("random.kernel.time", reason);
    Ok(())
}

#[cfg(target_os = "linux")]
fn kernel(meter: &mut Meter) -> Result<(), ProbeError> {
    let mut bytes = [0u8; 32];
    let measured = meter.loops("random.kernel.time", 0.4, |times| {
        for _ in 0..times {
            // SAFETY: the buffer has the given length.
            let length =
                unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
            if length != 32 {
                return Err(ProbeError::last("getrandom"));
            }
        }
        Ok(())
    });
    match measured {
        // The other two can be measured without it.
        Err(ProbeError::Unavailable(reason)) => {
            meter.unavailable("random.kernel.time", reason);
            Ok(())
        }
        other => other,
    }
}
