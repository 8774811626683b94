//! Reads how much memory this machine has left.

use std::path::Path;

use super::files;

/// The kernel's estimate of this machine's available memory, bytes; `None` if it has none.
pub fn available_bytes() -> Option<u64> {
    available_in(&files::read_text(Path::new("/proc/meminfo")).ok()?)
}

fn available_in(table: &str) -> Option<u64> {
    let mut lines = table.lines();
    let text = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = text.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_the_kernels_table() {
        let table = "MemTotal: 9 kB\nMemAvailable:   24684092 kB\n";
        assert_eq!(available_in(table), Some(24_684_092 << 10));
        assert_eq!(available_in("MemTotal: 9 kB\n"), None);
    }
}
