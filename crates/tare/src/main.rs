//! The host binary.
fn main() {}
