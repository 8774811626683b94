//! Whole numbers out of times, of numbers with a fraction, and of wider whole ones.
//!
//! None of these wraps: what is below 0 or no number is 0, and what does not fit is the largest number that does.

use std::time::Duration;

/// The nanoseconds of a time: all of them up to 584 years.
pub fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A number without its fraction.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "of a number with a fraction a cast takes the nearest that fits, and 0 of what is none"
)]
pub fn whole_part(number: f64) -> u64 {
    number as u64
}

/// A place in a list, or a number of places: a number without its fraction, as [`whole_part`] takes it.
pub fn whole_place(number: f64) -> usize {
    whole_size(whole_part(number))
}

/// A length or place that was counted in 64 bits: the same number wherever memory is addressed in so many.
pub fn whole_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// How many there are of something, or which one of them it is, in the 32 bits that counts of arms, blocks and trials
/// have.
pub fn whole_count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_nearest_that_does() {
        assert_eq!(whole_ns(Duration::new(3, 7)), 3_000_000_007);
        assert_eq!(whole_ns(Duration::MAX), u64::MAX);
        for (number, whole) in [
            (0.0, 0),
            (2.9, 2),
            (-2.9, 0),
            (1e19, 10_000_000_000_000_000_000),
            (1e20, u64::MAX),
            (f64::INFINITY, u64::MAX),
            (f64::NEG_INFINITY, 0),
            (f64::NAN, 0),
        ] {
            assert_eq!(whole_part(number), whole, "{number}");
        }
        assert_eq!(whole_size(7), 7);
        assert_eq!(whole_count(7), 7);
        assert_eq!(whole_count(usize::MAX), u32::MAX);
    }
}
