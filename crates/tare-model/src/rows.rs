//! Tables in the code with a row a line.

/// An array of these elements. Between its braces `rustfmt` leaves lines as they are, so that a table reads as one,
/// where it would set every word of a row on a line of its own.
#[macro_export]
macro_rules! rows {
    ($($row:expr),+ $(,)?) => { [$($row),+] };
}
