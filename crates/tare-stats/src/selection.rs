//! The k-th smallest pairwise mean or difference without listing all pairs.
//!
//! Why: 1 000 blocks have 500 500 Walsh averages and 10 000 blocks fifty million.
//! For sorted input the number of pairs at or below a value is counted in one
//! sweep, so bisecting over the *bit patterns* of `f64` finds the exact order
//! statistic in at most 64 sweeps and no memory. It is the very number that sorting
//! would give, because the floating-point mean is monotone in each argument.
//!
//! What it cannot see: `NaN`. Callers refuse it.

/// How many pairs i ≤ j of the sorted `x` have a mean of at most `value`.
pub(crate) fn means_at_most(x: &[f64], value: f64) -> usize {
    let mut end = x.len();
    let mut count = 0;
    for (i, &left) in x.iter().enumerate() {
        while end > i && f64::midpoint(left, x[end - 1]) > value {
            end -= 1;
        }
        if end <= i {
            break;
        }
        count += end - i;
    }
    count
}

/// How many pairs i ≤ j of the sorted `x` have a mean below `value`.
pub(crate) fn means_below(x: &[f64], value: f64) -> usize {
    let mut end = x.len();
    let mut count = 0;
    for (i, &left) in x.iter().enumerate() {
        while end > i && f64::midpoint(left, x[end - 1]) >= value {
            end -= 1;
        }
        if end <= i {
            break;
        }
        count += end - i;
    }
    count
}

/// How many differences `b_j - a_i` of two sorted samples are at most `value`.
pub(crate) fn differences_at_most(a: &[f64], b: &[f64], value: f64) -> usize {
    let mut end = 0;
    let mut count = 0;
    for &left in a {
        while end < b.len() && b[end] - left <= value {
            end += 1;
        }
        count += end;
    }
    count
}

/// How many differences `b_j - a_i` of two sorted samples are below `value`.
pub(crate) fn differences_below(a: &[f64], b: &[f64], value: f64) -> usize {
    let mut end = 0;
    let mut count = 0;
    for &left in a {
        while end < b.len() && b[end] - left < value {
            end += 1;
        }
        count += end;
    }
    count
}

/// The smallest number in `[low, high]` for which `at_most` reaches `rank` (1-based).
pub(crate) fn order_statistic(
    rank: usize,
    low: f64,
    high: f64,
    at_most: impl Fn(f64) -> usize,
) -> f64 {
    let (mut low, mut high) = (to_ordered(low), to_ordered(high));
    while low < high {
        let middle = low + (high - low) / 2;
        if at_most(from_ordered(middle)) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Adding zero turns −0 into +0.
    from_ordered(low) + 0.0
}

/// The median by rank: the middle one of `count`, or the midpoint of the two.
pub(crate) fn middle(count: usize, nth: impl Fn(usize) -> f64) -> f64 {
    if count % 2 == 1 {
        nth(count / 2 + 1)
    } else {
        f64::midpoint(nth(count / 2), nth(count / 2 + 1))
    }
}

const SIGN: u64 = 1 << 63;

/// Maps numbers to integers in the same order.
fn to_ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn from_ordered(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}
