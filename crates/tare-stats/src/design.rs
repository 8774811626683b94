//! The order in which the arms of a block run.
//!
//! Williams squares (Williams 1949), in which every arm follows every other equally often, relabelled and shuffled by
//! a seed.
//!
//! Carry-over from the previous trial (warm caches, dirty pages, heat) then hits all arms equally, and a slow drift
//! hits every arm of a block. Each block's order is a function of (arms, seed, block), so a study can be resumed or
//! extended.
//!
//! Limits: does not balance carry-over beyond the direct neighbour, and cannot check that the order was followed.

use crate::random::Stream;

const RELABEL: u64 = 0x0072_656c_6162_656c;
const ROWS: u64 = 0x726f_7773;
const CLOSED: u64 = 0x0063_6c6f_7365_6400;

/// Returns the rows of a Williams square for `n` arms: n rows if n is even, 2n if odd.
///
/// The first row zigzags 0, 1, n−1, 2, n−2, …; the others add 1, 2, … modulo n; for odd n all rows are appended
/// reversed. Each ordered pair of neighbours then occurs once (even) or twice (odd). No rows for no arms, one row for
/// one.
pub fn williams_rows(n: usize) -> Vec<Vec<usize>> {
    if n < 2 {
        return vec![vec![0]; n];
    }
    let first: Vec<usize> = (0..n)
        .map(|position| {
            if position % 2 == 1 {
                position.div_ceil(2)
            } else {
                (n - position / 2) % n
            }
        })
        .collect();
    let mut rows: Vec<Vec<usize>> = (0..n)
        .map(|row| first.iter().map(|arm| (arm + row) % n).collect())
        .collect();
    if n % 2 == 1 {
        let reversed: Vec<Vec<usize>> = rows
            .iter()
            .map(|row| row.iter().rev().copied().collect())
            .collect();
        rows.extend(reversed);
    }
    rows
}

/// An endless sequence of block orders.
///
/// The seed relabels the arms once. Blocks take the rows of [`williams_rows`] in random order, reshuffled when all
/// are used.
#[derive(Debug, Clone)]
pub struct BlockOrders {
    rows: Vec<Vec<usize>>,
    seed: u64,
}

impl BlockOrders {
    /// Creates the orders for `n_arms` arms under a seed.
    pub fn new(n_arms: usize, seed: u64) -> Self {
        let mut label: Vec<usize> = (0..n_arms).collect();
        Stream::new(seed, RELABEL, n_arms as u64).shuffle(&mut label);
        let mut rows = williams_rows(n_arms);
        for arm in rows.iter_mut().flatten() {
            *arm = label[*arm];
        }
        Self { rows, seed }
    }

    /// Returns the order of the arms in block number `block`, counted from zero. It depends only on the number of
    /// arms, the seed and the block.
    pub fn order(&self, block: usize) -> Vec<usize> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let (cycle, position) = (block / self.rows.len(), block % self.rows.len());
        let mut index: Vec<usize> = (0..self.rows.len()).collect();
        Stream::new(self.seed, ROWS, cycle as u64).shuffle(&mut index);
        self.rows[index[position]].clone()
    }

    /// Returns the number of blocks after which every row was used once.
    pub fn cycle_len(&self) -> usize {
        self.rows.len()
    }
}

/// How many orders of the rows are tried. Of the orders for three arms 94 % are closed, of those for four 67 %.
const CLOSED_TRIES: u64 = 1_000;

/// Returns the rows of [`williams_rows`] for a cyclic alternation: relabelled by the seed, and ordered so that no arm
/// follows itself from one row to the next, including from the last to the first. A slice right after one of the same
/// arm would find its caches warm.
///
/// Two arms get one row: with both rows, each boundary is between slices of one arm. A single arm always follows
/// itself.
pub fn closed_rows(n_arms: usize, seed: u64) -> Vec<Vec<usize>> {
    let orders = BlockOrders::new(n_arms, seed);
    let mut rows: Vec<Vec<usize>> = (0..orders.cycle_len())
        .map(|row| orders.order(row))
        .collect();
    if n_arms <= 2 {
        rows.truncate(1);
        return rows;
    }
    let is_closed = |rows: &[Vec<usize>]| {
        let next = rows.iter().cycle().skip(1);
        rows.iter()
            .zip(next)
            .all(|(row, next)| row.last() != next.first())
    };
    for attempt in 0..CLOSED_TRIES {
        if is_closed(&rows) {
            break;
        }
        Stream::new(seed, CLOSED, attempt).shuffle(&mut rows);
    }
    rows
}
