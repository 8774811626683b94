//! Saturating conversions to whole numbers from durations, floats and wider integers, and the count that stored studies
//! leave out.
//!
//! No conversion wraps: values below 0 and NaN become 0, and values that do not fit become the largest number that
//! does.

use std::time::Duration;

/// Returns a duration in nanoseconds; exact up to 584 years.
pub fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns a number without its fraction.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "of a number with a fraction a cast takes the nearest that fits, and 0 of what is none"
)]
pub fn whole_part(number: f64) -> u64 {
    number as u64
}

/// Returns an index or a length: a number without its fraction, as [`whole_part`] takes it.
pub fn whole_place(number: f64) -> usize {
    whole_size(whole_part(number))
}

/// Converts a length or index counted in 64 bits; exact wherever memory is addressed in 64 bits.
pub fn whole_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Converts a count or index to the 32 bits used for arms, blocks and trials.
pub fn whole_count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Default of a stored count.
pub(crate) fn one() -> u32 {
    1
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
pub(crate) fn is_one(instances: &u32) -> bool {
    *instances == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_number_saturates() {
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
