//! Transpose, sum and element-wise product: plain loops that the compiler vectorises, compiled twice on x86-64 and
//! chosen by the processor's features.

/// Defines a function that runs `body` compiled for AVX2 if the processor has it, else for the baseline.
macro_rules! dispatched {
    ($(#[$doc:meta])* $name:ident, $body:ident, ($($argument:ident: $type:ty),*)) => {
        $(#[$doc])*
        pub(super) fn $name($($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $type),*) {
                    $body($($argument),*);
                }
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2, the only precondition.
                    return unsafe { wide($($argument),*) };
                }
            }
            $body($($argument),*);
        }
    };
}

dispatched! {
    /// Writes the transpose of the `n` × `n` matrix `a` to `out`.
    transpose, transpose_body, (n: usize, a: &[f64], out: &mut [f64])
}

dispatched! {
    /// Writes `a + b` to `out`.
    add, add_body, (a: &[f64], b: &[f64], out: &mut [f64])
}

dispatched! {
    /// Writes the element-wise product of `a` and `b` to `out`.
    multiply, multiply_body, (a: &[f64], b: &[f64], out: &mut [f64])
}

/// Rows and columns of a tile: 8 cache lines of 64 bytes are read and 8 written.
const TILE: usize = 8;

#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn transpose_body(n: usize, a: &[f64], out: &mut [f64]) {
    assert!(a.len() == n * n && out.len() == n * n);
    let tiled = n - n % TILE;
    for row in (0..tiled).step_by(TILE) {
        for column in (0..tiled).step_by(TILE) {
            let mut tile = [[0.0; TILE]; TILE];
            for (i, line) in tile.iter_mut().enumerate() {
                let from = (row + i) * n + column;
                line.copy_from_slice(&a[from..from + TILE]);
            }
            let turned: [[f64; TILE]; TILE] =
                std::array::from_fn(|j| std::array::from_fn(|i| tile[i][j]));
            for (j, line) in turned.iter().enumerate() {
                let to = (column + j) * n + row;
                out[to..to + TILE].copy_from_slice(line);
            }
        }
    }
    // The rest beyond the last whole tile; empty for the built-in sizes.
    for row in 0..n {
        let from = if row < tiled { tiled } else { 0 };
        for column in from..n {
            out[column * n + row] = a[row * n + column];
        }
    }
}

#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn add_body(a: &[f64], b: &[f64], out: &mut [f64]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a + b;
    }
}

#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "it must be compiled inside of its callers to use their instructions"
)]
fn multiply_body(a: &[f64], b: &[f64], out: &mut [f64]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a * b;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::float_cmp, reason = "copies, and one operation done twice")]
    fn each_element_lands_where_it_should() {
        let n = 24;
        let a: Vec<f64> = (0..n * n).map(|place| place as f64).collect();
        let b: Vec<f64> = a.iter().map(|value| value * 0.5 + 1.0).collect();
        let mut out = vec![0.0; n * n];
        transpose(n, &a, &mut out);
        for row in 0..n {
            for column in 0..n {
                assert_eq!(out[column * n + row], a[row * n + column]);
            }
        }
        add(&a, &b, &mut out);
        assert!((0..n * n).all(|place| out[place] == a[place] + b[place]));
        multiply(&a, &b, &mut out);
        assert!((0..n * n).all(|place| out[place] == a[place] * b[place]));
    }
}
