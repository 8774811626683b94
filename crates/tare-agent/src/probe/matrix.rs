//! `matrix`: transposes, inverts, adds and multiplies dense matrices element by element.
//!
//! Inside the timed regions, each separate: the transpose of one matrix, its inverse (LU-like elimination with
//! partial pivoting, including the copy of the matrix), the sum and the element-wise product of two. Results go to
//! preallocated memory.
//! Outside: making the matrices, all allocation, one inverse as warm-up.
//! `size` is `small` (64 × 64, fits in the L1 and L2 caches), `large` (512 × 512, 2 MiB each), or one of the
//! source's: `source-small` (500 × 500) and `source-large` (8000 × 8000, 512 MB each, minutes for an inverse).
//! The matrix to invert is a Hadamard matrix with rows and columns shuffled: dense, perfectly conditioned, and its
//! inverse is known (the transpose divided by n). So the result can be rounded to exact whole numbers, and the
//! checksum is the same on processors with and without fused operations.
//! Known bias: uses AVX2 and FMA if the processor reports them, so a guest that hides them is slower.
//! Source: the operations are those of Danilova and Sergeev (2024), whose matrices have 500² and 8000² elements; the
//! kernels are ours, see `inverse`.

use std::hint::black_box;

use tare_model::Params;

use super::integer::chain;
use crate::meter::{Meter, ProbeError};

mod elementwise;
mod inverse;
mod placed;

use inverse::Inverter;
use placed::Placed;

super::probe! {
    "matrix": "transpose, inverse, element-wise sum and product of dense matrices";
    revision 2, cut LOOP
}

/// Returns a permutation of `0..length`, always the same for the same seed.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the upper half of a product is below either factor"
)]
fn shuffled(length: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    let mut state = seed;
    for place in (1..length).rev() {
        state = chain(state, 1);
        order.swap(
            place,
            ((u128::from(state) * (place as u128 + 1)) >> 64) as usize,
        );
    }
    order
}

/// Returns a Hadamard matrix with rows and columns shuffled: Sylvester's construction, applied to one of Paley's if
/// `n` is not a power of two.
fn hadamard(n: usize) -> Vec<f64> {
    let rows = shuffled(n, 0x9e37_79b9_7f4a_7c15);
    let columns = shuffled(n, 0xd134_2543_de82_ef95);
    let core = Paley::below(n);
    let order = core.as_ref().map_or(1, |core| core.order);
    let mut matrix = Vec::with_capacity(n * n);
    for row in &rows {
        for column in &columns {
            let is_positive = ((row / order) & (column / order)).count_ones() & 1 == 0;
            let is_core_positive = core
                .as_ref()
                .is_none_or(|core| core.is_positive(row % order, column % order));
            matrix.push(if is_positive == is_core_positive {
                1.0
            } else {
                -1.0
            });
        }
    }
    matrix
}

/// A Hadamard matrix of Paley's first construction: of order q + 1 for a prime q ≡ 3 (mod 4).
/// Source: Paley, "On orthogonal matrices", J. Math. Phys. 12 (1933).
struct Paley {
    order: usize,
    /// Whether a number below q is a square modulo q.
    squares: Vec<bool>,
}

impl Paley {
    /// Returns the matrix of the largest order that is `n` divided by a power of two; `None` if `n` is a power of
    /// two.
    fn below(n: usize) -> Option<Self> {
        if n.is_power_of_two() {
            return None;
        }
        let is_prime = |q: usize| q > 2 && (2..=q.isqrt()).all(|d| !q.is_multiple_of(d));
        let order = std::iter::successors(Some(n), |order| (order % 2 == 0).then_some(order / 2))
            .find(|order| order % 4 == 0 && is_prime(order - 1))
            .expect("the sizes that are offered have one, which a test checks");
        let q = order - 1;
        let mut squares = vec![false; q];
        for number in 1..q {
            squares[number * number % q] = true;
        }
        Some(Self { order, squares })
    }

    /// Whether an element is positive. The first row is positive, the rest of the first column negative, the diagonal
    /// positive; any other element is positive if the difference of its indices is a square.
    fn is_positive(&self, row: usize, column: usize) -> bool {
        match (row, column) {
            (0, _) => true,
            (_, 0) => false,
            _ if row == column => true,
            _ => {
                let q = self.order - 1;
                self.squares[(row + q - column) % q]
            }
        }
    }
}

/// Returns numbers between 0 and 1 without a pattern.
fn noise(n: usize) -> Vec<f64> {
    let mut state = 0x2545_f491_4f6c_dd1d;
    (0..n * n)
        .map(|_| {
            state = chain(state, 1);
            // The upper 53 bits are exactly a double between 0 and 1.
            (state >> 11) as f64 / (1u64 << 53) as f64
        })
        .collect()
}

/// Mixes the bits of some elements into the meter's checksum.
fn mix(meter: &mut Meter, matrix: &[f64], reading: impl Fn(f64) -> u64) {
    // An odd step visits different columns in each row.
    for value in matrix.iter().step_by(61) {
        meter.checksum(reading(*value));
    }
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let n = match params.text("size") {
        None | Some("large") => 512,
        Some("small") => 64,
        Some("source-small") => 500,
        Some("source-large") => 8000,
        Some(other) => {
            let known = "small, large, source-small, source-large";
            return Err(super::bad_argument("size", other, known));
        }
    };
    let (first, second) = (
        Placed::copy_of(&hadamard(n), 0),
        Placed::copy_of(&noise(n), 1),
    );
    let mut result = Placed::zeroes(n * n, 2);
    let mut inverter = Inverter::new(n);

    elementwise::transpose(n, &second, &mut result);
    mix(meter, &result, f64::to_bits);
    elementwise::add(&first, &second, &mut result);
    mix(meter, &result, f64::to_bits);
    elementwise::multiply(&first, &second, &mut result);
    mix(meter, &result, f64::to_bits);
    inverter.invert(&first, &mut result);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "whole numbers, which have few digits"
    )]
    mix(meter, &result, |value| {
        ((value * n as f64).round() as i64).cast_unsigned()
    });

    meter.loops("cpu.matrix.transpose.time", 0.1, |times| {
        for _ in 0..times {
            elementwise::transpose(n, black_box(&first), &mut result);
            black_box(&mut result);
        }
        Ok(())
    })?;
    if n == 64 {
        meter.loops("cpu.matrix.inverse.time", 0.7, |times| {
            for _ in 0..times {
                inverter.invert(black_box(&first), &mut result);
                black_box(&mut result);
            }
            Ok(())
        })?;
    } else {
        // One takes milliseconds: much longer than reading the clock, and too long to calibrate.
        meter.each("cpu.matrix.inverse.time", 0.7, || {
            inverter.invert(black_box(&first), &mut result);
            black_box(&mut result);
            Ok(())
        })?;
    }
    meter.loops("cpu.matrix.add.time", 0.1, |times| {
        for _ in 0..times {
            elementwise::add(black_box(&first), black_box(&second), &mut result);
            black_box(&mut result);
        }
        Ok(())
    })?;
    meter.loops("cpu.matrix.multiply.time", 0.1, |times| {
        for _ in 0..times {
            elementwise::multiply(black_box(&first), black_box(&second), &mut result);
            black_box(&mut result);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hadamard_inverse_is_transpose_divided_by_n() {
        for n in [64, 256, 500] {
            let matrix = hadamard(n);
            let mut inverse = vec![0.0; n * n];
            assert!(Inverter::new(n).invert(&matrix, &mut inverse));
            let mut expected = vec![0.0; n * n];
            elementwise::transpose(n, &matrix, &mut expected);
            for (found, expected) in inverse.iter().zip(&expected) {
                assert!((found * n as f64 - expected).abs() < 1e-6, "{found}");
            }
        }
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "sums of ones are exact")]
    fn the_rows_of_every_size_are_orthogonal() {
        for n in [64, 12, 24, 500] {
            let matrix = hadamard(n);
            let rows: Vec<&[f64]> = matrix.chunks(n).collect();
            for (first, second) in [(0, 1), (n - 1, 0), (n / 2, n / 3), (5, 5)] {
                let products = rows[first].iter().zip(rows[second]);
                let sum: f64 = products.map(|(one, other)| one * other).sum();
                let expected = if first == second { n as f64 } else { 0.0 };
                assert_eq!(sum, expected, "{n}: {first} {second}");
            }
        }
        // 8000 is four times 2000, and 1999 is a prime ≡ 3 (mod 4).
        assert_eq!(Paley::below(8000).unwrap().order, 2000);
    }

    #[test]
    fn a_shuffled_order_holds_every_place_once() {
        let mut order = shuffled(100, 7);
        assert!(
            order
                .iter()
                .enumerate()
                .any(|(place, other)| place != *other)
        );
        order.sort_unstable();
        assert!(order.into_iter().eq(0..100));
    }
}
