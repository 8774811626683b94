//! What the kernel counts in a network namespace: `/proc/net/snmp` and `/proc/net/netstat`.
//!
//! Agent and host read theirs and hand the text in. Source: proc_pid_net(5).

/// A number of either file: each protocol has a line of names and a line of numbers.
pub fn column_of(text: &str, protocol: &str, column: &str) -> Option<f64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let place = lines
        .next()?
        .split_whitespace()
        .position(|name| name == column)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}
