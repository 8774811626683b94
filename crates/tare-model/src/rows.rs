//! Tables in the code with a row a line, and lists of words that fill their lines.

/// An array of these elements. Between its braces `rustfmt` leaves lines as they are, where it would set every word of
/// a long row, and every word of a long list, on a line of its own.
#[macro_export]
macro_rules! rows {
    ($($row:expr),+ $(,)?) => { [$($row),+] };
}
