//! Numbers at a fixed offset within their page, independent of the allocator.
//!
//! An allocator chooses addresses by its history, which differs between arms (e.g. by what the agent has read about
//! its environment). Adding vectors that begin 16 bytes off a cache line takes 5 to 10 % longer: a difference between
//! arms that no environment causes. So the first number is at a multiple of the page size plus some cache lines, a
//! different count for each matrix. Otherwise the matrices would compete for the same cache sets, and a store would
//! be taken for one to the address of a later load.
//! Source: Mytkowicz et al. (2009), "Producing wrong data without doing anything obviously wrong".
//! Limits: does not control the physical pages; those change from worker to worker.

use std::ops::{Deref, DerefMut};

/// Size of the pages within which the offset is fixed.
const PAGE_BYTES: usize = 4096;
/// Numbers in a cache line of 64 bytes.
const LINE: usize = 8;
/// Cache lines between the offsets of two matrices: odd, and more than the loops look ahead.
const LINES_APART: usize = 5;

/// A fixed-length array of numbers at a fixed offset.
// Not `Clone`: the copy would have another offset in its page.
#[derive(Debug)]
pub(super) struct Placed {
    numbers: Vec<f64>,
    from: usize,
    length: usize,
}

impl Placed {
    /// Returns `length` zeroes; `place` is different for each matrix that is used together with others.
    pub(super) fn zeroes(length: usize, place: usize) -> Self {
        let surplus = PAGE_BYTES / size_of::<f64>() + place * LINES_APART * LINE;
        let numbers = vec![0.0; length + surplus];
        let from = numbers.as_ptr().align_offset(PAGE_BYTES) + place * LINES_APART * LINE;
        Self {
            numbers,
            from,
            length,
        }
    }

    /// Copies `numbers`.
    pub(super) fn copy_of(numbers: &[f64], place: usize) -> Self {
        let mut placed = Self::zeroes(numbers.len(), place);
        placed.copy_from_slice(numbers);
        placed
    }
}

impl Deref for Placed {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.numbers[self.from..self.from + self.length]
    }
}

impl DerefMut for Placed {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.numbers[self.from..self.from + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp, reason = "copies")]
    fn page_offset_is_independent_of_earlier_allocations() {
        let mut kept = Vec::new();
        for round in 0..40 {
            // A different allocator history each time.
            kept.push(vec![0u8; 17 * round + 1]);
            for place in 0..4 {
                let placed = Placed::copy_of(&vec![1.0; 4096], place);
                assert_eq!(placed.as_ptr() as usize % PAGE_BYTES, place * 320);
                assert!(placed.len() == 4096 && placed.iter().all(|number| *number == 1.0));
            }
        }
    }
}
