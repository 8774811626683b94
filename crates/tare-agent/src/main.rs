//! The agent.
fn main() {}
