//! Parses the kernel's counters of a network namespace: `/proc/net/snmp` and `/proc/net/netstat`.
//!
//! Agent and host read their files and pass the text in. Source: proc_pid_net(5).

/// Returns a number from either file: each protocol has a line of names and a line of numbers.
pub fn column_of(text: &str, protocol: &str, column: &str) -> Option<f64> {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let place = lines
        .next()?
        .split_whitespace()
        .position(|name| name == column)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}
