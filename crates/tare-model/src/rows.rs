//! A macro for tables and word lists that `rustfmt` does not reflow.

/// An array of these elements. `rustfmt` leaves the lines between its braces alone; otherwise it would put every word
/// of a long row or list on its own line.
#[macro_export]
macro_rules! rows {
    ($($row:expr),+ $(,)?) => { [$($row),+] };
}
