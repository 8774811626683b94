//! Numbers at a place within their page that does not depend on the allocator.
//!
//! An allocator hands out addresses by its history, which differs between arms (what an agent has read of its
//! place, for one), and vectors that begin 16 bytes off a cache line take 5 to 10 % longer to add: a
//! difference between arms that no environment makes. So the first number lies at a multiple of the page's
//! size, plus some lines of its own for each matrix, lest all of them compete for the same cache sets and
//! a store be taken for one to the address of a later load. Source: Mytkowicz et al. (2009), "Producing wrong
//! data without doing anything obviously wrong".
//! What it cannot see: which physical pages lie below; those change from worker to worker.

use std::ops::{Deref, DerefMut};

/// Size of the pages within which the place is fixed.
const PAGE_BYTES: usize = 4096;
/// Numbers in a cache line of 64 bytes.
const LINE: usize = 8;
/// Lines between the places of two matrices: odd, and more than the loops look ahead.
const LINES_APART: usize = 5;

/// A fixed number of numbers at a fixed place.
// Not to be cloned: the copy would lie elsewhere in its page.
#[derive(Debug)]
pub(super) struct Placed {
    numbers: Vec<f64>,
    from: usize,
    length: usize,
}

impl Placed {
    /// `length` zeroes; `place` tells apart the matrices that are used together.
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

    /// These numbers.
    pub(super) fn of(numbers: &[f64], place: usize) -> Self {
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
    fn the_place_within_the_page_is_the_same_whatever_was_allocated_before() {
        let mut kept = Vec::new();
        for round in 0..40 {
            // Another history of the allocator each time.
            kept.push(vec![0u8; 17 * round + 1]);
            for place in 0..4 {
                let placed = Placed::of(&vec![1.0; 4096], place);
                assert_eq!(placed.as_ptr() as usize % PAGE_BYTES, place * 320);
                assert!(placed.len() == 4096 && placed.iter().all(|number| *number == 1.0));
            }
        }
    }
}
