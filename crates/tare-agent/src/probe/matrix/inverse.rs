//! The inverse of a dense matrix, frozen: recursive Gauss–Jordan elimination with partial pivoting.
//!
//! `P·A` is inverted in place, where `P` is the row exchanges of partial pivoting, and then the columns of the result
//! are reordered. To eliminate a range of columns: eliminate its left half, apply that to its right half with one
//! matrix product, eliminate the right half, and apply that to the left one. The recursion ends at a strip of eight
//! columns. All but a few percent of the 2n³ operations are then in the matrix product, whose kernel keeps six rows
//! by eight columns in registers.
//! Why Gauss–Jordan and not LU with two triangular solves: the same number of operations in one shape. With partial
//! pivoting the inverse is as accurate as with LU (Peters and Wilkinson 1975; Higham, "Accuracy and Stability of
//! Numerical Algorithms", 2nd ed., §14.4).
//! Limits: does not detect an ill-conditioned matrix; only an exactly singular one is refused.

use super::placed::Placed;

/// Columns of a strip, of a register tile and of a packed panel.
const STRIP: usize = 8;
/// Rows of a register tile.
const TILE_ROWS: usize = 6;
/// Rows that are multiplied by one packed panel before the next: with 256 columns 192 KiB, part of an L2 cache.
const BLOCK_ROWS: usize = 96;

/// Inverts matrices of one size; owns the memory for it.
#[derive(Debug)]
pub(super) struct Inverter {
    n: usize,
    /// Rows and columns of `work`: `n` rounded up to whole strips.
    padded: usize,
    /// Elements from one row of `work` to the next; not a power of two, so that rows do not share cache sets.
    stride: usize,
    work: Placed,
    strip: Placed,
    panel: Placed,
    /// The row of the matrix that each row of `work` holds.
    order: Vec<usize>,
    /// Whether the processor has AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    wide: bool,
}

impl Inverter {
    /// Allocates the memory for `n` × `n` matrices.
    pub(super) fn new(n: usize) -> Self {
        let padded = n.next_multiple_of(STRIP);
        let stride = padded + STRIP;
        Self {
            n,
            padded,
            stride,
            work: Placed::zeroes(padded * stride, 3),
            strip: Placed::zeroes(padded * STRIP, 4),
            panel: Placed::zeroes((padded / 2).next_multiple_of(STRIP) * padded.max(STRIP), 5),
            order: vec![0; padded],
            #[cfg(target_arch = "x86_64")]
            wide: std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
        }
    }

    /// Writes the inverse of `matrix` to `result`. Returns `false` and leaves `result` unchanged if a pivot is zero.
    pub(super) fn invert(&mut self, matrix: &[f64], result: &mut [f64]) -> bool {
        assert!(matrix.len() == self.n * self.n && result.len() == self.n * self.n);
        self.load(matrix);
        if !self.eliminate(0, self.padded) {
            return false;
        }
        for (row, out) in result.chunks_exact_mut(self.n).enumerate() {
            let from = &self.work[row * self.stride..][..self.n];
            for (value, column) in from.iter().zip(&self.order) {
                out[*column] = *value;
            }
        }
        true
    }

    /// Copies the matrix into `work` and fills the rest of the last strip with an identity.
    fn load(&mut self, matrix: &[f64]) {
        // Multiplied by a one that the compiler cannot see: a plain copy would become a call to the C library's
        // memcpy, which should not be measured.
        let one = std::hint::black_box(1.0);
        for (from, to) in matrix
            .chunks_exact(self.n)
            .zip(self.work.chunks_exact_mut(self.stride))
        {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from * one;
            }
        }
        for row in 0..self.padded {
            self.order[row] = row;
            let first = if row < self.n { self.n } else { 0 };
            for column in first..self.padded {
                self.work[row * self.stride + column] = one * f64::from(u8::from(row == column));
            }
        }
    }

    /// Exchanges two rows of `work`.
    fn exchange(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        self.order.swap(one, other);
        let (low, high) = (one.min(other), one.max(other));
        let (before, after) = self.work.split_at_mut(high * self.stride);
        let low = &mut before[low * self.stride..][..self.padded];
        for (low, high) in low.iter_mut().zip(after) {
            std::mem::swap(low, high);
        }
    }
    /// Eliminates `width` columns from `first` with the rows of the same numbers; `false` if a pivot is zero.
    ///
    /// Afterwards these columns hold the factors for [`Inverter::apply`].
    fn eliminate(&mut self, first: usize, width: usize) -> bool {
        if width == STRIP {
            return self.eliminate_strip(first);
        }
        let left = (width / 2).next_multiple_of(STRIP);
        let right = width - left;
        if !self.eliminate(first, left) {
            return false;
        }
        self.apply(first, left, first + left, right);
        if !self.eliminate(first + left, right) {
            return false;
        }
        self.apply(first + left, right, first, left);
        true
    }

    /// Eliminates one strip of columns, in a contiguous copy.
    fn eliminate_strip(&mut self, first: usize) -> bool {
        for (row, line) in self.strip.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
            line.copy_from_slice(&self.work[row * self.stride + first..][..STRIP]);
        }
        for column in 0..STRIP {
            let target = first + column;
            let pivot = self.largest_below(target, column);
            let strip = self.strip.as_chunks_mut::<STRIP>().0;
            if strip[pivot][column] == 0.0 {
                return false;
            }
            strip.swap(pivot, target);
            self.exchange(pivot, target);
            let strip = self.strip.as_chunks_mut::<STRIP>().0;
            #[cfg(target_arch = "x86_64")]
            if self.wide {
                // SAFETY: the processor has AVX2 and FMA, the only preconditions.
                unsafe { eliminate_column_wide(strip, target, column) };
                continue;
            }
            eliminate_column::<false>(strip, target, column);
        }
        for (row, line) in self.strip.as_chunks::<STRIP>().0.iter().enumerate() {
            self.work[row * self.stride + first..][..STRIP].copy_from_slice(line);
        }
        true
    }

    /// Returns the row, from `target` on, with the largest element in this column of the strip.
    fn largest_below(&self, target: usize, column: usize) -> usize {
        let strip = self.strip.as_chunks::<STRIP>().0;
        let (mut pivot, mut largest) = (target, strip[target][column].abs());
        for (row, line) in strip.iter().enumerate().skip(target + 1) {
            if line[column].abs() > largest {
                (pivot, largest) = (row, line[column].abs());
            }
        }
        pivot
    }

    /// Applies the elimination of the `depth` columns from `first` to the `width` columns from `column`: with `G` the
    /// former and `R` the rows `first..first + depth` of the latter, `R` becomes `G·R`, and `G·R` is added to all
    /// other rows.
    fn apply(&mut self, first: usize, depth: usize, column: usize, width: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: the processor has AVX2 and FMA, the only preconditions.
            return unsafe { apply_wide(self, first, depth, column, width) };
        }
        apply::<false>(self, first, depth, column, width);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn eliminate_column_wide(strip: &mut [[f64; STRIP]], target: usize, column: usize) {
    eliminate_column::<true>(strip, target, column);
}

/// One step of Gauss–Jordan elimination in place, within a strip.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn eliminate_column<const FUSED: bool>(strip: &mut [[f64; STRIP]], target: usize, column: usize) {
    let mut pivot = strip[target];
    let reciprocal = 1.0 / pivot[column];
    pivot[column] = 1.0;
    for value in &mut pivot {
        *value *= reciprocal;
    }
    for line in strip.iter_mut() {
        let factor = -line[column];
        line[column] = 0.0;
        for (value, pivot) in line.iter_mut().zip(&pivot) {
            *value = multiply_add::<FUSED>(factor, *pivot, *value);
        }
    }
    // The branch-free loop above has computed this row too; restore it.
    strip[target] = pivot;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn apply_wide(inverter: &mut Inverter, first: usize, depth: usize, column: usize, width: usize) {
    apply::<true>(inverter, first, depth, column, width);
}

#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn apply<const FUSED: bool>(
    inverter: &mut Inverter,
    first: usize,
    depth: usize,
    column: usize,
    width: usize,
) {
    let Inverter {
        padded,
        stride,
        ref mut work,
        ref mut panel,
        ..
    } = *inverter;
    assert!(first + depth <= padded && column + width <= padded);
    assert!(first + depth <= column || column + width <= first);
    assert!(width.is_multiple_of(STRIP) && padded <= stride && work.len() == padded * stride);
    let panel = &mut panel[..depth * width];
    pack(&work[first * stride..], stride, depth, column, panel);
    let work = work.as_mut_ptr();
    // Three ranges of rows: above the pivot rows, the pivot rows, and below.
    for (begin, end, adding) in [
        (0, first, true),
        (first, first + depth, false),
        (first + depth, padded, true),
    ] {
        for block in (begin..end).step_by(BLOCK_ROWS) {
            let block_end = end.min(block + BLOCK_ROWS);
            for (strip, packed) in panel.chunks_exact(depth * STRIP).enumerate() {
                let mut row = block;
                while row < block_end {
                    // SAFETY: `row + rows` is at most `padded`, the rows of `work`; the columns from `first` and the
                    // strip's columns from `column` on are within a row and do not overlap (asserted above); `packed`
                    // holds `depth` lines of a strip.
                    unsafe {
                        let factors = work.add(row * stride + first).cast_const();
                        let out = work.add(row * stride + column + strip * STRIP);
                        // Without wide registers no more than two rows fit into them.
                        row += match block_end - row {
                            TILE_ROWS.. if FUSED => {
                                tile::<FUSED, TILE_ROWS>(factors, out, stride, packed, adding)
                            }
                            4.. if FUSED => tile::<FUSED, 4>(factors, out, stride, packed, adding),
                            2.. => tile::<FUSED, 2>(factors, out, stride, packed, adding),
                            _ => tile::<FUSED, 1>(factors, out, stride, packed, adding),
                        };
                    }
                }
            }
        }
    }
}

/// Copies `depth` rows of the columns from `column` on into contiguous strips.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn pack(rows: &[f64], stride: usize, depth: usize, column: usize, panel: &mut [f64]) {
    for (strip, packed) in panel.chunks_exact_mut(depth * STRIP).enumerate() {
        for (row, line) in packed.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
            line.copy_from_slice(&rows[row * stride + column + strip * STRIP..][..STRIP]);
        }
    }
}

/// Multiplies `ROWS` rows of factors by one packed strip and stores the result or adds it; returns `ROWS`.
///
/// # Safety
/// `factors` points to `ROWS` rows, `stride` apart, of as many readable elements as `packed` has lines; `out` to
/// `ROWS` rows, `stride` apart, of [`STRIP`] writable elements; none of them overlap. With `FUSED` the processor has
/// AVX2 and FMA.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
unsafe fn tile<const FUSED: bool, const ROWS: usize>(
    factors: *const f64,
    out: *mut f64,
    stride: usize,
    packed: &[f64],
    adding: bool,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if FUSED {
        // SAFETY: the same preconditions, and `FUSED` means that the processor has the instructions.
        unsafe { wide::tile::<ROWS>(factors, out, stride, packed, adding) };
        return ROWS;
    }
    let mut sums = [[0.0; STRIP]; ROWS];
    for (place, line) in packed.as_chunks::<STRIP>().0.iter().enumerate() {
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row `row` of the factors has as many elements as `packed` has lines.
            let factor = unsafe { *factors.add(row * stride + place) };
            for (sum, value) in sums.iter_mut().zip(line) {
                *sum += factor * value;
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        // SAFETY: row `row` of `out` has a strip of writable elements without another reference.
        let line = unsafe { &mut *out.add(row * stride).cast::<[f64; STRIP]>() };
        for (value, sum) in line.iter_mut().zip(sums) {
            *value = if adding { *value + sum } else { *sum };
        }
    }
    ROWS
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256d, _mm256_add_pd, _mm256_broadcast_sd, _mm256_fmadd_pd, _mm256_loadu_pd,
        _mm256_setzero_pd, _mm256_storeu_pd,
    };

    use super::STRIP;

    /// Like `tile` of the module above, in twelve of the sixteen registers. Written with intrinsics because the
    /// compiler keeps the sums of the plain loop in memory.
    ///
    /// # Safety
    /// The same as there.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn tile<const ROWS: usize>(
        factors: *const f64,
        out: *mut f64,
        stride: usize,
        packed: &[f64],
        adding: bool,
    ) {
        let mut sums: [[__m256d; 2]; ROWS] = [[_mm256_setzero_pd(); 2]; ROWS];
        let mut line = packed.as_ptr();
        for place in 0..packed.len() / STRIP {
            // SAFETY: `line` points to line `place` of `packed`, which has eight elements, and row `row` of
            // the factors has as many elements as `packed` has lines.
            unsafe {
                let (low, high) = (_mm256_loadu_pd(line), _mm256_loadu_pd(line.add(4)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm256_broadcast_sd(&*factors.add(row * stride + place));
                    sums[0] = _mm256_fmadd_pd(factor, low, sums[0]);
                    sums[1] = _mm256_fmadd_pd(factor, high, sums[1]);
                }
                line = line.add(STRIP);
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            // SAFETY: row `row` of `out` has a strip of eight writable elements.
            unsafe {
                let place = out.add(row * stride);
                let (mut low, mut high) = (sums[0], sums[1]);
                if adding {
                    low = _mm256_add_pd(low, _mm256_loadu_pd(place));
                    high = _mm256_add_pd(high, _mm256_loadu_pd(place.add(4)));
                }
                _mm256_storeu_pd(place, low);
                _mm256_storeu_pd(place.add(4), high);
            }
        }
    }
}

/// Returns `a·b + c`, rounded once if the processor can.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::super::{hadamard, noise};
    use super::*;

    /// Returns the largest deviation of `a·b` from the identity.
    fn residual(n: usize, a: &[f64], b: &[f64]) -> f64 {
        let mut worst = 0.0f64;
        for row in 0..n {
            for column in 0..n {
                let sum: f64 = (0..n).map(|k| a[row * n + k] * b[k * n + column]).sum();
                worst = worst.max((sum - f64::from(u8::from(row == column))).abs());
            }
        }
        worst
    }

    /// Returns an inverter for this processor and one for any processor.
    fn inverters(n: usize) -> Vec<Inverter> {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(unused_mut, reason = "nothing to switch off")
        )]
        let mut plain = Inverter::new(n);
        #[cfg(target_arch = "x86_64")]
        {
            plain.wide = false;
        }
        vec![Inverter::new(n), plain]
    }

    #[test]
    fn matrix_times_inverse_is_the_identity() {
        for n in [1, 2, 3, 7, 8, 9, 16, 31, 40, 64, 100, 130] {
            let matrix: Vec<f64> = noise(n).iter().map(|value| value - 0.5).collect();
            for mut inverter in inverters(n) {
                let mut inverse = vec![0.0; n * n];
                // Twice, because the memory is reused.
                for _ in 0..2 {
                    assert!(inverter.invert(&matrix, &mut inverse), "{n}");
                    let worst = residual(n, &matrix, &inverse);
                    assert!(worst < 1e-9, "{n}: {worst}");
                }
            }
        }
    }

    #[test]
    #[allow(
        clippy::float_cmp,
        reason = "each element has one factor that is not 0"
    )]
    fn a_matrix_that_needs_exchanges_is_inverted() {
        // Zeroes on the diagonal: without pivoting the first step would divide by zero.
        let n = 20;
        let mut matrix = vec![0.0; n * n];
        for row in 0..n {
            matrix[row * n + (row + 7) % n] = row as f64 + 1.0;
        }
        let mut inverse = vec![0.0; n * n];
        assert!(Inverter::new(n).invert(&matrix, &mut inverse));
        assert_eq!(residual(n, &matrix, &inverse), 0.0);
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "nothing has touched them")]
    fn a_singular_matrix_is_refused() {
        for n in [1, 8, 20] {
            let mut matrix = noise(n);
            for value in matrix.iter_mut().step_by(n) {
                *value = 0.0;
            }
            let mut inverse = vec![7.0; n * n];
            assert!(!Inverter::new(n).invert(&matrix, &mut inverse), "{n}");
            assert!(inverse.iter().all(|value| *value == 7.0));
        }
    }

    #[test]
    fn both_compilations_round_to_the_same_whole_numbers() {
        let n = 64;
        let results: Vec<Vec<f64>> = inverters(n)
            .iter_mut()
            .map(|inverter| {
                let mut inverse = vec![0.0; n * n];
                assert!(inverter.invert(&hadamard(n), &mut inverse));
                inverse
                    .iter()
                    .map(|value| (value * n as f64).round())
                    .collect()
            })
            .collect();
        assert_eq!(results[0], results[1]);
    }
}
