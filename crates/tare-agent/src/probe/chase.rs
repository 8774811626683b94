//! `chase`: a chain of dependent loads, each after a store whose address is known late.
//!
//! Inside the timed region: `k` steps; a step hashes the current index (two multiplications), stores to the slot that
//! the hash selects, and loads the next index from a ring. Ring and slots never overlap, so a CPU that lets loads
//! pass older stores of unknown address pays one load per step, and one that must not (Speculative Store Bypass
//! Disable, as seccomp used to switch on before Linux 5.16) also pays the hash.
//! Outside: filling the ring. All of it stays in the L1 cache. No syscalls, no libc.
//! Known bias: a CPU without memory speculation shows the slow figure everywhere.
//! Source: AMD, "Speculative Store Bypass Disable" (2018); Linux, Documentation/userspace-api/spec_ctrl.rst.

use std::hint::black_box;

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "chase": "dependent loads behind stores of late address, in the first-level cache";
    revision 1, cut LOOP
}

/// Entries of the ring and number of slots: 512 bytes each.
const ENTRIES: usize = 64;

/// The ring that the loads follow and the slots that the stores hit.
struct Lanes {
    ring: [u64; ENTRIES],
    slots: [u64; ENTRIES],
}

impl Lanes {
    fn new() -> Self {
        let mut ring = [0; ENTRIES];
        for (place, next) in ring.iter_mut().enumerate() {
            // A linear congruence with full period: multiplier 1 modulo 4, odd increment (Hull and Dobell).
            *next = (place as u64 * 5 + 17) % ENTRIES as u64;
        }
        Self {
            ring,
            slots: [0; ENTRIES],
        }
    }

    /// Performs `steps` steps from `index`.
    #[inline(never)]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "below the number of entries, and in the timed loop"
    )]
    fn walk(&mut self, mut index: u64, steps: u64) -> u64 {
        assert!((index as usize) < ENTRIES);
        let ring = self.ring.as_ptr();
        let slots = self.slots.as_mut_ptr();
        for _ in 0..steps {
            // About nine cycles: late enough to outlast the load on every current core. The XOR in between keeps the
            // two multiplications by constants from being merged into one.
            let mut late = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            late ^= late >> 32;
            late = late.wrapping_mul(0xd134_2543_de82_ef95);
            // SAFETY: the top six bits of `late` and the ring's entries are below `ENTRIES`, the length of both
            // arrays; `index` starts below it (asserted) or comes from the ring. Volatile, so that every store and
            // load is really made.
            unsafe {
                slots.add((late >> 58) as usize).write_volatile(index);
                index = ring.add(index as usize).read_volatile();
            }
        }
        index
    }
}

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let mut lanes = Lanes::new();
    meter.checksum(lanes.walk(black_box(0), 1_000));
    meter.loops("cpu.chase.time", 1.0, |steps| {
        black_box(lanes.walk(black_box(0), steps));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use tare_model::whole_size;

    use super::*;

    #[test]
    fn the_ring_is_one_cycle_through_every_entry() {
        let mut lanes = Lanes::new();
        let mut seen = [false; ENTRIES];
        for steps in 0..ENTRIES as u64 {
            seen[whole_size(lanes.walk(0, steps))] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
        assert_eq!(lanes.walk(0, ENTRIES as u64), 0);
    }
}
