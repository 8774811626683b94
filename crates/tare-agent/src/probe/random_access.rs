//! `random-access`: follows a random cycle of pointers through memory.
//!
//! Inside the timed region: `k` loads, each returning the address of the next; every load is from another cache line,
//! and the cycle passes through all of them, so no prefetcher can run ahead. Outside: building the cycle.
//! `mib` is the size; `pages` is `small` (4 KiB pages, so most loads also miss the TLB, which nested paging makes
//! more expensive) or `huge` (2 MiB if the system grants them).
//! Known bias: latency of one load at a time, not throughput.
//! Source: Sattolo, "An algorithm to generate a random cyclic permutation", Inf. Process. Lett. 22 (1986); lmbench's
//! `lat_mem_rd` with a random pattern.

use std::hint::black_box;

use tare_model::Params;

use super::integer::chain;
use crate::meter::{Meter, ProbeError};
use crate::region::{Pages, Region};

super::probe! {
    "random-access": "dependent loads along a random cycle through memory";
    revision 1, cut KERNEL
}

/// Words per cache line of 64 bytes.
const LINE: usize = 8;

/// Returns a random cyclic permutation: following `next[place]` visits every place.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the upper half of a product is below either factor"
)]
fn cycle(places: u32) -> Vec<u32> {
    let mut next: Vec<u32> = (0..places).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for place in (1..places).rev() {
        state = chain(state, 1);
        // The upper half of a product maps a random word to 0..place almost evenly (Lemire 2019).
        let other = ((u128::from(state) * u128::from(place)) >> 64) as usize;
        next.swap(place as usize, other);
    }
    next
}

/// Writes the cycle into the first word of each line, as offsets in words.
fn lay_out(words: &mut [u64], next: &[u32]) {
    for (line, next) in words.chunks_exact_mut(LINE).zip(next) {
        line[0] = u64::from(*next) * LINE as u64;
    }
}

/// Follows `loads` pointers from `offset`; `words` holds offsets into itself.
#[inline(never)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "a place in memory, and in the timed loop"
)]
fn follow(words: &[u64], mut offset: u64, loads: u64) -> u64 {
    assert!((offset as usize) < words.len());
    for _ in 0..loads {
        // SAFETY: the first offset is in range, as asserted, and `lay_out`, which wrote all others, writes only
        // offsets of existing lines.
        offset = unsafe { *words.get_unchecked(offset as usize) };
    }
    offset
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let mib = super::mebibytes(params, 64)?;
    let pages = match params.text("pages") {
        None | Some("small") => Pages::Small,
        Some("huge") => Pages::Huge,
        Some(other) => return Err(super::bad_argument("pages", other, "small, huge")),
    };
    let mut region = Region::new(mib << 20, pages)?;
    let words = meter.prepare(|| {
        region.populate();
        let words = &mut region.words()[..(mib << 20) / size_of::<u64>()];
        let n_lines = u32::try_from(words.len() / LINE).unwrap_or(u32::MAX);
        lay_out(words, &cycle(n_lines));
        &*words
    })?;
    meter.checksum(follow(words, 0, 1_000));
    let mut offset = black_box(0);
    meter.loops("mem.random.time", 1.0, |loads| {
        // Continues where the last batch ended: the lines before that are the ones still in the caches.
        offset = follow(words, offset, loads);
        black_box(offset);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycle_passes_through_every_line_once() {
        for places in [1, 2, 3, 64, 1000] {
            let next = cycle(places);
            let mut seen = vec![false; places as usize];
            let mut place = 0;
            for _ in 0..places {
                assert!(!seen[place as usize], "back too early, of {places}");
                seen[place as usize] = true;
                place = next[place as usize];
            }
            assert_eq!(place, 0);
        }
    }

    #[test]
    fn following_the_whole_cycle_leads_back() {
        let mut words = vec![0; 100 * LINE];
        lay_out(&mut words, &cycle(100));
        assert_eq!(follow(&words, 0, 100), 0);
        assert_ne!(follow(&words, 0, 50), 0);
    }
}
