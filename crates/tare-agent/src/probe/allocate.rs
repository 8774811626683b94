//! `allocate`: allocates and frees memory, in small and in large blocks.
//!
//! Inside the timed regions: `mem.allocate.time`, allocating one block of 16 to 512 bytes, writing its first word,
//! and freeing it, with 1 000 of them alive at once and freed in another order; `mem.allocate-large.time`, allocating
//! one block of 1 MiB, writing one byte of each of its pages, and freeing it, so that it comes from the kernel every
//! time.
//! Outside: the order of blocks, one round as warm-up.
//! Known bias: the allocator is the agent's (musl), the same everywhere; it has no per-thread caches and returns
//! large blocks at once. Garbage collectors behave differently.
//! Correspondence: "Memory Allocation - Medium load" and "- Heavy load" of a published comparison of containers
//! (2019).
//! Source: ours.

use std::hint::black_box;

use tare_model::{Params, whole_size};

use super::integer::chain;
use crate::meter::{Meter, ProbeError};

super::probe! {
    "allocate": "taking and giving back memory: a thousand small blocks, and one block of 1 MiB with its pages touched";
    revision 1, cut KERNEL
}

/// Small blocks alive at once.
const BLOCKS: usize = 1_000;
/// Sizes of the small blocks, in words of 8 bytes.
const WORDS: std::ops::RangeInclusive<u64> = 2..=64;
/// Bytes of a large block, and of a page.
const LARGE_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: u64| {
        state = chain(state, 1);
        state % below
    };
    let words: Vec<usize> = (0..BLOCKS)
        .map(|_| whole_size(WORDS.start() + random(WORDS.end() - WORDS.start() + 1)))
        .collect();
    let mut order: Vec<usize> = (0..BLOCKS).collect();
    for place in (1..BLOCKS).rev() {
        order.swap(place, whole_size(random(place as u64 + 1)));
    }
    let mut blocks: Vec<Vec<u64>> = Vec::with_capacity(BLOCKS);
    blocks.resize_with(BLOCKS, Vec::new);
    // One operation is one block, so the last round of a batch may be partial.
    let mut round = |n_blocks: usize| {
        for (block, words) in blocks.iter_mut().zip(&words[..n_blocks]) {
            let mut fresh = Vec::with_capacity(*words);
            fresh.push(0);
            *block = black_box(fresh);
        }
        for place in order.iter().filter(|place| **place < n_blocks) {
            blocks[*place] = Vec::new();
        }
    };
    meter.loops("mem.allocate.time", 0.5, |times| {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "of 64 bits, and in the timed work"
        )]
        let (whole, rest) = (times as usize / BLOCKS, times as usize % BLOCKS);
        for _ in 0..whole {
            round(BLOCKS);
        }
        if rest > 0 {
            round(rest);
        }
        Ok(())
    })?;
    meter.loops("mem.allocate-large.time", 0.5, |times| {
        for _ in 0..times {
            let mut large: Vec<u8> = Vec::with_capacity(LARGE_BYTES);
            let spare = large.spare_capacity_mut();
            for byte in spare.iter_mut().step_by(PAGE_BYTES) {
                black_box(byte.write(1));
            }
            drop(black_box(large));
        }
        Ok(())
    })
}
